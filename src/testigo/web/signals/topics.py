"""What a page can ask to be told of, and how far each of it has come.

    jobs              anything that happened to any job
    queue:NAME        anything that happened to a job of this queue
    job:ID            this job: its revision, and what its run says of its progress
    pauses            queues and kinds that were paused or resumed
    workers           sessions that opened, drain or ended
    beats             signs of life of sessions: in a busy installation there is one every second
    operations        bulk operations that began, went on or ended
    audit             what was written down
    analyses          analyses that began, ended, or were judged anew, of the newest thousand
    analysis:ID       this analysis: whatever was decided about it or its findings

All of it is read in one statement, of which a part that nobody asks for costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from sqlalchemy import Connection

from testigo.errors import Invalid
from testigo.journal.events import Event, event_of
from testigo.rules import fields
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["TOPICS_MAX", "Looked", "check_topics", "look"]

TOPICS_MAX = 20
"""Topics of one page."""

_PLAIN = frozenset({"jobs", "pauses", "workers", "beats", "operations", "audit", "analyses"})


@dataclass(frozen=True, slots=True)
class Looked:
    """What stood at one moment.

    `counters` has a text for each topic, which is another once something happened; `events` what follows
    the cursor of each stream, without a gap, and `more` the streams that have further ones; `beats` the
    last beat of each session that is open.
    """

    counters: Mapping[str, str]
    events: Mapping[str, Sequence[Event]]
    more: Collection[str]
    beats: Mapping[str, int]


# A part that nobody asked for costs nothing: its condition holds no column, and is tested once.
_LOOK = Statement(
    """
    SELECT 'event' AS part, w.name, CAST(s.head AS text) AS counter,
           e.id, e.type, e.subject, e.at, e.stream, e.sequence, e.revision, e.actor, e.action, e.data
    FROM unnest(CAST(:streams AS text[]), CAST(:cursors AS bigint[])) AS w(name, cursor)
         JOIN testigo.stream s ON s.name = w.name
         CROSS JOIN LATERAL (
             SELECT p.*, sum(octet_length(data)) OVER (ORDER BY sequence) - octet_length(data) AS bytes_before
             FROM (SELECT *
                   FROM testigo.event
                   WHERE stream = w.name AND sequence > w.cursor
                   ORDER BY sequence
                   LIMIT :limit) AS p
         ) AS e
    WHERE e.bytes_before < :bytes
    UNION ALL
    SELECT 'topic', 'jobs', CAST(coalesce(sum(head), 0) AS text),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.stream
    WHERE 'jobs' = ANY(CAST(:topics AS text[]))
    UNION ALL
    SELECT 'topic', 'queue:' || q.name, CAST(coalesce(sum(s.head), 0) AS text),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM unnest(CAST(:queues AS text[])) AS q(name)
         LEFT JOIN testigo.stream s ON split_part(s.name, '#', 1) = q.name
    GROUP BY q.name
    UNION ALL
    SELECT 'topic', 'job:' || j.id, j.revision || '.' || coalesce(p.n, 0),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.job j
         LEFT JOIN testigo.progress p ON p.job_id = j.id
    WHERE j.id = ANY(CAST(:jobs AS uuid[]))
    UNION ALL
    SELECT 'topic', 'pauses', count(*) || '.' || coalesce(CAST(extract(epoch FROM max(at)) AS text), ''),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.pause
    WHERE 'pauses' = ANY(CAST(:topics AS text[]))
    UNION ALL
    SELECT 'topic', 'operations',
           count(*) || '.' || coalesce(CAST(extract(epoch FROM greatest(max(advanced_at), max(ended_at))) AS text), ''),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.operation
    WHERE 'operations' = ANY(CAST(:topics AS text[]))
    UNION ALL
    SELECT 'topic', 'audit', CAST(n AS text),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.audit_head
    WHERE 'audit' = ANY(CAST(:topics AS text[]))
    UNION ALL
    SELECT 'topic', 'analyses', count(*) || '.' || coalesce(sum(revision), 0) || '.' || coalesce(max(n), 0),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM (SELECT a.revision, a.n
          FROM testigo.analysis a
          WHERE 'analyses' = ANY(CAST(:topics AS text[]))
          ORDER BY a.id DESC
          LIMIT :limit) AS newest
    UNION ALL
    SELECT 'topic', 'analysis:' || id, CAST(revision AS text),
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM testigo.analysis
    WHERE id = ANY(CAST(:analyses AS uuid[]))
    UNION ALL
    (SELECT 'beat', CAST(id AS text), CAST(beat AS text),
            NULL, state, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM testigo.session
     WHERE state IN ('open', 'draining')
     LIMIT :sessions)
    """
)


def check_topics(topics: Sequence[str]) -> tuple[str, ...]:
    """These topics, each once, in their order. Raises `Invalid` for what is none, for none at all and for too many."""
    asked = tuple(dict.fromkeys(topics))
    if not 1 <= len(asked) <= TOPICS_MAX:
        raise Invalid("There are too many topics, or none.", field="topics", limit=f"1 to {TOPICS_MAX}")
    for topic in asked:
        scope, colon, name = topic.partition(":")
        if colon and scope == "queue":
            fields.name(name, field="topics")
        elif colon and scope in ("job", "analysis"):
            fields.must_be_id(name, field="topics")
        elif topic not in _PLAIN:
            limit = f"{', '.join(sorted(_PLAIN))}, queue:NAME, job:ID, analysis:ID"
            raise Invalid("There is no such topic.", field="topics", limit=limit)
    return asked


@single_statement
def look(c: Connection, topics: Collection[str], cursors: Mapping[str, int]) -> Looked:
    """How far these topics have come, and what follows the cursor of each of these streams: at most 1 MiB of each."""
    rows = _LOOK.rows(
        c,
        streams=list(cursors),
        cursors=list(cursors.values()),
        topics=sorted(topics),
        queues=_named("queue:", topics),
        jobs=_named("job:", topics),
        analyses=_named("analysis:", topics),
        limit=LIMITS.page_max,
        bytes=LIMITS.page_bytes_max,
        sessions=LIMITS.page_max,
    )
    counters: dict[str, str] = {}
    beats: dict[str, int] = {}
    heads: dict[str, int] = {}
    events: defaultdict[str, list[Event]] = defaultdict(list)
    for row in rows:
        match row.part:
            case "event":
                events[row.name].append(event_of(row))
                heads[row.name] = int(row.counter)
            case "topic":
                counters[row.name] = row.counter
            case _:
                beats[row.name] = int(row.counter)
    for each in events.values():
        each.sort(key=lambda event: event.sequence)
    states = sorted((row.name, row.type) for row in rows if row.part == "beat")
    counters["workers"] = str(crc32(repr(states).encode()))  # the same in every process, whichever a browser asks
    counters["beats"] = str(sum(beats.values()))
    more = {name for name, each in events.items() if each[-1].sequence < heads[name]}
    return Looked(counters, events, more, beats)


def _named(prefix: str, topics: Collection[str]) -> list[str]:
    return sorted(topic.removeprefix(prefix) for topic in topics if topic.startswith(prefix))
