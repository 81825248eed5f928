-- name: cover_invariants.list_covered
-- List the sessions with covers.
SELECT DISTINCT session_id FROM covers WHERE dropped_at IS NULL ORDER BY session_id
