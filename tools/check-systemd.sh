#!/bin/bash
# Runs the units under a real systemd: a copy of this system's files, with the programs of `make service` installed, is started in
# namespaces of its own, as a gateway between two hosts. Nothing of this system changes: all output goes to a folder in memory, and
# to namespaces, which end with the script. Run it as root; `make check-systemd` builds the programs first.
#
# It checks `cutline router up --persist` as an operator uses it (start, a second `up`, kill -9, a router that hangs, reload, two starts of
# the machine, `down`), then the unit of a queue in the kernel, cutlined and the monitor.
set -eEuo pipefail

say() { echo "check-systemd: $*"; }
unavailable() { say "left out, because $*"; exit 0; }
failed() {
    say "FAILED: $*" >&2
    if [ -n "$init" ]; then
        within systemctl --no-pager --full status 'cutline*' >&2 || true
        within journalctl --no-pager --lines 40 >&2 || true
    fi
    exit 1
}

[ "$(id -u)" = 0 ] || unavailable "only root makes namespaces: sudo -E make check-systemd"
[ -x /lib/systemd/systemd ] || unavailable "systemd is not installed: apt-get install systemd"
command -v nft >/dev/null || unavailable "the gateway translates addresses with nft: apt-get install nftables"
if [ -z "${CUTLINE_CHECK_SYSTEMD:-}" ]; then
    exec env CUTLINE_CHECK_SYSTEMD=1 unshare --mount --propagation private "$0" "$@"
fi

name="cutline-systemd-$$"
work="$(mktemp -d)"
root="$work/root"
machine=""
init=""

# The process number 1 of the machine ends all others with it.
halt() {
    [ -z "$machine" ] || { kill -9 "$machine" 2>/dev/null || true; wait "$machine" 2>/dev/null || true; }
    machine=""
    for end in "" -lan -wan; do ip netns del "$name$end" 2>/dev/null || true; done
}
trap 'halt' EXIT
trap 'failed "line $LINENO"' ERR

mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$root"
make --no-print-directory install-service DESTDIR="$root" >/dev/null
# Of this system's own services none starts in the copy.
find "$root/etc/systemd/system" -name '*.wants' -prune -exec rm -r {} +
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
cat > "$root/etc/nftables.conf" <<'END'
table ip home { chain post { type nat hook postrouting priority srcnat; oifname "wan" masquerade; }; }
END
# There is no console to log in at.
ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
ln -sf /lib/systemd/system/nftables.service "$root/etc/systemd/system/multi-user.target.wants/nftables.service"

# What the machine's first process does before it becomes systemd: mounts that a container manager makes.
cat > "$work/start" <<END
set -eu
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
# With the modes that udev gives them.
while read -r device major minor; do mknod -m 666 "$root/dev/\$device" c "\$major" "\$minor"; done <<NODES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
net/tun 10 200
NODES
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
: > "$root/dev/console"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# Only for queues in the kernel, which not every kernel has.
mount -t bpf bpf "$root/sys/fs/bpf" 2>/dev/null || true
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin container=cutline chroot "$root" /lib/systemd/systemd --system --log-target=journal
END

within() { nsenter --target "$init" --all --root --wd env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root "$@"; }
# Waits up to two minutes for a command to succeed.
eventually() {
    for _ in $(seq 600); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    failed "not within two minutes: $*"
}
reached() { within systemctl --quiet is-active multi-user.target; }
active() { within systemctl --quiet is-active "$1"; }

# Starts the machine: new interfaces, new processes, the files of the last time.
start_machine() {
    for end in "" -lan -wan; do
        ip netns add "$name$end"
        ip -n "$name$end" link set lo up
    done
    local number=1 side
    for side in lan wan; do
        ip -n "$name" link add "$side" type veth peer name eth0 netns "$name-$side"
        ip -n "$name" addr add "10.9.$number.1/24" dev "$side"
        ip -n "$name-$side" addr add "10.9.$number.2/24" dev eth0
        ip -n "$name" link set "$side" up
        ip -n "$name-$side" link set eth0 up
        # A packet socket would see frames without checksums: the peers compute them, as network cards do.
        ip netns exec "$name-$side" ethtool --offload eth0 tx off >/dev/null 2>&1 || true
        number=$((number + 1))
    done
    ip -n "$name-lan" route add default via 10.9.1.1
    ip netns exec "$name" sysctl --quiet net.ipv4.ip_forward=1
    # A namespace for the mounts of `ip netns exec`, and in it those of the machine.
    nsenter --net="/var/run/netns/$name" unshare --mount --pid --fork --uts --ipc --cgroup --propagation private \
        --kill-child=SIGKILL bash "$work/start" > "$work/console" 2>&1 &
    machine=$!
    for _ in $(seq 600); do
        init="$(pgrep --parent "$machine" || true)"
        if [ -n "$init" ] && [ "$(readlink "/proc/$init/exe")" = "$(readlink -f /lib/systemd/systemd)" ]; then break; fi
        sleep 0.1
    done
    eventually reached
}
stop_machine() {
    within systemctl --force poweroff 2>/dev/null || true
    for _ in $(seq 600); do kill -0 "$machine" 2>/dev/null || break; sleep 0.1; done
    halt
}
# Without the interfaces' hardware addresses, and what follows from them, which differ from start to start.
network() {
    ip -n "$name" -oneline link | cut -d' ' -f2
    ip -n "$name" -4 address
    for family in -4 -6; do ip -n "$name" "$family" rule; done
    ip -n "$name" -4 route show table all
}
# Returns whether a host behind the gateway gets an answer from one in front of it: a connection that is refused is an answer.
home_reaches_the_world() {
    ip netns exec "$name-lan" python3 -c '
import socket
try:
    socket.create_connection(("10.9.2.2", 9), timeout=1)
except ConnectionRefusedError:
    pass'
}
sent() { within cutline router stats /run/cutline/cut/stats.sock --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["forward"]["sent"]["packets"])'; }
# Returns whether a packet of the home passes the router.
is_shaped() {
    local before after
    before="$(sent)" && home_reaches_the_world && after="$(sent)" && [ "$after" -gt "$before" ]
}
main_pid() { within systemctl show --property MainPID --value cutline-router@cut; }
is_another_than() { local now; now="$(main_pid)"; [ "$now" != 0 ] && [ "$now" != "$1" ] && active cutline-router@cut; }

say "first start"
start_machine
eventually home_reaches_the_world
before="$(network)"
within cutline router up --lan lan --wan wan --rate 20Mbit --reverse-rate 100Mbit --persist
eventually is_shaped
if within cutline router up --lan lan --wan wan --rate 20Mbit --persist 2> "$work/again"; then failed "a second \`up\` is accepted"; fi
active cutline-setup@cut || failed "cutline-setup@cut is not active"

say "kill -9"
first="$(main_pid)"
within kill -9 "$first"
eventually is_another_than "$first"
eventually is_shaped

say "a router that hangs"
second="$(main_pid)"
within kill -STOP "$second"
eventually is_another_than "$second"
eventually is_shaped

say "reload"
within systemctl reload cutline-router@cut
eventually is_shaped

say "second start"
stop_machine
start_machine
eventually is_shaped

say "down"
within cutline router down
if active cutline-router@cut || active cutline-setup@cut; then failed "\`down\` leaves units active"; fi
[ "$before" = "$(network)" ] || failed "\`down\` leaves the network changed: $(diff <(echo "$before") <(network) || true)"
eventually home_reaches_the_world

say "third start"
stop_machine
start_machine
eventually home_reaches_the_world
[ -z "$(within systemctl --no-legend list-units 'cutline*')" ] || failed "units start after \`down\`"

say "a queue in the kernel"
within systemd-analyze verify --recursive-errors=no cutline-qdisc@lan.service 2> "$work/verify" || failed "cutline-qdisc@: $(cat "$work/verify")"
# Without udev an interface is no unit: the unit of the queue is used without that dependency.
sed -e '/^BindsTo=/d' -e '/^After=/d' "$root/etc/systemd/system/cutline-qdisc@.service" > "$root/etc/systemd/system/queue@.service"
within systemctl daemon-reload
echo 'OPTIONS="--rate 20Mbit"' > "$root/etc/cutline/qdisc/lan"
has_queue() { tc -n "$name" qdisc show dev lan | grep -F cutline_sieve >/dev/null; }
queue_rate() { within cutline qdisc show dev lan --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["rate_bps"])'; }
says_why() { within journalctl --unit queue@lan --no-pager --output cat | grep -F -- "$why" >/dev/null; }
if within cutline qdisc add dev lan --rate 20Mbit >/dev/null 2> "$work/refusal"; then
    within cutline qdisc del dev lan
    within systemctl start queue@lan
    has_queue || failed "queue@lan has started, but lan has no queue"
    eventually home_reaches_the_world
    echo 'OPTIONS="--rate 30Mbit"' > "$root/etc/cutline/qdisc/lan"
    within systemctl reload queue@lan
    [ "$(queue_rate)" = 30000000 ] || failed "reload leaves the rate $(queue_rate)"
    within systemctl stop queue@lan
    if has_queue; then failed "\`systemctl stop\` leaves the queue"; fi
else
    # The unit refuses with the words of the command, and is done.
    why="$(head -n 1 "$work/refusal")"
    say "its start is refused here: $why"
    if within systemctl start queue@lan 2>/dev/null; then failed "queue@lan starts where \`cutline qdisc\` does not"; fi
    eventually says_why
    within systemctl reset-failed queue@lan
fi

say "cutlined and the monitor"
cat > "$root/etc/cutline/cutlined.toml" <<'END'
[[interface]]
name = "lan"
rate = "10 Mbit/s"

[[interface]]
name = "wan"
rate = "10 Mbit/s"
END
within systemctl start cutlined cutline-monitor
eventually active cutlined
eventually active cutline-monitor
within cutline top --once --json >/dev/null
# A reservation from the gateway to the host in front of it, whose own cutlined runs without systemd.
cat > "$work/receiver.toml" <<END
socket = "$work/receiver.sock"
[[interface]]
name = "eth0"
rate = "10 Mbit/s"
control = "none"
END
ip netns exec "$name-wan" "$root/usr/local/sbin/cutlined" --config "$work/receiver.toml" > "$work/receiver.log" 2>&1 &
receiver=$!
eventually test -S "$work/receiver.sock"
python3 - "/proc/$init/root/run/cutline/cutlined.sock" "$work/receiver.sock" <<'END' || failed "no reservation is confirmed"
import json, socket, sys

def client(path, **request):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(path)
    lines = connection.makefile("rw")
    for line in {"request": "hello", "version": 1}, request:
        print(json.dumps(line), file=lines, flush=True)
    return lines

bucket = {"rate_bps": 100000, "bucket_bytes": 3000, "peak_bps": 1000000, "min_policed_bytes": 64, "max_packet_bytes": 200}
source, destination = "10.9.2.1:5000", "10.9.2.2:5000"
flow = {"transport": "udp", "source": source, "destination": destination}
sender = client(sys.argv[1], request="announce", id=1, flow=flow, bucket=bucket)
receiver = client(sys.argv[2], request="reserve", id=1, transport="udp", destination=destination, bucket=bucket,
                  senders={"style": "fixed", "senders": [source]}, confirm=True)
for line in receiver:
    if "confirmed" in line:
        break
    if "failed" in line or "error" in line:
        sys.exit(line)
else:
    sys.exit("the connection ended")
END
kill "$receiver"
within systemctl stop cutlined cutline-monitor
failures="$(within systemctl --no-legend --failed list-units 'cutline*')"
[ -z "$failures" ] || failed "units have failed: $failures"
say "all is as promised"
