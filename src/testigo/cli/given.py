"""What an option is given is taken as it is, where that is all there is to say of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import typer

__all__ = ["as_given"]


def as_given(params: list[Any]) -> list[Any]:
    """The parameters of a command, each of which takes a word or a default as it is if that is what it holds.

    All else is left to typer's own check. That is pydantic's, which takes longer to load than many a command to run.
    """
    for param in params:
        vars(param).setdefault("get_runtime_param", partial(AsGiven, param.get_runtime_param))
    return params


class AsGiven:
    """Stands before a parameter's own check."""

    def __init__(self, checked: Callable[[], Any]) -> None:
        self._checked = checked

    def coerce(self, value: Any, param: Any, ctx: typer.Context) -> Any:
        """What the command is given for `value`; raises what the parameter's own check does."""
        kept = value is None or type(value) is param.type_descriptor.annotation
        return value if kept else self._checked().coerce(value, param=param, ctx=ctx)
