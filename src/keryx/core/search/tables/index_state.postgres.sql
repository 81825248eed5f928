-- name: search_state.lock
-- Find the state, and lock its row, so that only one indexer runs at a time.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1 FOR UPDATE
