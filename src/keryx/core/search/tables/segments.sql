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
SELECT marks FROM search_segments WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))

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

-- name: search_segments.add_chunk
-- Add a chunk of a segment's columns.
INSERT INTO search_docs (segment_id, chunk, data) VALUES (:segment_id, :chunk, :data)

-- name: search_segments.list_chunks
-- List the chunks of a segment in order.
SELECT data FROM search_docs WHERE segment_id = :segment_id ORDER BY chunk

-- name: search_segments.find_chunks
-- Find some chunks of a segment.
SELECT chunk, data FROM search_docs
WHERE segment_id = :segment_id AND chunk IN (SELECT CAST(value AS BIGINT) FROM json_each(:chunks))

-- name: search_segments.list_chunks_of
-- List all chunks of some small segments.
SELECT segment_id, chunk, data FROM search_docs
WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))

-- name: search_segments.drop_chunks
-- Delete the columns of a segment.
DELETE FROM search_docs WHERE segment_id = :segment_id

-- name: search_segments.clear_chunks
-- Delete all columns.
DELETE FROM search_docs

-- name: search_segments.add_source
-- Add a source of the segment that a merge writes.
INSERT INTO search_merges (target_id, source_id, renumbering) VALUES (:target_id, :source_id, :renumbering)

-- name: search_segments.list_sources
-- List the sources of a merge with the new numbers of their documents, oldest first.
SELECT m.source_id, m.renumbering
FROM search_merges m JOIN search_segments s ON s.segment_id = m.source_id
WHERE m.target_id = :target_id ORDER BY s.born, s.segment_id

-- name: search_segments.drop_sources
-- Delete the sources of a finished merge.
DELETE FROM search_merges WHERE target_id = :target_id

-- name: search_segments.clear_sources
-- Delete all merges.
DELETE FROM search_merges
