# `make run` and `make test` set up all they need; running either twice is quick.

PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin

.PHONY: run dev test suite journeys sweeps slow libraries check scripts coverage web node browser firefox bench site pictures wheel release clean

# A watched tree costs time whenever any file in it changes: only `make dev` watches.
run: .venv/app
	$(BIN)/python -m viz --server.port $(PORT) --server.fileWatcherType none

# With Node it also builds again what is edited of viz/web; the next run of a page mounts it.
dev: .venv/dev
	@if [ -e $(PACKAGES) ]; then $(BUILD) --watch & trap "kill $$!" EXIT; else echo "Scripts are built by make web"; fi; \
	$(BIN)/python -m viz --server.port $(PORT) --server.fileWatcherType auto --server.runOnSave true

SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist worksteal

# The tests start many processes: each would compile every module again where Python is told to keep no bytecode.
export PYTHONDONTWRITEBYTECODE :=

# Without its cache mypy needs two minutes of one core: it runs beside the tests.
test: .venv/dev browser node
	@$(MAKE) --no-print-directory --jobs 2 check suite

suite: .venv/dev browser
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

journeys: .venv/dev browser
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m journey tests/journeys

sweeps: .venv/dev browser
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "sweep and not slow"

# Hours: all that is marked slow, but other people's libraries; some of it in Firefox, where that may be installed.
slow: .venv/dev browser firefox
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow --ignore=tests/bench/test_libraries.py

# Other people's models, of the libraries in bench/libraries.txt; no dependency of theirs may take the place of ours.
libraries: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r bench/libraries.txt
	$(BIN)/python -m pytest -m slow tests/bench/test_libraries.py

check: .venv/dev scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.types

# viz/web/dist is committed: only who changes a script needs Node.
BUILD := node viz/web/build.mjs
PACKAGES := viz/web/node_modules/.package-lock.json

web: node $(PACKAGES)
	$(BUILD)

# Biome and TypeScript over the scripts, their tests (tests/**/*.test.js), and that dist/ is what they build. Where Node
# may not be installed all this is skipped, and says so; in continuous integration never.
scripts: node
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(PACKAGES) && npm --prefix viz/web run --silent check; \
	else echo "Node is missing: the scripts were not checked or tested, nor that viz/web/dist is what they build."; [ "$$CI" != true ]; fi

# Which statements of the scripts run in Vitest and in pages that need no server, by file and in all; in build/coverage.
BARE_PAGES := tests/components $(addprefix tests/browser/test_,live_file.py live_scenes.py notebook_widget.py)

coverage: .venv/dev browser node $(PACKAGES)
	rm -rf build/coverage
	$(BUILD) --covered build/coverage/dist
	COVERAGE=build/coverage $(BIN)/python -m pytest $(SIDE_BY_SIDE) --quiet -m "not slow" $(BARE_PAGES)
	npm --prefix viz/web run --silent coverage

node:
	@command -v npm >/dev/null \
		|| { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nodejs npm; } \
		|| echo "Node is missing and could not be installed."

$(PACKAGES): viz/web/package-lock.json
	npm --prefix viz/web ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

bench: .venv/dev browser
	$(BIN)/python -m bench

# The documents as static files in build/site, with the model beside them.
site: .venv/docs
	NO_MKDOCS_2_WARNING=1 STREAMLIT_LOGGER_LEVEL=error $(BIN)/python -m mkdocs build --quiet

# The files of a release in dist/: wheel, site, live file, talk, checksums; the same bytes each time.
release: .venv/docs
	$(BIN)/python -m publish.release

wheel: .venv/app
	$(BIN)/python -m publish.release wheel

# The pictures of the pages in docs/pictures, taken of the running app.
pictures: .venv/dev browser
	$(BIN)/python -m publish.pictures

# A stamp in .venv says which requirements are installed; a change of the file installs again.
.venv/app: requirements.txt constraints.txt | .venv/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/docs: requirements-docs.txt constraints.txt .venv/app
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

.venv/dev: requirements-dev.txt .venv/docs
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# Debian and Ubuntu keep Python's venv in a package of its own.
.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Attenscope needs Python 3.11 or newer: make PYTHON=python3.12 run"; exit 1; }
	@$(PYTHON) -m ensurepip --version >/dev/null 2>&1 || $(SUDO) apt-get install -y python3-venv
	$(PYTHON) -m venv .venv

# The browser tests drive Chromium. Where it may not be installed they are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
		|| { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium; } \
		|| echo "Chromium is missing and could not be installed: the browser tests will be skipped."

firefox: browser
	@command -v firefox >/dev/null || command -v firefox-esr >/dev/null || $(SUDO) apt-get install -y -qq firefox-esr \
		|| echo "Firefox is missing and could not be installed: its tests will be skipped."

# Root needs no sudo; nobody is asked for a password.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -n")

clean:
	rm -rf .venv
