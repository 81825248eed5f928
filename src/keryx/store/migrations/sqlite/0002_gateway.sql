-- compatible: 2
-- The gateway: running processes, malformed updates, and deliveries with a live preview.

-- Every process that works on the store; its times are lease times.
CREATE TABLE nodes (
    holder TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('gateway', 'chat')),
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Updates from platforms that could not be parsed, unchanged.
CREATE TABLE malformed (
    id INTEGER PRIMARY KEY,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    ref TEXT NOT NULL,
    raw TEXT NOT NULL,
    reason TEXT NOT NULL,
    received_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX malformed_by_ref ON malformed (platform, account, ref);

-- Since when the delivery is only a preview of its turn's text: shown and edited, but not yet to be sent.
ALTER TABLE outbox ADD COLUMN held_at INTEGER;
-- The number of sent pieces; the same parts always give the same pieces.
ALTER TABLE outbox ADD COLUMN sent_pieces INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_held ON outbox (session_id) WHERE held_at IS NOT NULL;
