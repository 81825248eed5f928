-- name: search_segments.list_marked
-- List the segments that may hold the session with this mark.
SELECT segment_id FROM search_segments WHERE position(CAST(:mark AS bytea) IN marks) > 0
