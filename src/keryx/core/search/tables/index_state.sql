-- name: search_state.find
-- Find the format of the index and the position up to which the index covers the feed.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1

-- name: search_state.begin
-- Begin an empty index, unless there is one.
INSERT INTO search_state (id, format, position_xid, position_id, next_segment, next_card)
VALUES (1, :format, 0, 0, 1, 1) ON CONFLICT (id) DO NOTHING

-- name: search_state.lock
-- Find the state, and lock its row, so that only one indexer runs at a time.
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

-- name: search_state.find_card
-- Find the id of a session's card.
SELECT card_id FROM search_cards WHERE session_id = :session_id

-- name: search_state.add_card
-- Add the card of a session.
INSERT INTO search_cards (card_id, session_id) VALUES (:card_id, :session_id)

-- name: search_state.find_card_sessions
-- Find the sessions of some cards.
SELECT card_id, session_id FROM search_cards WHERE card_id IN (SELECT CAST(value AS BIGINT) FROM json_each(:ids))

-- name: search_state.drop_card
-- Delete the card of a purged session.
DELETE FROM search_cards WHERE session_id = :session_id

-- name: search_state.clear_cards
-- Delete all cards.
DELETE FROM search_cards

-- name: search_state.add_purges
-- Add every session that is in the index but no longer in the store.
INSERT INTO search_purges (session_id)
SELECT c.session_id FROM search_cards c
WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = c.session_id)
ON CONFLICT (session_id) DO NOTHING

-- name: search_state.list_purges
-- List sessions whose words must still leave the index.
SELECT session_id FROM search_purges ORDER BY session_id LIMIT :limit

-- name: search_state.finish_purge
-- Record that no word of a session is left in the index.
DELETE FROM search_purges WHERE session_id = :session_id

-- name: search_state.clear_purges
-- Delete all purges.
DELETE FROM search_purges
