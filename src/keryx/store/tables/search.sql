-- name: search.state
-- What the index covers, and in which format.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1

-- name: search.begin
-- An empty index that covers nothing, unless there is one.
INSERT INTO search_state (id, format, position_xid, position_id, next_segment, next_card)
VALUES (1, :format, 0, 0, 1, 1) ON CONFLICT (id) DO NOTHING

-- name: search.lock
-- What the index covers; only one indexer at a time comes past this.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1

-- name: search.advance
-- The index now covers everything up to this position.
UPDATE search_state SET position_xid = :xid, position_id = :id WHERE id = 1

-- name: search.take_segment
-- The number of a new segment.
UPDATE search_state SET next_segment = next_segment + 1 WHERE id = 1 RETURNING next_segment - 1

-- name: search.take_card
-- The number of a new card.
UPDATE search_state SET next_card = next_card + 1 WHERE id = 1 RETURNING next_card - 1

-- name: search.list_new
-- Facts after a position in order, each with the message it is about, if it is about one that still exists.
SELECT 0, f.id, f.kind, f.session_id, m.id, m.role, m.parts, m.author, m.author_id, m.created_at, s.audience_id, s.platform
FROM feed f
LEFT JOIN messages m ON f.kind = 'message' AND m.id = f.subject
LEFT JOIN sessions s ON s.id = m.session_id
WHERE f.id > :id
ORDER BY f.id
LIMIT :limit

-- name: search.list_tail
-- The newest facts after a position, newest first, also those an indexer must not pass yet.
SELECT f.kind, f.session_id, f.subject FROM feed f
WHERE f.id > :id
ORDER BY f.id DESC
LIMIT :limit

-- name: search.count_new
-- How many facts follow a position, counted up to a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM feed f WHERE f.id > :id LIMIT :limit) AS counted

-- name: search.find_card
-- The number of a session's card.
SELECT card_id FROM search_cards WHERE session_id = :session_id

-- name: search.add_card
-- From now on this number is the card of that session.
INSERT INTO search_cards (card_id, session_id) VALUES (:card_id, :session_id)

-- name: search.find_cards
-- The sessions of some cards.
SELECT card_id, session_id FROM search_cards WHERE card_id IN (SELECT value FROM json_each(:ids))

-- name: search.list_sessions
-- What is said of some sessions, with their tags, a line each.
SELECT
    s.id, s.audience_id, s.platform, s.state, s.title, s.title_by, s.display_name, s.started_at, s.active_branch_no,
    s.pinned_at, s.archived_at, s.deleted_at, p.name,
    (SELECT group_concat(t.tag, char(10) ORDER BY t.tag) FROM tags t WHERE t.session_id = s.id)
FROM sessions s LEFT JOIN projects p ON p.id = s.project_id
WHERE s.id IN (SELECT value FROM json_each(:ids))

-- name: search.list_messages
-- Some messages by their ids.
SELECT id, session_id, branch_no, seq, role, parts, author, author_id, created_at, turn_id
FROM messages WHERE id IN (SELECT value FROM json_each(:ids))

-- name: search.list_message_ids
-- All messages in the order of their ids, a page at a time.
SELECT id FROM messages WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: search.list_near
-- The messages around some places, given as session, branch and number, as many numbers away as a reach.
SELECT m.session_id, m.seq, m.role, m.parts
FROM json_each(:places) p
JOIN messages m ON m.session_id = p.value ->> 0
    AND m.branch_no = p.value ->> 1
    AND m.seq BETWEEN (p.value ->> 2) - :reach AND (p.value ->> 2) + :reach
    AND m.seq <> p.value ->> 2

-- name: search.list_last
-- The newest messages of one branch up to a number, newest first.
SELECT id, session_id, branch_no, seq, role, parts, author, author_id, created_at, turn_id
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC LIMIT :limit

-- name: search.list_first
-- The oldest messages of one branch from a number on, oldest first.
SELECT id, session_id, branch_no, seq, role, parts, author, author_id, created_at, turn_id
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq LIMIT :limit

-- name: search.count_audiences
-- How many audiences there are, counted up to a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM audiences LIMIT :limit) AS counted

-- name: search.list_tags
-- Every tag there is.
SELECT DISTINCT tag FROM tags

-- name: search.list_tagged
-- Sessions with one of these tags.
SELECT DISTINCT session_id FROM tags WHERE tag IN (SELECT value FROM json_each(:tags)) LIMIT :limit

-- name: search.list_projects
-- Every project and what it is called.
SELECT id, name FROM projects

-- name: search.list_in_projects
-- Sessions of some projects.
SELECT id FROM sessions WHERE project_id IN (SELECT value FROM json_each(:ids)) LIMIT :limit

-- name: search.list_in_state
-- Sessions that are pinned, archived or in the bin.
SELECT id FROM sessions
WHERE (:state = 'pinned' AND pinned_at IS NOT NULL)
    OR (:state = 'archived' AND archived_at IS NOT NULL)
    OR (:state = 'deleted' AND deleted_at IS NOT NULL)
LIMIT :limit

-- name: search.add_segment
-- A segment; unfinished while it is the target of a merge.
INSERT INTO search_segments (segment_id, born, doc_count, first_at, last_at, marks, merged_up_to, finished_at)
VALUES (:segment_id, :born, :doc_count, :first_at, :last_at, :marks, :merged_up_to, :finished_at)

-- name: search.list_segments
-- The segments that queries read, the one with the newest document first.
SELECT segment_id, born, doc_count, first_at, last_at FROM search_segments
WHERE finished_at IS NOT NULL ORDER BY last_at DESC, segment_id DESC

-- name: search.list_marked
-- The segments that may hold a session.
SELECT segment_id FROM search_segments WHERE instr(marks, :mark) > 0

-- name: search.list_marks
-- Which sessions some segments hold.
SELECT marks FROM search_segments WHERE segment_id IN (SELECT value FROM json_each(:ids))

-- name: search.add_docs
-- One chunk of a segment's columns.
INSERT INTO search_docs (segment_id, chunk, data) VALUES (:segment_id, :chunk, :data)

-- name: search.list_docs
-- All chunks of a segment, in order.
SELECT data FROM search_docs WHERE segment_id = :segment_id ORDER BY chunk

-- name: search.find_docs
-- Some chunks of a segment.
SELECT chunk, data FROM search_docs
WHERE segment_id = :segment_id AND chunk IN (SELECT value FROM json_each(:chunks))

-- name: search.list_docs_of
-- All chunks of some small segments.
SELECT segment_id, chunk, data FROM search_docs
WHERE segment_id IN (SELECT value FROM json_each(:ids))

-- name: search.add_block
-- One block of a segment's terms.
INSERT INTO search_blocks (segment_id, term, data, positions) VALUES (:segment_id, :term, :data, :positions)

-- name: search.find_blocks
-- In each of the segments the one block that holds each term, if any does: the last that begins at or before it.
SELECT k.value, t.value, b.block_id, b.data
FROM json_each(:segments) k
CROSS JOIN json_each(:terms) t
CROSS JOIN search_blocks b ON b.block_id = (
    SELECT block_id FROM search_blocks
    WHERE segment_id = k.value AND term <= t.value
    ORDER BY term DESC LIMIT 1
)

-- name: search.find_blocks_between
-- In each of the segments all blocks that hold terms from one up to, but without, another.
SELECT b.segment_id, b.block_id, b.data
FROM json_each(:segments) k
CROSS JOIN search_blocks b ON b.segment_id = k.value
    AND b.term >= COALESCE(
        (SELECT MAX(term) FROM search_blocks WHERE segment_id = k.value AND term <= :term), '')
    AND b.term < :term_end
ORDER BY b.segment_id, b.term

-- name: search.find_positions
-- The positions of some blocks.
SELECT block_id, positions FROM search_blocks WHERE block_id IN (SELECT value FROM json_each(:ids))

-- name: search.list_blocks
-- Blocks of a segment in order, from the one that holds a term on.
SELECT term, data, positions FROM search_blocks
WHERE segment_id = :segment_id
    AND term >= COALESCE(
        (SELECT MAX(term) FROM search_blocks WHERE segment_id = :segment_id AND term <= :term), '')
ORDER BY term
LIMIT :limit

-- name: search.add_merge
-- A source of the segment that is being made.
INSERT INTO search_merges (target_id, source_id, renumbering) VALUES (:target_id, :source_id, :renumbering)

-- name: search.find_merge
-- The merge that is under way, and how far it is.
SELECT segment_id, merged_up_to FROM search_segments WHERE finished_at IS NULL ORDER BY segment_id LIMIT 1

-- name: search.list_merge
-- The sources of a merge with the new numbers of their documents, oldest first.
SELECT m.source_id, m.renumbering
FROM search_merges m JOIN search_segments s ON s.segment_id = m.source_id
WHERE m.target_id = :target_id ORDER BY s.born, s.segment_id

-- name: search.continue_merge
-- The merge has written all terms before this one.
UPDATE search_segments SET merged_up_to = :merged_up_to WHERE segment_id = :segment_id

-- name: search.finish_segment
-- From now on queries read this segment.
UPDATE search_segments SET finished_at = :now, merged_up_to = NULL WHERE segment_id = :segment_id

-- name: search.drop_segment
-- A segment that was merged away.
DELETE FROM search_segments WHERE segment_id = :segment_id

-- name: search.drop_docs
-- The columns of a segment that was merged away.
DELETE FROM search_docs WHERE segment_id = :segment_id

-- name: search.drop_blocks
-- The blocks of a segment that was merged away.
DELETE FROM search_blocks WHERE segment_id = :segment_id

-- name: search.drop_merge
-- The notes of a merge that is finished or given up.
DELETE FROM search_merges WHERE target_id = :target_id

-- name: search.add_purges_of_gone
-- The words of every session that is in the index but no longer in the store must leave the index.
INSERT INTO search_purges (session_id)
SELECT c.session_id FROM search_cards c
WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = c.session_id)
ON CONFLICT (session_id) DO NOTHING

-- name: search.list_purges
-- Sessions whose words must leave the index.
SELECT session_id FROM search_purges ORDER BY session_id LIMIT :limit

-- name: search.finish_purge
-- No word of this session is left in the index.
DELETE FROM search_purges WHERE session_id = :session_id

-- name: search.drop_card
-- The card of a session that was purged.
DELETE FROM search_cards WHERE session_id = :session_id

-- name: search.clear_state
-- The index covers nothing, and its format is unknown.
DELETE FROM search_state

-- name: search.clear_segments
-- No segments.
DELETE FROM search_segments

-- name: search.clear_docs
-- No columns.
DELETE FROM search_docs

-- name: search.clear_blocks
-- No blocks.
DELETE FROM search_blocks

-- name: search.clear_merges
-- No merge.
DELETE FROM search_merges

-- name: search.clear_cards
-- No cards.
DELETE FROM search_cards

-- name: search.clear_purges
-- No purges.
DELETE FROM search_purges
