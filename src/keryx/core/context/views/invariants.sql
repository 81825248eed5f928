-- name: cover_invariants.list_covered
-- Sessions that keep a summary: where the summary stands has to be followed.
SELECT DISTINCT session_id FROM covers WHERE dropped_at IS NULL ORDER BY session_id
