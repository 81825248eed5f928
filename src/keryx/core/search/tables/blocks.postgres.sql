-- name: search_blocks.find
-- Find, for each segment and each term, the last block that begins at or before the term. No other block can hold it.
SELECT CAST(k.value AS BIGINT) AS segment_id, t.value AS term, b.block_id, b.data
FROM json_array_elements_text(CAST(:segments AS json)) k
CROSS JOIN json_array_elements_text(CAST(:terms AS json)) t
CROSS JOIN LATERAL (
    SELECT block_id, data FROM search_blocks
    WHERE segment_id = CAST(k.value AS BIGINT) AND term <= t.value
    ORDER BY term DESC LIMIT 1
) b

-- name: search_blocks.find_between
-- Find, for each segment, all blocks that can hold terms from one term up to, but without, another.
SELECT b.segment_id, b.block_id, b.data
FROM json_array_elements_text(CAST(:segments AS json)) k
CROSS JOIN LATERAL (
    SELECT segment_id, block_id, term, data FROM search_blocks
    WHERE segment_id = CAST(k.value AS BIGINT) AND term < :term_end
        AND term >= COALESCE((
            SELECT MAX(term) FROM search_blocks WHERE segment_id = CAST(k.value AS BIGINT) AND term <= :term
        ), '')
) b
ORDER BY b.segment_id, b.term
