-- name: search_cards.find
-- Find the id of a session's card.
SELECT card_id FROM search_cards WHERE session_id = :session_id

-- name: search_cards.add
-- Add the card of a session.
INSERT INTO search_cards (card_id, session_id) VALUES (:card_id, :session_id)

-- name: search_cards.find_sessions
-- Find the sessions of some cards.
SELECT card_id, session_id FROM search_cards WHERE card_id IN (SELECT value FROM json_each(:ids))

-- name: search_cards.drop
-- Delete the card of a purged session.
DELETE FROM search_cards WHERE session_id = :session_id

-- name: search_cards.clear
-- Delete all cards.
DELETE FROM search_cards
