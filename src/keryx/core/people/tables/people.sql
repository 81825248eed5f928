-- columns: person
id, name, role, blocked_at

-- name: people.find_owner
-- The owner of the profile. A new store has none.
SELECT {person} FROM people WHERE role = 'owner'

-- name: people.get
-- A person by id.
SELECT {person} FROM people WHERE id = :person_id

-- name: people.add
-- Add a person.
INSERT INTO people (name, role, created_at) VALUES (:name, :role, :now) RETURNING id

-- name: people.add_owner
-- Add the owner, unless another program that opens the store at the same moment has done so.
INSERT INTO people (name, role, created_at) VALUES ('owner', 'owner', :now) ON CONFLICT DO NOTHING

-- name: people.find_by_identity
-- The person who is a user of a platform.
SELECT {p.person}
FROM identities i JOIN people p ON p.id = i.person_id
WHERE i.platform = :platform AND i.account = :account AND i.user_id = :user_id

-- name: people.add_identity
-- Assign a user of a platform to a person.
INSERT INTO identities (platform, account, user_id, person_id, name, since_at)
VALUES (:platform, :account, :user_id, :person_id, :name, :now)
ON CONFLICT (platform, account, user_id) DO UPDATE SET person_id = excluded.person_id, name = excluded.name

-- name: people.ensure_audience
-- Add an audience unless it exists.
INSERT INTO audiences (key, created_at) VALUES (:key, :now) ON CONFLICT (key) DO NOTHING

-- name: people.find_audience
-- An audience by its key.
SELECT id FROM audiences WHERE key = :key

-- name: people.join_audience
-- Add a person to an audience unless the person is a member.
INSERT INTO audience_members (person_id, audience_id, since_at) VALUES (:person_id, :audience_id, :now)
ON CONFLICT (person_id, audience_id) DO NOTHING

-- name: people.find_member
-- Returns a row if the person is a member of the audience.
SELECT 1 FROM audience_members WHERE person_id = :person_id AND audience_id = :audience_id

-- name: people.list_audiences
-- The audiences of a person.
SELECT audience_id FROM audience_members WHERE person_id = :person_id ORDER BY audience_id

-- name: people.list_private_audiences
-- The private audiences of a person, including those of people who were linked to this person.
SELECT m.audience_id FROM audience_members m JOIN audiences a ON a.id = m.audience_id
WHERE m.person_id = :person_id AND a.key LIKE 'person:%'
ORDER BY m.audience_id

-- name: people.next_feed_no
-- Reserve the next number of a person's stream of events.
UPDATE people SET feed_no = feed_no + 1 WHERE id = :person_id RETURNING feed_no

-- name: people.mark_welcomed
-- Record that a person was welcomed. Changes nothing the second time.
UPDATE people SET welcomed_at = :now WHERE id = :person_id AND welcomed_at IS NULL

-- name: people.lock_audience
-- Lock an audience until the transaction ends.
UPDATE audiences SET key = key WHERE id = :audience_id

-- name: people.list_members
-- The members of an audience.
SELECT person_id FROM audience_members WHERE audience_id = :audience_id ORDER BY person_id
