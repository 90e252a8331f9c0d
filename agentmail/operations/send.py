"""``send``, ``reply`` and ``ack``: putting mail into mailboxes, and receipts that say what is true."""

from __future__ import annotations

from agentmail.clock import now
from agentmail.errors import BadInput, NotDelivered
from agentmail.locks import Holder
from agentmail.model import EVERYBODY, Agent, Message, Receipt, Sent
from agentmail.names import is_channel
from agentmail.operations import presence
from agentmail.operations.session import Session
from agentmail.spool import Spool, agents, mail, settings, waiters
from agentmail.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentmail.operations.receive import Wait

# A number in a mailbox is small; a snowflake of this century is not.
_SMALLEST_ID = 1 << 32


class _Afterwards(NamedTuple):
    """What is to be done once the message is stored."""

    struck: list[str]  # whose bells to strike
    sleepers: list[Agent]  # whom to wake


class Draft(NamedTuple):
    """What is to be sent, as the caller wrote it."""

    to: str
    body: str
    reply_to: int | None = None
    once: str | None = None
    hold: bool = False
    await_reply: bool = False
    asked: float | str | None = None  # the timeout of the await, in milliseconds
    automatic: bool = False  # an autoreply command wrote it


def send(session: Session, draft: Draft) -> tuple[Sent, Wait | None]:
    """Store the message for every recipient that can get it; never waits for a recipient to do anything.

    With `await_reply` the second value waits for the peer's answer. Raises `BadInput`, with nothing stored.
    """
    to = draft.to.strip()
    _check(session, to, draft)
    earlier = mail.by_once(session.spool.db, session.me.id, draft.once) if draft.once else None
    holder = Holder(session.spool.locks) if draft.await_reply else None
    afterwards = _Afterwards([], [])
    try:
        with session.spool.transaction():
            agents.touch(session.spool.db, session.me.id, now())
            sent = _repeat(session, to, earlier) if earlier else _deliver(session, to, draft, afterwards)
            wait = _await(session, sent, draft, holder) if holder else None
    except BaseException:
        if holder:
            holder.release()
        raise
    for name in afterwards.struck:
        session.spool.bells.strike(name)
    if holder and not wait:
        holder.release()
    return _rouse(session, sent, afterwards.sleepers), wait


def reply(session: Session, reference: str, draft: Draft) -> tuple[Message, Sent, Wait | None]:
    """Answer a message: the recipient is its sender. The message counts as handled once the answer is stored."""
    original = resolve(session, reference)
    if original.sender == session.me.name:
        raise BadInput(f"message {original.id} is your own; use 'agentmail send' to write to {original.to}")
    asker = agents.by_name(session.spool.db, original.sender)
    if asker is None or asker.id != mail.sender_of(session.spool.db, original.id):
        raise NotDelivered(f"{original.sender}, who sent message {original.id}, was aborted; see 'agentmail list'")
    sent, wait = send(session, draft._replace(to=original.sender, reply_to=original.id))
    return original, sent, wait


def ack(session: Session, references: tuple[str, ...]) -> tuple[Message, ...]:
    """Mark messages of one's own mailbox as handled; sends nothing. All or none."""
    spool, me = session.spool, session.me
    found = tuple(resolve(session, reference) for reference in references)
    for message in found:
        if not mail.is_addressed(spool.db, message.id, me.id):
            raise BadInput(f"message {message.id} was not sent to you; see 'agentmail inbox --unhandled'")
    with spool.transaction():
        agents.touch(spool.db, me.id, now())
        for message in found:
            mail.handle(spool.db, me.id, message.id, now())
    return found


def resolve(session: Session, reference: str) -> Message:
    """The message that an id, or a number in one's own mailbox, stands for. Raises `BadInput`."""
    text = reference.strip().lstrip("#")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadInput(f"{reference!r} is no message id; ids are the numbers that inbox and wait show")
    number: int | None = int(text)
    if number is not None and number < _SMALLEST_ID:
        number = mail.by_number(session.spool.db, session.me.id, number)
    message = mail.find(session.spool.db, number) if number else None
    if message is None:
        raise BadInput(f"there is no message {text}; see 'agentmail log'")
    return message


def _check(session: Session, to: str, draft: Draft) -> None:
    if not to:
        raise BadInput("there is no recipient; write 'agentmail send NAME MESSAGE'")
    if not draft.body.strip():
        raise BadInput("the message is empty; write some text after the recipient, or pass it on stdin")
    if "\0" in draft.body:
        raise BadInput("the message holds a NUL character; send text, or a path to the file")
    size, limit = len(draft.body.encode()), int(settings.get(session.spool.db, "max_body"))
    if size > limit:
        raise BadInput(f"the message has {size} bytes and the limit is {limit}; send a path to a file instead")
    if draft.await_reply and (to.lower() == EVERYBODY or is_channel(to)):
        raise BadInput(f"--await needs one peer and cannot be used with {to!r}; send to one agent")
    if to.lower() == session.me.name.lower():
        raise BadInput(f"{to} is yourself; see 'agentmail list' for the others")


def _deliver(session: Session, to: str, draft: Draft, afterwards: _Afterwards) -> Sent:
    if is_channel(to):
        return _post(session, to, draft, afterwards)
    recipients, failed = _recipients(session, to, draft.hold)
    if not recipients:
        return Sent(None, to, tuple(failed))
    message = _store(session, draft)
    receipts = _address(session.spool, message, recipients, afterwards.struck)
    if to.lower() != EVERYBODY:  # a broadcast wakes by bells alone, and revives nobody
        _note_due(session.spool, message, recipients, receipts, afterwards.sleepers)
    return Sent(message, to, (*receipts, *failed))


def _store(session: Session, draft: Draft, channel: int | None = None) -> int:
    spool, me = session.spool, session.me
    message = mail.store(
        spool.db,
        sender=me.id,
        body=draft.body,
        now=now(),
        reply_to=draft.reply_to,
        verified=session.verified,
        once=draft.once,
        channel=channel,
        automatic=draft.automatic,
    )
    if draft.reply_to and not draft.automatic:  # who answers itself later has not handled it yet
        mail.handle(spool.db, me.id, draft.reply_to, now())
    return message


def _post(session: Session, to: str, draft: Draft, afterwards: _Afterwards) -> Sent:
    """One row whatever the membership; those whom the post names get it as mail, too."""
    from agentmail.operations import channels
    from agentmail.spool import channels as rows

    spool, me = session.spool, session.me
    channel, name = channels.membership(session, to)
    message = _store(session, draft, channel)
    agents.change(spool.db, me.id, ticks=0)
    members = rows.others(spool.db, channel, me.id)
    named = [agents.by_id(spool.db, agent) for agent in channels.mentions(draft.body, members)]
    named, failed = _with_room(spool, presence.refreshed(spool, named))
    receipts = _address(spool, message, named, afterwards.struck) if named else []
    _note_due(spool, message, named, receipts, afterwards.sleepers)
    afterwards.struck.extend(waiters.waiting_in(spool.db, channel))
    return Sent(message, to, (Receipt(f"+{name}", "queued", members=len(members)), *receipts, *failed))


def _recipients(session: Session, to: str, hold: bool) -> tuple[list[Agent], list[Receipt]]:
    """Who can get the mail, and a failed receipt for who cannot."""
    spool, me = session.spool, session.me
    if to.lower() == EVERYBODY:
        others = [agent for agent in agents.live(spool.db) if agent.id != me.id]
        candidates = [agent for agent in presence.refreshed(spool, others) if agent.live]
    else:
        named = agents.find(spool.db, me, to) or (_expect(spool, to) if hold else None)
        if named is None or (named.status == "expected" and not hold):
            return [], [Receipt(to, "failed", _unknown(session, to))]
        candidates = presence.refreshed(spool, [named])
    return _with_room(spool, candidates)


def _with_room(spool: Spool, candidates: list[Agent]) -> tuple[list[Agent], list[Receipt]]:
    """Who can get more mail, and a failed receipt for whose mailbox is full and refuses it."""
    if settings.get(spool.db, "overflow") != "refuse":
        return candidates, []
    cap = int(settings.get(spool.db, "cap"))
    full = {agent.id: mail.unread(spool.db, agent.id) for agent in candidates}
    failed = [
        Receipt(agent.name, "failed", f"mailbox full ({full[agent.id]} unread); try again once it has read some")
        for agent in candidates
        if full[agent.id] >= cap
    ]
    return [agent for agent in candidates if full[agent.id] < cap], failed


def _address(spool: Spool, message: int, recipients: list[Agent], struck: list[str]) -> list[Receipt]:
    presence.reap(spool, recipients[0].id if len(recipients) == 1 else None)
    for agent in recipients:
        spool.bells.ring(agent.name)
    known = {agent.id: agent for agent in recipients}
    placed = mail.address(spool.db, message, list(known))
    dropped = mail.dropped_for(spool.db, message)
    receipts = []
    for recipient, state, outcome, pending in placed:
        agent = known[recipient]
        waiting = state == "claimed"
        if waiting or outcome == "woken":
            struck.append(agent.name)
        unread = pending if waiting else pending - 1
        receipts.append(
            Receipt(agent.name, outcome, None, agent.status, agent.since, unread, waiting, dropped.get(recipient, ()))
        )
    return receipts


def _note_due(spool: Spool, message: int, recipients: list[Agent], receipts: list[Receipt], due: list[Agent]) -> None:
    """Remember with the mail whom to wake for it: this process may be killed before it does."""
    queued = {receipt.to for receipt in receipts if receipt.outcome == "queued"}
    sleepers = [agent for agent in recipients if agent.name in queued and agent.status in ("idle", "parked")]
    if not any(agent.bound or agent.wake or agent.revive for agent in sleepers):
        return
    from agentmail.operations import waking
    from agentmail.spool import wakes

    for agent in sleepers:
        if waking.is_wanted(agent):
            wakes.set_due(spool.db, agent.id, message)
            due.append(agent)


def _rouse(session: Session, sent: Sent, sleepers: list[Agent]) -> Sent:
    """Wake the recipients, and whom others left to be woken; the receipts with what came of it."""
    spool = session.spool
    if not sleepers and not agents.is_a_wake_due(spool.db):
        return sent
    from agentmail.operations import waking

    if waking.is_in_a_sandbox():
        spool.bells.ring(session.me.name)  # its own hook, which runs outside, is to look at the next step
    # Whether or not it is due still: a later sender may have done it for this message, too.
    results = {agent.name: waking.rouse(spool, agent.id, sent.id or 0) for agent in sleepers}
    waking.carry_out_due(spool)
    if sent.repeated and sent.id:
        return _repeat(session, sent.to, sent.id)
    receipts = tuple(
        receipt._replace(outcome=results[receipt.to].outcome, error=results[receipt.to].error)
        if receipt.to in results
        else receipt
        for receipt in sent.receipts
    )
    return sent._replace(receipts=receipts)


def _await(session: Session, sent: Sent, draft: Draft, holder: Holder) -> Wait | None:
    spool, me = session.spool, session.me
    if sent.id is None:
        return None
    peer = agents.by_name(spool.db, sent.receipts[0].to)
    if peer is None:
        raise NotDelivered(f"{sent.receipts[0].to} was aborted; see 'agentmail list'")
    timeout = waiters.register(
        spool.db, me.id, holder.token, asked=draft.asked, sender=peer.id, after=sent.id, answers=sent.id
    )
    from agentmail.operations.receive import Wait

    first = mail.claimed(spool.db, me.id, holder.token)
    return Wait(session, holder, timeout, peer=peer, until_it_stops=True, answers=sent.id, first=first)


def _repeat(session: Session, to: str, message: int) -> Sent:
    """The receipt of an earlier send with the same key, from what was kept of it."""
    receipts = [Receipt(name, outcome) for name, outcome in mail.outcomes(session.spool.db, message)]
    return Sent(message, to, tuple(receipts), repeated=True)


def _expect(spool: Spool, name: str) -> Agent:
    """A place for mail to a name that has not registered yet."""
    from agentmail import names

    spool.bells.hang(names.check(name))
    return agents.add(spool.db, now=now(), name=name, display=name, kind="unknown", status="expected")


def _unknown(session: Session, to: str) -> str:
    from difflib import get_close_matches

    db = session.spool.db
    known = [name for name in agents.names(db) if name != session.me.name]
    lower = {name.lower(): name for name in known}
    likely = [lower[match] for match in get_close_matches(to.lower(), lower, n=3, cutoff=0.5)]
    others = [name for name in known if name not in likely]
    was = "was aborted" if agents.was_aborted(db, to) else "is unknown"
    listing = ", ".join((likely + others)[:10]) or "nobody else has registered yet"
    return f"{to} {was}; known: {listing}"
