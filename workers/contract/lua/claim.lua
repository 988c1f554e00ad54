-- Gives a worker the job that is next in line.
-- KEYS: waiting, leases.  ARGV: worker, lease in ms, prefix of job keys, prefix of event keys.
-- Returns {id, attempt, canonical job, cancel flag}, or false when nothing waits.
while true do
  local popped = redis.call('ZPOPMIN', KEYS[1])
  if #popped == 0 then
    return false
  end
  local id = popped[1]
  local key = ARGV[3] .. id
  if redis.call('HGET', key, 'state') == 'queued' then
    local time = redis.call('TIME')
    local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
    local attempt = redis.call('HINCRBY', key, 'attempt', 1)
    redis.call('HSET', key, 'state', 'running', 'worker', ARGV[1], 'started_ms', now_ms,
      'batch', 0)
    redis.call('ZADD', KEYS[2], now_ms + ARGV[2], id)
    redis.call('XADD', ARGV[4] .. id, '*', 'kind', 'state', 'state', 'running')
    redis.call('PUBLISH', NEWS, id)
    local job = redis.call('HMGET', key, 'job', 'cancel')
    return {id, attempt, job[1], job[2] or ''}
  end
end
