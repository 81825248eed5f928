-- name: searched_rows.list_near
-- List the messages up to `reach` numbers before and after places, given as (session, branch, number).
SELECT m.session_id, m.seq, m.role, m.parts
FROM json_array_elements(CAST(:places AS json)) p
JOIN messages m ON m.session_id = p.value ->> 0
    AND m.branch_no = CAST(p.value ->> 1 AS BIGINT)
    AND m.seq BETWEEN CAST(p.value ->> 2 AS BIGINT) - :reach AND CAST(p.value ->> 2 AS BIGINT) + :reach
    AND m.seq <> CAST(p.value ->> 2 AS BIGINT)
