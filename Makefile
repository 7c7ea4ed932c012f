# One word runs everything; the first that needs it makes the environment in .venv.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.ready-bench
DOCS_READY := $(VENV)/.ready-docs
# Wheels only: an install never needs a compiler, and says so when a wheel is missing.
INSTALL := -m pip install --quiet --no-input --disable-pip-version-check --only-binary :all:
DEMO := build/demo
export MPLBACKEND ?= Agg

SEEDS ?= 200
START ?= 0
JOBS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo papers test test-all battery check lint format bench mutation lock clean docs

help: ## print these words
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-17s %s\n", $$1, $$2}'

demo: $(READY) ## compare gain sets of the RRP arm, also on a softer, heavier arm; write a report
	@mkdir -p $(DEMO)
	$(PY) -m flexctl compare theodore-ghosal-rrp rrp-composite rrp-gentle rrp-stiff --report $(DEMO)/report.html
	@echo; echo "The same designs on an arm with 40 % softer links and 40 % more payload than they know:"
	$(PY) -m flexctl compare theodore-ghosal-rrp rrp-composite rrp-gentle rrp-stiff --truth-set "link*.EI=*0.6" --truth-set "payload.mass=+40%"
	@echo; echo "Open $(DEMO)/report.html in a browser."

papers: $(READY) ## every claim of the papers beside ours, and their figures, in build/papers
	$(PY) -m examples.papers

test: lint ## format check, lint, types, import arrows, quick tests
	$(PY) -m pytest -n 2 --dist loadfile -m "not slow"

# whole files to a process would leave one of two alone with the longest file for an hour
test-all: lint $(BENCH_READY) ## the same with the slow tests
	$(PY) -m pytest -n 2 --dist worksteal

battery: $(READY) ## random arms with random designs; SEEDS=200 START=0, goes on where it stopped
	$(PY) -m tests.battery.run --seeds $(SEEDS) --start $(START) --jobs $(JOBS)

check: test ## another word for test

lint: $(READY) ## format check, lint, types and import arrows, without tests
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m basedpyright
	$(VENV)/bin/lint-imports

format: $(READY) ## format the code and mend what the linter can mend
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: $(BENCH_READY) ## run every script in benchmarks/, other libraries too
	@for script in $(filter-out benchmarks/c_loop.py,$(wildcard benchmarks/*.py)); do echo "$$script"; OPENBLAS_NUM_THREADS=1 PYTHONPATH=. $(PY) "$$script" || exit 1; done

docs: $(DOCS_READY) ## build the documentation, the reference from the docstrings: build/docs/index.html
	$(PY) -m sphinx -q -W -b html docs build/docs
	@echo "Open build/docs/index.html in a browser."

mutation: $(READY) ## which slips in the files that differ from main (or FILES) tests notice; SAMPLE, SEED
	nice -n 19 $(PY) tests/mutation $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(FILES)

lock: ## resolve the dependencies afresh into constraints.txt
	@rm -rf build/lock && mkdir -p build
	$(PYTHON) -m venv build/lock
	build/lock/bin/python $(INSTALL) --editable '.[dev,bench,docs]'
	@{ echo "# Every version that the tests run with. Regenerate with: make lock"; \
	   build/lock/bin/python -m pip freeze --exclude-editable; } > build/constraints.txt
	@mv build/constraints.txt constraints.txt
	@rm -rf build/lock

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find flexctl tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "flexctl needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing); name another: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; takes a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) $(INSTALL) --constraint constraints.txt --editable '.[dev]'
	@$(PY) -m compileall -q flexctl # as an install of a wheel does: a fifth of a second a command
	@touch $@

$(DOCS_READY): $(READY)
	@echo "Adding what builds the documentation"
	@$(PY) $(INSTALL) --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@

$(BENCH_READY): $(READY)
	@echo "Adding the libraries that the benchmarks compare with"
	@$(PY) $(INSTALL) --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@
