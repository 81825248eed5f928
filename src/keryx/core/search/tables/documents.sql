-- name: search_docs.add
-- Add a chunk of a segment's columns.
INSERT INTO search_docs (segment_id, chunk, data) VALUES (:segment_id, :chunk, :data)

-- name: search_docs.list
-- List the chunks of a segment in order.
SELECT data FROM search_docs WHERE segment_id = :segment_id ORDER BY chunk

-- name: search_docs.find
-- Find some chunks of a segment.
SELECT chunk, data FROM search_docs
WHERE segment_id = :segment_id AND chunk IN (SELECT value FROM json_each(:chunks))

-- name: search_docs.list_of
-- List all chunks of some small segments.
SELECT segment_id, chunk, data FROM search_docs
WHERE segment_id IN (SELECT value FROM json_each(:ids))

-- name: search_docs.drop
-- Delete the columns of a segment.
DELETE FROM search_docs WHERE segment_id = :segment_id

-- name: search_docs.clear
-- Delete all columns.
DELETE FROM search_docs
