"""The reaper calls dead only what it has itself watched, unchanged, for the whole term."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.leases import Holder, Reading, RunReading, Watch, check_obligation
from testigo.settings import SESSIONS

HOME = "7123456789-1"
"""The incarnation of the database."""


def session(number: int, *, epoch: int = 1, beat: int = 0, term: float = 15.0) -> Reading:
    """A session as a read shows it."""
    return Reading(f"id-{number}", epoch, beat, term)


A, B = session(1), session(2)


def watched(*reads: tuple[float, list[Reading]], incarnation: str = HOME) -> Watch[Reading]:
    """A watch that has seen these reads."""
    watch: Watch[Reading] = Watch()
    for answered_at, readings in reads:
        watch.observe(readings, incarnation, answered_at=answered_at)
    return watch


def steadily(watch: Watch[Reading], readings: list[Reading], start: float, seconds: float, step: float = 0.5) -> float:
    """Reads on in even steps; returns the time of the last read."""
    reads = round(seconds / step)
    for number in range(1, reads + 1):
        watch.observe(readings, HOME, answered_at=start + number * step)
    return start + reads * step


def test_a_beat_unchanged_for_the_whole_term_is_dead() -> None:
    """Not a read before the term, and at the first one at it (spec P-18)."""
    watch = watched((100.0, [A]))
    at = steadily(watch, [A], 100.0, 14.5)
    assert watch.dead() == []
    steadily(watch, [A], at, 0.5)
    assert watch.dead() == [A]


def test_the_first_sight_of_a_beat_has_no_age() -> None:
    """r0 is stamped after the answer of the first read that shows the beat, however old the beat is (spec P-18)."""
    watch = watched((1_000_000.0, [A]))
    assert watch.dead() == []
    watch.observe([A, B], HOME, answered_at=1_000_003.0)
    steadily(watch, [A, B], 1_000_003.0, 12.0)
    assert watch.dead() == [A]


@pytest.mark.parametrize("moved", [replace(A, beat=1), replace(A, epoch=2), replace(A, term_seconds=14.0)])
def test_any_change_begins_anew(moved: Reading) -> None:
    """A beat, an epoch or a term that moved is another sight of a living session (spec P-18)."""
    watch = watched((0.0, [A]))
    at = steadily(watch, [A], 0.0, 14.5)
    watch.observe([moved], HOME, answered_at=at + 0.5)
    at = steadily(watch, [moved], at + 0.5, moved.term_seconds - 0.5)
    assert watch.dead() == []
    steadily(watch, [moved], at, 0.5)
    assert watch.dead() == [moved]


def test_a_beat_that_goes_back_begins_anew() -> None:
    """Even a lower beat is a change: something wrote it (spec P-18)."""
    watch = watched((0.0, [replace(A, beat=7)]))
    at = steadily(watch, [replace(A, beat=7)], 0.0, 14.5)
    watch.observe([A], HOME, answered_at=at + 0.5)
    assert watch.dead() == []


def test_a_session_that_vanished_begins_anew_when_it_returns() -> None:
    """What a read does not show is not watched (spec P-18)."""
    watch = watched((0.0, [A, B]))
    at = steadily(watch, [A, B], 0.0, 14.5)
    watch.observe([B], HOME, answered_at=at + 0.25)
    watch.observe([A, B], HOME, answered_at=at + 0.5)
    assert watch.dead() == [B]


def test_a_suspended_reaper_counts_one_cap() -> None:
    """An hour in which the reaper did not run counts a fifth of the term (spec P-18)."""
    watch = watched((0.0, [A]), (3_600.0, [A]))
    at = steadily(watch, [A], 3_600.0, 11.5)
    assert watch.dead() == []
    steadily(watch, [A], at, 0.5)
    assert watch.dead() == [A]


def test_each_term_has_a_cap_of_its_own() -> None:
    """Reads three seconds apart age a session of fifteen, and one of five by a second each (spec P-18)."""
    short = session(3, term=5.0)
    watch = watched(*((at * 3.0, [A, short]) for at in range(5)))
    assert watch.dead() == []
    watch.observe([A, short], HOME, answered_at=15.0)
    assert set(watch.dead()) == {A, short}
    watch = watched(*((at * 30.0, [A, short]) for at in range(5)))
    assert watch.dead() == []


def test_an_error_begins_anew() -> None:
    """A read whose answer did not come proves nothing about the time before it (spec P-18)."""
    watch = watched((0.0, [A]))
    at = steadily(watch, [A], 0.0, 14.5)
    watch.failed()
    assert watch.dead() == []
    watch.observe([A], HOME, answered_at=at + 0.5)
    at = steadily(watch, [A], at + 0.5, 14.5)
    assert watch.dead() == []
    steadily(watch, [A], at, 0.5)
    assert watch.dead() == [A]


def test_what_was_of_age_before_an_error_is_no_longer() -> None:
    """The list is taken from a successful read, never from memory (spec P-18)."""
    watch = watched((0.0, [A]))
    steadily(watch, [A], 0.0, 15.0)
    assert watch.dead() == [A]
    watch.failed()
    assert watch.dead() == []


def test_another_incarnation_begins_anew() -> None:
    """After a failover or a restore equal beats are not the same beats (spec P-18, P-23)."""
    watch = watched((0.0, [A]))
    at = steadily(watch, [A], 0.0, 14.5)
    watch.observe([A], "7123456789-2", answered_at=at + 0.5)
    assert watch.dead() == []
    watch.observe([A], HOME, answered_at=at + 1.0)
    at = steadily(watch, [A], at + 1.0, 14.5)
    assert watch.dead() == []
    steadily(watch, [A], at, 0.5)
    assert watch.dead() == [A]


def test_a_new_reaper_needs_a_whole_term() -> None:
    """A restart forgets: a reaper knows only what it saw itself (spec P-18)."""
    old = watched((0.0, [A]))
    at = steadily(old, [A], 0.0, 15.0)
    new = watched((at, [A]))
    assert (old.dead(), new.dead()) == ([A], [])


def test_a_clock_that_goes_back_ages_nothing() -> None:
    """A monotonic clock does not, and if one did, no age would grow or shrink by it (spec P-18)."""
    watch = watched((100.0, [A]))
    at = steadily(watch, [A], 100.0, 14.5)
    watch.observe([A], HOME, answered_at=at - 50.0)
    assert watch.dead() == []
    watch.observe([A], HOME, answered_at=at - 49.5)
    assert watch.dead() == [A]


def test_one_read_serves_all_sessions_each_by_its_term() -> None:
    """Many sessions with different terms die each at its own (spec P-18)."""
    terms = [2.0, 5.0, 10.0, 15.0]
    sessions = [session(number, term=term) for number, term in enumerate(terms)]
    watch = watched((0.0, sessions))
    at = 0.0
    for number, term in enumerate(terms):
        at = steadily(watch, sessions, at, term - at, step=0.125)
        assert watch.dead() == sessions[: number + 1]


def test_what_stays_dead_is_told_again_until_it_is_gone() -> None:
    """An update whose answer was lost is sent again: the watch is level-triggered (spec P-18)."""
    watch = watched((0.0, [A, B]))
    at = steadily(watch, [A, B], 0.0, 15.0)
    assert set(watch.dead()) == {A, B}
    watch.observe([B], HOME, answered_at=at + 0.5)
    assert watch.dead() == [B]
    watch.observe([replace(B, beat=1)], HOME, answered_at=at + 1.0)
    assert watch.dead() == []


def test_a_run_ages_from_the_reapers_own_first_sight() -> None:
    """A hard limit against a keeper that beats but never settles: no database clock, the session's cap (spec P-22)."""
    run = RunReading("id-9", 4, limit_seconds=120.0, term_seconds=15.0)
    watch: Watch[RunReading] = Watch()
    for number in range(40):
        watch.observe([run], HOME, answered_at=number * 3.0)
        assert watch.dead() == []
    watch.observe([run], HOME, answered_at=120.0)
    assert watch.dead() == [run]
    watch.observe([replace(run, epoch=5)], HOME, answered_at=120.5)
    assert watch.dead() == []


def test_a_suspended_reaper_ends_no_run() -> None:
    """A day of suspension counts a fifth of the session's term, not of the run's limit (spec P-22)."""
    run = RunReading("id-9", 4, limit_seconds=4.0, term_seconds=15.0)
    watch: Watch[RunReading] = Watch()
    watch.observe([run], HOME, answered_at=0.0)
    watch.observe([run], HOME, answered_at=86_400.0)
    assert watch.dead() == []


@pytest.mark.parametrize(
    ("reads", "seconds"),
    [
        ([], 0.5),
        ([(0.0, [])], 0.5),
        ([(0.0, [A])], 0.5),
        ([(0.0, [session(1, term=60.0)])], 0.5),
        ([(0.0, [A, session(2, term=3.0)])], 0.1),
        ([(0.0, [A]), (3.0, [A]), (6.0, [A]), (9.0, [A]), (12.0, [A]), (14.75, [A])], 0.25),
        ([(float(at), [A]) for at in range(16)], 0.5),
    ],
)
def test_the_next_read_is_due_by_the_term_and_by_age(reads: list[tuple[float, list[Reading]]], seconds: float) -> None:
    """A thirtieth of the shortest term, the default's included; sooner when a beat comes of age (spec P-18)."""
    assert watched(*reads).next_read_seconds() == pytest.approx(seconds)


def test_a_rounding_error_does_not_make_a_reaper_spin() -> None:
    """A beat that is a hair short of its age is read again a moment later, not in the same instant (spec P-18)."""
    watch = watched((0.0, [A]))
    now = reads = 0.0
    while not watch.dead():
        now += watch.next_read_seconds()
        reads += 1
        watch.observe([A], HOME, answered_at=now)
    assert 15.0 <= now < 15.01
    assert reads <= 32


@given(st.floats(2, 100), st.floats(0, 1e9), st.floats(0, 0.3))
def test_a_watching_reaper_is_in_time_and_never_early(term: float, start: float, latency: float) -> None:
    """Read when asked to, a silent session is dead at its term, at most the latency of a read later (spec P-18)."""
    silent = session(1, term=term)
    watch = watched((start, [silent]))
    now = start
    while not watch.dead():
        now += watch.next_read_seconds() + latency
        watch.observe([silent], HOME, answered_at=now)
    assert now - start >= term - 1e-6
    assert now - start <= term + latency + 0.002


steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.floats(0.01, 20)),
        st.tuples(st.just("beat"), st.floats(0.01, 20)),
        st.tuples(st.just("error"), st.floats(0.01, 20)),
        st.tuples(st.just("failover"), st.floats(0.01, 20)),
    ),
    max_size=80,
)


@given(steps)
def test_dead_means_seen_unchanged_for_a_term(history: list[tuple[str, float]]) -> None:
    """Whatever happens, the age is the capped sum over successive successful reads of one beat (spec P-18)."""
    watch: Watch[Reading] = Watch()
    reading, era, now = A, 1, 0.0
    seen: list[float] = []
    """The answers since the first that showed this beat, without error or failover between them."""
    for step, passed in history:
        now += passed
        if step == "beat":
            reading, seen = replace(reading, beat=reading.beat + 1), []
        elif step == "error":
            watch.failed()
            seen = []
        elif step == "failover":
            era, seen = era + 1, []
        else:
            watch.observe([reading], f"{era}", answered_at=now)
            seen.append(now)
            age = sum(min(after - before, 3.0) for before, after in pairwise(seen))
            if abs(age - 15.0) > 1e-6:
                assert watch.dead() == ([reading] if age > 15.0 else [])


@dataclass
class World:
    """A keeper, the authority and a reaper in real time, each keeper's and reaper's clock running at its own rate."""

    keeper_rate: float
    reaper_rate: float
    now: float = 0.0
    beat: int = 0
    """The authority's."""
    stopped: bool = False

    def __post_init__(self) -> None:
        self.holder = Holder(SESSIONS.stop_after_terms * 15.0, opened_at=0.0)
        self.watch: Watch[Reading] = Watch()
        self.requests: list[int] = []
        self.answers: list[int] = []

    @property
    def stop_at(self) -> float:
        """The real time at which the keeper stops, as things are."""
        return self.holder.stop_at / self.keeper_rate

    def pass_time(self, seconds: float) -> None:
        """Time passes; a keeper whose time is over stops and never goes on."""
        self.now += seconds
        self.stopped = self.stopped or self.holder.must_stop(self.now * self.keeper_rate)

    def send(self) -> None:
        """The keeper sends its next renewal, or sends it again."""
        if not self.stopped:
            self.holder.sent(self.holder.beat + 1, self.now * self.keeper_rate)
            self.requests.append(self.holder.beat + 1)

    def deliver(self) -> None:
        """The oldest request arrives: n-1 becomes n, and "already n" is success."""
        if self.requests:
            beat = self.requests.pop(0)
            if beat in {self.beat, self.beat + 1}:
                self.beat = beat
                self.answers.append(beat)

    def answer(self) -> None:
        """The oldest answer arrives."""
        if self.answers and not self.stopped:
            self.holder.answered(self.answers.pop(0))

    def read(self, travel: float) -> bool:
        """The reaper reads, the answer takes a while, and then it tries to declare the session dead."""
        shown = session(1, beat=self.beat)
        self.pass_time(travel)
        self.watch.observe([shown], HOME, answered_at=self.now * self.reaper_rate)
        return any(reading.beat == self.beat for reading in self.watch.dead())


WORLD_STEPS = ["send", "deliver", "answer", "lose", "read", "read", "watch", "wait"]


@given(
    st.sampled_from([1 - SESSIONS.clock_drift, 1.0, 1 + SESSIONS.clock_drift]),
    st.sampled_from([1 - SESSIONS.clock_drift, 1.0, 1 + SESSIONS.clock_drift]),
    st.lists(st.tuples(st.sampled_from(WORLD_STEPS), st.floats(0, 4)), max_size=60),
)
def test_no_living_holder_is_declared_dead(
    keeper_rate: float, reaper_rate: float, history: list[tuple[str, float]]
) -> None:
    """Renewals and answers are lost and late, reads slow, clocks drift: when the authority declares a session
    dead, its holder has stopped and what it must kill has had its time (spec P-16, P-18, P-19; promise 2)."""
    check_obligation(15.0)
    world = World(keeper_rate, reaper_rate)
    for step, seconds in [*history, *[("watch", 0.0)] * 10]:
        died = False
        if step == "send":
            world.send()
        elif step == "deliver":
            world.deliver()
        elif step == "answer":
            world.answer()
        elif step == "lose":
            world.requests, world.answers = world.requests[1:], world.answers[1:]
        elif step == "wait":
            world.pass_time(seconds)
        elif step == "read":
            died = world.read(seconds)
        else:
            died = any(world.read(world.watch.next_read_seconds() / reaper_rate) for _ in range(8))
        if died:
            assert world.stopped
            assert world.stop_at + SESSIONS.kill_seconds <= world.now
            return
    raise AssertionError("a session that is silent for so long is declared dead")
