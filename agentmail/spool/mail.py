"""SQL of messages and receipts: storing, claiming, reading, giving back. The schema draws the states."""

from __future__ import annotations

from agentmail.model import Message, Stages
from agentmail.values import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmail.spool.database import Database

# Snowflakes: milliseconds since 2025-01-01 UTC in the high bits, 22 low bits that count within one.
EPOCH = 1_735_689_600_000
LOW_BITS = 22

_COLUMNS = """
    m.id, r.n, s.name, t.name, m.body, m.ts, m.reply_to, m.verified, r.redelivered,
    (SELECT name FROM channels WHERE id = m.channel), m.automatic
"""
_FROM = """
    FROM receipts AS r
    JOIN messages AS m ON m.id = r.message
    JOIN agents AS s ON s.id = m.sender
    JOIN agents AS t ON t.id = r.recipient
"""
_MESSAGES = f"SELECT {_COLUMNS} {_FROM}"
_CLAIMED = " WHERE r.recipient = :recipient AND r.state = 'claimed' AND r.holder = :holder ORDER BY r.message"


def store(
    db: Database,
    *,
    sender: int,
    body: str,
    now: int,
    reply_to: int | None,
    verified: bool,
    once: str | None,
    channel: int | None = None,
    automatic: bool = False,
) -> int:
    """Store a message and give its id: higher than every earlier one, whatever the clock does."""
    return int(
        db.value(
            """
            INSERT INTO messages (id, sender, body, ts, reply_to, verified, once, channel, automatic)
            SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0) + 1, :floor),
                   :sender, :body, :now, :reply_to, :verified, :once, :channel, :automatic
            RETURNING id
            """,
            floor=(now - EPOCH) << LOW_BITS,
            sender=sender,
            body=body,
            now=now,
            reply_to=reply_to,
            verified=int(verified),
            once=once,
            channel=channel,
            automatic=int(automatic),
        )
    )


def address(db: Database, message: int, recipients: list[int]) -> list[tuple[int, str, str, int]]:
    """Put the message into mailboxes; give (recipient, state, outcome, pending messages) of each.

    The schema numbers it there, hands it to a waiter and keeps the cap. The outcome is kept with the receipt.
    """
    db.run_many(
        "INSERT INTO receipts (message, recipient) VALUES (:message, :recipient)",
        [{"message": message, "recipient": recipient} for recipient in recipients],
    )
    db.run(
        """
        UPDATE receipts SET outcome = CASE
          WHEN state = 'claimed' THEN 'injected'
          WHEN (SELECT status = 'running' AND hooks FROM agents WHERE id = recipient) THEN 'injected'
          WHEN EXISTS (SELECT 1 FROM guarded WHERE agent = recipient) THEN 'woken'
          ELSE 'queued' END
        WHERE message = :message
        """,
        message=message,
    )
    return db.rows(
        """
        SELECT r.recipient, r.state, r.outcome,
               (SELECT count(*) FROM receipts AS p WHERE p.recipient = r.recipient AND p.state = 'pending')
        FROM receipts AS r WHERE r.message = :message
        """,
        message=message,
    )


def note_outcome(db: Database, message: int, recipient: int, outcome: str) -> None:
    """Keep what the sender was told."""
    db.run(
        "UPDATE receipts SET outcome = :outcome WHERE message = :message AND recipient = :recipient",
        outcome=outcome,
        message=message,
        recipient=recipient,
    )


def outcomes(db: Database, message: int) -> list[tuple[str, str]]:
    """(recipient's name, outcome) as the sender was told, in order of the recipients' registration."""
    return db.rows(
        "SELECT a.name, coalesce(r.outcome, 'queued') FROM receipts AS r JOIN agents AS a ON a.id = r.recipient"
        " WHERE r.message = :message ORDER BY a.id",
        message=message,
    )


def dropped_for(db: Database, message: int) -> dict[int, tuple[tuple[int, str], ...]]:
    """By recipient, (id, sender) of the messages that were dropped to make room for this one."""
    dropped: dict[int, tuple[tuple[int, str], ...]] = {}
    for recipient, former, sender in db.rows(
        """
        SELECT r.recipient, m.id, s.name FROM receipts AS r
        JOIN messages AS m ON m.id = r.message JOIN agents AS s ON s.id = m.sender
        WHERE r.dropped_for = :message ORDER BY m.id
        """,
        message=message,
    ):
        dropped[recipient] = (*dropped.get(recipient, ()), (former, sender))
    return dropped


def unread(db: Database, recipient: int) -> int:
    """How many messages are pending."""
    return int(
        db.value(
            "SELECT count(*) FROM receipts WHERE recipient = :recipient AND state = 'pending'",
            recipient=recipient,
        )
    )


def is_empty(db: Database, recipient: int) -> bool:
    """Whether nothing is pending, nor claimed by somebody who may yet give it back."""
    return not db.value(
        """
        SELECT EXISTS (SELECT 1 FROM receipts WHERE recipient = :recipient AND state = 'pending')
            OR EXISTS (SELECT 1 FROM receipts WHERE recipient = :recipient AND state = 'claimed')
        """,
        recipient=recipient,
    )


def claim(db: Database, recipient: int, holder: str, *, now: int | None, sender: int | None, limit: int) -> int:
    """Claim the oldest pending messages, all if `limit` is negative; give their number.

    Without `now` they do not count as offered yet.
    """
    return db.run(
        """
        UPDATE receipts SET state = 'claimed', holder = :holder, offered = coalesce(offered, :now)
        WHERE recipient = :recipient AND message IN (
          SELECT r.message FROM receipts AS r JOIN messages AS m ON m.id = r.message
          WHERE r.recipient = :recipient AND r.state = 'pending' AND (:sender IS NULL OR m.sender = :sender)
          ORDER BY r.message LIMIT :limit)
        """,
        recipient=recipient,
        holder=holder,
        now=now,
        sender=sender,
        limit=limit,
    )


def claimed(db: Database, recipient: int, holder: str) -> tuple[Message, ...]:
    """What `holder` has claimed, oldest first."""
    return _messages(db, _CLAIMED, recipient=recipient, holder=holder)


def claimed_and_dropped(db: Database, recipient: int, holder: str) -> tuple[tuple[Message, ...], int]:
    """The same, and how many messages the recipient lost untold: in one query, for a waiter is in a hurry."""
    rows = db.rows(f"SELECT {_COLUMNS}, t.untold {_FROM} {_CLAIMED}", recipient=recipient, holder=holder)
    return tuple(Message._make(row[:-1]) for row in rows), int(rows[0][-1]) if rows else 0


def pending(db: Database, recipient: int, *, sender: int | None, limit: int) -> tuple[Message, ...]:
    """What is pending, oldest first."""
    return _messages(
        db,
        "WHERE r.recipient = :recipient AND r.state = 'pending' AND (:sender IS NULL OR m.sender = :sender)"
        " ORDER BY r.message LIMIT :limit",
        recipient=recipient,
        sender=sender,
        limit=limit,
    )


def unhandled(db: Database, recipient: int, *, sender: int | None, limit: int) -> tuple[Message, ...]:
    """What was read but neither answered nor acknowledged, oldest first."""
    return _messages(
        db,
        "WHERE r.recipient = :recipient AND r.state = 'read' AND (:sender IS NULL OR m.sender = :sender)"
        " ORDER BY r.message LIMIT :limit",
        recipient=recipient,
        sender=sender,
        limit=limit,
    )


def settle(db: Database, recipient: int, holder: str, now: int, only: frozenset[int] | None = None) -> None:
    """What `holder` has claimed is read; or `only` these messages of it."""
    for message in [None] if only is None else sorted(only):
        db.run(
            "UPDATE receipts SET state = 'read', read = :now, holder = NULL"
            " WHERE recipient = :recipient AND state = 'claimed' AND holder = :holder"
            " AND (:message IS NULL OR message = :message)",
            now=now,
            recipient=recipient,
            holder=holder,
            message=message,
        )


def present(db: Database, recipient: int, messages: frozenset[int], now: int) -> None:
    """The recipient knows of these messages, by their text or by a word about them."""
    db.run_many(
        "UPDATE receipts SET offered = coalesce(offered, :now) WHERE message = :message AND recipient = :recipient",
        [{"message": message, "recipient": recipient, "now": now} for message in sorted(messages)],
    )


def offered(db: Database, recipient: int) -> list[int]:
    """The pending messages that a reader has claimed before."""
    rows = db.rows(
        "SELECT message FROM receipts WHERE recipient = :recipient AND state = 'pending' AND offered IS NOT NULL",
        recipient=recipient,
    )
    return [int(message) for (message,) in rows]


def give_back(db: Database, recipient: int, holder: str, *, perhaps_seen: bool) -> int:
    """What `holder` has claimed is pending again; the number of messages."""
    return db.run(
        "UPDATE receipts SET state = 'pending', holder = NULL, redelivered = max(redelivered, :seen)"
        " WHERE recipient = :recipient AND state = 'claimed' AND holder = :holder",
        seen=int(perhaps_seen),
        recipient=recipient,
        holder=holder,
    )


def exchange(db: Database, recipient: int, holder: str, *, sender: int, answers: int, now: int) -> bool:
    """Give a claimed message back for a pending answer to `answers`, if there is one."""
    better = db.value(
        """
        SELECT m.id FROM messages AS m JOIN receipts AS r ON r.message = m.id AND r.recipient = :recipient
        WHERE m.reply_to = :answers AND m.sender = :sender AND r.state = 'pending' ORDER BY m.id
        """,
        recipient=recipient,
        answers=answers,
        sender=sender,
    )
    if better is None:
        return False
    give_back(db, recipient, holder, perhaps_seen=False)
    db.run(
        "UPDATE receipts SET state = 'claimed', holder = :holder, offered = coalesce(offered, :now)"
        " WHERE message = :better AND recipient = :recipient",
        holder=holder,
        now=now,
        better=better,
        recipient=recipient,
    )
    return True


def handle(db: Database, recipient: int, message: int, now: int) -> None:
    """The recipient has answered or acknowledged the message; it counts as read."""
    db.run(
        "UPDATE receipts SET state = 'handled', handled = :now, holder = NULL,"
        " offered = coalesce(offered, :now), read = coalesce(read, :now)"
        " WHERE message = :message AND recipient = :recipient AND state <> 'handled'",
        now=now,
        message=message,
        recipient=recipient,
    )


def by_number(db: Database, recipient: int, number: int) -> int | None:
    """The id of the message with that number in a mailbox."""
    found = db.value(
        "SELECT message FROM receipts WHERE recipient = :recipient AND n = :number",
        recipient=recipient,
        number=number,
    )
    return None if found is None else int(found)


def by_once(db: Database, sender: int, once: str) -> int | None:
    """The id of the message that the sender sent with that key."""
    found = db.value("SELECT id FROM messages WHERE sender = :sender AND once = :once", sender=sender, once=once)
    return None if found is None else int(found)


def find(db: Database, message: int) -> Message | None:
    """A message by its id, with all its recipients as `to`."""
    row = db.row(
        """
        SELECT m.id, NULL, s.name,
               coalesce('+' || c.name,
                        (SELECT group_concat(t.name, ', ') FROM receipts AS r JOIN agents AS t ON t.id = r.recipient
                         WHERE r.message = m.id)),
               m.body, m.ts, m.reply_to, m.verified, 0, c.name, m.automatic
        FROM messages AS m JOIN agents AS s ON s.id = m.sender LEFT JOIN channels AS c ON c.id = m.channel
        WHERE m.id = :message
        """,
        message=message,
    )
    return Message._make(row) if row else None


def sender_of(db: Database, message: int) -> int:
    """The agent id of a known message's sender."""
    return int(db.value("SELECT sender FROM messages WHERE id = :message", message=message))


def is_addressed(db: Database, message: int, recipient: int) -> bool:
    """Whether the message went to that agent."""
    return bool(
        db.value(
            "SELECT 1 FROM receipts WHERE message = :message AND recipient = :recipient",
            message=message,
            recipient=recipient,
        )
    )


def stages(db: Database, message: int) -> tuple[Stages, ...]:
    """The life of every receipt of a message."""
    rows = db.rows(
        """
        SELECT t.name, r.n, r.state, r.outcome, r.redelivered, m.ts, r.offered, r.read, r.handled, r.dropped,
               (SELECT a.id FROM messages AS a WHERE a.reply_to = m.id AND a.sender = r.recipient ORDER BY a.id)
        FROM receipts AS r JOIN messages AS m ON m.id = r.message JOIN agents AS t ON t.id = r.recipient
        WHERE r.message = :message
        """,
        message=message,
    )
    return tuple(Stages._make(row) for row in rows)


def history(db: Database, agent: int | None, other: int | None, limit: int) -> tuple[Message, ...]:
    """The newest messages that an agent sent or got (with one other, if named), oldest first; None: everybody's.

    A message to several recipients comes once for each.
    """
    where = ""
    if agent is not None and other is not None:
        where = "WHERE m.sender = :agent AND r.recipient = :other OR m.sender = :other AND r.recipient = :agent"
    elif agent is not None:
        # Two walks along an index: the history may be a million messages of other people.
        where = """
            WHERE m.id IN (SELECT id FROM messages WHERE sender = :agent ORDER BY id DESC LIMIT :limit)
            OR r.recipient = :agent AND m.id IN (
              SELECT message FROM receipts WHERE recipient = :agent ORDER BY n DESC LIMIT :limit)"""
    rows = db.rows(
        f"SELECT * FROM ({_MESSAGES} {where} ORDER BY m.id DESC, r.recipient LIMIT :limit) ORDER BY 1",
        agent=agent,
        other=other,
        limit=limit,
    )
    return tuple(Message._make(row) for row in rows)


def _messages(db: Database, where: str, **values: object) -> tuple[Message, ...]:
    return tuple(Message._make(row) for row in db.rows(_MESSAGES + where, **values))
