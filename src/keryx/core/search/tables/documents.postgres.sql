-- name: search_docs.find
-- Find some chunks of a segment.
SELECT chunk, data FROM search_docs
WHERE segment_id = :segment_id
    AND chunk IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:chunks AS json)))

-- name: search_docs.list_of
-- List all chunks of some small segments.
SELECT segment_id, chunk, data FROM search_docs
WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))
