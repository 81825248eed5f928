-- name: search_state.lock
-- Find the state, and lock the row, so that only one indexer at a time goes on.
SELECT format, position_xid, position_id FROM search_state WHERE id = 1 FOR UPDATE
