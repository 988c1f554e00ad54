-- Renews the mark of a request that a server still works on; one that was released stays away.
-- KEYS: the server's forwarded requests.  ARGV: request id, life of the mark in ms.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], 'XX', now_ms + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
