-- compatible: 2
-- A session that was taken up again expires by when that was: the watcher finds it as it finds the others.
CREATE INDEX session_keys_by_time ON session_keys (since_at, session_id);
