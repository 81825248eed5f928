-- compatible: 2
-- Standing approvals: a person allows every use of a tool that a pattern covers, in a session or everywhere.
-- Deleting a row cascades to the rows that refer to it, so that older code, which does not know them, can purge.
CREATE TABLE approval_rules (
    id INTEGER PRIMARY KEY,
    person_id INTEGER NOT NULL REFERENCES people (id),
    session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    pattern TEXT NOT NULL,
    approval_id INTEGER REFERENCES approvals (id) ON DELETE SET NULL,
    since_at INTEGER NOT NULL,
    dropped_at INTEGER
) STRICT;
CREATE UNIQUE INDEX approval_rules_in_force ON approval_rules (person_id, tool, pattern, COALESCE(session_id, ''))
WHERE dropped_at IS NULL;
CREATE INDEX approval_rules_by_session ON approval_rules (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX approval_rules_by_approval ON approval_rules (approval_id) WHERE approval_id IS NOT NULL;

-- What a standing approval would cover; NULL if the question can be answered only once.
ALTER TABLE approvals ADD COLUMN covers TEXT;
-- The standing approval that decided without a question.
ALTER TABLE approvals ADD COLUMN rule_id INTEGER REFERENCES approval_rules (id) ON DELETE SET NULL;
CREATE INDEX approvals_by_rule ON approvals (rule_id) WHERE rule_id IS NOT NULL;
