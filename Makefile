# streamgauge: `make help` lists what there is. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -q --durations=20 -rfEs

# Half of the CPU time of the set-up went into compressing PySpark's wheel, whose jars are compressed already, and into
# byte code of modules that are never imported: 73 s fell to 32 s. A file tells every setuptools not to compress; pip's
# --config-settings does not reach what a requirements file lists.
QUICK := DIST_EXTRA_CONFIG=$(CURDIR)/$(VENV)/bdist_wheel.cfg

# One thread in each process, because there are as many processes as cores: the CPU time of 485 tests of verification and
# statistics fell from 121 to 78 s.
UNIT_TESTS := OMP_NUM_THREADS=1 $(PYTEST) -n auto --maxprocesses 4 -m "not spark and not broker and not process and not long"

# Tests that start processes, Spark or a broker. Two at a time, because a third of each is waiting; beside two others
# trials were disturbed, and on a slow day it took as long. Tests of one group share a Spark session or a broker. Java
# uses its quick compiler and its simple collector only, because runs of seconds never repay the others; the other
# compiler took a third of all CPU time.
PROCESS_TESTS := JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" $(PYTEST) -n 2 --dist loadgroup -m "(spark or broker or process) and not long"

.PHONY: help setup demo test test-long test-fast golden check docs docs-serve bench lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv with the streamgauge command, from the pinned lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "streamgauge needs Python 3.11 or later, this is " + sys.version.split()[0] + ": make setup PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing what streamgauge needs: 1.4 GB of packages, which takes some minutes"
	@printf '[bdist_wheel]\ncompression = stored\n' > $(VENV)/bdist_wheel.cfg
	$(QUICK) $(BIN)/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@sync # a gigabyte of packages that is written back meanwhile makes Spark's first batches slower
	@touch $@

demo: setup ## measure a windowed aggregation for about 2 minutes, and write its report
	@$(BIN)/python -m bench.support.demo

test: setup ## about 15 minutes on 2 cores, 20 on slow ones: unit tests, then those that start processes, Spark or a broker
	$(UNIT_TESTS)
	$(PROCESS_TESTS)

test-long: setup ## what make test leaves out for its time: the commands of README and pages, further tests on Spark, many more examples
	$(PYTEST) -m "long"
	$(UNIT_TESTS) --hypothesis-profile many

test-fast: setup ## unit tests only (about 4 minutes on 2 cores)
	$(UNIT_TESTS)

golden: setup ## renew the files of whole outputs (pages, terminal, sentences); read their diff before you commit it
	RENEW_GOLDEN=1 $(BIN)/python -m pytest -q tests/unit/verdict/test_sentences.py tests/unit/results/text/test_search.py tests/unit/report/test_golden.py
	@git diff --stat -- '*/golden/*'

check: setup ## lint, types (tests too) and layers
	$(BIN)/ruff check src tests bench examples tools
	$(BIN)/ruff format --check src tests bench examples tools
	$(BIN)/mypy
	$(BIN)/mypy tools examples
	MYPYPATH=src:. $(BIN)/mypy --explicit-package-bases --namespace-packages tests
	$(BIN)/python -m pytest -q tests/test_layers.py

docs: setup ## the documentation as a site that opens from disk: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: setup ## the same, on http://127.0.0.1:8000, renewed on every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

bench: setup ## print the performance table (two and a half to four hours on an otherwise idle machine; python -m bench --only NAME for one)
	$(BIN)/python -m bench

lock: ## renew requirements.lock (needs uv)
	uv pip compile pyproject.toml --extra dev --generate-hashes --no-emit-index-url --no-header --python-version 3.11 -o requirements.lock

clean: ## remove what the targets made
	rm -rf $(VENV) runs site .mypy_cache .ruff_cache .hypothesis
