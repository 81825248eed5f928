-- columns: pairing
id, kind, platform, account, user_id, user_name, source AS source_json, person_id, state, asked_at, expires_at

-- name: access.lock_person
-- Lock a person until the transaction ends.
UPDATE people SET feed_no = feed_no WHERE id = :person_id

-- name: access.set_role
-- Set the role of a person.
UPDATE people SET role = :role WHERE id = :person_id AND role <> :role

-- name: access.block
-- Block a person.
UPDATE people SET blocked_at = :now WHERE id = :person_id AND blocked_at IS NULL

-- name: access.unblock
-- Unblock a person.
UPDATE people SET blocked_at = NULL WHERE id = :person_id AND blocked_at IS NOT NULL

-- name: access.set_grant
-- Add or replace a grant.
INSERT INTO grants (role, platform, kind, name, allowed, set_at)
VALUES (:role, :platform, :kind, :name, :allowed, :now)
ON CONFLICT (role, platform, kind, name) DO UPDATE SET allowed = excluded.allowed, set_at = excluded.set_at

-- name: access.remove_grant
-- Delete a grant.
DELETE FROM grants WHERE role = :role AND platform = :platform AND kind = :kind AND name = :name

-- name: access.list_grants
-- All grants.
SELECT role, platform, kind, name, allowed FROM grants ORDER BY role, platform, kind, name

-- name: access.find_alias
-- The id to which an alias resolves.
SELECT user_id FROM aliases WHERE platform = :platform AND account = :account AND alias = :alias

-- name: access.add_alias
-- Add an alias. Changes nothing if it exists.
INSERT INTO aliases (platform, account, alias, user_id, since_at)
VALUES (:platform, :account, :alias, :user_id, :now)
ON CONFLICT (platform, account, alias) DO NOTHING

-- name: access.find_known_id
-- Returns a row if the id is in use, as a user or as a chat.
SELECT 1 FROM identities WHERE platform = :platform AND account = :account AND user_id = :id
UNION ALL
SELECT 1 FROM addresses WHERE address = :address
LIMIT 1

-- name: access.add_pairing
-- Add a code for pairing or linking.
INSERT INTO pairings (
    kind, platform, account, user_id, user_name, source, code_hash, person_id, state, asked_at, expires_at
)
VALUES (
    :kind, :platform, :account, :user_id, :user_name, :source, :code_hash, :person_id, 'pending', :now, :expires_at
)
RETURNING id

-- name: access.count_pending
-- The number of pending requests on an account.
SELECT COUNT(*) FROM pairings
WHERE kind = 'pairing' AND state = 'pending' AND platform = :platform AND account = :account AND expires_at > :now

-- name: access.find_asked
-- A stranger's unexpired request, pending or denied.
SELECT {pairing}
FROM pairings
WHERE kind = 'pairing' AND state IN ('pending', 'denied') AND platform = :platform AND account = :account
  AND user_id = :user_id AND expires_at > :now
ORDER BY id DESC
LIMIT 1

-- name: access.find_pending
-- A stranger's pending request by its number.
SELECT {pairing}
FROM pairings
WHERE id = :pairing_id AND kind = 'pairing' AND state = 'pending' AND expires_at > :now

-- name: access.find_by_code
-- The row of a valid code.
SELECT {pairing}
FROM pairings
WHERE code_hash = :code_hash AND kind = :kind AND state = 'pending' AND expires_at > :now

-- name: access.decide_pairing
-- Decide a pending code. Changes nothing the second time.
UPDATE pairings SET state = :state, person_id = :person_id, decided_by = :decided_by, decided_at = :now
WHERE id = :pairing_id AND state = 'pending'

-- name: access.drop_links
-- Expire the pending link codes of a person.
UPDATE pairings SET state = 'expired', decided_at = :now
WHERE kind = 'link' AND state = 'pending' AND person_id = :person_id

-- name: access.expire_pairings
-- Expire overdue codes.
UPDATE pairings SET state = 'expired', decided_at = :now WHERE state = 'pending' AND expires_at <= :now
RETURNING id

-- name: access.find_tries
-- The count of wrong codes of a user.
SELECT wrong_count AS wrong, locked_until FROM pairing_tries
WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.lock_tries
-- Lock the count of wrong codes of a user until the transaction ends.
INSERT INTO pairing_tries (platform, account, user_id, wrong_count) VALUES (:platform, :account, :user_id, 0)
ON CONFLICT (platform, account, user_id) DO UPDATE SET wrong_count = pairing_tries.wrong_count
RETURNING wrong_count AS wrong, locked_until

-- name: access.set_tries
-- Store the count of wrong codes and the end of the lock.
UPDATE pairing_tries SET wrong_count = :wrong_count, locked_until = :locked_until
WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.clear_tries
-- Delete the count of wrong codes of a user.
DELETE FROM pairing_tries WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.move_identities
-- Assign all identities of one person to another.
UPDATE identities SET person_id = :to_person_id WHERE person_id = :from_person_id

-- name: access.join_audiences_of
-- Add a person to all audiences of another.
INSERT INTO audience_members (person_id, audience_id, since_at)
SELECT CAST(:to_person_id AS BIGINT), audience_id, CAST(:now AS BIGINT)
FROM audience_members WHERE person_id = :from_person_id
ON CONFLICT (person_id, audience_id) DO NOTHING
