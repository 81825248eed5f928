-- name: search.lock
-- What the index covers; only one indexer at a time comes past this.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1 FOR UPDATE

-- name: search.list_new
-- Facts after a position in order, below the oldest transaction still running: nothing can appear behind them.
SELECT
    CAST(CAST(f.xid AS TEXT) AS BIGINT), f.id, f.kind, f.session_id, m.id, m.role, m.parts, m.author, m.author_id,
    m.created_at, s.audience_id, s.platform
FROM feed f
LEFT JOIN messages m ON f.kind = 'message' AND m.id = f.subject
LEFT JOIN sessions s ON s.id = m.session_id
WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id)
    AND f.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY f.xid, f.id
LIMIT :limit

-- name: search.list_tail
-- The newest facts after a position, newest first, also those an indexer must not pass yet.
SELECT f.kind, f.session_id, f.subject FROM feed f
WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id)
ORDER BY f.xid DESC, f.id DESC
LIMIT :limit

-- name: search.count_new
-- How many facts follow a position, counted up to a limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM feed f WHERE (f.xid, f.id) > (CAST(CAST(:xid AS TEXT) AS xid8), :id) LIMIT :limit
) AS counted

-- name: search.find_cards
-- The sessions of some cards.
SELECT card_id, session_id FROM search_cards
WHERE card_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))

-- name: search.list_sessions
-- What is said of some sessions, with their tags, a line each.
SELECT
    s.id, s.audience_id, s.platform, s.state, s.title, s.title_by, s.display_name, s.started_at, s.active_branch_no,
    s.pinned_at, s.archived_at, s.deleted_at, p.name,
    (SELECT string_agg(t.tag, chr(10) ORDER BY t.tag COLLATE "C") FROM tags t WHERE t.session_id = s.id)
FROM sessions s LEFT JOIN projects p ON p.id = s.project_id
WHERE s.id IN (SELECT value FROM json_array_elements_text(CAST(:ids AS json)))

-- name: search.list_messages
-- Some messages by their ids.
SELECT id, session_id, branch_no, seq, role, parts, author, author_id, created_at, turn_id
FROM messages WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))

-- name: search.list_near
-- The messages around some places, given as session, branch and number, as many numbers away as a reach.
SELECT m.session_id, m.seq, m.role, m.parts
FROM json_array_elements(CAST(:places AS json)) p
JOIN messages m ON m.session_id = p.value ->> 0
    AND m.branch_no = CAST(p.value ->> 1 AS BIGINT)
    AND m.seq BETWEEN CAST(p.value ->> 2 AS BIGINT) - :reach AND CAST(p.value ->> 2 AS BIGINT) + :reach
    AND m.seq <> CAST(p.value ->> 2 AS BIGINT)

-- name: search.list_marked
-- The segments that may hold a session.
SELECT segment_id FROM search_segments WHERE position(CAST(:mark AS bytea) IN marks) > 0

-- name: search.list_marks
-- Which sessions some segments hold.
SELECT marks FROM search_segments
WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))

-- name: search.find_docs
-- Some chunks of a segment.
SELECT chunk, data FROM search_docs
WHERE segment_id = :segment_id
    AND chunk IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:chunks AS json)))

-- name: search.find_blocks
-- In each of the segments the one block that holds each term, if any does: the last that begins at or before it.
SELECT CAST(k.value AS BIGINT), t.value, b.block_id, b.data
FROM json_array_elements_text(CAST(:segments AS json)) k
CROSS JOIN json_array_elements_text(CAST(:terms AS json)) t
CROSS JOIN LATERAL (
    SELECT block_id, data FROM search_blocks
    WHERE segment_id = CAST(k.value AS BIGINT) AND term <= t.value
    ORDER BY term DESC LIMIT 1
) b

-- name: search.find_blocks_between
-- In each of the segments all blocks that hold terms from one up to, but without, another.
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

-- name: search.find_positions
-- The positions of some blocks.
SELECT block_id, positions FROM search_blocks
WHERE block_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))

-- name: search.list_tagged
-- Sessions with one of these tags.
SELECT DISTINCT session_id FROM tags
WHERE tag IN (SELECT value FROM json_array_elements_text(CAST(:tags AS json))) LIMIT :limit

-- name: search.list_in_projects
-- Sessions of some projects.
SELECT id FROM sessions
WHERE project_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json))) LIMIT :limit

-- name: search.list_in_state
-- Sessions that are pinned, archived or in the bin.
SELECT id FROM sessions
WHERE (CAST(:state AS TEXT) = 'pinned' AND pinned_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'archived' AND archived_at IS NOT NULL)
    OR (CAST(:state AS TEXT) = 'deleted' AND deleted_at IS NOT NULL)
LIMIT :limit

-- name: search.list_docs_of
-- All chunks of some small segments.
SELECT segment_id, chunk, data FROM search_docs
WHERE segment_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))
