"""What every command is called with: where the installation is, and whether to answer in JSON."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from testigo.cli.failures import PIPE_CLOSED, abandon_stdout
from testigo.cli.given import as_given
from testigo.cli.written import to_json
from testigo.errors import CursorInvalid

if TYPE_CHECKING:
    from testigo.authority.actions import Action
    from testigo.configuration import Installation
    from testigo.store.database import Database

__all__ = ["Call", "command", "group"]

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="postgresql://… or embedded:DIR.")]
Schema = Annotated[str | None, typer.Option("--schema", metavar="NAME", help="The schema of the installation.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


@dataclass(frozen=True)
class Call:
    """One call of a command: its common options, its way to the database, and its answers."""

    url: str | None = None
    schema: str | None = None
    json: bool = False

    @cached_property
    def place(self) -> Installation:
        """Where the installation is, and who said so."""
        from testigo.configuration import installation

        return installation(self.url, self.schema)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """The installation, for as long as the command takes."""
        from testigo.store.database import Database

        with Database(self.place.url, schema=self.place.schema, pool_size=2) as database, refusals_told():
            yield database

    def action(self) -> Action:
        """A new command of whoever sits here: events name them as `cli:USER`."""
        from testigo.authority.actions import Action

        return Action(f"cli:{_user()}")

    def answer(self, answer: object, words: Callable[[], object]) -> None:
        """One JSON object if that was asked for, else what `words` prints."""
        if self.json:
            print(to_json(answer), flush=True)
        else:
            words()

    def note(self, text: str) -> None:
        """A remark for people, on stderr; programs that asked for JSON are not told."""
        if not self.json:
            print(text, file=sys.stderr, flush=True)


class PlainCommand(TyperCommand):
    """A command whose help says in words what an argument is, and not of which Python type."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for each in self.params:
            if isinstance(each, TyperArgument):
                each.display_type_rich = lambda ctx: None  # type: ignore[method-assign]

    def get_params(self, ctx: Any) -> Any:
        """The parameters, among them `--help`."""
        return as_given(super().get_params(ctx))


class Noun(TyperGroup):
    """The commands of one noun, or of the program."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, among them `--help`."""
        return as_given(super().get_params(ctx))


def group(name: str, help: str) -> typer.Typer:  # noqa: A002
    """The commands of one noun."""
    return typer.Typer(name=name, cls=Noun, help=help, no_args_is_help=True, rich_markup_mode=None)


def command(
    within: typer.Typer, name: str, *examples: str, asks: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function whose first parameter is a `Call` a command: its docstring is the help.

    `asks` says whether it asks an installation, and so takes the options that name one.
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def called(*, json: bool, url: str | None = None, schema: str | None = None, **given: Any) -> None:
            try:
                function(Call(url, schema, json), **given)
                sys.stdout.flush()
            except CursorInvalid as error:
                error.field = "after" if error.field == "cursor" else error.field  # as the option is called
                raise
            except BrokenPipeError:
                abandon_stdout()
                raise typer.Exit(PIPE_CLOSED) from None

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, default, annotation in (
                *((("url", None, Url), ("schema", None, Schema)) if asks else ()),
                ("json", False, Json),
            )
        ]
        keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        called.__signature__ = inspect.Signature([*keyword_only, *common])  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
        del called.__wrapped__
        lines = "\n".join(f"  testigo {example}" for example in examples)
        within.command(name, cls=PlainCommand, epilog=f"\b\nExamples:\n{lines}", no_args_is_help=False)(called)
        return called

    return made


@contextmanager
def refusals_told() -> Iterator[None]:
    """What the database refuses as an error of ours: the driver's own words, without statement and rows."""
    from sqlalchemy.exc import DBAPIError

    from testigo.errors import Broken
    from testigo.store.failures import reason_of

    try:
        yield
    except DBAPIError as error:
        told = f"The database refused the command: {reason_of(error)}."
        raise Broken(told, remedy="Run `testigo doctor`: it looks at the role's rights and the schema.") from error


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as containers have
        import os

        return str(os.getuid())
