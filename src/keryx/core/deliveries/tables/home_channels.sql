-- name: home_channels.set
-- Make a chat the home channel of its account.
INSERT INTO homes (platform, account, chat_id, thread_id, chat_name, set_by, set_at)
VALUES (:platform, :account, :chat_id, :thread_id, :chat_name, :set_by, :now)
ON CONFLICT (platform, account) DO UPDATE
SET chat_id = excluded.chat_id, thread_id = excluded.thread_id, chat_name = excluded.chat_name,
    set_by = excluded.set_by, set_at = excluded.set_at

-- name: home_channels.list
-- List the home channels. If several accounts of a platform have one, the newest comes last.
SELECT platform, account, chat_id, thread_id, chat_name FROM homes ORDER BY set_at, platform, account
