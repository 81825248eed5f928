-- name: delivery_invariants.replied_twice
-- List turns with more than one final message for one address.
SELECT session_id, address FROM outbox
WHERE turn_id IS NOT NULL AND kind IN ('reply', 'scheduled', 'copy')
GROUP BY session_id, turn_id, address
HAVING COUNT(*) > 1
LIMIT :limit

-- name: delivery_invariants.half_sent
-- List deliveries that are being sent without a claim, or have ended in a state that is not final.
SELECT session_id, CAST(id AS TEXT) FROM outbox
WHERE (state = 'sending') <> (claimed_by IS NOT NULL AND claim_epoch IS NOT NULL)
   OR (state IN ('ready', 'sending')) <> (ended_at IS NULL)
   OR (state <> 'ready' AND attempts = 0)
LIMIT :limit

-- name: delivery_invariants.sent_side_by_side
-- List addresses to which two deliveries are being sent at once.
SELECT CAST(NULL AS TEXT), address FROM outbox
WHERE state = 'sending'
GROUP BY address
HAVING COUNT(*) > 1
LIMIT :limit

-- name: delivery_invariants.orphaned
-- List unfinished deliveries to passing places that no program holds.
SELECT o.session_id, CAST(o.id AS TEXT) FROM outbox o
WHERE o.state IN ('ready', 'sending') AND o.platform = 'local' AND o.account LIKE 'print-%'
  AND NOT EXISTS (SELECT 1 FROM connector_leases l WHERE l.platform = o.platform AND l.account = o.account)
LIMIT :limit

-- name: delivery_invariants.crossed_replies
-- List answers that leave the group of their session, or go from a private conversation into a group.
SELECT o.session_id, CAST(o.id AS TEXT)
FROM outbox o JOIN sessions s ON s.id = o.session_id JOIN audiences a ON a.id = s.audience_id
WHERE o.kind IN ('reply', 'copy')
  AND CASE WHEN a.key LIKE 'chat:%'
           THEN SUBSTR('chat:' || o.address || ':', 1, LENGTH(a.key) + 1) <> a.key || ':'
           ELSE EXISTS (SELECT 1 FROM audiences g WHERE g.key = 'chat:' || o.address)
      END
LIMIT :limit
