-- name: people_list.list_requests
-- The pending requests of strangers, oldest first.
SELECT id, platform, user_name, user_id, asked_at FROM pairings
WHERE kind = 'pairing' AND state = 'pending' AND expires_at > :now
ORDER BY id

-- name: people_list.list
-- The owner and all people with an account, with one row for each account.
SELECT p.id, p.name, p.role, p.blocked_at, i.platform
FROM people p LEFT JOIN identities i ON i.person_id = p.id
WHERE i.person_id IS NOT NULL OR p.role = 'owner'
ORDER BY p.id, i.platform
