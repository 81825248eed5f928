-- name: usage.list_sums
-- What a person's sessions used between two times, by quarter hour, model and session.
SELECT
    m.created_at / :quarter, COALESCE(t.model, s.model), m.session_id, COUNT(*),
    CAST(SUM(m.tool_call_count) AS BIGINT), CAST(SUM(m.input_tokens) AS BIGINT), CAST(SUM(m.cached_tokens) AS BIGINT),
    CAST(SUM(m.output_tokens) AS BIGINT), CAST(SUM(m.cost_micros) AS BIGINT)
FROM audience_members a
JOIN sessions s ON s.audience_id = a.audience_id
JOIN messages m ON m.session_id = s.id
LEFT JOIN turns t ON t.id = m.turn_id
WHERE a.person_id = :person_id
  AND m.created_at >= :since AND m.created_at < :until
GROUP BY 1, 2, 3
ORDER BY 1, 3

-- name: usage.list_sums_of_summaries
-- What was used to write the summaries of a person's sessions, or of one of them.
SELECT
    c.created_at / :quarter, c.model, c.session_id, CAST(0 AS BIGINT), CAST(0 AS BIGINT),
    CAST(SUM(c.input_tokens) AS BIGINT), CAST(SUM(c.cached_tokens) AS BIGINT), CAST(SUM(c.output_tokens) AS BIGINT),
    CAST(SUM(c.cost_micros) AS BIGINT)
FROM audience_members a
JOIN sessions s ON s.audience_id = a.audience_id
JOIN covers c ON c.session_id = s.id
WHERE a.person_id = :person_id AND (CAST(:session_id AS TEXT) IS NULL OR s.id = :session_id)
  AND c.model IS NOT NULL AND c.created_at >= :since AND c.created_at < :until
GROUP BY 1, 2, 3
ORDER BY 1, 3

-- name: usage.list_sums_of_session
-- The same of one session, whoever asks.
SELECT
    m.created_at / :quarter, COALESCE(t.model, s.model), m.session_id, COUNT(*),
    CAST(SUM(m.tool_call_count) AS BIGINT), CAST(SUM(m.input_tokens) AS BIGINT), CAST(SUM(m.cached_tokens) AS BIGINT),
    CAST(SUM(m.output_tokens) AS BIGINT), CAST(SUM(m.cost_micros) AS BIGINT)
FROM messages m
JOIN sessions s ON s.id = m.session_id
LEFT JOIN turns t ON t.id = m.turn_id
WHERE m.session_id = :session_id AND m.created_at >= :since AND m.created_at < :until
GROUP BY 1, 2, 3
ORDER BY 1
