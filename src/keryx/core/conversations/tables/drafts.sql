-- name: drafts.save
-- The draft after the revision its writer saw; nothing when there is a newer one.
INSERT INTO drafts (person_id, session_id, text, revision, updated_at)
VALUES (:person_id, :session_id, :text, CAST(:revision AS BIGINT) + 1, :now)
ON CONFLICT (person_id, session_id) DO UPDATE
SET text = excluded.text, revision = excluded.revision, updated_at = excluded.updated_at
WHERE drafts.revision = :revision
RETURNING revision

-- name: drafts.find
-- What a person was writing in a session.
SELECT text, revision, updated_at FROM drafts WHERE person_id = :person_id AND session_id = :session_id

-- name: drafts.mark_read
-- The person has read up to here; never moves backwards.
INSERT INTO read_marks (person_id, session_id, seq, marked_at) VALUES (:person_id, :session_id, :seq, :now)
ON CONFLICT (person_id, session_id) DO UPDATE SET seq = excluded.seq, marked_at = excluded.marked_at
WHERE read_marks.seq < excluded.seq

-- name: drafts.find_mark
-- Up to where a person has read a session.
SELECT seq FROM read_marks WHERE person_id = :person_id AND session_id = :session_id
