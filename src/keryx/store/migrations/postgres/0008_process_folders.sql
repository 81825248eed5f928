-- compatible: 2
-- Where a process runs: the machine, for people, and its folder there, for the gateway of that machine.
ALTER TABLE processes ADD COLUMN host TEXT;
ALTER TABLE processes ADD COLUMN folder TEXT;
CREATE UNIQUE INDEX processes_by_folder ON processes (folder);
