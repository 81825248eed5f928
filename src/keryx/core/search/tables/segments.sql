-- name: search_segments.add
-- Add a segment. The target of a merge has no `finished_at` yet.
INSERT INTO search_segments (segment_id, born, doc_count, first_at, last_at, marks, merged_up_to, finished_at)
VALUES (:segment_id, :born, :doc_count, :first_at, :last_at, :marks, :merged_up_to, :finished_at)

-- name: search_segments.list
-- List the segments that queries read, the one with the newest document first.
SELECT segment_id, born, doc_count, first_at, last_at FROM search_segments
WHERE finished_at IS NOT NULL ORDER BY last_at DESC, segment_id DESC

-- name: search_segments.list_marked
-- List the segments that may hold the session with this mark.
SELECT segment_id FROM search_segments WHERE instr(marks, :mark) > 0

-- name: search_segments.list_marks
-- List the session marks of some segments.
SELECT marks FROM search_segments WHERE segment_id IN (SELECT value FROM json_each(:ids))

-- name: search_segments.find_unfinished
-- Find the target of the merge in progress, and the term with which the merge continues.
SELECT segment_id, merged_up_to FROM search_segments WHERE finished_at IS NULL ORDER BY segment_id LIMIT 1

-- name: search_segments.continue
-- Record that the merge has written all terms before this one.
UPDATE search_segments SET merged_up_to = :merged_up_to WHERE segment_id = :segment_id

-- name: search_segments.finish
-- Make the target of a merge visible to queries.
UPDATE search_segments SET finished_at = :now, merged_up_to = NULL WHERE segment_id = :segment_id

-- name: search_segments.drop
-- Delete a segment.
DELETE FROM search_segments WHERE segment_id = :segment_id

-- name: search_segments.clear
-- Delete all segments.
DELETE FROM search_segments
