"""The files of a starting project. `NAME` stands for the project's name."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FILES"]

_APP = '''\
"""The jobs of NAME."""

from collections import Counter
from dataclasses import dataclass

from testigo import App, Context

app = App("NAME")  # on TESTIGO_URL, or on the embedded PostgreSQL in .testigo


@dataclass
class Counted:
    words: int
    most_common: str


@app.job("NAME.count_words", attempts=5, timeout=60)
def count_words(ctx: Context, text: str) -> Counted:
    """Count the words of a text. What a handler raises is tried again, `attempts` times in all."""
    words = text.lower().split()
    ctx.progress(len(words), total=len(words), note="counted")
    (most_common, _), *_ = Counter(words).most_common(1) or [("", 0)]
    return Counted(len(words), most_common)


if __name__ == "__main__":
    job = count_words.submit(text="to be or not to be")
    # From here on it cannot be lost.
    print("submitted", job.id)
    print("result   ", job.result(timeout=60))
'''

_TEST = '''\
"""The jobs run in the test's own process, on a database of its own."""

import pytest
from testigo.testing import Trial, crash

from app import Counted, app, count_words


@pytest.fixture(autouse=True)
def installation(testigo: Trial) -> None:
    testigo.use(app)


def test_words_are_counted() -> None:
    job = count_words.submit(text="to be or not to be")
    assert app.run_until_idle() == 1
    assert job.result(timeout=0) == Counted(words=6, most_common="to")


def test_nothing_is_lost_when_the_process_dies() -> None:
    job = count_words.submit(text="to be")
    with crash(count_words, before_end=True):
        app.run_until_idle()
    assert job.result(timeout=0).words == 2
'''

_CONFTEST = """\
pytest_plugins = ["testigo.testing.fixtures"]
"""

_PYPROJECT = """\
[project]
name = "NAME"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["testigo[embedded]"]

[dependency-groups]
test = ["pytest>=8"]

[tool.pytest.ini_options]
pythonpath = ["."]

[tool.testigo]
# url = "postgresql://user@host/database"   without it, an embedded PostgreSQL in .testigo
"""

_GITIGNORE = """\
.testigo/
.venv/
.pytest_cache/
__pycache__/
*.py[cod]
"""

_README = """\
# NAME

Work that cannot be lost, by testigo. `app.py` has the jobs, `test_app.py` their tests.

```console
$ python -m venv .venv && . .venv/bin/activate
$ pip install 'testigo[embedded]' pytest
```

Run the worker in one terminal, and submit a job in another:

```console
$ testigo worker app:app
$ python app.py
```

Then look at it, and test:

```console
$ testigo jobs list
$ testigo serve     # the panel, in a browser; it needs `pip install 'testigo[web]'`
$ pytest
```

In production, set `TESTIGO_URL=postgresql://…` and bring the schema up to date with `testigo migrate`.
"""

FILES: Mapping[str, str] = {
    "app.py": _APP,
    "test_app.py": _TEST,
    "conftest.py": _CONFTEST,
    "pyproject.toml": _PYPROJECT,
    ".gitignore": _GITIGNORE,
    "README.md": _README,
}
