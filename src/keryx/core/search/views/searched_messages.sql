-- columns: searched_message
id, session_id, branch_no, seq, role, parts, author, author_id, created_at, turn_id

-- name: searched_messages.list
-- List some messages.
SELECT {searched_message}
FROM messages WHERE id IN (SELECT value FROM json_each(:ids))

-- name: searched_messages.list_ids
-- List a page of all message ids, rising.
SELECT id FROM messages WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: searched_messages.list_near
-- List the messages up to `reach` numbers before and after places, given as (session, branch, number).
SELECT m.session_id, m.seq, m.role, m.parts
FROM json_each(:places) p
JOIN messages m ON m.session_id = p.value ->> 0
    AND m.branch_no = p.value ->> 1
    AND m.seq BETWEEN (p.value ->> 2) - :reach AND (p.value ->> 2) + :reach
    AND m.seq <> p.value ->> 2

-- name: searched_messages.list_last
-- List the newest messages of a branch up to a number, newest first.
SELECT {searched_message}
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC LIMIT :limit

-- name: searched_messages.list_first
-- List the oldest messages of a branch from a number on, oldest first.
SELECT {searched_message}
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq LIMIT :limit
