"""What keeps a job that nobody owns from running, in the order of what must happen next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testigo.authority.explain.findings import Code, Finding, in_utc
from testigo.authority.explain.seen import Seen
from testigo.authority.read.pages import counted
from testigo.rules.states import State

__all__ = ["blockers", "next_in_line"]

_UNFIT = {
    "start_by": "The time by which it had to start has passed",
    "finish_by": "The time by which it had to finish has passed",
    "attempts": "Its failures have spent its attempts",
    "crashes": "Its losses have reached its crash limit",
}


def blockers(seen: Seen) -> Iterator[Finding]:
    """All that is in the way of a job that waits."""
    if seen.unadmitted:
        yield Finding(
            Code.UNADMITTED, "It is accepted and not yet admitted; a worker or server does that within a poll.", {}
        )
    if seen.state is State.BLOCKED_BY_QUALITY:
        yield _blocked(seen)
    if seen.unfit is not None:
        yield _unfit(seen, seen.unfit)
        return
    if seen.due_at is not None:
        yield _retry(seen) if seen.state is State.RETRY_WAITING else _not_yet(seen)
    yield from _parents(seen)
    yield from _pauses(seen)
    if not seen.serving["both"]:
        yield _unserved(seen)
    if seen.ahead_count:
        yield _behind(seen)


def next_in_line(seen: Seen) -> Finding:
    """What is said of a job that nothing is in the way of."""
    return Finding(
        Code.NEXT,
        "It is the next of its queue: the next free slot takes it.",
        {"queue": seen.queue, "sessions": seen.serving["both"]},
    )


def _blocked(seen: Seen) -> Finding:
    needs = f", and needs {seen.needs}" if seen.needs else ""
    return Finding(
        Code.BLOCKED,
        f"It is blocked: {seen.reason}{needs}. Unblock it once that is there.",
        {"reason": seen.reason, "needs": seen.needs},
    )


def _unfit(seen: Seen, word: str) -> Finding:
    position = seen.position
    facts = {
        "reason": word,
        "start_by": position.start_by,
        "finish_by": position.finish_by,
        "failures": position.failures,
        "attempts": position.attempts,
        "losses": position.losses,
        "crash_limit": position.crash_limit,
    }
    return Finding(Code.UNFIT, f"{_UNFIT[word]}: it will be ended without another run.", facts)


def _not_yet(seen: Seen) -> Finding:
    return Finding(Code.NOT_YET, _time(seen, "It waits for the time that was asked for"), {}, seen.due_at)


def _retry(seen: Seen) -> Finding:
    position = seen.position
    code, message = seen.error.get("code"), seen.error.get("message")
    facts = {"failures": position.failures, "attempts": position.attempts, "code": code, "message": message}
    why = f"It failed with {code}" if code else "It came back"
    text = _time(seen, f"{why} and waits for the time of try {position.failures + 1} of {position.attempts}")
    return Finding(Code.RETRY, text, facts, seen.due_at)


def _time(seen: Seen, what: str) -> str:
    assert seen.due_at is not None
    if seen.due_at <= seen.now:
        return f"{what}, which has come; the next promotion makes it ready."
    return f"{what}, {in_utc(seen.due_at)}."


def _parents(seen: Seen) -> Iterator[Finding]:
    if seen.ended_parents and not seen.unadmitted:
        first = seen.ended_parents[0]
        remedy = "It was pruned, so only a cancel ends the wait." if first["pruned"] else "Reprocess it."
        text = f"It waits for the parent {first['job']}, which can never succeed. {remedy}"
        yield Finding(Code.PARENT_FAILED, text, {"parents": _shown(seen.ended_parents)})
    if seen.open_count:
        parents = "parent" if seen.open_count == 1 else "parents"
        facts = {"parents": _shown(seen.open_parents), "count": seen.open_count}
        yield Finding(Code.PARENTS, f"It waits for {seen.open_count} {parents} to end.", facts)


def _shown(parents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: parent[name] for name in ("job", "state", "policy")} for parent in parents]


def _pauses(seen: Seen) -> Iterator[Finding]:
    for pause in seen.pauses:
        code = Code.QUEUE_PAUSED if pause["scope"] == "queue" else Code.KIND_PAUSED
        note = f": {pause['note']}" if pause["note"] else ""
        yield Finding(
            code,
            f"The {pause['scope']} {pause['name']!r} is paused since {pause['at']} by {pause['actor']}{note}.",
            {name: pause[name] for name in ("name", "actor", "note", "at")},
        )


def _unserved(seen: Seen) -> Finding:
    serving = seen.serving
    if not serving["queue"]:
        text = f"No open session serves the queue {seen.queue!r}."
    elif not serving["kind"]:
        text = f"No open session runs jobs of the kind {seen.kind!r}."
    else:
        text = f"Sessions serve the queue {seen.queue!r}, and others the kind {seen.kind!r}, but none both."
    facts = {"queue": seen.queue, "kind": seen.kind, "queue_sessions": serving["queue"]}
    return Finding(Code.UNSERVED, text, facts | {"kind_sessions": serving["kind"]})


def _behind(seen: Seen) -> Finding:
    count = counted(seen.ahead_count)
    jobs = "job is" if seen.ahead_count == 1 else "jobs are"
    return Finding(
        Code.BEHIND,
        f"{count} {jobs} before it in the queue {seen.queue!r}.",
        {"count": count, "jobs": list(seen.ahead), "queue": seen.queue, "priority": seen.priority},
    )
