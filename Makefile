# Every target sets up what it needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
# Bytecode is left to the first import of what is really used, and wanted whatever the environment
# says: without it every process starts some seconds later.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile
# uv installs in seconds what takes pip a minute; where it cannot be had, pip does it.
export UV_NATIVE_TLS := 1
COMMA := ,
install = { { test -x $(VENV)/bin/uv || $(PIP) uv; } && \
	$(VENV)/bin/uv pip install --quiet --python $(RUN) -c requirements.lock $(1); } 2> /dev/null || \
	$(PIP) -c requirements.lock $(1)
# Further overrides for the pipeline, such as ARGS='boosting.eta=0.3', or arguments for pytest.
ARGS ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the locked versions (instant when nothing changed)

setup-dev: $(DEV) ## the same with what tests, linters and launchers need

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.12 setup"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml requirements.lock | $(RUN)
	@echo "Setting up $(VENV) (once) ..."
	@$(call install,-e '.[replication]')
	@touch $@

$(DEV): pyproject.toml requirements.lock | $(RUN)
	@echo "Setting up $(VENV) with what tests and linters need (once) ..."
	@$(call install,-e '.[dev]')
	@touch $(READY) $@

reproduce: setup ## the whole paper: 300 runs, figures, verdicts, outputs/paper/report.html
	$(RUN) -m pipeline experiment=paper stage=reproduce $(ARGS)

smoke: setup ## the same on the three small datasets and six seeds, within a minute
	$(RUN) -m pipeline experiment=smoke stage=reproduce $(ARGS)

figures: setup ## redraw figures, verdicts and report from stored runs
	$(RUN) -m pipeline experiment=paper stage=report $(ARGS)

# Experiments whose results are chapters of the report, which is drawn anew if it is there.
define chapter
	$(foreach name,$(1),$(RUN) -m pipeline experiment=$(name) stage=reproduce $(ARGS) &&) true
	@test ! -f outputs/paper/report.html || $(RUN) -m pipeline experiment=paper stage=report
endef

readings: setup ## chapter: how likely the paper's statements are under 288 readings (7 minutes)
	$(call chapter,readings)

article: setup ## the replication report as a PDF, outputs/paper/article.pdf; numbers are checked
	@$(call install,-e '.[article]')
	test -f outputs/paper/facts.json || $(RUN) -m pipeline experiment=paper stage=reproduce
	$(RUN) -m pipeline experiment=paper stage=article

theory: setup ## chapter: every theorem as a check, errata and proofs (half a minute)
	$(call chapter,theory)

oracle: setup ## chapter: what sets the rate of the gaps? Trees per round, smooth learners (25 minutes)
	$(call chapter,oracle oracle_rows oracle_capacity smooth smooth_rows)

logloss: setup ## chapter: Algorithm 1 with the log-loss on four tables with two classes (10 minutes)
	@$(call install,-e '.[external]')
	$(call chapter,logloss)

hybrid: setup ## chapter: the hybrid algorithm of the paper's appendix (8 minutes)
	$(call chapter,hybrid)

feedback: setup ## chapter: does it help to feed predictions back to the trees? (half an hour)
	$(call chapter,feedback feedback_paper)

feedback-external: setup ## the same on seven tables that took part in no choice
	@$(call install,-e '.[external]')
	$(call chapter,feedback_external)

practice: setup ## chapter: is correcting a model worth it? 23 methods, 7 situations (an hour)
	@$(call install,-e '.[peers]')
	$(call chapter,practice)

practice-defaults: setup ## for the same chapter: how defaults were chosen, and what tuning brings
	@$(call install,-e '.[peers$(COMMA)external]')
	$(call chapter,practice_defaults practice_tuned)

practice-external: setup ## the same on ten tables that nobody tuned on
	@$(call install,-e '.[peers$(COMMA)external]')
	$(call chapter,practice_external)

practice-smoke: setup ## the same on three small tables and two seeds, within two minutes
	@$(call install,-e '.[peers]')
	$(RUN) -m pipeline experiment=practice_smoke stage=reproduce $(ARGS)

audit: setup ## where are the initial forests wrong? outputs/paper/audit.html
	$(RUN) -m pipeline experiment=paper stage=audit $(ARGS)

reference: setup ## copy what is curated of outputs/paper to outputs/reference
	$(RUN) scripts/update_reference.py

check-reference: setup ## compare outputs/paper with the committed reference result
	$(RUN) scripts/check_reference.py

test: setup-dev ## lint, type-check and run the tests; some of them: make test ARGS='-k store'
	@$(RUN) -c 'from pipeline.runs.compilation import compile_everything as c; c()' & \
		$(MAKE) --no-print-directory lint && wait  # compiled once, beside the linters
	$(RUN) -m pytest -n 2 -m 'not exhaustive' $(ARGS)

test-all: setup-dev ## the tests that make test leaves out, too
	$(RUN) -m pytest -n 2 $(ARGS)

simulations: setup-dev ## the sizes of the audit's tests in full, of which make test does a small part
	SIMULATIONS=full $(RUN) -m pytest -n 2 -rP tests/boosting/test_inspection.py tests/boosting/test_bias_tests.py $(ARGS)

test-quick: setup-dev ## the tests that take no processes and no minutes (about a minute)
	$(RUN) -m pytest -n 2 -m 'not slow and not exhaustive' $(ARGS)

lint: setup-dev ## ruff (lint and format) and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: setup-dev ## let ruff rewrite the code
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: setup-dev ## the library's reference, outputs/docs/mcgb.html
	$(RUN) -m scripts.docs

table1: setup ## the paper's Table 1 beside ours, computed from the data
	$(RUN) -m pipeline stage=table1 $(ARGS)

verify-data: setup ## compare the bundled snapshot with OpenML, cell by cell (needs a network)
	$(RUN) scripts/verify_snapshot.py

bench: setup ## speed of the exact engine against scikit-learn, LightGBM and XGBoost (half an hour)
	@$(call install,-e '.[bench]')
	$(RUN) scripts/bench.py rounds
	$(RUN) scripts/bench.py weights
	$(RUN) scripts/bench.py forest
	$(RUN) scripts/bench.py engines
	$(RUN) scripts/bench.py growth
	$(RUN) scripts/bench.py grid
	$(RUN) scripts/bench.py audit

large: setup ## tables larger than the workers' memory, classes, cost over rows, kills (an hour and a half, 15 GB of disk)
	@$(call install,-e '.[dask]')
	$(RUN) -m scripts.large_fits memory
	$(RUN) -m scripts.large_fits classes
	$(RUN) -m scripts.large_fits theirs
	$(RUN) -m scripts.large_fits growth
	$(RUN) -m scripts.large_clusters defaults
	$(RUN) -m scripts.large_clusters kills
	$(RUN) -m scripts.large_clusters paper

parity: setup ## all rounds of the exact engine against scikit-learn (half an hour)
	$(RUN) scripts/parity.py

attack: setup-dev ## signals, touched stores, bad tables, hostile servers, failing clusters (15 min)
	$(RUN) -m scripts.attack $(ARGS)

lock: setup ## recompute requirements.lock from pyproject.toml; all versions anew: ARGS=--upgrade (needs a network)
	@$(RUN) -m pip install --quiet --disable-pip-version-check uv
	@$(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
		--all-extras $(ARGS) pyproject.toml -o requirements.lock
	@sed -i '1i # Exact versions for every extra, for any Python >= 3.11. Rebuild with: make lock' requirements.lock

clean: ## remove .venv and caches; results in outputs/ stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find pipeline tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup setup-dev reproduce smoke figures article readings theory oracle logloss hybrid feedback feedback-external practice practice-defaults practice-external practice-smoke audit reference check-reference test test-all simulations test-quick lint format docs table1 verify-data bench large parity attack lock clean
