-- Ends a job: the record, the last event, the news of it, the time to live.
-- KEYS: job, events, leases, waiting.
-- ARGV: id, state and attempt that the caller saw, final state, time to live in s, then field
-- and value pairs of the record.
-- Returns 1, or 0 when state or attempt is another by now (nothing is written then).
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt')
if record[1] ~= ARGV[2] or record[2] ~= ARGV[3] then
  return 0
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'finished_ms', now_ms, unpack(ARGV, 6))
redis.call('HDEL', KEYS[1], 'job', 'cancel')
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('XADD', KEYS[2], '*', 'kind', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
redis.call('EXPIRE', KEYS[2], ARGV[5])
redis.call('PUBLISH', NEWS, 'ended ' .. ARGV[1])
return 1
