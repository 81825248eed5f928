-- columns: event
id, session_id, person_id, number, kind, subject, at

-- name: feed.next_session_no
-- Lock a session and reserve the next number of its stream.
UPDATE sessions SET feed_no = feed_no + 1 WHERE id = :session_id RETURNING feed_no

-- name: feed.add
-- Add an event of a session.
INSERT INTO feed (session_id, number, kind, subject, at) VALUES (:session_id, :number, :kind, :subject, :now)

-- name: feed.add_personal
-- Add an event to a person's stream.
INSERT INTO feed (person_id, number, kind, subject, at) VALUES (:person_id, :number, :kind, :subject, :now)

-- name: feed.list_after
-- The events after a position that a person may see, oldest first.
SELECT 0, {f.event}
FROM feed f LEFT JOIN sessions s ON s.id = f.session_id
WHERE f.id > :after_id
  AND (f.person_id = :person_id
       OR s.audience_id IN (SELECT audience_id FROM audience_members WHERE person_id = :person_id))
ORDER BY f.id
LIMIT :limit

-- name: feed.list_of_session
-- The events of a session after a number, oldest first.
SELECT 0, {f.event}
FROM feed f
WHERE f.session_id = :session_id AND f.number > :after_number
ORDER BY f.number
LIMIT :limit

-- name: feed.end
-- The position of the newest event.
SELECT 0 AS xid, COALESCE(MAX(id), 0) AS id FROM feed
