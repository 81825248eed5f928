-- name: home_channels.set
-- This chat is the home channel of its account from now on.
INSERT INTO homes (platform, account, chat_id, thread_id, chat_name, set_by, set_at)
VALUES (:platform, :account, :chat_id, :thread_id, :chat_name, :set_by, :now)
ON CONFLICT (platform, account) DO UPDATE
SET chat_id = excluded.chat_id, thread_id = excluded.thread_id, chat_name = excluded.chat_name,
    set_by = excluded.set_by, set_at = excluded.set_at

-- name: home_channels.list
-- All home channels; of a platform with several accounts the one set last comes last.
SELECT platform, account, chat_id, thread_id, chat_name FROM homes ORDER BY set_at, platform, account
