-- name: chats.list
-- All chats, oldest first; with a person, only the person's direct messages. A schedule runs in no chat.
SELECT k.source FROM session_keys k JOIN sessions s ON s.id = k.session_id
WHERE s.platform <> 'schedule'
  AND (CAST(:person_id AS BIGINT) IS NULL
       OR k.audience_id IN (SELECT m.audience_id FROM audience_members m JOIN audiences a ON a.id = m.audience_id
                            WHERE m.person_id = :person_id AND a.key LIKE 'person:%'))
ORDER BY k.since_at, k.key
