# The two commands of a new user are `make run` and `make test`; everything else serves those who change the code.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
PARALLEL := --numprocesses 3 --dist worksteal
RUNS   := $(VENV)/.runs
READY  := $(VENV)/.ready
SHELL  := bash
.SHELLFLAGS := -o pipefail -c
INSTALL := PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --constraint constraints.txt
# What an installer prints as one line that changes, and its errors in full.
ONE_LINE := 2>&1 | { while read -r what which rest; do case "$$what" in \
	ERROR*) printf '\r\033[K%s\n' "$$what $$which $$rest" ;; \
	Collecting|Processing|Downloading|Building|Prepared|Resolved) printf '\r\033[K%.76s' "$$what $${which\#\#*/}" ;; \
	Installing) set -- $$rest; printf '\r\033[Kinstalling %s packages …' $$(($$\# - 1)) ;; \
	esac; done; printf '\r\033[K'; }
OTHERS := $(VENV)/.others
TRACKERS := .venv-trackers
MINIMUM := .venv-minimum
MINIMUM_TORCH ?= $(shell sed -n 's/^torch==//p' constraints-minimum.txt)

.PHONY: help setup run test coverage test-slow test-minimum trackers chaos fuzz ci check lint wheel docs bench bench-gpu gpu-session clean

help:            ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY)  ## make .venv with exact versions and install activemem into it, editable

# uv picks torch's build for this machine, a small one where there is no GPU; where it cannot, pip installs torch.
$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing activemem and what it needs into $(VENV): a few minutes"
	@{ $(BIN)/python -m pip install --quiet uv 2>/dev/null && $(BIN)/python -m uv pip install \
		--python $(BIN)/python --torch-backend=auto --constraint constraints.txt torch; } $(ONE_LINE) || true
	@$(INSTALL) --editable . $(ONE_LINE)
	@touch $@

$(READY): $(RUNS)
	@$(INSTALL) --editable ".[dev]" $(ONE_LINE)
	@touch $@

run: $(RUNS)     ## run the quickstart study: its table, one sentence of result, a figure and a page
	@$(BIN)/activemem study run quickstart
	@$(BIN)/python -c "import activemem; print(*activemem.open_study('quickstart').check_claims(), sep='\n')"
	@mkdir -p build
	@$(BIN)/activemem curve render quickstart --out build/quickstart.svg
	@$(BIN)/activemem report build quickstart --out build/quickstart.html
	@echo "next:"
	@echo "  $(BIN)/activemem table render quickstart --published         # the same table, the paper's numbers below"
	@echo "  $(BIN)/activemem study plan studies/algorithmic-small.toml   # what the paper's table costs at a small size"
	@echo "  $(BIN)/activemem study show quickstart                       # every setting of this study, for one of your own"
	@echo "  $(BIN)/activemem serve                                       # all results in a browser"

test: setup      ## run the tests but the heavy ones, three processes at a time: many wait for others
	$(BIN)/python -m pytest $(PARALLEL)

coverage: setup  ## run the tests, heavy ones as well, and fail where fewer lines than the floor of pyproject.toml are run
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" --cov --cov-report=term

test-slow: setup ## run the tests that take minutes
	$(BIN)/python -m pytest -m slow

chaos: setup     ## let 1,000 faults, 200 errors of the disk and 60 power cuts strike a study; see docs/why/durability.md
	$(BIN)/python -m tests.chaos --faults 1000 --errors 200 --power-cuts 60 --seed 1 --table docs/why/durability.md

fuzz: setup      ## read 174,000 hostile inputs: studies, claims, recipes, settings, SQL, rows
	$(BIN)/python -m pytest -m slow --log-cli-level INFO tests/test_hostile_input.py
	$(BIN)/python bench/fuzz.py 100000

# What documents show, figures to the byte among it, is of the versions in constraints.txt.
test-minimum: $(MINIMUM)/.ready ## run the tests with the lowest versions that pyproject.toml allows
	$(MINIMUM)/bin/python -m pytest $(PARALLEL) --ignore tests/docs/test_site.py --ignore tests/docs/test_documents.py

$(MINIMUM)/.ready: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv $(MINIMUM)
	grep -v '^torch==' constraints-minimum.txt | $(MINIMUM)/bin/python -m pip install --quiet \
		--constraint /dev/stdin torch==$(MINIMUM_TORCH) --editable ".[test]"
	@touch $@

# Of constraints.txt only torch: MLflow needs an older pyarrow, among others.
trackers: $(TRACKERS)/.ready ## run the tests of trackers with TensorBoard, MLflow, Weights & Biases and Trackio
	$(TRACKERS)/bin/python -m pytest -m "not slow" tests/tracking

$(TRACKERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TRACKERS)
	$(TRACKERS)/bin/python -m pip install --quiet $(shell grep '^torch==' constraints.txt) \
		--editable ".[test,tensorboard,mlflow,wandb,trackio]"
	@touch $@

lint: setup      ## style, types, and the floors of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

wheel: setup     ## build the wheel and try it in a clean environment, away from the sources
	$(BIN)/python tests/check_wheel.py

docs: setup      ## build all documents and the reference as a site in build/site, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml

ci: test lint wheel docs ## everything that CI runs

check: lint coverage wheel docs ## the same with the heavy tests, and how much all of them cover

$(OTHERS): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt x-transformers
	@touch $@

bench: $(OTHERS) ## measure what a study costs beside what others would do, and write it into docs/results/speed.md
	$(BIN)/python bench/summary.py --write

bench-gpu: $(OTHERS) ## the same on a GPU, in under ten minutes
	$(BIN)/python bench/summary.py --cuda --write 10

gpu-session: $(OTHERS) ## on a GPU: the tests, bench-gpu and algorithmic.toml in full; ten minutes a call, again until all has ended
	$(BIN)/python bench/gpu_session.py build/gpu-session

clean:           ## remove what the build made; results are kept
	rm -rf $(VENV) $(MINIMUM) $(TRACKERS) build dist *.egg-info
