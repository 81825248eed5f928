-- name: search_blocks.add
-- Add a block of a segment.
INSERT INTO search_blocks (segment_id, term, data, positions) VALUES (:segment_id, :term, :data, :positions)

-- name: search_blocks.find
-- Find, for each segment and each term, the last block that begins at or before the term. No other block can hold it.
SELECT k.value AS segment_id, t.value AS term, b.block_id, b.data
FROM json_each(:segments) k
CROSS JOIN json_each(:terms) t
CROSS JOIN search_blocks b ON b.block_id = (
    SELECT block_id FROM search_blocks
    WHERE segment_id = k.value AND term <= t.value
    ORDER BY term DESC LIMIT 1
)

-- name: search_blocks.find_between
-- Find, for each segment, all blocks that can hold terms from one term up to, but without, another.
SELECT b.segment_id, b.block_id, b.data
FROM json_each(:segments) k
CROSS JOIN search_blocks b ON b.segment_id = k.value
    AND b.term >= COALESCE(
        (SELECT MAX(term) FROM search_blocks WHERE segment_id = k.value AND term <= :term), '')
    AND b.term < :term_end
ORDER BY b.segment_id, b.term

-- name: search_blocks.find_positions
-- Find the positions of some blocks.
SELECT block_id, positions FROM search_blocks WHERE block_id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))

-- name: search_blocks.list
-- List blocks of a segment in order, beginning with the block that can hold a term.
SELECT term, data, positions FROM search_blocks
WHERE segment_id = :segment_id
    AND term >= COALESCE(
        (SELECT MAX(term) FROM search_blocks WHERE segment_id = :segment_id AND term <= :term), '')
ORDER BY term
LIMIT :limit

-- name: search_blocks.drop
-- Delete the blocks of a segment.
DELETE FROM search_blocks WHERE segment_id = :segment_id

-- name: search_blocks.clear
-- Delete all blocks.
DELETE FROM search_blocks
