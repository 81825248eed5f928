-- columns: person
id, name, role, blocked_at

-- name: people.find_owner
-- The one person who owns this profile, if anybody has opened the store yet.
SELECT {person} FROM people WHERE role = 'owner'

-- name: people.get
-- One person by id.
SELECT {person} FROM people WHERE id = :person_id

-- name: people.add
-- A new person.
INSERT INTO people (name, role, created_at) VALUES (:name, :role, :now) RETURNING id

-- name: people.add_owner
-- The owner, once: a second program that opens the store at the same moment adds nobody.
INSERT INTO people (name, role, created_at) VALUES ('owner', 'owner', :now) ON CONFLICT DO NOTHING

-- name: people.find_by_identity
-- Who is behind a user of a platform.
SELECT {p.person}
FROM identities i JOIN people p ON p.id = i.person_id
WHERE i.platform = :platform AND i.account = :account AND i.user_id = :user_id

-- name: people.add_identity
-- From now on this user of a platform is that person.
INSERT INTO identities (platform, account, user_id, person_id, name, since_at)
VALUES (:platform, :account, :user_id, :person_id, :name, :now)
ON CONFLICT (platform, account, user_id) DO UPDATE SET person_id = excluded.person_id, name = excluded.name

-- name: people.ensure_audience
-- Who hears what is said at one place; made at the first message there.
INSERT INTO audiences (key, created_at) VALUES (:key, :now) ON CONFLICT (key) DO NOTHING

-- name: people.find_audience
-- The audience of a place, if anything was said there.
SELECT id FROM audiences WHERE key = :key

-- name: people.join_audience
-- This person hears, and may find again, what is said there.
INSERT INTO audience_members (person_id, audience_id, since_at) VALUES (:person_id, :audience_id, :now)
ON CONFLICT (person_id, audience_id) DO NOTHING

-- name: people.find_member
-- Whether a person hears what is said to an audience.
SELECT 1 FROM audience_members WHERE person_id = :person_id AND audience_id = :audience_id

-- name: people.list_audiences
-- Everything a person may see is said to one of these.
SELECT audience_id FROM audience_members WHERE person_id = :person_id ORDER BY audience_id

-- name: people.list_private_audiences
-- What was said to a person alone, under this or, since linked, another name.
SELECT m.audience_id FROM audience_members m JOIN audiences a ON a.id = m.audience_id
WHERE m.person_id = :person_id AND a.key LIKE 'person:%'
ORDER BY m.audience_id

-- name: people.next_feed_no
-- The next number of a person's own stream.
UPDATE people SET feed_no = feed_no + 1 WHERE id = :person_id RETURNING feed_no

-- name: people.mark_welcomed
-- Greeted once, at the first message ever.
UPDATE people SET welcomed_at = :now WHERE id = :person_id AND welcomed_at IS NULL

-- name: people.lock_audience
-- Nobody else changes what is remembered for the audience until this transaction ends.
UPDATE audiences SET key = key WHERE id = :audience_id

-- name: people.list_members
-- Everybody who could see what was said to an audience.
SELECT person_id FROM audience_members WHERE audience_id = :audience_id ORDER BY person_id
