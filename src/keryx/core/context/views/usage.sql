-- columns: tokens
input_tokens, cached_tokens, output_tokens, thinking_tokens, cost_micros

-- columns: summary
created_at, model, session_id

-- columns: token_sums
CAST(SUM(u.input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(u.cached_tokens) AS BIGINT) AS cached_tokens,
CAST(SUM(u.output_tokens) AS BIGINT) AS output_tokens,
CAST(SUM(u.thinking_tokens) AS BIGINT) AS thinking_tokens, CAST(SUM(u.cost_micros) AS BIGINT) AS cost_micros

-- columns: usage_sums
u.used_at / :quarter AS quarter, u.model, u.session_id, u.is_summary, CAST(SUM(u.messages) AS BIGINT) AS messages,
CAST(SUM(u.tool_call_count) AS BIGINT) AS tool_calls

-- name: usage.list_sums
-- Sum the usage of a person's sessions by quarter hour, model and session, that of summaries apart. Turns have usage of
-- their own for answers that became no message.
SELECT {usage_sums}, {token_sums}
FROM (
    SELECT
        m.created_at AS used_at, COALESCE(t.model, s.model) AS model, m.session_id, 0 AS is_summary, 1 AS messages,
        m.tool_call_count, {m.tokens}
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN messages m ON m.session_id = s.id
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE a.person_id = :person_id AND m.created_at >= :since AND m.created_at < :until
    UNION ALL
    SELECT t.begun_at, COALESCE(t.model, s.model), t.session_id, 0, 0, 0, {t.tokens}
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN turns t ON t.session_id = s.id
    WHERE a.person_id = :person_id AND (t.input_tokens > 0 OR t.output_tokens > 0)
      AND t.begun_at >= :since AND t.begun_at < :until
    UNION ALL
    SELECT {c.summary}, 1, 0, 0, c.input_tokens, c.cached_tokens, c.output_tokens, 0, c.cost_micros
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN covers c ON c.session_id = s.id
    WHERE a.person_id = :person_id AND c.model IS NOT NULL AND c.created_at >= :since AND c.created_at < :until
) u
GROUP BY 1, 2, 3, 4
ORDER BY 1, 3

-- name: usage.list_sums_of_session
-- Sum the usage of one session, whoever asks. It reads that session alone, as a condition on the other statement does not.
SELECT {usage_sums}, {token_sums}
FROM (
    SELECT
        m.created_at AS used_at, COALESCE(t.model, s.model) AS model, m.session_id, 0 AS is_summary, 1 AS messages,
        m.tool_call_count, {m.tokens}
    FROM messages m
    JOIN sessions s ON s.id = m.session_id
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE m.session_id = :session_id AND m.created_at >= :since AND m.created_at < :until
    UNION ALL
    SELECT t.begun_at, COALESCE(t.model, s.model), t.session_id, 0, 0, 0, {t.tokens}
    FROM turns t
    JOIN sessions s ON s.id = t.session_id
    WHERE t.session_id = :session_id AND (t.input_tokens > 0 OR t.output_tokens > 0)
      AND t.begun_at >= :since AND t.begun_at < :until
    UNION ALL
    SELECT {c.summary}, 1, 0, 0, c.input_tokens, c.cached_tokens, c.output_tokens, 0, c.cost_micros
    FROM covers c
    WHERE c.session_id = :session_id AND c.model IS NOT NULL AND c.created_at >= :since AND c.created_at < :until
) u
GROUP BY 1, 2, 3, 4
ORDER BY 1

-- name: usage.list_models_of_last_turn
-- Sum the usage of each model in the last turn of a session that answered a person, a schedule or a process.
SELECT u.model, {token_sums}
FROM (
    SELECT t.id, COALESCE(t.model, s.model) AS model, {m.tokens}
    FROM messages m
    JOIN sessions s ON s.id = m.session_id
    JOIN turns t ON t.id = m.turn_id
    WHERE m.session_id = :session_id
    UNION ALL
    SELECT t.id, COALESCE(t.model, s.model), {t.tokens}
    FROM turns t
    JOIN sessions s ON s.id = t.session_id
    WHERE t.session_id = :session_id
) u
WHERE u.id = (SELECT MAX(id) FROM turns
              WHERE session_id = :session_id AND purpose IN ('reply', 'schedule', 'process'))
GROUP BY 1

-- name: usage.list_models_since
-- Sum the usage of each model in a person's sessions since a time. With cross joins, SQLite begins with the indexes on
-- usage, and does not read the messages of earlier days.
SELECT u.model, {token_sums}
FROM (
    SELECT COALESCE(t.model, s.model) AS model, {m.tokens}
    FROM messages m
    CROSS JOIN sessions s
    CROSS JOIN audience_members a
    LEFT JOIN turns t ON t.id = m.turn_id
    WHERE (m.input_tokens > 0 OR m.output_tokens > 0) AND m.created_at >= :since AND s.id = m.session_id
      AND a.audience_id = s.audience_id AND a.person_id = :person_id
    UNION ALL
    SELECT COALESCE(t.model, s.model), {t.tokens}
    FROM turns t
    CROSS JOIN sessions s
    CROSS JOIN audience_members a
    WHERE (t.input_tokens > 0 OR t.output_tokens > 0) AND t.begun_at >= :since AND s.id = t.session_id
      AND a.audience_id = s.audience_id AND a.person_id = :person_id
    UNION ALL
    SELECT c.model, c.input_tokens, c.cached_tokens, c.output_tokens, 0, c.cost_micros
    FROM audience_members a
    JOIN sessions s ON s.audience_id = a.audience_id
    JOIN covers c ON c.session_id = s.id
    WHERE a.person_id = :person_id AND c.model IS NOT NULL AND c.created_at >= :since
) u
GROUP BY 1
