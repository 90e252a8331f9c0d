-- The spool: agents, mailboxes, receipts, and those who wait for mail.
--
--  send              claim                       fully written              reply / ack
--  -----> [pending] --------> [claimed] ------------------> [read] ---------------> [handled]
--           |   ^                |
--   cap     |   |  claimer died, |
--           |   |  write failed  |
--           v   '----------------'  (redelivered)
--       [dropped]
--
-- The rules live here, so they hold for every writer, the sqlite3 shell too: a message gets its number, goes to the
-- oldest waiter that it matches, and pushes the oldest mail out of a full mailbox.
-- All times are Unix milliseconds.

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO settings (name, value) VALUES
  ('cap', 100),                 -- pending messages per mailbox
  ('overflow', 'drop-oldest'),  -- or 'refuse'
  ('timeout_ms', 120000),       -- of a wait that names none
  ('max_body', 1048576),        -- bytes
  ('keep_days', 30);            -- history that cleanup leaves

CREATE TABLE agents (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL COLLATE NOCASE,
  display TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- 'expected': mail is held for a name that has not registered yet
  status TEXT NOT NULL DEFAULT 'idle' CHECK (status IN ('running', 'idle', 'parked', 'aborted', 'expected')),
  parent INTEGER REFERENCES agents,
  directory TEXT,
  session TEXT,                        -- the harness's session id
  process TEXT,                        -- the session's process; see processes.py
  bound INTEGER NOT NULL DEFAULT 0,    -- 1: the name belongs to that session; 0: it was only claimed
  hooks INTEGER NOT NULL DEFAULT 0,    -- 1: the session's hooks show mail at its next step
  since INTEGER NOT NULL,              -- when the status last changed
  active INTEGER NOT NULL,             -- last activity
  stops INTEGER NOT NULL DEFAULT 0,    -- how often it has ended a turn or a session
  last_n INTEGER NOT NULL DEFAULT 0,   -- the highest number given in this mailbox
  untold INTEGER NOT NULL DEFAULT 0    -- dropped messages that the agent has not been told of
) STRICT;

CREATE UNIQUE INDEX agent_names ON agents (name) WHERE status <> 'aborted';
CREATE INDEX agent_sessions ON agents (session) WHERE session IS NOT NULL;
CREATE INDEX agent_processes ON agents (process) WHERE process IS NOT NULL;
CREATE INDEX agent_children ON agents (parent) WHERE parent IS NOT NULL;
CREATE INDEX agent_live ON agents (status) WHERE status IN ('running', 'idle');

CREATE TRIGGER agent_stopped AFTER UPDATE OF status ON agents
WHEN (OLD.status = 'running' AND NEW.status <> 'running')
  OR (OLD.status = 'idle' AND NEW.status IN ('parked', 'aborted'))
  OR (OLD.status = 'parked' AND NEW.status = 'aborted')
BEGIN
  UPDATE agents SET stops = stops + 1 WHERE id = NEW.id;
END;

-- A name that is used again after an abort starts with an empty mailbox.
CREATE TRIGGER agent_aborted AFTER UPDATE OF status ON agents
WHEN NEW.status = 'aborted' AND OLD.status <> 'aborted'
BEGIN
  UPDATE receipts SET state = 'dropped', holder = NULL WHERE recipient = NEW.id AND state = 'pending';
  UPDATE receipts SET state = 'dropped', holder = NULL WHERE recipient = NEW.id AND state = 'claimed';
  DELETE FROM waiters WHERE agent = NEW.id;
END;

CREATE TABLE statuses (
  id INTEGER PRIMARY KEY,
  agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
  text TEXT NOT NULL,
  ts INTEGER NOT NULL
) STRICT;

CREATE INDEX statuses_of ON statuses (agent, id);

CREATE TRIGGER status_announced AFTER INSERT ON statuses
BEGIN
  DELETE FROM statuses WHERE id IN (
    SELECT id FROM statuses WHERE agent = NEW.agent ORDER BY id DESC LIMIT -1 OFFSET 50);
END;

CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- AUTOINCREMENT remembers the highest id even after it was cleaned up
  sender INTEGER NOT NULL REFERENCES agents,
  body TEXT NOT NULL,
  ts INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  reply_to INTEGER,                      -- no reference: an answer outlives its question
  verified INTEGER NOT NULL DEFAULT 0,   -- 1: the sending process was matched to the agent; 0: it claimed the name
  once TEXT                              -- the sender's own key against sending twice
) STRICT;

CREATE UNIQUE INDEX message_once ON messages (sender, once) WHERE once IS NOT NULL;
CREATE INDEX messages_from ON messages (sender, id);
CREATE INDEX messages_answering ON messages (reply_to) WHERE reply_to IS NOT NULL;

CREATE TABLE receipts (
  message INTEGER NOT NULL REFERENCES messages ON DELETE CASCADE,
  recipient INTEGER NOT NULL REFERENCES agents,
  n INTEGER,                            -- the message's number in the recipient's mailbox
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'claimed', 'read', 'handled', 'dropped')),
  holder TEXT,                          -- the lock of the process that has claimed it
  redelivered INTEGER NOT NULL DEFAULT 0,
  outcome TEXT,                         -- what the sender was told
  offered INTEGER,                      -- when a reader first claimed it
  read INTEGER,
  handled INTEGER,
  dropped INTEGER,
  dropped_for INTEGER,                  -- the message that took its place in a full mailbox
  PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX receipt_numbers ON receipts (recipient, n);
CREATE INDEX receipt_pending ON receipts (recipient, message) WHERE state = 'pending';
CREATE INDEX receipt_claimed ON receipts (recipient, holder) WHERE state = 'claimed';
CREATE INDEX receipt_dropped_for ON receipts (dropped_for) WHERE dropped_for IS NOT NULL;

CREATE TABLE waiters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- the lower, the older
  agent INTEGER NOT NULL REFERENCES agents,
  holder TEXT NOT NULL UNIQUE,           -- the lock of the waiting process
  sender INTEGER REFERENCES agents,      -- only mail from this agent; NULL: from anybody
  after INTEGER NOT NULL DEFAULT 0,      -- only messages newer than this one
  answers INTEGER,                       -- an answer to this message is preferred
  asked ANY,                             -- the timeout as it was asked for
  timeout_ms INTEGER NOT NULL GENERATED ALWAYS AS (
    CASE
      WHEN typeof(asked) NOT IN ('integer', 'real') THEN 120000  -- 'nan', or not a number at all
      WHEN asked = 0 THEN 0                                      -- no limit
      WHEN asked < 0 OR asked > 9e15 THEN 120000                 -- infinite, or as good as
      ELSE max(1, CAST(asked AS INTEGER))
    END) STORED
) STRICT;

CREATE INDEX waiters_of ON waiters (agent, id);
CREATE INDEX waiters_for ON waiters (sender) WHERE sender IS NOT NULL;

-- Which waiter may have which message.
CREATE VIEW matches AS
  SELECT w.id AS waiter, w.agent AS recipient, w.holder, m.id AS message,
         w.answers IS NOT NULL AND m.reply_to IS w.answers AS is_answer
  FROM waiters AS w CROSS JOIN messages AS m
  WHERE w.after < m.id AND (w.sender IS NULL OR w.sender = m.sender);

CREATE TRIGGER receipt_refused BEFORE INSERT ON receipts
WHEN NEW.state = 'pending' AND (SELECT value FROM settings WHERE name = 'overflow') = 'refuse'
  AND (SELECT count(*) FROM receipts WHERE recipient = NEW.recipient AND state = 'pending')
    >= (SELECT value FROM settings WHERE name = 'cap')
BEGIN
  SELECT RAISE(ABORT, 'mailbox full');
END;

-- New mail gets its number, and the oldest waiter that it matches as its holder.
CREATE TRIGGER receipt_stored AFTER INSERT ON receipts WHEN NEW.state = 'pending'
BEGIN
  UPDATE agents SET last_n = last_n + 1 WHERE id = NEW.recipient;
  UPDATE receipts
    SET n = (SELECT last_n FROM agents WHERE id = NEW.recipient),
        holder = (SELECT holder FROM matches WHERE recipient = NEW.recipient AND message = NEW.message
                  ORDER BY waiter LIMIT 1)
    WHERE message = NEW.message AND recipient = NEW.recipient;
END;

-- So does mail that comes back; naming n lets receipt_over look again.
CREATE TRIGGER receipt_returned AFTER UPDATE OF state ON receipts
WHEN NEW.state = 'pending' AND OLD.state <> 'pending'
BEGIN
  UPDATE receipts
    SET n = n,
        holder = (SELECT holder FROM matches WHERE recipient = NEW.recipient AND message = NEW.message
                  ORDER BY waiter LIMIT 1)
    WHERE message = NEW.message AND recipient = NEW.recipient;
END;

CREATE TRIGGER receipt_taken AFTER UPDATE OF holder ON receipts
WHEN NEW.state = 'pending' AND NEW.holder IS NOT NULL
BEGIN
  UPDATE receipts SET state = 'claimed', offered = coalesce(offered, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
    WHERE message = NEW.message AND recipient = NEW.recipient;
  DELETE FROM waiters WHERE holder = NEW.holder;
END;

-- Who refuses mail drops none: what a dead reader gives back was accepted, even if others filled its place.
CREATE TRIGGER receipt_over AFTER UPDATE OF n ON receipts
WHEN NEW.state = 'pending' AND NEW.holder IS NULL
  AND (SELECT value FROM settings WHERE name = 'overflow') <> 'refuse'
  AND (SELECT count(*) FROM receipts WHERE recipient = NEW.recipient AND state = 'pending')
    > (SELECT value FROM settings WHERE name = 'cap')
BEGIN
  UPDATE receipts SET state = 'dropped', dropped_for = NEW.message
    WHERE recipient = NEW.recipient AND state = 'pending' AND message IN (
      SELECT message FROM receipts WHERE recipient = NEW.recipient AND state = 'pending'
      ORDER BY message DESC LIMIT -1 OFFSET (SELECT value FROM settings WHERE name = 'cap'));
END;

CREATE TRIGGER receipt_dropped AFTER UPDATE OF state ON receipts
WHEN NEW.state = 'dropped' AND OLD.state <> 'dropped'
BEGIN
  UPDATE receipts SET dropped = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) WHERE message = NEW.message AND recipient = NEW.recipient;
  UPDATE agents SET untold = untold + 1 WHERE id = NEW.recipient;
END;

-- Who waits for mail that is already there gets the oldest that matches, an answer before all others.
CREATE TRIGGER waiter_registered AFTER INSERT ON waiters
BEGIN
  UPDATE receipts SET holder = NEW.holder
    WHERE recipient = NEW.agent AND message = (
      SELECT r.message FROM receipts AS r JOIN matches AS m ON m.message = r.message
      WHERE r.recipient = NEW.agent AND r.state = 'pending' AND m.waiter = NEW.id
      ORDER BY m.is_answer DESC, r.message LIMIT 1);
END;
