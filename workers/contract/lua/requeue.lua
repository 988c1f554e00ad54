-- Puts a running job back in line, at its old place, for another attempt.
-- KEYS: job, events, leases, waiting.
-- ARGV: id, attempt that gives it up, '1' when its worker was lost, most losses allowed.
-- Returns 'queued', 'exhausted' when it lost too many workers (nothing is written then), or
-- 'lost' when another attempt owns it or its lease was renewed meanwhile.
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt', 'place', 'losses')
if record[1] == false then
  redis.call('ZREM', KEYS[3], ARGV[1])
  return 'lost'
end
if record[1] ~= 'running' or record[2] ~= ARGV[2] then
  return 'lost'
end
if ARGV[3] == '1' then
  local time = redis.call('TIME')
  local lapses_ms = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or '0')
  if lapses_ms > time[1] * 1000 + math.floor(time[2] / 1000) then
    return 'lost'
  end
  if tonumber(record[4]) + 1 >= tonumber(ARGV[4]) then
    return 'exhausted'
  end
  redis.call('HINCRBY', KEYS[1], 'losses', 1)
end
redis.call('HSET', KEYS[1], 'state', 'queued')
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('XADD', KEYS[2], '*', 'kind', 'state', 'state', 'queued')
redis.call('PUBLISH', NEWS, ARGV[1])
redis.call('ZADD', KEYS[4], record[3], ARGV[1])
return 'queued'
