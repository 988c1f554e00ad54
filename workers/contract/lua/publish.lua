-- Adds what a running job generated to its stream and renews its lease.
-- KEYS: job, events, leases.
-- ARGV: id, attempt, lease in ms, number of the batch, tokens generated, tokens expected or '',
-- then (sequence, text, tokens, scores, cuts, echo) per delta.  A batch that was written before is not written again.
-- Returns 'lost' when another attempt owns the job (nothing is written then), else the cancel
-- flag: '1' or ''.
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt', 'cancel', 'batch')
if record[1] ~= 'running' or record[2] ~= ARGV[2] then
  return 'lost'
end
if tonumber(record[4]) < tonumber(ARGV[4]) then
  for n = 7, #ARGV, 6 do
    redis.call('XADD', KEYS[2], '*', 'kind', 'delta', 'sequence', ARGV[n], 'text', ARGV[n + 1],
      'tokens', ARGV[n + 2], 'scores', ARGV[n + 3], 'cuts', ARGV[n + 4], 'echo', ARGV[n + 5])
  end
  redis.call('HSET', KEYS[1], 'n_generated', ARGV[5], 'batch', ARGV[4])
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'n_expected', ARGV[6])
  end
  if #ARGV > 6 then
    redis.call('PUBLISH', NEWS, ARGV[1])
  end
end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3], ARGV[1])
return record[3] or ''
