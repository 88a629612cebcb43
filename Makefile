# Everything starts here; only make and a Python are needed. The tools go into .venv and nowhere else.

BIN := .venv/bin
INSTALLED := .venv/installed
UV := $(shell command -v uv 2>/dev/null)
ARGS :=

# The newest Python that is new enough and can make a virtual environment; or `make PYTHON=/path/to/python …`.
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
	"$$python" -c '$(USABLE)' 2>/dev/null && echo "$$python" && break; done)

define NO_PYTHON
testigo needs Python 3.11 or newer, and found none here that can make a virtual environment.
  Debian, Ubuntu   apt install python3 python3-venv
  Fedora           dnf install python3
  macOS            brew install python
  anywhere         uv, which brings a Python of its own: https://docs.astral.sh/uv/
Or name one: make PYTHON=/path/to/python
endef
export NO_PYTHON

.PHONY: help demo test check bench docs soak

help:  ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED)  ## See real work survive real kills, in less than a minute (ARGS="engine" for the engine's)
	@$(BIN)/testigo demo $(ARGS)

test: $(INSTALLED)  ## Run all tests that this machine can run, in parallel (ARGS="-k claim" to choose)
	@$(BIN)/pytest --numprocesses auto --maxprocesses 8 --dist worksteal $(ARGS)

check: $(INSTALLED)  ## Check style, types, layers, dead code and dependencies
	@echo "Style (ruff) …"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@echo "Types (mypy) …"
	@$(BIN)/mypy --no-error-summary
	@echo "Layers (import-linter) …"
	@$(BIN)/lint-imports --no-logo
	@echo "Dead code (vulture) …"
	@$(BIN)/vulture
	@echo "Dependencies (deptry) …"
	@$(BIN)/deptry src
	@echo "All is well."

bench: $(INSTALLED)  ## Measure this machine: a table, and JSON in bench/results
	@$(BIN)/python -m bench $(ARGS)

docs: $(INSTALLED)  ## Write the reference from the code, and build the documentation into site/
	@$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

soak: $(INSTALLED)  ## Run the tests that take minutes to hours
	@$(BIN)/pytest -m soak --timeout 0 $(ARGS)

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "Installing testigo and its tools into .venv; the first time takes a minute or two …"
ifdef UV
	@"$(UV)" pip install --quiet --python $(BIN)/python --editable '.[all]' --group dev
else
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[all]' --group dev
endif
	@touch $@

$(BIN)/python:
ifdef UV
	@"$(UV)" venv --quiet --clear --seed --python '>=3.11' .venv
else
	@python='$(PYTHON)'; if [ -z "$$python" ]; then echo "$$NO_PYTHON" >&2; exit 1; fi; \
	echo "Making .venv with $$python …"; "$$python" -m venv --clear .venv
endif
