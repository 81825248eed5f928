-- name: transcript.find_head
-- Which branch a session shows and after which message that begins, if this person belongs to its audience.
SELECT s.active_branch_no AS branch_no, COALESCE(b.parent_seq, 0) AS parent_seq
FROM sessions s
JOIN audience_members m ON m.audience_id = s.audience_id AND m.person_id = :person_id
LEFT JOIN branches b ON b.session_id = s.id AND b.no = s.active_branch_no
WHERE s.id = :session_id

-- name: transcript.list_last
-- The newest own messages of the branch a session shows, newest first, if this person belongs to its audience.
SELECT {m.message}
FROM sessions s
JOIN audience_members a ON a.audience_id = s.audience_id AND a.person_id = :person_id
JOIN messages m ON m.session_id = s.id AND m.branch_no = s.active_branch_no AND m.seq <= :last_seq
WHERE s.id = :session_id
ORDER BY m.seq DESC
LIMIT :limit
