"""The findings of one result, page by page, into the transaction that publishes them (spec D-07, D-14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection

from testigo.authority.actions import new_id
from testigo.errors import ManifestInvalid, PageInvalid
from testigo.evidence.collection import Locked
from testigo.evidence.model import SealedResult
from testigo.rules.evidence.review import DECISIONS
from testigo.rules.evidence.sealing import redacted
from testigo.store.sql import Statement, array, id_array

__all__ = ["Counts", "insert_pages"]

Counts: TypeAlias = "Counter[tuple[str, str, bool, bool]]"
"""How many findings were inserted, by analyser, severity, `suppressed` and `known`."""


class _Page(NamedTuple):
    """A page as it is inserted: its place, the place of its first finding in the result, and its columns."""

    n: int
    first: int
    findings: int
    columns: dict[str, str]


# What another part has said already is kept once; within one part it is refused, as `_REPEATED` finds. The OFFSET has
# each fingerprint looked up in the baseline: else every page might read the whole of that. The few exemptions are read
# once for a page: NOT EXISTS would look each fingerprint up there as well. What is known is told by
# `testigo.evidence.baselines`.
_INSERT = Statement(
    """
    WITH inserted AS (
        INSERT INTO testigo.finding (id, analysis_id, collection, severity, part, line, known, suppressed, analyser,
                                     fingerprint, rule, path, document)
        SELECT g.id, CAST(:analysis AS uuid), CAST(:analysis AS uuid), g.severity, :part, g.line,
               EXISTS (SELECT
                       FROM testigo.finding b
                       WHERE b.analysis_id = CAST(:baseline AS uuid) AND b.analyser = :analyser
                         AND b.fingerprint = g.fingerprint
                         AND (CAST(:whole AS boolean)
                              OR b.decision = ANY (CAST(:accepting AS text[]))
                              OR (b.decision = ANY (CAST(:counting AS text[]))
                                  AND (g.suppressed OR NOT b.suppressed)
                                  AND (b.known OR g.fingerprint NOT IN (SELECT e.fingerprint
                                                                        FROM testigo.exemption e
                                                                        WHERE e.project = :project
                                                                          AND e.analyser = :analyser))))
                       OFFSET 0),
               g.suppressed, :analyser, g.fingerprint, g.rule, g.path, g.document
        FROM unnest(CAST(:ids AS uuid[]), CAST(:severities AS testigo.severity[]), CAST(:lines AS integer[]),
                    CAST(:suppressed AS boolean[]), CAST(:fingerprints AS text[]), CAST(:rules AS text[]),
                    CAST(:paths AS text[]), CAST(:documents AS text[]))
                 AS g(id, severity, line, suppressed, fingerprint, rule, path, document)
        ON CONFLICT (analysis_id, analyser, fingerprint) DO NOTHING
        RETURNING severity, suppressed, known
    )
    SELECT CAST(severity AS text) AS severity, suppressed, known, count(*) AS findings
    FROM inserted
    GROUP BY severity, suppressed, known
    """
)

_REPEATED = Statement(
    """
    SELECT g.n, g.fingerprint
    FROM unnest(CAST(:ids AS uuid[]), CAST(:fingerprints AS text[])) WITH ORDINALITY AS g(id, fingerprint, n)
         CROSS JOIN LATERAL (
             SELECT f.id, f.part
             FROM testigo.finding f
             WHERE f.analysis_id = CAST(:analysis AS uuid) AND f.analyser = :analyser
               AND f.fingerprint = g.fingerprint
             OFFSET 0
         ) AS f
    WHERE f.part = :part AND f.id <> g.id
    ORDER BY g.n
    LIMIT 1
    """
)

_ACCEPTING = [str(row.decision) for row in DECISIONS if row.accepts]
_COUNTING = [str(row.decision) for row in DECISIONS if row.counts]


def insert_pages(c: Connection, locked: Locked, result: SealedResult, counts: Counts) -> int:
    """Insert the findings of one result, a page at a time; returns how many its pages gave."""
    given = 0
    for page in _ahead(_prepared(result)):
        _insert(c, locked, result, page, counts)
        given += page.findings
    if given != result.findings:
        raise ManifestInvalid(
            f"The result of {result.analyser} has {result.findings} findings, and its pages have {given}.",
            field="findings",
            check="findings",
        )
    return given


def _prepared(result: SealedResult) -> Iterator[_Page]:
    """The pages of a result, redacted once more and encoded; no more than one at a time."""
    first = 0
    for n, page in enumerate(result.pages()):
        if not page:
            continue
        rows = [redacted(finding) for finding in page]
        for at, finding in enumerate(rows):
            if finding.analyser != result.analyser:
                raise PageInvalid(
                    f"A finding of {finding.analyser} is among those of {result.analyser}.",
                    field="analyser",
                    check="analyser",
                    page=n,
                    ordinal=first + at,
                )
        columns = {
            "ids": id_array([new_id() for _ in rows]),
            "severities": array([finding.severity for finding in rows]),
            "lines": array([finding.line for finding in rows]),
            "suppressed": array([finding.suppressed for finding in rows]),
            "fingerprints": array([finding.fingerprint for finding in rows]),
            "rules": array([finding.rule for finding in rows]),
            "paths": array([finding.path for finding in rows]),
            "documents": array([finding.canonical().decode() for finding in rows]),
        }
        yield _Page(n, first, len(rows), columns)
        first += len(rows)


def _ahead(items: Iterator[_Page]) -> Iterator[_Page]:
    """The same, each made while the database is busy with the one before it."""
    with ThreadPoolExecutor(1, thread_name_prefix="testigo-pages") as other:
        coming = other.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = other.submit(next, items, None)
            yield item


def _insert(c: Connection, locked: Locked, result: SealedResult, page: _Page, counts: Counts) -> None:
    scope = {"analysis": locked.id, "analyser": result.analyser, "part": result.part}
    known_by = {
        "project": locked.project,
        "baseline": locked.baseline,
        "whole": locked.baseline_is_set,
        "accepting": _ACCEPTING,
        "counting": _COUNTING,
    }
    kept = 0
    for severity, suppressed, known, findings in _INSERT.fetch(c, {**scope, **known_by, **page.columns}):
        counts[result.analyser, severity, suppressed, known] += findings
        kept += findings
    if kept == page.findings:
        return
    same = {name: page.columns[name] for name in ("ids", "fingerprints")}
    if twice := _REPEATED.row(c, **scope, **same):
        raise PageInvalid(
            f"Two findings of one result have the fingerprint {twice.fingerprint}.",
            field="fingerprint",
            check="unique",
            page=page.n,
            ordinal=page.first + twice.n - 1,
        )
