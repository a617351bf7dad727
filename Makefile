# One command for each thing one does here. `make` alone lists them.
#
#   SETUP=skip       leaves system packages alone (for systems without apt)
#   CARGO_TARGET_DIR where Rust builds; in continuous integration (CI=true) a folder that outlives the checkout

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

ifeq ($(CI),true)
  CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/neuron-connect/target
else
  CARGO_TARGET_DIR ?= $(CURDIR)/target
endif
export CARGO_TARGET_DIR

programs := $(CARGO_TARGET_DIR)/debug
ui_sources := $(shell find ui -type d \( -name node_modules -o -name dist \) -prune -o -type f -print)
# The desktop tests use GObject introspection, which belongs to the system's own Python.
desktop_python := /usr/bin/python3

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: system ui/node_modules/.package-lock.json tests/upstreams/node_modules/.package-lock.json tests/conformance/node_modules/.package-lock.json tests/upstreams/.venv/made ## install everything that is needed to build and test

.PHONY: system
system:
	@[ "$(SETUP)" = skip ] || scripts/setup.sh

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
	@touch $@

tests/upstreams/.venv/made: tests/upstreams/requirements.txt
	python3 -m venv --clear tests/upstreams/.venv
	tests/upstreams/.venv/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# What every build needs: the system's packages and the window's files, which the app carries inside.
.PHONY: ready
ready: system ui/dist/index.html

ui/dist/index.html: $(ui_sources) ui/node_modules/.package-lock.json
	cd ui && npm run build

.PHONY: build
build: ready ## build the app and neuron-connectd
	cargo build --workspace --locked

.PHONY: run
run: ready ## build and start the app; without a display, neuron-connectd
	cargo build --locked --package neuron-connect --package neuron-connectd
	@if [ -n "$${DISPLAY-}$${WAYLAND_DISPLAY-}" ]; then exec $(programs)/neuron-connect; \
	else echo "There is no display: starting neuron-connectd, the same without a window." >&2; \
	  exec $(programs)/neuron-connectd serve; fi

.PHONY: test
test: setup ## every check and test
	$(MAKE) --no-print-directory SETUP=skip test-ui lint test-rust conformance test-desktop

.PHONY: test-ui
test-ui: ready ## check, test and build the window's files
	cd ui && npm run check && npm run lint && npm test

# The built programs come first: the black-box tests start them. Stale types for the window fail here too.
.PHONY: test-rust
test-rust: build setup ## the tests of the Rust crates
	cargo nextest run --workspace --locked --no-fail-fast

.PHONY: test-desktop
test-desktop: build ## tray and window on a private desktop
	cd tests/desktop && NEURON_TEST_PROGRAMS=$(programs) $(desktop_python) -m unittest --verbose

# ONLY runs the scenarios whose names begin with one of its words.
.PHONY: conformance
conformance: build setup ## the official MCP conformance suite against the built bridge
	$(programs)/conformance $(ONLY)

.PHONY: lint
lint: ready ## formatting, lints, icons, licences
	cargo fmt --all --check
	icons/make.sh --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "cargo-deny is not installed; licences and advisories were not checked." >&2; fi

.PHONY: fmt
fmt: ui/node_modules/.package-lock.json ## format everything
	cargo fmt --all
	cd ui && npm run format

.PHONY: types
types: ready ## write the window's types from the bridge's
	UPDATE_TYPES=1 cargo nextest run --locked --package neuron-bridge the_windows_types

.PHONY: icons
icons: system ## draw all icons from icons/icon.svg
	icons/make.sh

.PHONY: bench
bench: bench-programs ## measure a release build against its budgets; takes some minutes
	cargo run --release --locked --package neuron-bench -- all

.PHONY: bench-quick
bench-quick: bench-programs ## a short measurement of the bridge's own cost
	cargo run --release --locked --package neuron-bench -- quick

# MINUTES says for how long; SEED repeats a run.
MINUTES ?= 30
.PHONY: soak
soak: bench-programs ## a release build under load and mischief for MINUTES (30), with SEED
	cargo run --release --locked --package neuron-bench -- soak $(MINUTES) $(SEED)

.PHONY: bench-programs
bench-programs: setup
	cargo build --release --locked --package neuron-connectd --package neuron-tests --bins

.PHONY: package
package: ready scripts/node_modules/.package-lock.json ## make the deb and rpm packages
	scripts/package.sh

.PHONY: screenshot
screenshot: build setup ## take the README's pictures from the running app
	cd tests/desktop && NEURON_TEST_PROGRAMS=$(programs) $(desktop_python) screenshot.py $(CURDIR)/docs/connectors.png
