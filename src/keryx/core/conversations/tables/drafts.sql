-- name: drafts.save
-- Store a draft. Changes nothing unless :revision is the last stored revision.
INSERT INTO drafts (person_id, session_id, text, revision, updated_at)
VALUES (:person_id, :session_id, :text, CAST(:revision AS BIGINT) + 1, :now)
ON CONFLICT (person_id, session_id) DO UPDATE
SET text = excluded.text, revision = excluded.revision, updated_at = excluded.updated_at
WHERE drafts.revision = :revision
RETURNING revision

-- name: drafts.find
-- The draft of a person in a session.
SELECT text, revision, updated_at FROM drafts WHERE person_id = :person_id AND session_id = :session_id

-- name: drafts.mark_read
-- Set the read mark. Never moves it backwards.
INSERT INTO read_marks (person_id, session_id, seq, marked_at) VALUES (:person_id, :session_id, :seq, :now)
ON CONFLICT (person_id, session_id) DO UPDATE SET seq = excluded.seq, marked_at = excluded.marked_at
WHERE read_marks.seq < excluded.seq

-- name: drafts.find_mark
-- The read mark of a person in a session.
SELECT seq FROM read_marks WHERE person_id = :person_id AND session_id = :session_id
