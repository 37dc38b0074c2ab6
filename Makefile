# Two commands set up all they need on a fresh machine: `make demo` and `make test`.

# TensorFlow 2.15, which only the proof needs, has wheels for Python 3.9 to 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
PADDLE := .venv-paddle
KERAS3 := .venv-keras3
LIBRARIES := .venv-libraries
BIN := $(VENV)/bin
SAMPLE := fixtures/scripts/mnist_tape/before.py

# Modules are compiled when they are imported first: most of what TensorFlow installs never is.
INSTALL := pip install -q --no-compile
ONE_RULE = $(if $(RULE),--rule $(RULE))
WITH_FIXTURES = tests/cases/test_fixtures.py tests/cases/test_restrictions.py tests/cases/test_derivation_fixtures.py \
  tests/unit/static_graphs/test_findings.py
# Without the compiled modules that Python keeps, each process of a test would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check rule test-rule format fixtures docs site api bench ecosystem vsix dist release clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.tool  ## Install the tool alone and convert a sample script.
	$(BIN)/trainshift convert $(SAMPLE)

# What `make test` does once the environment is there, three parts at a time, the longest first.  What computes
# gives way to what drives editors, which waits more than it computes and has limits of time.
PARTS := proof tests extension keras3 libraries paddle editors lint
TIMES := $(VENV)/.times
BEGAN := $(shell date +%s)
SLOWEST := --durations=15 --durations-min=5
SIDE_BY_SIDE = $(MAKE) --no-print-directory --output-sync=target

test: $(VENV)/bin/python  ## Set up everything, Horovod and editors included, and run every test.
	@rm -f $(TIMES) $(PARTS:%=$(VENV)/%.log)
	@$(SIDE_BY_SIDE) -j 3 $(VENV)/.tensorflow $(VENV)/peers/.done $(VENV)/.editors $(VENV)/.vscode $(PADDLE)/.done
	@echo "set-up $$(($$(date +%s) - $(BEGAN))) 0" >> $(TIMES)
	@echo "Each part tells all when it is done: $(PARTS)"
	@$(SIDE_BY_SIDE) -j 3 -k $(PARTS:%=test-%) PACKAGES="universal $(filter $(HERE),$(PACKAGES))"; status=$$?; \
	  for name in $(PARTS); do grep -q "^$$name " $(TIMES) || echo "$$name 0 1" >> $(TIMES); done; \
	  echo "make-test $$(($$(date +%s) - $(BEGAN))) $$status" >> $(TIMES); \
	  for name in $$(awk '$$3 && $$1 != "make-test" {print $$1}' $(TIMES)); do \
	    echo "== the end of $$name, which failed"; tail -n 40 $(VENV)/$$name.log; done; \
	  awk '{printf "%-10s %5d s  %s\n", $$1, $$2, $$3 ? "FAILED" : "passed"}' $(TIMES); exit $$status

# Run one part of `make test`, and write down what it said, how long it took, and how it ended.
$(PARTS:%=test-%): SHELL := bash
$(PARTS:%=test-%): .SHELLFLAGS := -o pipefail -c
define part
@echo "== $(@:test-%=%)"; began=$$(date +%s); ( $(1) ) 2>&1 | tee $(VENV)/$(@:test-%=%).log; status=$$?; \
  echo "$(@:test-%=%) $$(($$(date +%s) - began)) $$status" >> $(TIMES); exit $$status
endef

.PHONY: $(PARTS:%=test-%)
test-proof: $(VENV)/.proof
	$(call part,nice -n 10 $(BIN)/pytest -m "proof and not paddle and not keras3 and not libraries" -n 2 $(SLOWEST))

test-keras3: $(VENV)/.proof $(KERAS3)/.done
	$(call part,nice -n 10 $(BIN)/pytest tests/proof/test_keras3.py)

test-libraries: $(VENV)/.proof $(LIBRARIES)/.done
	$(call part,nice -n 10 $(BIN)/pytest tests/proof/test_libraries.py)

test-paddle: $(VENV)/.dev $(PADDLE)/.done
	$(call part,nice -n 10 $(BIN)/pytest tests/proof/paddle -m paddle -n 2)

test-lint: $(VENV)/.dev
	$(call part,$(LINT))

test-tests: $(VENV)/.dev
	$(call part,nice -n 5 $(BIN)/pytest -m "not proof and not editors" -n 2 $(SLOWEST))

test-extension: $(VENV)/.vscode vsix
	$(call part,cd $(EXTENSION) && $(NPM) run -s check && $(NPM) run -s test)

test-editors: $(VENV)/.dev $(VENV)/.editors $(VENV)/.vscode $(VENV)/.site vsix
	$(call part,$(BIN)/pytest -m editors)

check: $(VENV)/.proof  ## The quick loop: format, lint, types, all fixtures, a choice of the other tests.
	@$(SIDE_BY_SIDE) -j 2 -k lint quick-tests

.PHONY: proof-keras3
proof-keras3: $(VENV)/.proof $(KERAS3)/.done
	$(BIN)/pytest tests/proof/test_keras3.py --every-keras3 -n 2

.PHONY: proof-libraries
proof-libraries: $(VENV)/.proof $(LIBRARIES)/.done
	$(BIN)/pytest tests/proof/test_libraries.py --all-turns

.PHONY: proof-odd
proof-odd: $(VENV)/.proof
	$(BIN)/python tests/proof/odd.py $(NAMES)

.PHONY: quick-tests
quick-tests: $(VENV)/.proof
	$(BIN)/pytest -q -m "not proof and not editors" -n auto --quick

rule: $(VENV)/.dev  ## Lay out a new rule of any family, or a derivative: make rule CODE=HV NAME=clip-gradients.
	@$(BIN)/python -m trainshift.dev.new_rule "$(CODE)" "$(NAME)"
	@$(if $(findstring .,$(CODE)),:,$(MAKE) --no-print-directory fixtures RULE="$(NAME)")
	@$(MAKE) --no-print-directory docs

test-rule: $(VENV)/.dev  ## Run what concerns one rule, in seconds: make test-rule RULE=hv05.
	@test -n "$(RULE)" || { echo "Which rule? make test-rule RULE=hv05"; exit 2; }
	$(BIN)/pytest -q -m "not proof and not editors" $(ONE_RULE)

LINT = $(BIN)/ruff format --check -q . && $(BIN)/ruff check -q . && $(BIN)/lint-imports --no-logo && \
  $(BIN)/python tests/gates.py && $(BIN)/mypy

.PHONY: lint
lint: $(VENV)/.dev
	$(LINT)

format: $(VENV)/.dev $(VENV)/.extension  ## Format and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd $(EXTENSION) && $(NPM) run -s format

fixtures: $(VENV)/.dev  ## Rewrite what the fixtures expect (of one rule: RULE=hv05); read the diff.
	$(BIN)/pytest -q $(WITH_FIXTURES) --update-fixtures $(ONE_RULE)

docs: $(VENV)/.dev  ## Rewrite the pages and the lists of all codes.
	$(BIN)/python -m trainshift.dev.docgen

site: $(VENV)/.site  ## Build the documentation's site, static and searchable, in build/site.
	$(BIN)/python -m trainshift.dev.site build/site $(REPOSITORY)
	@echo "Look at it: $(BIN)/python -m http.server -d build/site"

api: $(VENV)/.proof $(KERAS3)/.done  ## Regenerate the TensorFlow data from the installed packages.
	$(BIN)/python -m trainshift.dev.generate_api
	PYTHONPATH=server $(KERAS3)/bin/python -m trainshift.dev.generate_keras3_api
	PYTHONPATH=server $(KERAS3)/bin/python -m trainshift.dev.generate_keras_signs

bench: $(VENV)/.dev $(VENV)/.proof $(BENCH)/.done  ## Time the server, a conversion and a check against peers, each in one run.
	PYTHONPATH=tests $(BIN)/python -m perf.server_speed
	PYTHONPATH=tests $(BIN)/python -m perf.program_speed
	PYTHONPATH=tests $(BIN)/python -m perf.convert_speed
	PYTHONPATH=tests $(BIN)/python -m perf.check_speed
	PYTHONPATH=tests $(BIN)/python -m perf.repository_speed
	PYTHONPATH=tests $(BIN)/python -m perf.epoch_speed
	PYTHONPATH=tests $(BIN)/python -m perf.proof_speed
	PYTHONPATH=tests $(BIN)/python -m perf.derivative_speed
	PYTHONPATH=tests $(BIN)/python -m perf.static_speed
	PYTHONPATH=tests $(BIN)/python -m perf.suite_times $(TIMES)

ecosystem: $(VENV)/.dev  ## Check and convert any public scripts, and compare with the last run: make ecosystem DIR=...
	@test -n "$(DIR)" || { PYTHONPATH=tests $(BIN)/python -m ecosystem --help; exit 2; }
	@PYTHONPATH=tests $(BIN)/python -m ecosystem "$(DIR)" $(OPTIONS)

dist: $(VENV)/bin/python  ## Build the wheel and the source distribution for PyPI, in dist.
	$(BIN)/$(INSTALL) "build>=1.2,<2"
	rm -rf dist && $(BIN)/python -m build -q
	@echo "Install it by its file: pip install $$(ls dist/trainshift-*.whl); to prove scripts, '$$(ls dist/trainshift-*.whl)[prove]'"

release:  ## Set the version, in all files and the changelog: make release VERSION=1.2.0 [REPOSITORY=https://...]
	@test -n "$(VERSION)" || { echo "Which version? make release VERSION=1.2.0"; exit 2; }
	@$(PYTHON) server/trainshift/dev/release.py "$(VERSION)" $(if $(REPOSITORY),--repository "$(REPOSITORY)")

clean:  ## Remove the environment and every cache.
	rm -rf $(VENV) $(BENCH) $(PADDLE) $(KERAS3) $(LIBRARIES) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	cd $(EXTENSION) && rm -rf bundled dist wheels *.vsix node_modules test/out test/artifacts test/code-server/node_modules

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(INSTALL) --upgrade pip

$(VENV)/.tool: $(VENV)/bin/python pyproject.toml
	$(BIN)/$(INSTALL) -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/.tool

$(VENV)/.site: $(VENV)/bin/python pyproject.toml
	$(BIN)/$(INSTALL) -e '.[site]'
	touch $@ $(VENV)/.tool

# Fixit's server demands an older pygls (~=2.0.0) and click (<8.2) than those that our users get.  In one
# environment it would decide what our own server is timed with.
$(BENCH)/.done: pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/$(INSTALL) -e '.[bench]'
	touch $@

# The proof of the static graphs runs its snippets in Paddle, which would decide what NumPy all others get.
$(PADDLE)/.done: pyproject.toml
	test -x $(PADDLE)/bin/python || $(PYTHON) -m venv $(PADDLE)
	$(PADDLE)/bin/$(INSTALL) -e '.[paddle]'
	touch $@

# The newer line: TensorFlow with Keras 3, and Keras 2 by `tf_keras`, whose own demand would bring a second TensorFlow.
NEWER := tensorflow-cpu==2.21.0 keras==3.15.1 "tensorboard~=2.20" "matplotlib>=3.8,<4" "tqdm>=4.66,<5"
BUILDING := "setuptools<81" wheel "cmake<4" cffi cloudpickle psutil pyyaml packaging

$(KERAS3)/.done: tests/proof/install_horovod.py
	test -x $(KERAS3)/bin/python || $(PYTHON) -m venv $(KERAS3)
	$(KERAS3)/bin/$(INSTALL) $(NEWER) $(BUILDING) "msgspec<1"  # The last is for `make api`.
	$(KERAS3)/bin/$(INSTALL) --no-deps tf_keras==2.21.0
	nice -n 10 $(KERAS3)/bin/python tests/proof/install_horovod.py 0.28.1
	touch $@

# Everybody else's code, beside the TensorFlow and the Horovod of the proof.  Some demand a second TensorFlow.
FOR_TENSORFLOW := tensorflow_addons==0.23.0 tensorflow_recommenders==0.7.3 tf_agents==0.19.0 spektral==1.3.1
SITE_PACKAGES = $$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

$(LIBRARIES)/.done: $(VENV)/.tensorflow tests/proof/libraries.txt
	test -x $(LIBRARIES)/bin/python || $(PYTHON) -m venv $(LIBRARIES)
	echo "$(call SITE_PACKAGES,$(VENV))" > "$(call SITE_PACKAGES,$(LIBRARIES))/tensorflow.pth"
	$(LIBRARIES)/bin/$(INSTALL) -r tests/proof/libraries.txt
	$(LIBRARIES)/bin/$(INSTALL) --no-deps $(FOR_TENSORFLOW)
	touch $@

$(VENV)/.tensorflow: $(VENV)/bin/python pyproject.toml
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' || { \
	  echo "The proof needs Python 3.10 or 3.11 (TensorFlow 2.15): make clean; make test PYTHON=python3.11"; exit 1; }
	$(BIN)/$(INSTALL) -e '.[dev,proof]'
	touch $@ $(VENV)/.dev $(VENV)/.tool

# What gradients are compared with, in a folder of its own: TensorFlow would load JAX whenever it starts.
PEERS := jax==0.4.30 jaxlib==0.4.30 autograd==1.7.0 scipy==1.13.1 opt-einsum==3.3.0

$(VENV)/peers/.done: $(VENV)/bin/python
	$(BIN)/$(INSTALL) --target $(VENV)/peers --upgrade --no-deps $(PEERS)
	touch $@

$(VENV)/.proof: $(VENV)/.tensorflow $(VENV)/peers/.done
	nice -n 10 $(BIN)/python tests/proof/install_horovod.py 0.28.1
	$(BIN)/horovodrun --check-build
	touch $@

# The editors that the language server is tested in: Debian's packages, unless they are there.  Eglot is
# part of Emacs from 29 on.
APT := flock $(VENV)/.apt $(shell [ "$$(id -u)" = 0 ] || echo sudo) env DEBIAN_FRONTEND=noninteractive apt-get -qq
HAS_EGLOT = emacs --batch --load eglot >/dev/null 2>&1

$(VENV)/.editors: $(VENV)/bin/python
	@{ command -v nvim && command -v emacsclient && $(HAS_EGLOT); } >/dev/null || { \
	  echo "Installing Neovim and Emacs ..."; \
	  $(APT) update && $(APT) install -y --no-install-recommends neovim emacs-nox >/dev/null && \
	  { $(HAS_EGLOT) || $(APT) install -y --no-install-recommends elpa-eglot >/dev/null; }; }
	@nvim --version | head -1; emacs --version | head -1; $(HAS_EGLOT)
	touch $@

# The extension for VS Code, with the wheel of the server in it.
EXTENSION := vscode-extension
CODE_SERVER := $(EXTENSION)/test/code-server
VSCODE := $(CODE_SERVER)/node_modules/code-server/lib/vscode
NPM := npm --no-audit --no-fund --no-update-notifier --loglevel=error

$(VENV)/.extension: $(VENV)/bin/python $(EXTENSION)/package-lock.json
	@command -v npm >/dev/null || { \
	  echo "Installing Node ..."; $(APT) update && $(APT) install -y --no-install-recommends nodejs npm >/dev/null; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { \
	  echo "The extension needs Node 20 or later to be built and tested; this is $$(node --version)."; exit 1; }
	cd $(EXTENSION) && $(NPM) ci --ignore-scripts >/dev/null
	touch $@

# By the marketplace's names of platforms; the universal package is for all others.  Which of them, and
# the address of the repository that they name: make vsix PACKAGES=linux-x64 REPOSITORY=https://...
PACKAGES ?= universal linux-x64 darwin-arm64 win32-x64
HERE = $(shell node -p 'process.platform + "-" + process.arch')

vsix: $(VENV)/.extension $(VENV)/.tool  ## Package the extension for VS Code: vscode-extension/trainshift*.vsix.
	@rm -rf $(EXTENSION)/bundled $(EXTENSION)/dist $(EXTENSION)/wheels $(EXTENSION)/*.vsix
	$(BIN)/pip wheel -q --no-deps -w $(EXTENSION)/bundled .
	@set -e; for platform in $(filter-out universal,$(PACKAGES)); do \
	  echo "Gathering wheels for $$platform ..."; \
	  $(BIN)/python -m trainshift.dev.wheels $$platform $(EXTENSION)/wheels/$$platform; done
	cd $(EXTENSION) && TRAINSHIFT_REPOSITORY="$(REPOSITORY)" $(NPM) run -s package -- $(PACKAGES)
	@echo "Install one with: code --install-extension $(EXTENSION)/trainshift-$(HERE).vsix"

# The VS Code that the extension is tested in: the web build in the npm package code-server, in the window that
# Debian's Chromium gives it.  What would have to be compiled is left out; spdlog.js stands for the one part needed.
HAS_WINDOW = { test -x /usr/bin/chromium && test -e /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf && \
  command -v rg >/dev/null; }

$(VENV)/.vscode: $(VENV)/.extension $(CODE_SERVER)/package-lock.json
	@$(HAS_WINDOW) || { \
	  echo "Installing Chromium ..."; \
	  $(APT) update && $(APT) install -y --no-install-recommends chromium fonts-dejavu-core ripgrep >/dev/null && \
	  $(HAS_WINDOW); }
	@echo "Installing VS Code (1 to 5 minutes) ..."
	cd $(CODE_SERVER) && $(NPM) ci --ignore-scripts >/dev/null
	cd $(VSCODE) && $(NPM) install --ignore-scripts --omit=dev >/dev/null
	mkdir -p $(VSCODE)/node_modules/@vscode/ripgrep/bin
	ln -sfn node_modules $(VSCODE)/node_modules.asar
	ln -sf "$$(command -v rg)" $(VSCODE)/node_modules/@vscode/ripgrep/bin/rg
	ln -sf $(CURDIR)/$(CODE_SERVER)/spdlog.js $(VSCODE)/node_modules/@vscode/spdlog/index.js
	touch $@
