"""Write the generated pages of the reference: `python -m docs.generate`, from the root of the repository."""

from __future__ import annotations

from docs.generate.pages import PAGES, REFERENCE

for name, written in PAGES.items():
    (REFERENCE / name).write_text(written(), "utf-8")
