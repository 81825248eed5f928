-- name: covers.list_of_session
-- List the covers of a session that were not dropped, in the order of their ranges.
SELECT session_id, no, branch_no, first_seq, last_seq, summary, focus, tokens_before, tokens_after, created_at
FROM covers WHERE session_id = :session_id AND dropped_at IS NULL ORDER BY first_seq, no

-- name: covers.add
-- Add a cover under the next number of its session.
INSERT INTO covers (
    session_id, no, branch_no, first_seq, last_seq, summary, focus, tokens_before, tokens_after, created_at,
    model, input_tokens, cached_tokens, output_tokens, cost_micros
)
SELECT
    :session_id, COALESCE(MAX(c.no), 0) + 1, :branch_no, :first_seq, :last_seq, :summary, CAST(:focus AS TEXT),
    :tokens_before, :tokens_after, :now, CAST(:model AS TEXT), :input_tokens, :cached_tokens, :output_tokens,
    :cost_micros
FROM covers c WHERE c.session_id = :session_id
RETURNING no

-- name: covers.drop
-- Drop a cover.
UPDATE covers SET dropped_at = :now WHERE session_id = :session_id AND no = :no AND dropped_at IS NULL

-- name: covers.add_imported
-- Add a cover of an imported session, with its number and times.
INSERT INTO covers (
    session_id, no, branch_no, first_seq, last_seq, summary, focus, tokens_before, tokens_after, created_at, dropped_at,
    model, input_tokens, cached_tokens, output_tokens, cost_micros
)
VALUES (
    :session_id, :no, :branch_no, :first_seq, :last_seq, :summary, :focus, :tokens_before, :tokens_after, :created_at,
    :dropped_at, :model, :input_tokens, :cached_tokens, :output_tokens, :cost_micros
)

-- name: covers.drop_of_session
-- Delete the covers of a session.
DELETE FROM covers WHERE session_id = :session_id
