# `make` lists the targets. They need a Rust toolchain and make, nothing else.

SHELL := /bin/sh
.DEFAULT_GOAL := help

CARGO ?= cargo
# One of fixtures/v1/sessions, or any transcript of yours: make replay SESSION=path/to/session.jsonl
SESSION ?= fixtures/v1/sessions/parallel-tools.jsonl
# Runs per fuzz target.
RUNS ?= 1000000
# Fuzz targets: all of them, or make fuzz TARGETS=scan
TARGETS ?= $(sort $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))))
# The target of `make windows`.
WINDOWS ?= x86_64-pc-windows-gnu
# The platforms that README and docs/bindings.md name, other than that of this machine.
PLATFORMS ?= aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl \
	x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-msvc
# The minimum supported version of Rust: the one of Cargo.toml.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# How many times longer than usual the soak tests run.
SOAK ?= 20

.PHONY: dist remote-test rehearse nightly light targets msrv features package skipped windows bindings bindings-test page-test help replay test lint fmt-check words clippy unit validator scripts doc deny bench bench-check fuzz soak compat install components

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

replay: ## Build the light form, then replay a bundled session (SESSION=path for another)
	@$(CARGO) run --profile quick -q --locked -p transcript-cli --no-default-features -- replay "$(SESSION)"

test: fmt-check clippy words unit validator scripts doc package deny skipped ## Run everything that must pass: format, lints, tests, docs

lint: fmt-check clippy words ## Check format, lints and words only

fmt-check: components
	$(CARGO) fmt --all --check

words: ## Look for words that the glossary has retired
	@if command -v python3 >/dev/null; then python3 tools/retired_words.py; else echo "skipped: no python3"; fi

clippy: components
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Only the warnings of rustc count: types have other sizes there, and clippy has seen the rest.
RUSTC_LINTS = -D warnings -A clippy::all -A clippy::pedantic

# The crates that need no C compiler, which a cross-compilation seldom has.
WITHOUT_C = -p transcript-engine --no-default-features --features async,follow,search

windows: components ## Check that it compiles for Windows (skipped where `rustup target add $(WINDOWS)` was not run)
	@if ! command -v rustup >/dev/null 2>&1 || ! rustup target list --installed | grep -qx $(WINDOWS); then \
		echo "skipped: no Rust for $(WINDOWS) (rustup target add $(WINDOWS))"; \
	elif command -v x86_64-w64-mingw32-gcc >/dev/null 2>&1; then \
		echo "$(CARGO) clippy --locked --target $(WINDOWS) -p transcript-cli"; \
		$(CARGO) clippy --locked --target $(WINDOWS) -p transcript-cli -- $(RUSTC_LINTS); \
	else \
		echo "skipped: the command, as there is no x86_64-w64-mingw32-gcc (Debian: gcc-mingw-w64-x86-64)"; \
		$(CARGO) clippy --locked --target $(WINDOWS) $(WITHOUT_C) -- $(RUSTC_LINTS); \
	fi

targets: components windows ## Check that it compiles for the other platforms (PLATFORMS=…; rustup gets what is missing)
	@if ! command -v rustup >/dev/null 2>&1; then echo "skipped: no rustup"; exit 0; fi; \
	for target in $(PLATFORMS); do \
		if ! rustup target add $$target; then echo "skipped: no Rust for $$target"; continue; fi; \
		echo "$(CARGO) clippy --locked --target $$target $(WITHOUT_C)"; \
		$(CARGO) clippy -q --locked --target $$target $(WITHOUT_C) -- $(RUSTC_LINTS) || exit 1; \
	done

msrv: ## Check that it compiles with the minimum supported Rust (rustup gets it)
	@if ! command -v rustup >/dev/null 2>&1; then echo "skipped: no rustup"; exit 0; fi; \
	if ! rustup toolchain install $(MSRV) --profile minimal --no-self-update; then echo "skipped: no Rust $(MSRV)"; exit 0; fi; \
	echo "cargo +$(MSRV) check --workspace --locked"; \
	CARGO_TARGET_DIR=target/msrv cargo +$(MSRV) check --workspace --locked

# With the threads of a model checker. They are no feature, which others could ask for; so all is built once more, elsewhere.
SHUTTLE = RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle $(CARGO)

# What a passed test prints is dropped, but for the reasons of tests that skipped something.
unit:
	@if command -v python3 >/dev/null 2>&1; then \
		echo "$(CARGO) test --workspace --locked"; \
		python3 tools/run_tests.py $(CARGO) test --workspace --locked -- --show-output; \
	else \
		echo "$(CARGO) test --workspace --locked"; $(CARGO) test --workspace --locked; \
	fi
	$(SHUTTLE) test --locked -p transcript-writer --test shuttle

validator:
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 tests/validate_request_test.py"; python3 tests/validate_request_test.py; \
	else \
		echo "skipped: no python3"; \
	fi

scripts:
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 tests/scripts_test.py"; python3 tests/scripts_test.py && \
		echo "python3 tests/docs_test.py"; python3 tests/docs_test.py && \
		echo "python3 tools/bindings_api.py --check" && python3 tools/bindings_api.py --check; \
	else \
		echo "skipped: no python3"; \
	fi

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

features: components ## Check each published crate without features, and with each one alone
	@if command -v python3 >/dev/null 2>&1; then CARGO="$(CARGO)" python3 tools/features.py; else echo "skipped: no python3"; fi

package: ## Make the archives of all published crates, and check that each is complete (PACKAGE=--verify builds them, too)
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 tools/package.py $(PACKAGE)"; CARGO="$(CARGO)" python3 tools/package.py $(PACKAGE); \
	else \
		echo "skipped: no python3"; \
	fi

skipped: # What the tests of `make unit` skipped, by reason
	@if command -v python3 >/dev/null 2>&1; then python3 tools/run_tests.py; fi

# Advisories change without us: `cargo deny check` looks at them too, this target does not.
deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "$(CARGO) deny check bans licenses sources"; $(CARGO) deny check bans licenses sources; \
	else \
		echo "skipped: cargo-deny is not installed (cargo install --locked cargo-deny)"; \
	fi

# A minimal toolchain comes without rustfmt and clippy; rustup can add them.
components:
	@for c in rustfmt clippy; do \
		case $$c in rustfmt) sub=fmt ;; *) sub=$$c ;; esac; \
		if ! $(CARGO) $$sub --version >/dev/null 2>&1; then \
			if command -v rustup >/dev/null 2>&1; then \
				echo "rustup component add $$c"; rustup component add $$c || exit 1; \
			else \
				echo "$$c is missing and there is no rustup to add it: install it with your Rust toolchain" >&2; exit 1; \
			fi; \
		fi; \
	done

# BENCH="--data DIR" keeps the sessions (3 GB), BENCH=--quick uses small ones, BENCH=--write renews docs/benchmarks.md.
bench: ## Print the table of docs/benchmarks.md, or with GROWTH=1 that of growth (BENCH=--quick: in a minute)
	$(CARGO) build --release --locked -p transcript-cli
	$(CARGO) build --release --locked -p transcript-engine --example turn
	@if command -v python3 >/dev/null 2>&1; then \
		CARGO="$(CARGO)" python3 tools/bench.py $(if $(GROWTH),growth) $(BENCH); \
	else \
		echo "skipped: no python3"; \
	fi

bench-check: ## Count instructions and fail 3 % above tools/instructions.txt (BASELINE=write renews it; needs valgrind)
	@if command -v valgrind >/dev/null 2>&1; then \
		$(CARGO) build --release --locked -p transcript-engine --example counts && python3 tools/instructions.py $(BASELINE); \
	else \
		echo "skipped: no valgrind"; \
	fi

fuzz: ## Fuzz each target RUNS times (needs nightly and cargo-fuzz)
	@if ! $(CARGO) +nightly --version >/dev/null 2>&1; then \
		echo "fuzzing needs a nightly toolchain: rustup toolchain install nightly" >&2; exit 1; \
	fi
	@if ! $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then \
		echo "fuzzing needs cargo-fuzz: cargo install --locked cargo-fuzz" >&2; exit 1; \
	fi
	@if [ -z "$(TARGETS)" ]; then echo "there are no fuzz targets in fuzz/fuzz_targets" >&2; exit 1; fi
	@for t in $(TARGETS); do \
		echo "cargo +nightly fuzz run $$t -- -runs=$(RUNS)"; \
		$(CARGO) +nightly fuzz run $$t -- -runs=$(RUNS) || exit 1; \
	done

nightly: light features msrv bench-check compat page-test ## Run what takes too long for every change, with short fuzzing and soak
	@python3 tools/picture.py --check
	@$(MAKE) package PACKAGE=--verify
	@$(MAKE) bindings
	@$(MAKE) rehearse REHEARSE=--sdist
	@$(MAKE) soak SOAK=5
	@if $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then $(MAKE) fuzz RUNS=200000; else echo "skipped: no nightly toolchain with cargo-fuzz"; fi

light: ## Run the tests of the command in its light form
	$(CARGO) test --locked -p transcript-cli --no-default-features

soak: ## Kill, stop and starve writers and readers for a long time (SOAK=20 times as long as `make test`)
	TRANSCRIPT_SOAK=$(SOAK) $(CARGO) test --release --locked -p transcript-writer --test crash --test it -- --nocapture
	TRANSCRIPT_SOAK=$(SOAK) $(SHUTTLE) test --release --locked -p transcript-writer --test shuttle
	TRANSCRIPT_SOAK=$(SOAK) $(CARGO) test --release --locked -p transcript-engine --test it -- --nocapture
	TRANSCRIPT_SOAK=$(SOAK) $(CARGO) test --release --locked -p transcript-tail -- --nocapture
	@if [ ! -x target/release/transcript ]; then \
		echo "skipped: no target/release/transcript (cargo build --release -p transcript-cli)"; \
	else \
		echo "python3 tests/kill_append.py"; python3 tests/kill_append.py && \
		echo "python3 tests/kill_repair.py"; python3 tests/kill_repair.py && \
		for script in every_fault fault_append prune_race power_cut; do \
			echo "python3 tests/$$script.py"; python3 tests/$$script.py --bin target/release/transcript || exit 1; \
		done; \
	fi

page-test: ## Look at pages in Chromium (skipped where there is none; CHECKS="live axe" runs only these)
	$(CARGO) build --release --locked -p transcript-cli
	@if command -v python3 >/dev/null 2>&1; then python3 tools/page_test.py $(CHECKS); else echo "skipped: no python3"; fi

compat: ## Read sessions of ours with the official SDKs (needs python3, and a network once)
	@$(CARGO) build -q --locked -p transcript-cli
	@python3 tests/compat/run
	@python3 tools/sdk_check.py --bin target/debug/transcript

# REMOTE=--workspace takes less time after `make unit`.
remote-test: ## Test archives in buckets against a server that speaks S3, on loopback (gets it from PyPI)
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 tests/remote_test.py $(REMOTE)"; CARGO="$(CARGO)" python3 tests/remote_test.py $(REMOTE); \
	else \
		echo "skipped: no python3"; \
	fi

bindings: ## Build the wheel and the npm packages for this platform
	@bindings/build.sh

bindings-test: bindings ## Test them, installed offline into fresh environments
	@bindings/test.sh

# DIST="--target TARGET" builds one, DIST="--profile quick" in less time.
dist: ## Make the files of a release, and run each in an empty root: target/dist (docs/release.md)
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 release/dist.py $(DIST)"; CARGO="$(CARGO)" python3 release/dist.py $(DIST); \
	else \
		echo "skipped: no python3"; \
	fi

# REHEARSE=--sdist also builds the Python package from its sources.
rehearse: ## Publish everything that `make bindings` built to registries on loopback, and use it from there (docs/release.md)
	@if command -v python3 >/dev/null 2>&1; then \
		echo "python3 release/rehearse.py $(REHEARSE)"; CARGO="$(CARGO)" python3 release/rehearse.py $(REHEARSE); \
	else \
		echo "skipped: no python3"; \
	fi

install: ## Install the `transcript` command
	$(CARGO) install --path crates/transcript-cli --locked --profile dist
