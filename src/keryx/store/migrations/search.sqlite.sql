-- The search index: disposable, rebuilt from the messages at any time. Its format number is in search_state.

CREATE TABLE IF NOT EXISTS search_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    position_xid INTEGER NOT NULL,
    position_id INTEGER NOT NULL,
    next_segment INTEGER NOT NULL,
    next_card INTEGER NOT NULL
) STRICT;

-- Immutable once finished. A segment without finished_at is the target of a running merge.
CREATE TABLE IF NOT EXISTS search_segments (
    segment_id INTEGER PRIMARY KEY,
    born INTEGER NOT NULL,
    doc_count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    marks BLOB NOT NULL,
    merged_up_to TEXT,
    finished_at INTEGER
) STRICT;

CREATE TABLE IF NOT EXISTS search_docs (
    segment_id INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (segment_id, chunk)
) STRICT;

CREATE TABLE IF NOT EXISTS search_blocks (
    block_id INTEGER PRIMARY KEY,
    segment_id INTEGER NOT NULL,
    term TEXT NOT NULL,
    data BLOB NOT NULL,
    positions BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS search_blocks_by_term ON search_blocks (segment_id, term);

-- The source segments of a merge target, and the new numbers of their documents.
CREATE TABLE IF NOT EXISTS search_merges (
    target_id INTEGER NOT NULL,
    source_id INTEGER NOT NULL,
    renumbering BLOB NOT NULL,
    PRIMARY KEY (target_id, source_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS search_cards (
    card_id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE
) STRICT;

-- Sessions whose words must still be removed from the index.
CREATE TABLE IF NOT EXISTS search_purges (
    session_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
