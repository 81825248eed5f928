-- name: search_state.find
-- Find the format of the index and the position up to which the index covers the feed.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1

-- name: search_state.begin
-- Begin an empty index, unless there is one.
INSERT INTO search_state (id, format, position_xid, position_id, next_segment, next_card)
VALUES (1, :format, 0, 0, 1, 1) ON CONFLICT (id) DO NOTHING

-- name: search_state.lock
-- Find the state, and lock the row, so that only one indexer at a time goes on.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1

-- name: search_state.advance
-- Record that the index covers the feed up to this position.
UPDATE search_state SET position_xid = :xid, position_id = :id WHERE id = 1

-- name: search_state.take_segment
-- Take the id of a new segment.
UPDATE search_state SET next_segment = next_segment + 1 WHERE id = 1 RETURNING next_segment - 1

-- name: search_state.take_card
-- Take the id of a new session card.
UPDATE search_state SET next_card = next_card + 1 WHERE id = 1 RETURNING next_card - 1

-- name: search_state.clear
-- Forget the format and the position.
DELETE FROM search_state
