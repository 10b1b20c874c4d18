#!/bin/sh
# Installs what Cutline's make targets need on Debian 12. Does nothing if it is already installed.
#
#   tools/setup.sh base     to build and test: a C compiler, libelf and zlib for libbpf, clippy and rustfmt; iproute2 and nftables for the router and its tests; the
#                           programs of net-snmp for the tests of SNMP, its daemons in target/snmp
#   tools/setup.sh lint     also, for make lint: cargo-deny, built in about two minutes
#   tools/setup.sh miri     also, for make miri: a nightly Rust with Miri
#   tools/setup.sh fuzz     also, for make fuzz: a C++ compiler, which builds libFuzzer from its crate
#   tools/setup.sh python   also, for make test, make wheel and make test-python: Python, and what python/tests/requirements.txt lists
#                           in target/venv
#   tools/setup.sh python-full  also, for make test-python-full: LaTeX
#   tools/setup.sh ns2      also, for make bench and make validate: ns-2
#   tools/setup.sh linux    also, for make validate-linux, make validate-qdisc and make test-vm: QEMU, busybox
#   tools/setup.sh peers    also, for the tests of cutline exec with other programs: a browser, curl, iperf3, Go, Python, tshark
#   tools/setup.sh mib      also, for make validate-mib: smilint
#   tools/setup.sh page     also, for the tests of the monitor's page: a browser, axe-core in target/axe, promtool
#   tools/setup.sh programs also, for the tests of gateways with real applications: ffmpeg, omniORB with its IDL compiler, a C++ compiler
#   tools/setup.sh traces   also, for the tests that read traces with other tools: tshark, tcpdump and flent
set -eu

fail() { echo "setup: $*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "root or sudo is needed to run: $*"
    fi
}

# need COMMAND PACKAGES: installs the packages unless the command, or the file if it is a path, is there.
need() {
    case "$1" in
        /*) [ -e "$1" ] && return ;;
        *) command -v "$1" >/dev/null && return ;;
    esac
    command -v apt-get >/dev/null || fail "\`$1\` is missing, and apt-get is not available to install \`$2\`"
    if [ -z "${apt_updated:-}" ]; then as_root apt-get update -qq; apt_updated=1; fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $2 >/dev/null
}

# unpack FOLDER PACKAGES: unpacks packages below target without installing them: a daemon that is installed runs as a service.
unpack() {
    folder="$(dirname "$0")/../target/$1"
    [ -d "$folder/usr" ] && return
    command -v apt-get >/dev/null || fail "apt-get is not available to get \`$2\`"
    mkdir -p "$folder"
    get() { (cd "$folder" && apt-get download -qq $1 >/dev/null 2>&1); }
    # Without lists of packages nothing is found.
    get "$2" || { as_root apt-get update -qq; get "$2"; } || fail "apt-get cannot get \`$2\`"
    (cd "$folder" && for package in *.deb; do dpkg-deb -x "$package" .; done && rm -f ./*.deb)
}

command -v cargo >/dev/null || fail "Rust is missing: install it with rustup"
need cc gcc
# libbpf, which loads the kernel's queues, is built with its crate and uses the system's libelf and zlib.
need make make
need pkg-config pkg-config
need /usr/include/gelf.h libelf-dev
need /usr/include/zlib.h zlib1g-dev
need ip iproute2
need nft nftables
need snmpget snmp
unpack snmp "snmpd snmptrapd libnetsnmptrapd40 libmariadb3 libwrap0"
for component in clippy rustfmt; do
    cargo "${component#rust}" --version >/dev/null 2>&1 || rustup component add "$component"
done
case "${1:-base}" in
    base) ;;
    # Without optimisation: its checks take a second, and its compilation half as long.
    lint) cargo deny --version >/dev/null 2>&1 || cargo install --quiet --locked --debug cargo-deny@0.20.2 ;;
    miri) cargo +nightly miri --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal --component miri,rust-src ;;
    fuzz) need c++ g++ ;;
    python)
        # Debian has Python without what makes environments in another package.
        python3 -c "import ensurepip" 2>/dev/null || need /usr/lib/python3/ensurepip "python3 python3-venv"
        venv="$(dirname "$0")/../target/venv"
        wanted="$(dirname "$0")/../python/tests/requirements.txt"
        # A copy of the list is written when all of it is installed.
        if ! cmp -s "$wanted" "$venv/requirements.txt"; then
            [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
            "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
            cp "$wanted" "$venv/requirements.txt"
        fi ;;
    # A figure for a paper is compiled by LaTeX.
    python-full) "$0" python; need pdflatex "texlive-latex-base texlive-pictures" ;;
    ns2) need ns ns2; need python3 python3 ;;
    ns3) need /usr/include/ns3/core-module.h libns3-dev; need g++ g++; need python3 python3 ;;
    linux) need qemu-system-x86_64 qemu-system-x86; need busybox busybox-static; need python3 python3 ;;
    # flent draws with matplotlib, which is only a recommended package.
    traces) need tshark tshark; need tcpdump tcpdump; need flent "flent python3-matplotlib" ;;
    peers)
        need chromium chromium; need curl curl; need iperf3 iperf3; need go golang-go; need python3 python3; need tshark tshark ;;
    mib) need smilint smitools; need python3 python3 ;;
    page)
        need chromium chromium; need promtool prometheus
        "$0" python
        axe="$(dirname "$0")/../target/axe"
        # The package contains axe-core, a library of JavaScript; the rest of it is not used.
        [ -e "$axe/axe_playwright_python/axe.min.js" ] ||
            "$(dirname "$0")/../target/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$axe" axe-playwright-python==0.1.8 ;;
    programs)
        need ffmpeg ffmpeg; need c++ g++; need omniidl omniidl; need /usr/include/omniORB4/CORBA.h libomniorb4-dev ;;
    *) fail "unknown part \`$1\`; allowed are base, lint, miri, fuzz, python, python-full, ns2, ns3, linux, traces, peers, mib, page, programs" ;;
esac
