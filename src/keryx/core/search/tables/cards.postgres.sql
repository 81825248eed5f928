-- name: search_cards.find_sessions
-- Find the sessions of some cards.
SELECT card_id, session_id FROM search_cards
WHERE card_id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS json)))
