-- What an inbox item asks for. What Keryx adds itself had invented platforms; now it has none.
ALTER TABLE inbox ADD COLUMN purpose TEXT NOT NULL DEFAULT 'answer'
    CHECK (purpose IN ('answer', 'rerun', 'task', 'compress', 'flush', 'title'));
UPDATE inbox SET purpose = 'rerun' WHERE kind = 'agent' AND platform NOT IN ('delegation', 'compress', 'flush', 'title');
UPDATE inbox SET purpose = 'task', platform = '' WHERE kind = 'agent' AND platform = 'delegation';
UPDATE inbox SET purpose = platform, platform = '' WHERE kind = 'agent' AND platform IN ('compress', 'flush', 'title');
UPDATE inbox SET platform = '' WHERE kind IN ('schedule', 'process') OR (kind = 'approval' AND platform = 'approval');

-- What is ready is looked for by session: one, or all of them in their order.
DROP INDEX inbox_ready;
CREATE INDEX inbox_ready ON inbox (session_id, id) WHERE state = 'ready';
