-- columns: usage_sums
CAST(SUM(u.messages) AS BIGINT) AS messages, CAST(SUM(u.tool_call_count) AS BIGINT) AS tool_calls,
CAST(SUM(u.input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(u.cached_tokens) AS BIGINT) AS cached_tokens,
CAST(SUM(u.output_tokens) AS BIGINT) AS output_tokens,
CAST(SUM(u.thinking_tokens) AS BIGINT) AS thinking_tokens, CAST(SUM(u.cost_micros) AS BIGINT) AS cost_micros

-- name: usage.list_sums
-- What a person's sessions used between two times, by quarter hour, model and session, unsaid answers included.
SELECT u.used_at / :quarter AS quarter, u.model, u.session_id, {usage_sums}
FROM (
    SELECT
        m.created_at AS used_at, COALESCE(t.model, s.model) AS model, m.session_id, 1 AS messages, m.tool_call_count,
        m.input_tokens, m.cached_tokens, m.output_tokens, m.thinking_tokens, m.cost_micros
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN messages m ON m.session_id = s.id
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE a.person_id = :person_id AND m.created_at >= :since AND m.created_at < :until
    UNION ALL
    SELECT
        t.begun_at, COALESCE(t.model, s.model), t.session_id, 0, 0,
        t.input_tokens, t.cached_tokens, t.output_tokens, t.thinking_tokens, t.cost_micros
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN turns t ON t.session_id = s.id
    WHERE a.person_id = :person_id AND (t.input_tokens > 0 OR t.output_tokens > 0)
      AND t.begun_at >= :since AND t.begun_at < :until
) u
GROUP BY 1, 2, 3
ORDER BY 1, 3

-- name: usage.list_sums_of_summaries
-- What was used to write the summaries of a person's sessions, or of one of them.
SELECT
    c.created_at / :quarter AS quarter, c.model, c.session_id, CAST(0 AS BIGINT) AS messages,
    CAST(0 AS BIGINT) AS tool_calls, CAST(SUM(c.input_tokens) AS BIGINT) AS input_tokens,
    CAST(SUM(c.cached_tokens) AS BIGINT) AS cached_tokens, CAST(SUM(c.output_tokens) AS BIGINT) AS output_tokens,
    CAST(0 AS BIGINT) AS thinking_tokens, CAST(SUM(c.cost_micros) AS BIGINT) AS cost_micros
FROM audience_members a
JOIN sessions s ON s.audience_id = a.audience_id
JOIN covers c ON c.session_id = s.id
WHERE a.person_id = :person_id AND (CAST(:session_id AS TEXT) IS NULL OR s.id = :session_id)
  AND c.model IS NOT NULL AND c.created_at >= :since AND c.created_at < :until
GROUP BY 1, 2, 3
ORDER BY 1, 3

-- name: usage.list_sums_of_session
-- The same of one session, whoever asks.
SELECT u.used_at / :quarter AS quarter, u.model, u.session_id, {usage_sums}
FROM (
    SELECT
        m.created_at AS used_at, COALESCE(t.model, s.model) AS model, m.session_id, 1 AS messages, m.tool_call_count,
        m.input_tokens, m.cached_tokens, m.output_tokens, m.thinking_tokens, m.cost_micros
    FROM messages m
    JOIN sessions s ON s.id = m.session_id
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE m.session_id = :session_id AND m.created_at >= :since AND m.created_at < :until
    UNION ALL
    SELECT
        t.begun_at, COALESCE(t.model, s.model), t.session_id, 0, 0,
        t.input_tokens, t.cached_tokens, t.output_tokens, t.thinking_tokens, t.cost_micros
    FROM turns t
    JOIN sessions s ON s.id = t.session_id
    WHERE t.session_id = :session_id AND (t.input_tokens > 0 OR t.output_tokens > 0)
      AND t.begun_at >= :since AND t.begun_at < :until
) u
GROUP BY 1, 2, 3
ORDER BY 1

-- name: usage.list_models_of_last_turn
-- What models were used for in the last turn of a session that somebody waited for.
SELECT
    u.model, CAST(SUM(u.input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(u.cached_tokens) AS BIGINT) AS cached_tokens,
    CAST(SUM(u.output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(u.thinking_tokens) AS BIGINT) AS thinking_tokens, CAST(SUM(u.cost_micros) AS BIGINT) AS cost_micros
FROM (
    SELECT
        t.id, COALESCE(t.model, s.model) AS model, m.input_tokens, m.cached_tokens, m.output_tokens, m.thinking_tokens,
        m.cost_micros
    FROM messages m
    JOIN sessions s ON s.id = m.session_id
    JOIN turns t ON t.id = m.turn_id
    WHERE m.session_id = :session_id
    UNION ALL
    SELECT
        t.id, COALESCE(t.model, s.model), t.input_tokens, t.cached_tokens, t.output_tokens, t.thinking_tokens,
        t.cost_micros
    FROM turns t
    JOIN sessions s ON s.id = t.session_id
    WHERE t.session_id = :session_id
) u
WHERE u.id = (SELECT MAX(id) FROM turns
              WHERE session_id = :session_id AND purpose IN ('reply', 'schedule', 'process'))
GROUP BY 1

-- name: usage.list_models_since
-- What models were used for in a person's sessions since a time. The joins are crossed, so that SQLite begins with the
-- indexes on what was used, and does not read what was said on all days before.
SELECT
    u.model, CAST(SUM(u.input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(u.cached_tokens) AS BIGINT) AS cached_tokens,
    CAST(SUM(u.output_tokens) AS BIGINT) AS output_tokens, CAST(SUM(u.thinking_tokens) AS BIGINT) AS thinking_tokens, CAST(SUM(u.cost_micros) AS BIGINT) AS cost_micros
FROM (
    SELECT
        COALESCE(t.model, s.model) AS model, m.input_tokens, m.cached_tokens, m.output_tokens, m.thinking_tokens,
        m.cost_micros
    FROM messages m
    CROSS JOIN sessions s
    CROSS JOIN audience_members a
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE (m.input_tokens > 0 OR m.output_tokens > 0) AND m.created_at >= :since AND s.id = m.session_id
      AND a.audience_id = s.audience_id AND a.person_id = :person_id
    UNION ALL
    SELECT
        COALESCE(t.model, s.model), t.input_tokens, t.cached_tokens, t.output_tokens, t.thinking_tokens, t.cost_micros
    FROM turns t
    CROSS JOIN sessions s
    CROSS JOIN audience_members a
    WHERE (t.input_tokens > 0 OR t.output_tokens > 0) AND t.begun_at >= :since AND s.id = t.session_id
      AND a.audience_id = s.audience_id AND a.person_id = :person_id
) u
GROUP BY 1
