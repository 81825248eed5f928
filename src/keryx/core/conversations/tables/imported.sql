-- name: imported.add_link
-- Link an imported session to its origin. An origin belongs to one session: a second import adds no link.
INSERT INTO links (kind, from_session_id, to_session_id, at_seq, origin, created_at)
VALUES (:kind, :from_session_id, :session_id, :at_seq, :origin, :created_at)
ON CONFLICT DO NOTHING

-- name: imported.add_events
-- Add an event for each message of a session, in the order of the messages, after the existing events.
INSERT INTO feed (session_id, number, kind, subject, at)
SELECT m.session_id, s.feed_no + ROW_NUMBER() OVER (ORDER BY m.branch_no, m.seq), 'message', m.id, :now
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.session_id = :session_id

-- name: imported.set_counters
-- Set the numbers of an imported session, and count the events of its messages.
UPDATE sessions SET
    last_seq = :last_seq,
    message_count = :message_count,
    feed_no = feed_no + (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id)
WHERE id = :session_id
