-- compatible: 2
-- A resumed session expires by the time of its resumption: the watcher finds it with the same query.
CREATE INDEX session_keys_by_time ON session_keys (since_at, session_id);
