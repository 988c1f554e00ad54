-- Writes a new job: its record first, then its place in line.
-- KEYS: job, events, waiting, order.  ARGV: id, then field and value pairs of the record.
-- Returns the time in ms, or 0 when the id exists already (nothing is changed then).
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local place = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'state', 'queued', 'created_ms', now_ms,
  'place', place, 'attempt', 0, 'losses', 0, unpack(ARGV, 2))
redis.call('XADD', KEYS[2], '*', 'kind', 'state', 'state', 'queued')
redis.call('ZADD', KEYS[3], place, ARGV[1])
return now_ms
