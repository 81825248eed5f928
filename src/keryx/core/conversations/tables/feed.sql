-- columns: event
id, session_id, person_id, number, kind, subject, at

-- name: feed.next_session_no
-- The next gapless number of a session's stream; locks the session.
UPDATE sessions SET feed_no = feed_no + 1 WHERE id = :session_id RETURNING feed_no

-- name: feed.add
-- A fact about a session, under the number taken for it.
INSERT INTO feed (session_id, number, kind, subject, at) VALUES (:session_id, :number, :kind, :subject, :now)

-- name: feed.add_personal
-- A fact about no session, in a person's own stream.
INSERT INTO feed (person_id, number, kind, subject, at) VALUES (:person_id, :number, :kind, :subject, :now)

-- name: feed.list_after
-- What a person may see after a position, oldest first.
SELECT 0, {f.event}
FROM feed f LEFT JOIN sessions s ON s.id = f.session_id
WHERE f.id > :after_id
  AND (f.person_id = :person_id
       OR s.audience_id IN (SELECT audience_id FROM audience_members WHERE person_id = :person_id))
ORDER BY f.id
LIMIT :limit

-- name: feed.list_of_session
-- One session's stream after a number, oldest first.
SELECT 0, {f.event}
FROM feed f
WHERE f.session_id = :session_id AND f.number > :after_number
ORDER BY f.number
LIMIT :limit

-- name: feed.end
-- The newest position a reader may stand at.
SELECT 0 AS xid, COALESCE(MAX(id), 0) AS id FROM feed
