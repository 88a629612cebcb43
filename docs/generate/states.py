"""The page of states, commands and transitions."""

from __future__ import annotations

from docs.generate.markdown import members, page, prose, sentence, table
from testigo.rules.states import EXPRESS, LEASED, PHASES, TERMINAL, State
from testigo.rules.transitions import DETAIL, TRANSITIONS, Command, EventType

__all__ = ["states_page"]

INTRO = """
A job is in exactly one of fourteen states (spec A-04, D-02). A command moves it along the edges of one table,
`TRANSITIONS` in `testigo.rules.transitions`; where the table has no edge, the command is refused with
`STATE_CONFLICT`, or with `TERMINAL` where the job has ended (spec A-05, A-06).
"""

EDGES = """
One command may walk several edges. A claim that starts its jobs walks `ready` → `leased` → `running`; a failure
whose wait is zero walks through `retry_waiting` to `ready`; what the system retires from `ready` walks through
`leased` and `running` to its end (spec P-13, P-24). The event is that of the last edge which the command itself
walks. One in italics is recorded only where a queue has `events = "full"` (spec P-27). An edge that needs the lease
can be walked by its holder alone (spec D-03).
"""

YES = {True: "yes", False: ""}


def states_page() -> str:
    """States, commands and transitions, as tables beside the diagram."""
    return page(
        "States and transitions",
        "src/testigo/rules/states.py and transitions.py",
        prose(INTRO),
        "![The states of a job and the commands that move it](states.svg)",
        "## States",
        table(["state", "meaning", "public phase", "express", "lease", "ended"], _states()),
        "## Commands",
        table(["command", "what happened", "from"], _commands()),
        "## Transitions",
        prose(EDGES),
        table(["from", "command", "to", "event", "needs the lease"], _edges()),
        wide=True,
    )


def _states() -> list[list[str]]:
    meanings = members(State)
    return [
        [
            f"`{state}`",
            sentence(meanings[state.name]),
            str(PHASES[state]),
            EXPRESS.get(state, ""),
            YES[state in LEASED],
            YES[state in TERMINAL],
        ]
        for state in State
    ]


def _commands() -> list[list[str]]:
    meanings = members(Command)
    sources = {command: {edge.source for edge in TRANSITIONS if edge.command is command} for command in Command}
    return [
        [
            f"`{command}`",
            sentence(meanings[command.name]),
            ", ".join(f"`{state}`" for state in State if state in sources[command]),
        ]
        for command in Command
    ]


def _edges() -> list[list[str]]:
    return [
        [f"`{edge.source}`", f"`{edge.command}`", f"`{edge.target}`", _event(edge.event), YES[edge.leased]]
        for edge in TRANSITIONS
    ]


def _event(event: EventType) -> str:
    link = f"[{event}](events.md#{event.replace('.', '')})"
    return f"*{link}*" if event in DETAIL else link
