-- Channels: logs that many agents read. A post is one row in messages, whatever the number of members; each member
-- keeps two marks. Everybody is in the hub, relay. A mention (@name) adds a receipt: it is direct mail as well.
-- And what ambient delivery has to remember of each agent.

CREATE TABLE channels (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE
) STRICT;

INSERT INTO channels (id, name) VALUES (1, 'relay');

CREATE TABLE members (
  channel INTEGER NOT NULL REFERENCES channels,
  agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
  offered INTEGER NOT NULL,  -- the newest post that was shown or counted in the agent's context
  read INTEGER NOT NULL,     -- the newest post that was shown whole
  PRIMARY KEY (channel, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_of ON members (agent);

ALTER TABLE messages ADD COLUMN channel INTEGER REFERENCES channels;
CREATE INDEX posts ON messages (channel, id) WHERE channel IS NOT NULL;

ALTER TABLE waiters ADD COLUMN channel INTEGER REFERENCES channels;  -- waits for a post there, not for mail
CREATE INDEX waiters_in ON waiters (channel) WHERE channel IS NOT NULL;

DROP VIEW matches;
CREATE VIEW matches AS
  SELECT w.id AS waiter, w.agent AS recipient, w.holder, m.id AS message,
         w.answers IS NOT NULL AND m.reply_to IS w.answers AS is_answer
  FROM waiters AS w CROSS JOIN messages AS m
  WHERE w.channel IS NULL AND w.after < m.id AND (w.sender IS NULL OR w.sender = m.sender);

ALTER TABLE agents ADD COLUMN ticks INTEGER NOT NULL DEFAULT 0;     -- user turns since the last post or nudge
ALTER TABLE agents ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;     -- the newest event that was told
ALTER TABLE agents ADD COLUMN received INTEGER NOT NULL DEFAULT 0;  -- messages shown since the log was last read

CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
  what TEXT NOT NULL CHECK (what IN ('joined', 'left', 'died', 'aborted')),
  ts INTEGER NOT NULL
) STRICT;

INSERT INTO settings (name, value) VALUES
  ('nudge', 15);  -- user turns without a post until an agent is nudged; 0: never

-- A new member starts at now.
CREATE TRIGGER agent_joins_the_hub AFTER INSERT ON agents
BEGIN
  INSERT INTO members (channel, agent, offered, read)
    SELECT 1, NEW.id, seq, seq FROM (SELECT coalesce(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'messages');
  UPDATE agents SET heard = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events')
    WHERE id = NEW.id;
END;

CREATE TRIGGER agent_expected_no_more AFTER UPDATE OF status ON agents WHEN OLD.status = 'expected'
BEGIN
  UPDATE members SET (offered, read) = (
      SELECT seq, seq FROM (SELECT coalesce(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'messages'))
    WHERE agent = NEW.id;
  UPDATE agents SET heard = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events')
    WHERE id = NEW.id;
END;

INSERT INTO members (channel, agent, offered, read)
  SELECT 1, agents.id, seq, seq FROM agents,
    (SELECT coalesce(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'messages');
