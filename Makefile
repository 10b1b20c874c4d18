# Cutline: what a person runs. `make demo` is the main job, `make test` proves it; both set up what they need.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local
RESULTS ?= results
BIN := target/release/cutline

.PHONY: help setup demo test lint bench validate install clean

help:
	@echo "make demo      build, run the whole TSQ evaluation, write the report ($(RESULTS)/tsq/report.html)"
	@echo "make test      all tests"
	@echo "make lint      formatting and clippy, warnings are errors"
	@echo "make bench     speed, side by side with ns-2; writes bench.json (installs Debian's ns2)"
	@echo "make validate  against ns-2; writes docs/validation/ns2.md (installs Debian's ns2)"
	@echo "make install   the cutline command into $(PREFIX)/bin"

setup:
	@tools/setup.sh base

$(BIN): setup
	$(CARGO) build --release --locked -p cutline-cli

demo: $(BIN)
	$(BIN) reproduce tsq --results $(RESULTS)

test: setup
	$(CARGO) test --workspace --locked

lint: setup
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

bench: $(BIN)
	@tools/setup.sh peers
	python3 validate/bench.py --cutline $(BIN) --out bench.json

validate: $(BIN)
	@tools/setup.sh peers
	python3 validate/ns2.py --cutline $(BIN) --out docs/validation

install: $(BIN)
	install -D -m 755 $(BIN) $(PREFIX)/bin/cutline

clean:
	$(CARGO) clean
	rm -rf $(RESULTS)
