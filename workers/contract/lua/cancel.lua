-- Asks a job to end.
-- KEYS: job.
-- Returns 'idle' when no attempt has begun (the caller ends it), 'flagged' when its worker, or
-- the next one that claims it, will end it with the text made so far, 'ended' or 'unknown'.
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt')
if record[1] == false then
  return 'unknown'
end
if record[1] == 'queued' and record[2] == '0' then
  return 'idle'
end
if record[1] == 'queued' or record[1] == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', '1')
  return 'flagged'
end
return 'ended'
