-- columns: message
id, session_id, branch_no, seq, role, parts AS body, author, author_id, turn_id, input_tokens, cached_tokens,
output_tokens, thinking_tokens, cost_micros, finish_reason, created_at

-- name: messages.add
-- Add a message under the number reserved for it.
INSERT INTO messages (
    session_id, branch_no, seq, role, parts, author, author_id, turn_id, tool_call_count, input_tokens, cached_tokens,
    output_tokens, thinking_tokens, cost_micros, finish_reason, created_at
)
VALUES (
    :session_id, :branch_no, :seq, :role, :parts, :author, :author_id, :turn_id, :tool_call_count, :input_tokens,
    :cached_tokens, :output_tokens, :thinking_tokens, :cost_micros, :finish_reason, :created_at
)
RETURNING id

-- name: messages.list_range
-- The first messages of one branch between two numbers, oldest first.
SELECT {message}
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq
LIMIT :limit

-- name: messages.list_last
-- The last messages of one branch between two numbers, newest first.
SELECT {message}
FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
ORDER BY seq DESC
LIMIT :limit

-- name: messages.count_range
-- The number of messages of one branch between two numbers.
SELECT COUNT(*) FROM messages
WHERE session_id = :session_id AND branch_no = :branch_no AND seq BETWEEN :first_seq AND :last_seq
