-- The schema that all migrations together make. Written by scripts/schema; do not edit.

CREATE TABLE addresses (
    address TEXT PRIMARY KEY,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    dead_since_at INTEGER,
    reason TEXT,
    probes INTEGER NOT NULL DEFAULT 0,
    probe_at INTEGER,
    last_inbound_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE aliases (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    alias TEXT NOT NULL,
    user_id TEXT NOT NULL,
    since_at INTEGER NOT NULL,
    PRIMARY KEY (platform, account, alias)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX approval_rules_by_approval ON approval_rules (approval_id) WHERE approval_id IS NOT NULL;

CREATE INDEX approval_rules_by_session ON approval_rules (session_id) WHERE session_id IS NOT NULL;

CREATE UNIQUE INDEX approval_rules_in_force ON approval_rules (person_id, tool, pattern, COALESCE(session_id, ''))
WHERE dropped_at IS NULL;

CREATE TABLE approvals (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    turn_id INTEGER NOT NULL REFERENCES turns (id),
    call_id TEXT NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people (id),
    question TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired')),
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answered_by INTEGER REFERENCES people (id),
    answered_at INTEGER,
    note TEXT, covers TEXT, rule_id INTEGER REFERENCES approval_rules (id) ON DELETE SET NULL,
    UNIQUE (turn_id, call_id)
) STRICT;

CREATE INDEX approvals_by_rule ON approvals (rule_id) WHERE rule_id IS NOT NULL;

CREATE INDEX approvals_by_session ON approvals (session_id, id);

CREATE INDEX approvals_pending ON approvals (expires_at) WHERE state = 'pending';

CREATE TABLE audience_members (
    person_id INTEGER NOT NULL REFERENCES people (id),
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    since_at INTEGER NOT NULL,
    PRIMARY KEY (person_id, audience_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audiences (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE blob_refs (
    hash TEXT NOT NULL REFERENCES blobs (hash),
    holder TEXT NOT NULL,
    PRIMARY KEY (hash, holder)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_refs_by_holder ON blob_refs (holder);

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    data BLOB,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE branches (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    no INTEGER NOT NULL,
    parent_session_id TEXT,
    parent_no INTEGER,
    parent_seq INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL CHECK (reason IN ('root', 'undo', 'retry', 'edit', 'rollback', 'fork')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, no)
) STRICT, WITHOUT ROWID;

CREATE INDEX branches_by_parent ON branches (parent_session_id) WHERE parent_session_id IS NOT NULL;

CREATE TABLE connector_leases (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE covers (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    no INTEGER NOT NULL,
    branch_no INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL CHECK (last_seq >= first_seq),
    summary TEXT NOT NULL,
    focus TEXT,
    tokens_before INTEGER NOT NULL,
    tokens_after INTEGER NOT NULL CHECK (tokens_after < tokens_before),
    created_at INTEGER NOT NULL,
    dropped_at INTEGER, model TEXT, input_tokens INTEGER NOT NULL DEFAULT 0, cached_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, cost_micros INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, no)
) STRICT, WITHOUT ROWID;

CREATE TABLE drafts (
    person_id INTEGER NOT NULL REFERENCES people (id),
    session_id TEXT NOT NULL REFERENCES sessions (id),
    text TEXT NOT NULL,
    revision INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (person_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed (
    id INTEGER PRIMARY KEY,
    session_id TEXT,
    person_id INTEGER,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject INTEGER,
    at INTEGER NOT NULL,
    CHECK ((session_id IS NULL) <> (person_id IS NULL))
) STRICT;

CREATE UNIQUE INDEX feed_by_person ON feed (person_id, number) WHERE person_id IS NOT NULL;

CREATE UNIQUE INDEX feed_by_session ON feed (session_id, number) WHERE session_id IS NOT NULL;

CREATE TABLE fires (
    schedule_id INTEGER NOT NULL REFERENCES schedules (id),
    due_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('fired', 'finished', 'failed', 'skipped')),
    note TEXT,
    session_id TEXT,
    inbox_id INTEGER REFERENCES inbox (id),
    fired_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (schedule_id, due_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX fires_by_inbox ON fires (inbox_id) WHERE inbox_id IS NOT NULL;

CREATE TABLE grants (
    role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'guest')),
    platform TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('command', 'toolset', 'process')),
    name TEXT NOT NULL,
    allowed INTEGER NOT NULL CHECK (allowed IN (0, 1)),
    set_at INTEGER NOT NULL,
    PRIMARY KEY (role, platform, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE homes (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT,
    chat_name TEXT,
    set_by INTEGER REFERENCES people (id),
    set_at INTEGER NOT NULL,
    PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE identities (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    user_id TEXT NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people (id),
    name TEXT,
    since_at INTEGER NOT NULL,
    PRIMARY KEY (platform, account, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX identities_by_person ON identities (person_id);

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    kind TEXT NOT NULL CHECK (kind IN ('message', 'command', 'schedule', 'process', 'approval', 'agent')),
    state TEXT NOT NULL CHECK (state IN ('ready', 'claimed', 'done', 'dead')),
    busy_mode TEXT NOT NULL CHECK (busy_mode IN ('queue', 'steer', 'interrupt', 'collect', 'rollback')),
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    ref TEXT NOT NULL,
    person_id INTEGER REFERENCES people (id),
    source TEXT NOT NULL,
    parts TEXT NOT NULL,
    sent_at INTEGER,
    received_at INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    turn_id INTEGER REFERENCES turns (id),
    seq INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    fate TEXT CHECK (fate IN ('answered', 'merged', 'cancelled', 'failed', 'command')),
    fate_note TEXT,
    ended_at INTEGER, purpose TEXT NOT NULL DEFAULT 'answer'
    CHECK (purpose IN ('answer', 'rerun', 'task', 'compress', 'flush', 'title')),
    UNIQUE (platform, account, ref),
    CHECK ((state IN ('done', 'dead')) = (fate IS NOT NULL))
) STRICT;

CREATE INDEX inbox_by_session ON inbox (session_id, id);

CREATE INDEX inbox_by_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX inbox_open ON inbox (session_id) WHERE state IN ('ready', 'claimed');

CREATE INDEX inbox_ready ON inbox (session_id, id) WHERE state = 'ready';

CREATE TABLE keryx_schema (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    compatible BIGINT NOT NULL,
    keryx_version TEXT NOT NULL,
    applied_at BIGINT NOT NULL
);

CREATE TABLE links (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('reset', 'fork', 'delegation', 'import')),
    from_session_id TEXT,
    to_session_id TEXT NOT NULL REFERENCES sessions (id),
    at_seq INTEGER,
    origin TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX links_by_origin ON links (origin) WHERE origin IS NOT NULL;

CREATE INDEX links_from ON links (from_session_id);

CREATE INDEX links_to ON links (to_session_id);

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

CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    text TEXT NOT NULL,
    session_id TEXT,
    seq INTEGER,
    created_at INTEGER NOT NULL,
    forgotten_at INTEGER
, author_id INTEGER REFERENCES people (id), replaces_id INTEGER REFERENCES memories (id), fingerprint TEXT) STRICT;

CREATE INDEX memories_by_audience ON memories (audience_id, id) WHERE forgotten_at IS NULL;

CREATE UNIQUE INDEX memories_by_fingerprint ON memories (audience_id, fingerprint) WHERE forgotten_at IS NULL;

CREATE TABLE memory_changes (
    id INTEGER PRIMARY KEY,
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    kind TEXT NOT NULL CHECK (kind IN ('kept', 'edited', 'forgotten', 'restored')),
    person_id INTEGER NOT NULL REFERENCES people (id),
    changed_at INTEGER NOT NULL,
    undone_at INTEGER
) STRICT;

CREATE INDEX memory_changes_by_audience ON memory_changes (audience_id, id) WHERE undone_at IS NULL;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    branch_no INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    parts TEXT NOT NULL,
    author TEXT,
    author_id INTEGER,
    turn_id INTEGER,
    tool_call_count INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    finish_reason TEXT,
    created_at INTEGER NOT NULL, thinking_tokens INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, branch_no, seq)
) STRICT;

CREATE INDEX messages_by_use ON messages (created_at) WHERE input_tokens > 0 OR output_tokens > 0;

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

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    session_id TEXT REFERENCES sessions (id),
    turn_id INTEGER REFERENCES turns (id),
    kind TEXT NOT NULL CHECK (kind IN ('reply', 'notice', 'question', 'scheduled', 'pairing', 'copy')),
    state TEXT NOT NULL CHECK (state IN ('ready', 'sending', 'sent', 'rejected', 'unknown', 'dead')),
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT,
    address TEXT NOT NULL,
    reply_to TEXT,
    parts TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    platform_message_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    claimed_by TEXT,
    claim_epoch INTEGER,
    maybe_repeated_at INTEGER,
    error TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER
, held_at INTEGER, sent_pieces INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX outbox_by_session ON outbox (session_id, id) WHERE session_id IS NOT NULL;

CREATE INDEX outbox_by_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX outbox_due ON outbox (platform, account, due_at, id) WHERE state = 'ready';

CREATE INDEX outbox_held ON outbox (session_id) WHERE held_at IS NOT NULL;

CREATE UNIQUE INDEX outbox_one_reply ON outbox (turn_id, address, kind) WHERE kind IN ('reply', 'scheduled');

CREATE INDEX outbox_sending ON outbox (platform, account) WHERE state = 'sending';

CREATE INDEX outbox_unfinished ON outbox (address, id) WHERE state IN ('ready', 'sending');

CREATE TABLE pairing_tries (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    user_id TEXT NOT NULL,
    wrong_count INTEGER NOT NULL,
    locked_until INTEGER,
    PRIMARY KEY (platform, account, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE pairings (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('pairing', 'link')),
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    user_id TEXT NOT NULL,
    user_name TEXT,
    source TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    person_id INTEGER REFERENCES people (id),
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired')),
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_by INTEGER REFERENCES people (id),
    decided_at INTEGER
) STRICT;

CREATE INDEX pairings_by_code ON pairings (code_hash) WHERE state = 'pending';

CREATE INDEX pairings_by_state ON pairings (state, expires_at);

CREATE INDEX pairings_by_user ON pairings (platform, account, user_id);

CREATE TABLE people (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'guest')),
    feed_no INTEGER NOT NULL DEFAULT 0,
    blocked_at INTEGER,
    welcomed_at INTEGER,
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX people_one_owner ON people (role) WHERE role = 'owner';

CREATE TABLE pinned_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people (id),
    since_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE processes (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    owner_id INTEGER NOT NULL REFERENCES people (id),
    state TEXT NOT NULL CHECK (state IN ('running', 'exited', 'killed', 'lost')),
    command TEXT NOT NULL,
    workspace TEXT,
    backend TEXT NOT NULL,
    has_pty INTEGER NOT NULL CHECK (has_pty IN (0, 1)),
    pid INTEGER,
    pid_started_at INTEGER,
    boot_id TEXT,
    exit_code INTEGER,
    notice TEXT NOT NULL,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    pins_until_at INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER
, host TEXT, folder TEXT) STRICT;

CREATE UNIQUE INDEX processes_by_folder ON processes (folder);

CREATE INDEX processes_by_session ON processes (session_id, id);

CREATE INDEX processes_running ON processes (id) WHERE state = 'running';

CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES people (id),
    name TEXT NOT NULL,
    colour TEXT,
    workspace TEXT,
    parent_id INTEGER REFERENCES projects (id),
    created_at INTEGER NOT NULL,
    archived_at INTEGER,
    UNIQUE (owner_id, name)
) STRICT;

CREATE TABLE read_marks (
    person_id INTEGER NOT NULL REFERENCES people (id),
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    marked_at INTEGER NOT NULL,
    PRIMARY KEY (person_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES people (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'ended')),
    rule TEXT NOT NULL,
    zone TEXT NOT NULL,
    parts TEXT NOT NULL,
    route TEXT NOT NULL,
    origin TEXT,
    session_id TEXT REFERENCES sessions (id),
    missed TEXT NOT NULL CHECK (missed IN ('skip', 'once', 'all')),
    overlap TEXT NOT NULL CHECK (overlap IN ('skip', 'queue')),
    options TEXT NOT NULL,
    anchor_at INTEGER NOT NULL,
    due_at INTEGER,
    last_due_at INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    UNIQUE (owner_id, name)
) STRICT;

CREATE INDEX schedules_due ON schedules (due_at) WHERE state = 'active';

CREATE TABLE session_keys (
    key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    source TEXT NOT NULL,
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    since_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX session_keys_by_session ON session_keys (session_id);

CREATE INDEX session_keys_by_time ON session_keys (since_at, session_id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    profile TEXT NOT NULL,
    owner_id INTEGER NOT NULL REFERENCES people (id),
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    state TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    platform TEXT NOT NULL,
    source TEXT NOT NULL,
    display_name TEXT,
    title TEXT,
    title_by TEXT CHECK (title_by IN ('person', 'text', 'model')),
    preview TEXT,
    project_id INTEGER REFERENCES projects (id),
    workspace TEXT,
    model TEXT,
    model_settings TEXT,
    personality TEXT,
    started_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    closed_at INTEGER,
    close_reason TEXT,
    pinned_at INTEGER,
    archived_at INTEGER,
    deleted_at INTEGER,
    active_branch_no INTEGER NOT NULL DEFAULT 0,
    last_branch_no INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    feed_no INTEGER NOT NULL DEFAULT 0,
    message_count INTEGER NOT NULL DEFAULT 0,
    message_total INTEGER NOT NULL DEFAULT 0,
    tool_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0,
    reset_reason TEXT,
    flushed_seq INTEGER NOT NULL DEFAULT 0,
    lease_holder TEXT,
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    lease_boot_id TEXT NOT NULL DEFAULT '',
    lease_expires_at INTEGER NOT NULL DEFAULT 0, thinking_tokens INTEGER NOT NULL DEFAULT 0,
    CHECK ((state = 'closed') = (closed_at IS NOT NULL))
) STRICT;

CREATE INDEX sessions_archived ON sessions (audience_id, last_active_at DESC, id DESC)
WHERE archived_at IS NOT NULL AND deleted_at IS NULL;

CREATE INDEX sessions_by_project ON sessions (project_id) WHERE project_id IS NOT NULL;

CREATE INDEX sessions_in_bin ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE INDEX sessions_listed ON sessions (
    audience_id, (pinned_at IS NOT NULL) DESC, last_active_at DESC, id DESC
) WHERE deleted_at IS NULL AND archived_at IS NULL;

CREATE INDEX sessions_unflushed ON sessions (last_active_at, id) WHERE state = 'open' AND flushed_seq < last_seq;

CREATE TABLE steps (
    turn_id INTEGER NOT NULL REFERENCES turns (id),
    call_id TEXT NOT NULL,
    no INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    name TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('pure', 'idempotent', 'once', 'ask')),
    state TEXT NOT NULL CHECK (state IN ('called', 'started', 'done', 'unknown')),
    idempotency_key TEXT NOT NULL,
    call_seq INTEGER NOT NULL,
    result_seq INTEGER,
    starts INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    ended_at INTEGER,
    PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX steps_open ON steps (session_id) WHERE state IN ('called', 'started');

CREATE TABLE tags (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    tag TEXT NOT NULL,
    since_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_tag ON tags (tag, session_id);

CREATE TABLE turn_chunks (
    turn_id INTEGER NOT NULL REFERENCES turns (id),
    start INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (turn_id, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    branch_no INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'finished', 'failed', 'stopped', 'lost')),
    purpose TEXT NOT NULL,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    person_id INTEGER REFERENCES people (id),
    origin TEXT,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    reason TEXT,
    stop_requested_at INTEGER,
    model TEXT,
    prompt_hash TEXT,
    tools_hash TEXT
, window_tokens INTEGER, system_tokens INTEGER, tools_tokens INTEGER, history_tokens INTEGER, attachment_tokens INTEGER, input_tokens INTEGER NOT NULL DEFAULT 0, cached_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, thinking_tokens INTEGER NOT NULL DEFAULT 0, cost_micros INTEGER NOT NULL DEFAULT 0, zone TEXT) STRICT;

CREATE INDEX turns_by_session ON turns (session_id, id);

CREATE INDEX turns_by_use ON turns (begun_at) WHERE input_tokens > 0 OR output_tokens > 0;

CREATE INDEX turns_live ON turns (session_id) WHERE state IN ('running', 'waiting');

-- The search index, in a file of its own.

CREATE TABLE search_blocks (
    block_id INTEGER PRIMARY KEY,
    segment_id INTEGER NOT NULL,
    term TEXT NOT NULL,
    data BLOB NOT NULL,
    positions BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX search_blocks_by_term ON search_blocks (segment_id, term);

CREATE TABLE search_cards (
    card_id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE search_docs (
    segment_id INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (segment_id, chunk)
) STRICT;

CREATE TABLE search_merges (
    target_id INTEGER NOT NULL,
    source_id INTEGER NOT NULL,
    renumbering BLOB NOT NULL,
    PRIMARY KEY (target_id, source_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE search_purges (
    session_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE search_segments (
    segment_id INTEGER PRIMARY KEY,
    born INTEGER NOT NULL,
    doc_count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    marks BLOB NOT NULL,
    merged_up_to TEXT,
    finished_at INTEGER
) STRICT;

CREATE TABLE search_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    position_xid INTEGER NOT NULL,
    position_id INTEGER NOT NULL,
    next_segment INTEGER NOT NULL,
    next_card INTEGER NOT NULL
) STRICT;

