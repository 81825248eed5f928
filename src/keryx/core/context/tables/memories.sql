-- columns: memory
id, audience_id, text, session_id, seq, author_id, replaces_id, fingerprint, created_at, forgotten_at

-- name: memories.add
-- Add a note for the audience that heard it.
INSERT INTO memories (audience_id, text, session_id, seq, author_id, replaces_id, fingerprint, created_at)
VALUES (:audience_id, :text, :session_id, :seq, :author_id, :replaces_id, :fingerprint, :now)
RETURNING id

-- name: memories.find_visible
-- Find a note, forgotten or not, if the person belongs to its audience.
SELECT {n.memory}
FROM memories n
JOIN audience_members m ON m.audience_id = n.audience_id AND m.person_id = :person_id
WHERE n.id = :memory_id

-- name: memories.find_duplicate
-- Find another note of an audience with the same text that is not forgotten.
SELECT id FROM memories
WHERE audience_id = :audience_id AND fingerprint = :fingerprint AND forgotten_at IS NULL AND id <> :except_id

-- name: memories.list_of_audience
-- List the notes of an audience that are not forgotten, newest first.
SELECT {memory}
FROM memories WHERE audience_id = :audience_id AND forgotten_at IS NULL
ORDER BY id DESC
LIMIT :limit

-- name: memories.set_forgotten
-- Mark a note as forgotten since a time, or (with NULL) as kept again.
UPDATE memories SET forgotten_at = CAST(:since_at AS BIGINT)
WHERE id = :memory_id AND (forgotten_at IS NULL) <> (CAST(:since_at AS BIGINT) IS NULL)

-- name: memories.add_change
-- Add a change of a note.
INSERT INTO memory_changes (audience_id, memory_id, kind, person_id, changed_at)
VALUES (:audience_id, :memory_id, :kind, :person_id, :now)

-- name: memories.find_last_change
-- Find the last change of an audience's notes that was not undone.
SELECT id, memory_id, kind FROM memory_changes
WHERE audience_id = :audience_id AND undone_at IS NULL
ORDER BY id DESC LIMIT 1

-- name: memories.set_undone
-- Mark a change as undone.
UPDATE memory_changes SET undone_at = :now WHERE id = :change_id

-- name: memories.forget_session
-- Keep the notes of a purged session, without the reference to that session.
UPDATE memories SET session_id = NULL, seq = NULL WHERE session_id = :session_id
