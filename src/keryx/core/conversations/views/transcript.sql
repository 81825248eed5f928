-- name: transcript.find_head
-- The active branch of a session and the message before it, if the person belongs to the audience.
SELECT s.active_branch_no AS branch_no, COALESCE(b.parent_seq, 0) AS parent_seq
FROM sessions s
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
LEFT JOIN branches b ON b.session_id = s.id AND b.no = s.active_branch_no
WHERE s.id = :session_id

-- name: transcript.list_last
-- The last own messages of the active branch, newest first, if the person belongs to the audience.
SELECT {m.message}
FROM sessions s
JOIN audience_members a ON a.audience_id = s.audience_id AND a.person_id = :person_id
JOIN messages m ON m.session_id = s.id AND m.branch_no = s.active_branch_no AND m.seq <= :last_seq
WHERE s.id = :session_id
ORDER BY m.seq DESC
LIMIT :limit
