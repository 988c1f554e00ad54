-- Gives a request to the least busy of some servers; of equally busy ones, whose turn it is.
-- KEYS: turn, then for each server its forwarded requests and its mark of being set aside.
-- ARGV: request id, life of the request's mark in ms.
-- Returns the server's number, from 1, or 0 when all are set aside.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local count = (#KEYS - 1) / 2
local turn = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], 3600)
local best, least = 0, nil
for step = 0, count - 1 do
  local at = (turn + step) % count
  local forwarded = KEYS[2 + 2 * at]
  if redis.call('EXISTS', KEYS[3 + 2 * at]) == 0 then
    redis.call('ZREMRANGEBYSCORE', forwarded, '-inf', now_ms)
    local busy = redis.call('ZCARD', forwarded)
    if least == nil or busy < least then
      best, least = at + 1, busy
    end
  end
end
if best > 0 then
  local forwarded = KEYS[2 * best]
  redis.call('ZADD', forwarded, now_ms + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', forwarded, ARGV[2])
end
return best
