-- columns: pairing
id, kind, platform, account, user_id, user_name, source AS source_json, person_id, state, asked_at, expires_at

-- name: access.lock_person
-- What is decided about this person, or by the owner, is decided by one transaction at a time.
UPDATE people SET feed_no = feed_no WHERE id = :person_id

-- name: access.set_role
-- What a person may do from now on.
UPDATE people SET role = :role WHERE id = :person_id AND role <> :role

-- name: access.block
-- The person may not speak from now on.
UPDATE people SET blocked_at = :now WHERE id = :person_id AND blocked_at IS NULL

-- name: access.unblock
-- The person may speak again.
UPDATE people SET blocked_at = NULL WHERE id = :person_id AND blocked_at IS NOT NULL

-- name: access.set_grant
-- What a role may use on a platform, or may not.
INSERT INTO grants (role, platform, kind, name, allowed, set_at)
VALUES (:role, :platform, :kind, :name, :allowed, :now)
ON CONFLICT (role, platform, kind, name) DO UPDATE SET allowed = excluded.allowed, set_at = excluded.set_at

-- name: access.remove_grant
-- Back to what holds without it.
DELETE FROM grants WHERE role = :role AND platform = :platform AND kind = :kind AND name = :name

-- name: access.list_grants
-- Everything the owner has set.
SELECT role, platform, kind, name, allowed FROM grants ORDER BY role, platform, kind, name

-- name: access.find_alias
-- What another id of the same user or chat stands for.
SELECT user_id FROM aliases WHERE platform = :platform AND account = :account AND alias = :alias

-- name: access.add_alias
-- Two ids are one; the first to say so decides which of them is gone by.
INSERT INTO aliases (platform, account, alias, user_id, since_at)
VALUES (:platform, :account, :alias, :user_id, :now)
ON CONFLICT (platform, account, alias) DO NOTHING

-- name: access.find_known_id
-- Whether rows go by this id: somebody is known by it, or something was said in a chat called so.
SELECT 1 FROM identities WHERE platform = :platform AND account = :account AND user_id = :id
UNION ALL
SELECT 1 FROM addresses WHERE address = :address
LIMIT 1

-- name: access.add_pairing
-- A code was given out.
INSERT INTO pairings (
    kind, platform, account, user_id, user_name, source, code_hash, person_id, state, asked_at, expires_at
)
VALUES (
    :kind, :platform, :account, :user_id, :user_name, :source, :code_hash, :person_id, 'pending', :now, :expires_at
)
RETURNING id

-- name: access.count_pending
-- How many strangers wait for an answer on one account.
SELECT COUNT(*) FROM pairings
WHERE kind = 'pairing' AND state = 'pending' AND platform = :platform AND account = :account AND expires_at > :now

-- name: access.find_asked
-- The request that a stranger has made within its hour, answered or not.
SELECT {pairing}
FROM pairings
WHERE kind = 'pairing' AND state IN ('pending', 'denied') AND platform = :platform AND account = :account
  AND user_id = :user_id AND expires_at > :now
ORDER BY id DESC
LIMIT 1

-- name: access.find_pending
-- A stranger's request by its number, while it waits.
SELECT {pairing}
FROM pairings
WHERE id = :pairing_id AND kind = 'pairing' AND state = 'pending' AND expires_at > :now

-- name: access.find_by_code
-- What a code was given out for, while it is good.
SELECT {pairing}
FROM pairings
WHERE code_hash = :code_hash AND kind = :kind AND state = 'pending' AND expires_at > :now

-- name: access.decide_pairing
-- A code is good for one decision.
UPDATE pairings SET state = :state, person_id = :person_id, decided_by = :decided_by, decided_at = :now
WHERE id = :pairing_id AND state = 'pending'

-- name: access.drop_links
-- Only the newest code of a person is good for linking.
UPDATE pairings SET state = 'expired', decided_at = :now
WHERE kind = 'link' AND state = 'pending' AND person_id = :person_id

-- name: access.expire_pairings
-- Codes whose hour is over.
UPDATE pairings SET state = 'expired', decided_at = :now WHERE state = 'pending' AND expires_at <= :now
RETURNING id

-- name: access.find_tries
-- How many wrong codes somebody has entered.
SELECT wrong_count AS wrong, locked_until FROM pairing_tries
WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.lock_tries
-- How many wrong codes somebody has entered; nobody else counts theirs until this transaction ends.
INSERT INTO pairing_tries (platform, account, user_id, wrong_count) VALUES (:platform, :account, :user_id, 0)
ON CONFLICT (platform, account, user_id) DO UPDATE SET wrong_count = pairing_tries.wrong_count
RETURNING wrong_count AS wrong, locked_until

-- name: access.set_tries
-- One more wrong code, or the lock after too many.
UPDATE pairing_tries SET wrong_count = :wrong_count, locked_until = :locked_until
WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.clear_tries
-- A right code forgives the wrong ones.
DELETE FROM pairing_tries WHERE platform = :platform AND account = :account AND user_id = :user_id

-- name: access.move_identities
-- Every account of one person is the other's from now on.
UPDATE identities SET person_id = :to_person_id WHERE person_id = :from_person_id

-- name: access.join_audiences_of
-- One person hears, and may find again, what the other did.
INSERT INTO audience_members (person_id, audience_id, since_at)
SELECT CAST(:to_person_id AS BIGINT), audience_id, CAST(:now AS BIGINT)
FROM audience_members WHERE person_id = :from_person_id
ON CONFLICT (person_id, audience_id) DO NOTHING
