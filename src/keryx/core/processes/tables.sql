-- columns: process
id, session_id, owner_id, state, command, workspace, backend, has_pty, pid, pid_started_at, boot_id, exit_code, notice
AS notice_json, output_bytes, pins_until_at, started_at, ended_at, host, folder

-- name: processes.add
-- Add a process that is about to start; its pid is set later.
INSERT INTO processes (
    session_id, owner_id, state, command, workspace, backend, has_pty, notice, pins_until_at, started_at, host, folder
)
VALUES (
    :session_id, :owner_id, 'running', :command, :workspace, :backend, :has_pty, :notice, :pins_until_at, :now,
    :host, :folder
)
RETURNING id

-- name: processes.find
-- A process by id.
SELECT {process} FROM processes WHERE id = :process_id

-- name: processes.find_in_folder
-- The process whose folder has this name.
SELECT {process} FROM processes WHERE folder = :folder

-- name: processes.set_pid
-- Set the pid of a running process, its start time and the boot id: they identify it after a restart.
UPDATE processes SET pid = :pid, pid_started_at = :pid_started_at, boot_id = :machine_boot_id
WHERE id = :process_id AND state = 'running'

-- name: processes.end
-- End a running process; it no longer pins its session.
UPDATE processes SET
    state = :state, exit_code = :exit_code, output_bytes = :output_bytes, pins_until_at = NULL, ended_at = :now
WHERE id = :process_id AND state = 'running'

-- name: processes.find_pin
-- A running process that postpones the reset of its session.
SELECT 1 FROM processes WHERE session_id = :session_id AND state = 'running' AND pins_until_at > :now LIMIT 1

-- name: processes.drop_of_session
-- Delete the processes of a session; all must have ended.
DELETE FROM processes WHERE session_id = :session_id

-- name: processes.has_running
-- A running process of the session.
SELECT 1 FROM processes WHERE session_id = :session_id AND state = 'running' LIMIT 1
