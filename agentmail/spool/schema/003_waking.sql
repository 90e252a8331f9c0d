-- Waking an idle agent and reviving a parked one.

ALTER TABLE agents ADD COLUMN wake TEXT;        -- the command that wakes it: a JSON list of arguments
ALTER TABLE agents ADD COLUMN revive TEXT;      -- the command that starts its session again
ALTER TABLE agents ADD COLUMN autoreply TEXT;   -- the command that answers for it while it cannot
ALTER TABLE agents ADD COLUMN terminal TEXT;    -- its tmux pane: a JSON list of the server's socket and the pane
ALTER TABLE agents ADD COLUMN synchronous INTEGER NOT NULL DEFAULT 0;  -- 1: mid-turn it reaches no step boundary
ALTER TABLE agents ADD COLUMN woken INTEGER NOT NULL DEFAULT 0;  -- when that was last tried
ALTER TABLE agents ADD COLUMN wake_error TEXT;  -- why it then failed
ALTER TABLE agents ADD COLUMN due INTEGER;      -- the message for which it has yet to be woken; NULL: none
ALTER TABLE agents ADD COLUMN reviver TEXT;     -- the process that is bringing it back, as processes.py writes it
ALTER TABLE agents ADD COLUMN woken_for INTEGER NOT NULL DEFAULT 0;  -- the newest message for which a sentry woke it
ALTER TABLE agents ADD COLUMN guarded INTEGER NOT NULL DEFAULT 0;  -- 1: its harness posts sentries; 2: one is on its way
ALTER TABLE agents ADD COLUMN continued INTEGER NOT NULL DEFAULT 0;  -- how often mail has prolonged its turn

CREATE INDEX agent_due ON agents (due) WHERE due IS NOT NULL;

ALTER TABLE messages ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;  -- 1: an autoreply command wrote it

-- A background hook that waits for mail while its session is idle, and by its end begins a new turn.
CREATE TABLE sentries (
  agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
  holder TEXT NOT NULL PRIMARY KEY,
  fired INTEGER  -- when it has called; the turn that it calls for takes a moment to begin
) STRICT, WITHOUT ROWID;

CREATE INDEX sentries_of ON sentries (agent);

-- A session that is busy, or gone, needs none.
CREATE TRIGGER agent_relieves_its_sentries AFTER UPDATE OF status ON agents WHEN NEW.status <> 'idle'
BEGIN
  DELETE FROM sentries WHERE agent = NEW.id;
  UPDATE agents SET guarded = 0 WHERE id = NEW.id AND NEW.status <> 'running';
END;

-- The hook that ends a turn and the sentry start at the same time; who sends between them is to be told the truth.
CREATE TRIGGER agent_expects_its_sentry AFTER UPDATE OF status ON agents
WHEN NEW.status = 'idle' AND OLD.status = 'running' AND NEW.guarded
BEGIN
  UPDATE agents SET guarded = 2
    WHERE id = NEW.id AND NOT EXISTS (SELECT 1 FROM sentries WHERE agent = NEW.id);
END;

CREATE VIEW guarded AS
  SELECT agent FROM sentries
  UNION ALL
  SELECT id FROM agents WHERE guarded = 2 AND status = 'idle'
    AND since > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - 10000;

CREATE TRIGGER agent_begins_or_ends_a_turn AFTER UPDATE OF status ON agents WHEN NEW.continued > 0
BEGIN
  UPDATE agents SET continued = 0 WHERE id = NEW.id;
END;

INSERT INTO settings (name, value) VALUES
  ('exec', 'on'),             -- 'off': no command is ever run to wake, revive or answer
  ('wake_interval_ms', 5000); -- at most one command per agent in this time
