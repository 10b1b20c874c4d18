# Cutline: the commands of a person. `make demo` is the main job, `make test` proves it; both set up their requirements.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local
RESULTS ?= results
ROUNDS ?= 10
SECONDS_EACH ?= 60
ATTACK_TIME ?= 10
ATTACK ?=
ATTACK_SEED ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Tests at a time. Most of them wait for packets, processes or timers.
TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))
# Each test that is skipped is printed with its reason. The tests of a class stay in one process: they share its set-up.
PYTEST := -q -rs -p no:cacheprovider -n $(TEST_THREADS) --dist loadscope
INSTALL_WHEEL = target/venv/bin/python -m pip install --quiet --force-reinstall --no-deps --no-index target/wheels/*.whl
# The tests of types read the package from a folder: mypy does not report the errors of installed packages.
UNPACK_WHEEL = rm -rf target/wheel-tree && target/venv/bin/python -m zipfile -e target/wheels/*.whl target/wheel-tree
BIN := target/release/cutline
DAEMON := target/release/cutlined
LIBRARY := target/library
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The program that `cutline qdisc` becomes; it is built with the command.
QDISC := $(BIN)-qdisc
# The library of `cutline exec`, in a profile of its own (Cargo.toml says why).
PRELOAD := target/preload/libcutline_preload.so

# The crates without IO, and those whose tests make interfaces and namespaces, as root.
CORE := $(foreach folder,$(wildcard crates/foundation/* crates/core/*),-p cutline-$(notdir $(folder)))
# Laboratories are in one row of programs: the start of one removes what a killed one has left.
NETWORK := sys netlink direct qdisc-loader socket tokio ffi gateway traffic daemon manager-service monitor
LABORATORIES := cli lab baseline-runner
NET := $(foreach name,$(NETWORK) $(LABORATORIES),-p cutline-$(name))

.PHONY: help setup trial demo check bpf test test-vm test-net test-real-time attack properties soak bless python-bless fuzz fuzz-corpus lint miri bench bench-router validate validate-ns2 validate-ns3 validate-linux validate-qdisc validate-linux-tcp validate-linux-bbr validate-traces validate-exec validate-page validate-explain validate-mib validate-programs validate-cases validate-rsvp validate-readme validate-recipes install install-command install-library install-service deb check-deb check-systemd package wheel check-wheel python-reference bench-python python-tree test-python test-python-quick test-python-full clean service

help:
	@echo "make demo      builds, runs the whole TSQ evaluation, writes the report ($(RESULTS)/tsq/report.html)"
	@echo "make test      all tests, also on a busy machine"
	@echo "make check     formatting, clippy and tests of crates/foundation and crates/core alone: for each change of an algorithm"
	@echo "make test-net  the tests of the crates that make interfaces and namespaces (root)"
	@echo "make test-real-time  the tests that measure time, with their claims judged: on an otherwise idle machine (root)"
	@echo "make attack    all known attacks on a running router, cutlined, gateways, stored results and the laboratory, ATTACK_TIME seconds each,"
	@echo "               in namespaces of its own (root); ATTACK=name,... runs only these, ATTACK_SEED=... repeats the choices of an earlier run"
	@echo "make bpf       compiles the kernel's queues into target/bpf, with clang and the kernel's types, which it downloads (for developers)"
	@echo "make test-vm   loads these queues into a kernel in a virtual machine and uses them: ten to twenty minutes on one core (downloads a kernel);"
	@echo "               KERNEL=oldest takes the oldest kernel of Debian's backports that has such queues, not the newest"
	@echo "make trial     the simulator alone for trying a change: target/trial/cutline, which builds again in seconds"
	@echo "make properties  all tests ROUNDS times, each with new random cases"
	@echo "make soak      all tests ROUNDS times beside busy loops, as on a machine that is always at work"
	@echo "make bless     writes golden results and generated pages again; read the diff, and say in the commit why they change"
	@echo "make fuzz      searches inputs that break a parser, SECONDS_EACH for each; TARGET=... FUZZ_TIME=... searches one for that time"
	@echo "make fuzz-corpus  adds the findings of make fuzz, and inputs that reach new code, to the committed corpora"
	@echo "make lint      formatting, clippy and documentation without a warning; licences, versions and known vulnerabilities of dependencies"
	@echo "make miri      the tests of unsafe code in Miri, which finds undefined behaviour"
	@echo "make bench     speed, side by side with ns-2; writes bench.json (installs Debian's ns2)"
	@echo "make bench-router  the router's part of it alone, beside the kernel's forwarding; writes bench-router.json (root)"
	@echo "make validate-linux  against the kernel's own queues in a virtual machine, which writes docs/validation/linux.md (five runs a mix: four to five hours on one core; downloads a kernel)"
	@echo "make validate-qdisc  Cutline's queues in the kernel with real TCP, beside the kernel's own and the simulator, in that machine, which writes docs/validation/qdisc.md (five runs of each: an hour on one core)"
	@echo "make validate  these two; against ns-2 (ten minutes on one core), ns-3 (fifteen) and Linux's TCP (half an hour in real time), which writes docs/validation; traces and RSVP's messages read by tshark and flent; cutline exec with a browser and"
	@echo "               iperf3; gateways with ffmpeg and omniORB (installs them; root); programs of one host on a slow line; the recipes of docs/internals"
	@echo "make validate-readme  compares the numbers and the figure of the README with the ones that its commands measure"
	@echo "make validate-recipes  follows the recipes for an AQM, a transport, a traffic source, a congestion control and a column in a copy of the repository"
	@echo "make install   the command, cutlined and the library of cutline exec into $(PREFIX), with manuals; the library for C, its header, its manual and its file of pkg-config"
	@echo "make install-command, make install-library  only one of them"
	@echo "make wheel     the package for Python into target/wheels; make check-wheel  from an empty environment to a first figure with it"
	@echo "make test-python  the tests of the package with the wheel; make test-python-quick  with a build of the tests' profile, as make test does;"
	@echo "               make test-python-full  also the notebooks, the reference of the package and a figure of a paper (LaTeX)"
	@echo "make python-reference  the reference of the package as pages, built without a network: target/python-reference"
	@echo "make bench-python  the cost of Python beside the command, of sweeps and of tables; writes bench-python.json"
	@echo "make deb       a Debian package with all that: target/deb; make check-deb installs it over a copy of this system, tries it and removes it (root)"
	@echo "make check-systemd  starts a copy of this system with the programs as a gateway under systemd, in namespaces of its own: two starts, kill -9, down (root)"
	@echo "make package   a package of each crate, built as those who depend on it would"
	@echo "make service  builds what install-service installs"
	@echo "make install-service  the command and cutlined below /usr/local, the systemd units of the router and of cutlined, examples of their files (as root)"

setup:
	@tools/setup.sh base

$(BIN): setup
	$(CARGO) build --release --locked -p cutline-cli

$(DAEMON): setup
	$(CARGO) build --release --locked -p cutline-daemon --bin cutlined

$(PRELOAD): setup
	$(CARGO) build --profile preload --locked -p cutline-preload

# For trying a change: the simulator's commands alone, optimised, which build again in seconds.
trial: setup
	$(CARGO) build --profile trial --locked -p cutline-cli --no-default-features
	@echo "target/trial/cutline"

demo: $(BIN)
	$(BIN) reproduce tsq --results $(RESULTS)

# The same random cases every time, so that a change that has nothing to do with a failure is not held up by it;
# `make properties` looks for new ones.
# The programs of crates that make namespaces run in two rows, and all others beside them: those of the package for Python too.
test: setup
	@tools/setup.sh python
	PROPTEST_RNG_SEED=1 RUST_TEST_THREADS=$(TEST_THREADS) tools/run_tests.py --cargo $(CARGO) \
		--row "$(NETWORK)" --row "$(LABORATORIES)" --then "$(MAKE) --no-print-directory BUILT=1 test-python-quick"

# Format, clippy and tests of the crates in which most changes begin, as any user, without what the other crates need.
check:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked $(CORE) --all-targets -- -D warnings
	PROPTEST_RNG_SEED=1 $(CARGO) test --locked --no-fail-fast $(CORE)

# The tests of crates that make interfaces and namespaces: as another user they leave them out, with a message.
test-net: setup
	@[ "$$(id -u)" = 0 ] || { echo "make test-net makes network namespaces: run it as root (sudo -E make test-net)"; exit 1; }
	PROPTEST_RNG_SEED=1 RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --locked --no-fail-fast $(NET)

# The tests that measure time, with their claims judged: on an otherwise idle machine, as root. Each is tried again where the machine stood still.
test-real-time: setup
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-lab -p cutline-traffic -p cutline-baseline-runner -p cutline-manager-service
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-socket --test all -- allocation:: publication::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-socket --lib -- udp::tests::rate:: udp::tests::agreement::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-tokio --test sockets
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-gateway --test all -- datagrams::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-daemon --test router
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-daemon --test all -- strangers::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-monitor --test all -- local::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-netlink --test all -- shaper::
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-cli --test all -- exec:: router_autorate:: router:: \
		tg:: lab:: router_faults:: router_reservations:: doctor::

# The queueing disciplines for the kernel (bpf/README.md).
bpf:
	python3 validate/bpf_build.py

# They are loaded and used in a virtual machine in virtual time. Where it cannot run, this says why.
test-vm: setup
	@tools/setup.sh linux
	$(CARGO) build --locked -p cutline-cli
	python3 validate/qdisc_vm.py --kernel $(or $(KERNEL),newest)

attack: setup
	known=$$(mktemp); CUTLINE_ATTACK_KNOWN=$$known \
		CUTLINE_ATTACK_SECONDS=$(ATTACK_TIME) CUTLINE_ATTACK="$(ATTACK)" \
		CUTLINE_ATTACK_SEED=$(or $(ATTACK_SEED),$$(shuf -i 1-1000000000 -n 1)) \
		$(CARGO) test --locked --no-fail-fast -p cutline-cli -p cutline-daemon --test attacks -- --nocapture; \
	status=$$?; \
	if [ $$status = 0 ] && [ ! -s $$known ]; then echo 'no attack is called $(ATTACK)' >&2; status=1; fi; \
	rm -f $$known; exit $$status

properties: setup
	@for round in $$(seq $(ROUNDS)); do \
		seed=$$(shuf -i 1-1000000000 -n 1); echo "PROPTEST_RNG_SEED=$$seed"; \
		PROPTEST_RNG_SEED=$$seed $(CARGO) test --workspace --locked --quiet --no-fail-fast || exit 1; \
	done

# All tests several times in a row beside a busy loop for each processor: none may depend on how soon it is served.
soak: setup
	tools/soak.sh $(ROUNDS) $(MAKE) --no-print-directory test

# With all crates, and so with the features that `make test` has, so that nothing is built a second time.
bless: setup
	CUTLINE_BLESS=1 $(CARGO) test --workspace --locked --no-fail-fast --test all --test guide_pages -- \
		header:: pages:: congestion_controls:: goldens:: broken:: guide_pages:: seeds:: schemas:: captures:: mib:: the_page_of_translation

# The generated files of the Python package, which need the package.
python-bless: python-tree
	PYTHONPATH=$(CURDIR)/target/python-tree PYTHONDONTWRITEBYTECODE=1 target/venv/bin/python python/tools/generate_aqms.py

# Guided by coverage, with new seeds. What fails is kept in crates/dev/fuzz/failures, and the command that replays it is printed.
fuzz: setup
	@tools/setup.sh fuzz
	$(CARGO) run --quiet --locked -p cutline-fuzz -- run $(TARGET) --seconds $(or $(FUZZ_TIME),$(SECONDS_EACH))

fuzz-corpus: setup
	@tools/setup.sh fuzz
	$(CARGO) run --quiet --locked -p cutline-fuzz -- keep $(TARGET)

lint: setup
	@tools/setup.sh lint
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	$(CARGO) deny --locked check bans licenses sources
	@tools/advisories.sh

# The tests of the crate with unsafe code, in an interpreter that finds undefined behaviour. Those that need the kernel are
# ignored, each with its reason.
miri: setup
	@tools/setup.sh miri
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-strict-provenance" $(CARGO) +nightly miri test --locked -p cutline-sys --lib

bench: $(BIN) bench-router
	@tools/setup.sh ns2
	python3 validate/bench.py --cutline $(BIN) --out bench.json

bench-router: setup
	$(CARGO) bench --locked -p cutline-cli --bench router -- --json $(CURDIR)/bench-router.json

validate: miri test-real-time check-systemd validate-readme validate-recipes validate-traces validate-exec validate-page validate-explain validate-mib validate-programs validate-cases validate-rsvp validate-ns2 validate-ns3 validate-linux-tcp validate-linux-bbr validate-qdisc validate-linux

validate-ns2: $(BIN)
	@tools/setup.sh ns2
	python3 validate/ns2.py --cutline $(BIN) --out docs/validation

validate-ns3: $(BIN)
	@tools/setup.sh ns3
	python3 validate/ns3.py --cutline $(BIN) --out docs/validation --work target/ns3
	python3 validate/ns3_fattree.py --cutline $(BIN) --out docs/validation --work target/ns3

# The simulated TCP against Linux's in the laboratory: half an hour, as root.
validate-linux-tcp: $(BIN)
	python3 validate/linux_tcp.py --cutline $(BIN) --out docs/validation

# The simulated BBR against Linux's in the laboratory: half an hour, as root, with a kernel that has `bbr`.
validate-linux-bbr: $(BIN)
	python3 validate/linux_bbr.py --cutline $(BIN) --out docs/validation

# The kernel's queues and TCP in a virtual machine. Earlier measurements by the same plan are in target/linux-vm and are not
# measured again.
validate-linux: $(BIN)
	@tools/setup.sh linux
	python3 validate/linux.py --cutline $(BIN) --out docs/validation

# Five experiments with the queues of bpf/ in the same machine. Earlier measurements with the same programs are not repeated.
validate-qdisc: $(BIN)
	@tools/setup.sh linux
	python3 validate/qdisc.py --cutline $(BIN) --out docs/validation

validate-traces: setup
	@tools/setup.sh traces
	$(CARGO) test --locked -p cutline-trace --test all -- tools::

# The README's figure and the numbers beside it, from its two commands.
validate-readme: $(BIN)
	python3 validate/readme.py --cutline $(BIN)

# Programs that people use under `cutline exec`: marks as tshark sees them, rates as iperf3 measures them.
validate-exec: setup
	@tools/setup.sh peers
	CUTLINE_REAL_TIME=1 $(CARGO) test --locked --no-fail-fast -p cutline-cli --test all -- exec:: exec_peers:: --include-ignored

# The page of the monitor in a browser, and its metrics before promtool. CUTLINE_PICTURES=FOLDER keeps pictures of the page.
validate-page: setup
	@tools/setup.sh page
	$(CARGO) test --locked -p cutline-monitor --test all

# `cutline doctor explain` before eleven planted faults and twenty hosts without one, in network namespaces (root; nft). Eight minutes.
validate-explain: setup
	$(CARGO) test --locked -p cutline-cli --test all -- explain:: --include-ignored --nocapture --test-threads 1

# CUTLINE-QOS-MIB before smilint, with the base modules of the parser that the tests use.
validate-mib: setup
	@tools/setup.sh mib
	@SMIPATH="$$($(CARGO) metadata --locked --format-version 1 | python3 -c 'import json, os, sys; print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "mib-rs"))')/src/lower/embedded:crates/network/snmp/tests/modules" \
		smilint -l 6 packaging/CUTLINE-QOS-MIB.txt > target/smilint.txt 2>&1; \
		if grep CUTLINE-QOS-MIB target/smilint.txt; then exit 1; else echo "smilint -l 6 finds no fault with CUTLINE-QOS-MIB"; fi

# NetVideo and DIRM through gateways: ffmpeg's video with and without losses, pictures of a CORBA server; both on the testbed, and a
# figure of `cutline reproduce qsock`.
validate-programs: setup
	@tools/setup.sh programs
	$(CARGO) test --locked -p cutline-lab --test all -- programs:: routed:: --ignored --nocapture
	$(CARGO) test --locked -p cutline-lab --test all -- hosts::
	$(CARGO) test --locked -p cutline-reproduce --test all -- qsock:: --ignored --nocapture

# The tables of docs/guide/cases.md: three hosts on a slow line, without and with shares, in network namespaces (root). Eleven minutes.
validate-cases: wheel $(DAEMON)
	$(INSTALL_WHEEL)
	target/venv/bin/python validate/cases.py --cutlined $(DAEMON)

# RSVP's messages: tshark finds nothing malformed in the committed captures, which are what the engine sends. Then ten thousand
# reservations: their memory, their refreshes through one router of the simulator, with and without losses and refresh reduction, and one
# `cutlined` with the kernel's traffic control (root; without it a message says that this is left out). Five to fifteen minutes.
validate-rsvp: setup
	@tools/setup.sh traces
	$(CARGO) test --locked -p cutline-rsvp --test all -- captures::
	$(CARGO) test --locked -p cutline-rsvp --test all -- scale:: --ignored --nocapture
	$(CARGO) test --locked -p cutline-sim --test all -- rsvp:: --ignored --nocapture
	$(CARGO) test --locked -p cutline-daemon --test all -- capacity:: --ignored --nocapture --test-threads 1

# The walkthroughs of docs/internals/recipes, applied to one copy of the repository in target/recipes, and their commands: ten to thirty
# minutes, and some gigabytes, which stay for the next time until `make clean`.
validate-recipes: setup
	$(CARGO) test --locked -p cutline-testbed --test all -- recipes:: --ignored --nocapture

# The objects of `cutline qdisc` need clang, which `make bpf` downloads from Debian. Without them everything else works.
INSTALL_BPF = tools/install-bpf.sh target/bpf

install: install-command install-library

install-command: $(BIN) $(DAEMON) $(PRELOAD)
	install -D -s -m 755 $(BIN) $(PREFIX)/bin/cutline
	install -D -s -m 755 $(DAEMON) $(PREFIX)/sbin/cutlined
	install -D -m 755 $(PRELOAD) $(PREFIX)/lib/cutline/libcutline_preload.so
	install -D -s -m 755 $(QDISC) $(PREFIX)/lib/cutline/cutline-qdisc
	install -D -m 644 docs/man/cutlined.8 $(PREFIX)/share/man/man8/cutlined.8
	install -D -m 644 docs/man/cutlined.toml.5 $(PREFIX)/share/man/man5/cutlined.toml.5
	install -D -m 644 packaging/cutlined.toml $(PREFIX)/share/doc/cutline/examples/cutlined.toml
	tools/install-shared.sh $(BIN) $(PREFIX)/share
	@$(INSTALL_BPF) $(PREFIX)/lib/cutline/bpf

# Programs look for libcutline.so.0: the number changes when the interface does.
install-library: setup
	$(CARGO) build --profile library --locked -p cutline-ffi
	install -D -m 755 $(LIBRARY)/libcutline.so $(PREFIX)/lib/libcutline.so.$(VERSION)
	ln -sf libcutline.so.$(VERSION) $(PREFIX)/lib/libcutline.so.0
	ln -sf libcutline.so.0 $(PREFIX)/lib/libcutline.so
	install -D -m 644 $(LIBRARY)/libcutline.a $(PREFIX)/lib/libcutline.a
	install -D -m 644 crates/endpoint/ffi/include/cutline.h $(PREFIX)/include/cutline.h
	install -D -m 644 docs/man/cutline_socket.3 $(PREFIX)/share/man/man3/cutline_socket.3
	mkdir -p $(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(abspath $(PREFIX))|; s|@VERSION@|$(VERSION)|' packaging/cutline.pc.in > $(PREFIX)/lib/pkgconfig/cutline.pc

# The package for Python, for every Python from 3.11 on, with the command.
wheel: setup $(BIN)
	@tools/setup.sh python
	rm -rf target/wheels
	PATH="$(CURDIR)/target/venv/bin:$$PATH" CUTLINE_COMMAND=$(CURDIR)/$(BIN) target/venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir target/wheels .
	@ls target/wheels/*.whl

# From an empty environment to a first figure by the lines of the README, with the wheel alone; then `pip install .`.
check-wheel: wheel
	tools/check-wheel.sh target/wheels/*.whl

# The tests of the package, with the extension and the command of a build of the workspace, as a part of `make test`; BUILT=yes if there is
# such a build.
test-python-quick: python-tree
	CUTLINE_COMMAND=$(abspath $(TARGET)/debug/cutline) PYTHONPATH=$(CURDIR)/target/python-tree PYTHONDONTWRITEBYTECODE=1 \
		MYPY_CACHE_DIR=$(CURDIR)/target/mypy-cache \
		timeout 1200 target/venv/bin/python -m pytest $(PYTEST) python/tests

# The package as a folder for PYTHONPATH.
python-tree: setup
	@tools/setup.sh python
	@# With the examples, and so with the features that `cargo test` has, so that nothing is built a second time.
	@[ -n "$(BUILT)" ] || $(CARGO) build --workspace --locked --lib --bins --examples
	rm -rf target/python-tree && mkdir -p target/python-tree/cutline
	cp python/cutline/*.py python/cutline/*.pyi python/cutline/py.typed target/python-tree/cutline
	cp $$(ls -t $(TARGET)/debug/lib_native.so $(TARGET)/debug/deps/lib_native.so 2>/dev/null | head -1) target/python-tree/cutline/_native.abi3.so
	@# Tests start a hundred interpreters, none of which stores compiled modules.
	target/venv/bin/python -m compileall -q target/python-tree/cutline

# With the wheel and its command, whose results are compared. Its heavy tests are those of test-python-full.
test-python: wheel
	$(INSTALL_WHEEL)
	$(UNPACK_WHEEL)
	CUTLINE_COMMAND=$(CURDIR)/target/venv/bin/cutline PYTHONPATH=$(CURDIR)/target/wheel-tree \
		target/venv/bin/python -m pytest $(PYTEST) python/tests

# Also the notebooks, the reference, and figures of a paper from a short study.
test-python-full: wheel
	@tools/setup.sh python-full
	$(INSTALL_WHEEL)
	target/venv/bin/cutline reproduce tsq --figure 10 --quick --quiet --resume --results target/studies >/dev/null
	$(UNPACK_WHEEL)
	CUTLINE_FULL=1 CUTLINE_STUDIES=$(CURDIR)/target/studies CUTLINE_COMMAND=$(CURDIR)/target/venv/bin/cutline \
		PYTHONPATH=$(CURDIR)/target/wheel-tree \
		target/venv/bin/python -m pytest $(PYTEST) python/tests

# The reference of the package, from its docstrings: needs no network once the environment is there.
python-reference: setup
	@tools/setup.sh python
	target/venv/bin/python -m mkdocs build --strict --quiet -f python/reference/mkdocs.yml -d $(CURDIR)/target/python-reference
	@echo "target/python-reference/index.html"

# With the wheel, of the release profile: some ten minutes.
bench-python: wheel
	$(INSTALL_WHEEL)
	target/venv/bin/python python/benches/cost.py --cutline target/venv/bin/cutline --json bench-python.json

# What install-service installs, built by you and not by root.
service: $(BIN) $(DAEMON) $(PRELOAD)

# For all users, with the units of the router and of cutlined: run as root. Files that are there in /etc/cutline stay as they are.
# DESTDIR is in front of all paths, for packages.
install-service:
	@test -x $(BIN) -a -x $(QDISC) -a -x $(DAEMON) -a -f $(PRELOAD) || { echo "run \`make service\` first, as yourself"; exit 1; }
	install -D -s -m 755 $(BIN) $(DESTDIR)/usr/local/bin/cutline
	install -D -s -m 755 $(DAEMON) $(DESTDIR)/usr/local/sbin/cutlined
	install -D -m 755 $(PRELOAD) $(DESTDIR)/usr/local/lib/cutline/libcutline_preload.so
	install -D -s -m 755 $(QDISC) $(DESTDIR)/usr/local/lib/cutline/cutline-qdisc
	install -D -m 644 packaging/cutline-router@.service $(DESTDIR)/etc/systemd/system/cutline-router@.service
	install -D -m 644 packaging/cutlined.service $(DESTDIR)/etc/systemd/system/cutlined.service
	install -D -m 644 packaging/cutline-monitor.service $(DESTDIR)/etc/systemd/system/cutline-monitor.service
	install -D -m 644 packaging/cutline-setup@.service $(DESTDIR)/etc/systemd/system/cutline-setup@.service
	install -D -m 644 packaging/networkd/50-cutline.conf $(DESTDIR)/usr/local/share/doc/cutline/examples/networkd/50-cutline.conf
	install -D -m 644 packaging/networkd/10-cutline.network $(DESTDIR)/usr/local/share/doc/cutline/examples/networkd/10-cutline.network
	install -D -m 644 packaging/router.toml $(DESTDIR)/etc/cutline/router/example.toml.dist
	install -D -m 644 packaging/cutlined.toml $(DESTDIR)/etc/cutline/cutlined.toml.dist
	install -D -m 644 docs/man/cutlined.8 $(DESTDIR)/usr/local/share/man/man8/cutlined.8
	install -D -m 644 docs/man/cutlined.toml.5 $(DESTDIR)/usr/local/share/man/man5/cutlined.toml.5
	install -D -m 644 packaging/cutline-qdisc@.service $(DESTDIR)/etc/systemd/system/cutline-qdisc@.service
	install -d $(DESTDIR)/etc/cutline/qdisc
	@$(INSTALL_BPF) $(DESTDIR)/usr/local/lib/cutline/bpf
	tools/install-shared.sh $(BIN) $(DESTDIR)/usr/local/share
	if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi

# The Debian package: target/deb/cutline_VERSION_ARCHITECTURE.deb.
deb: $(BIN) $(DAEMON) $(PRELOAD) bpf
	@tools/deb.sh $(BIN) $(QDISC) $(DAEMON) $(PRELOAD) target/bpf $(VERSION) target/deb

# Installs it over a copy of this system, tries it and removes it (root).
check-deb: deb
	tools/check-deb.sh target/deb/cutline_$(VERSION)_$$(dpkg --print-architecture).deb

# Runs the units under a systemd of their own (root).
check-systemd: service
	tools/check-systemd.sh

# The packages of all crates that others can use, each built from its package alone.
package: setup
	$(CARGO) package --workspace --exclude cutline-fuzz --exclude cutline-testbed --exclude cutline-py --locked

clean:
	$(CARGO) clean
	rm -rf $(RESULTS)
