#!/bin/sh
# Installs a Debian package over a copy of this system's files, checks that its parts work, removes it, and compares the remaining files.
# Nothing of this system changes: all output goes to a folder in memory that ends with the script, and the monitor that is tried
# runs in a network namespace without interfaces. Run it as root.
#
#   tools/check-deb.sh target/deb/cutline_0.1.0_amd64.deb
set -eu

[ $# = 1 ] || { echo "usage: $0 PACKAGE" >&2; exit 2; }
if [ -z "${CUTLINE_CHECK_DEB:-}" ]; then
    exec env CUTLINE_CHECK_DEB=1 unshare --mount --net --propagation private "$0" "$(realpath "$1")"
fi

work="$(mktemp -d)"
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount --bind /dev "$work/root/dev"
mount -t proc proc "$work/root/proc"
mount -t tmpfs tmpfs "$work/root/run"
mount -t tmpfs tmpfs "$work/root/tmp"
cp "$1" "$work/root/tmp/cutline.deb"
in_copy() { chroot "$work/root" "$@"; }
files() { (cd "$work/upper" && find . -not -path './var/*' -not -path './tmp*' | sort); }

files > "$work/before"
in_copy dpkg --install /tmp/cutline.deb >/dev/null
in_copy /usr/bin/cutline --version
in_copy /usr/bin/cutline check /usr/share/doc/cutline/examples/dumbbell.toml >/dev/null
in_copy /usr/sbin/cutlined --version
in_copy /usr/bin/cutline qdisc --help >/dev/null
in_copy /usr/lib/cutline/cutline-qdisc --help >/dev/null
in_copy /usr/bin/cutline exec --class video -- /bin/true
for file in /lib/systemd/system/cutline-router@.service /lib/systemd/system/cutline-setup@.service \
    /lib/systemd/system/cutlined.service /lib/systemd/system/cutline-monitor.service \
    /lib/systemd/system/cutline-qdisc@.service /usr/lib/cutline/bpf/tsq.bpf.o /usr/lib/cutline/bpf/sieve.bpf.o \
    /usr/share/man/man1/cutline-run.1.gz /usr/share/man/man1/cutline-monitor.1.gz /usr/share/man/man1/cutline-top.1.gz \
    /usr/share/man/man8/cutlined.8.gz /usr/share/man/man5/cutlined.toml.5.gz \
    /usr/share/snmp/mibs/CUTLINE-QOS-MIB.txt /usr/share/doc/cutline/examples/grafana-dashboard.json \
    /usr/share/bash-completion/completions/cutline /usr/share/doc/cutline/docs/guide/scenario.md \
    /usr/share/doc/cutline/docs/guide/monitor.md /usr/share/doc/cutline/docs/guide/snmp.md; do
    [ -s "$work/root$file" ] || { echo "$file is missing" >&2; exit 1; }
done
for unit in "$work"/root/lib/systemd/system/cutline*.service; do
    # Each program that a unit starts is one of the package.
    sed -n 's/^Exec[A-Za-z]*=-\{0,1\}\([^ ]*cutline[^ ]*\).*/\1/p' "$unit" | while read -r program; do
        [ -x "$work/root$program" ] || { echo "$unit starts $program, which is missing" >&2; exit 1; }
    done
done

# The monitor, as its unit starts it, and with SNMP.
ip link set lo up
: > "$work/root/tmp/snmp.toml"
mkdir -p "$work/root/run/cutline" "$work/root/var/lib/cutline"
chroot "$work/root" /usr/bin/cutline monitor --snmp /tmp/snmp.toml > "$work/monitor.log" 2>&1 &
monitor=$!
trap 'kill "$monitor" 2>/dev/null || true' EXIT
for _ in $(seq 600); do
    if in_copy /usr/bin/cutline top --once --json > "$work/host.json" 2>/dev/null; then break; fi
    sleep 0.1
done
grep -q '"publishers"' "$work/host.json" || { echo "cutline top finds no monitor" >&2; cat "$work/monitor.log" >&2; exit 1; }
for path in / /page.js /page.css /metrics; do
    python3 -I -c "import sys, urllib.request; urllib.request.urlopen('http://127.0.0.1:9466' + sys.argv[1], timeout=60).read()" "$path" \
        || { echo "the monitor's $path is not served" >&2; exit 1; }
done
if command -v snmpget >/dev/null; then
    snmpget -m "" -v2c -c public 127.0.0.1 .1.3.6.1.4.1.8072.9999.9999.2005.1.1.2.0 | grep -q Gauge32 \
        || { echo "SNMP does not answer" >&2; cat "$work/monitor.log" >&2; exit 1; }
fi
kill "$monitor"
wait "$monitor" || true
trap - EXIT
rm -rf "$work/root/var/lib/cutline"
in_copy dpkg --purge cutline >/dev/null
files > "$work/after"
# Directories that the overlay has copied stay in its upper folder; files do not.
left="$(comm -13 "$work/before" "$work/after" | while read -r path; do
    if [ -f "$work/root/$path" ] && ! cmp -s "/$path" "$work/root/$path"; then echo "$path"; fi
done)"
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "installed, tried and removed; nothing is left"
