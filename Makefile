# make smoke: every table and figure in miniature, on embedded data.   make test: lint, types and the fast tests, before a commit.
# make test-all: all tests, smoke and the site. All make the virtual environment .venv first, once. A CUDA machine that shall use its GPU installs its own torch instead.

PYTHON ?= python3
CORES ?= 2
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(shell grep -E '^torch(vision)?==' constraints.txt)
# PyPI's torch for Linux brings gigabytes of CUDA; the index with the CPU builds does not. Empty: pip's own configuration.
TORCH_INDEX ?=
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL = $(PIP) --constraint constraints.txt
COMPILE = printf 'torch\ntorchvision\n' | uv pip compile pyproject.toml --extra workflow --quiet --universal \
	--python-version 3.11.5 --generate-hashes --constraint constraints.txt --excludes /dev/stdin --no-annotate \
	--custom-compile-command "make lock" --output-file

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
ARCHIVE ?= reproduce-$(VERSION).tar.gz

.PHONY: smoke docs crate archive lock test test-all lint types times mutants format clean

# The last line compares the results with results/smoke.csv: what computes something else ends here.
smoke: $(VENV)/workflow.stamp
	$(BIN)/snakemake smoke --cores $(CORES) --quiet rules
	$(BIN)/reproduce verify --scale smoke --expected
	@echo "Written: figures/smoke/ tables/smoke/ report/smoke/index.html"

# A folder for a web server, site/: the documents, the pages of all scales, a gallery. Warnings and dead links are errors.
docs: $(VENV)/dev.stamp
	$(BIN)/python -m sphinx -q -W --keep-going -E -d $(VENV)/doctrees docs site
	@echo "Written: site/index.html"

# Code, results, tables and figures as they were committed, without history: for a deposit, or an evaluation.
# With the crate, if it was made. A deposit is of a tag, which has the version of pyproject.toml.
archive:
	git archive --prefix=reproduce-$(VERSION)/ $(addprefix --add-file=,$(wildcard ro-crate-metadata.json)) --output=$(ARCHIVE) HEAD
	@echo "Written: $(ARCHIVE), of $$(git describe --tags --exact-match --match v$(VERSION) HEAD 2>/dev/null \
		|| echo "a commit without the tag v$(VERSION): git tag v$(VERSION), then again")"

# Where each committed result, table and figure comes from, for machines: a Workflow Run RO-Crate.
crate: $(VENV)/workflow.stamp
	$(BIN)/python -m benchmarks.crate

test: lint types
	$(BIN)/python -m pytest --fast --numprocesses $(CORES) --dist worksteal

test-all: lint types smoke docs
	$(BIN)/python -m pytest --numprocesses $(CORES) --dist loadfile

# Which test functions are slow, for `make test`.
times: $(VENV)/dev.stamp
	$(BIN)/python -m pytest --times --numprocesses $(CORES) --dist loadfile

# Which of 120 small mistakes in Python and C no test sees, by folder; some hours. FAST=--fast: of the fast tests.
mutants: $(VENV)/dev.stamp
	$(BIN)/python tests/mutants.py $(FAST)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile

types: $(VENV)/dev.stamp
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile

# By uv: the packages of constraints.txt with the hashes of their files, for Linux and macOS. torch, of which a machine has its
# own build, and what else only torch needs are not among them.
lock:
	$(COMPILE) locks/workflow.txt
	$(COMPILE) locks/dev.txt --group dev --group docs

$(VENV)/workflow.stamp: pyproject.toml constraints.txt locks/workflow.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo "Installing into $(VENV), which takes some minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --requirement locks/workflow.txt
	$(INSTALL) $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX)) $(TORCH)
	$(INSTALL) --editable ".[workflow]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/workflow.stamp locks/dev.txt
	$(PIP) --require-hashes --requirement locks/dev.txt
	@touch $@

clean:
	rm -rf .snakemake .reproduce logs figures/smoke tables/smoke results/smoke report site
