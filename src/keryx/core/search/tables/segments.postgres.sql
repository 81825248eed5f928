-- name: search_segments.list_marked
-- List the segments that may hold the session with this mark.
SELECT segment_id FROM search_segments WHERE position(CAST(:mark AS bytea) IN marks) > 0

-- name: search_segments.list_marks
-- List the session marks of some segments.
SELECT marks FROM search_segments
WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))
