-- name: own_places.list
-- The direct messages of one person, oldest first.
SELECT k.source
FROM audience_members m
JOIN audiences a ON a.id = m.audience_id
JOIN session_keys k ON k.audience_id = m.audience_id
JOIN sessions s ON s.id = k.session_id
WHERE m.person_id = :person_id AND a.key LIKE 'person:%' AND s.platform <> 'schedule'
ORDER BY k.since_at, k.key
