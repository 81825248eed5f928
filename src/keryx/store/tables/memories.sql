-- name: memories.add
-- Something worth keeping, for the audience that heard it.
INSERT INTO memories (audience_id, text, session_id, seq, created_at)
VALUES (:audience_id, :text, :session_id, :seq, :now)
RETURNING id

-- name: memories.find_visible
-- One memory, forgotten or not, if the person belongs to its audience.
SELECT n.id, n.audience_id, n.text, n.session_id, n.seq, n.created_at, n.forgotten_at
FROM memories n
JOIN audience_members m ON m.audience_id = n.audience_id AND m.person_id = :person_id
WHERE n.id = :memory_id

-- name: memories.list_of_audience
-- What is remembered for an audience, newest first.
SELECT id, audience_id, text, session_id, seq, created_at, forgotten_at
FROM memories WHERE audience_id = :audience_id AND forgotten_at IS NULL
ORDER BY id DESC
LIMIT :limit

-- name: memories.set_forgotten
-- Forgotten since then, or remembered again; no change when it already is.
UPDATE memories SET forgotten_at = CAST(:since_at AS BIGINT)
WHERE id = :memory_id AND (forgotten_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)
