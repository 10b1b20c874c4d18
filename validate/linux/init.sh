#!/bin/busybox sh
# The first process of the virtual machine of validate/linux.py and validate/qdisc.py: runs every line of /plan and turns the machine off.
/bin/busybox --install -s /bin
ip=/tools/ip tc=/tools/tc # Not busybox's own.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /run/netns /var
ln -s /run /var/run
for module in /modules/*.ko; do insmod "$module" || echo "FAILED insmod $module"; done
sysctl -qw net.core.rmem_max=67108864 net.core.default_qdisc=pfifo
echo "KERNEL $(uname -r)"

cutline() { # ARGUMENTS...: `cutline qdisc` in the namespace r. `ip netns exec` would hide /sys/fs/bpf.
    nsenter --net=/run/netns/r /usr/bin/cutline qdisc "$@"
}
quietly() { "$@" >/run/output 2>&1 || echo "FAILED $*: $(tr '\n' ' ' </run/output)"; }

if [ -e /usr/bin/cutline ]; then
    mount -t bpf bpf /sys/fs/bpf
    # Interfaces without traffic keep the programs loaded.
    $ip link add keep-sieve type veth peer name keep-tsq
    quietly /usr/bin/cutline qdisc add dev keep-sieve --rate 1Gbit
    quietly /usr/bin/cutline qdisc add dev keep-tsq --rate 1Gbit --aqm pi --tsq
fi

up() { # NAMESPACE DEVICE: without segments larger than a packet
    $ip -n "$1" link set "$2" gso_max_segs 1 up
}

build() { # DELAY[@MBPS] QUEUE...: src - r - dst with the queue at r
    delay=${1%@*} rate=15
    case "$1" in *@*) rate=${1#*@} ;; esac
    shift
    for namespace in src r dst; do $ip netns add $namespace && $ip -n $namespace link set lo up; done
    $ip link add out mtu 986 netns src type veth peer name in mtu 986 netns r
    $ip link add sink mtu 986 netns dst type veth peer name bottleneck mtu 986 netns r
    for host in 1 11 12; do $ip -n src addr add 10.0.1.$host/24 dev out; done; $ip -n r addr add 10.0.1.2/24 dev in
    $ip -n dst addr add 10.0.2.1/24 dev sink; $ip -n r addr add 10.0.2.2/24 dev bottleneck
    up src out; up r in; up r bottleneck; up dst sink
    $ip -n src route add default via 10.0.1.2; $ip -n dst route add default via 10.0.2.2
    $ip netns exec r sysctl -qw net.ipv4.ip_forward=1
    for namespace in src dst; do
        $ip netns exec $namespace sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_ecn=0 \
            net.ipv4.tcp_rmem="4096 131072 6291456" net.ipv4.tcp_wmem="4096 131072 6291456"
    done
    if [ "$1" = cutline ]; then # It is its own shaper, too.
        shift
        quietly cutline add dev bottleneck --rate ${rate}Mbit --overhead none "$@"
    elif [ "$1" = cake ]; then # It is its own shaper.
        $ip netns exec r $tc qdisc add dev bottleneck root handle 10: "$@" || echo "FAILED tc $*"
    else
        # A burst of one byte: each packet waits until the last one is gone, as at a link.
        $ip netns exec r $tc qdisc add dev bottleneck root handle 1: htb default 1
        $ip netns exec r $tc class add dev bottleneck parent 1: classid 1:1 htb rate ${rate}mbit burst 1 cburst 1
        $ip netns exec r $tc qdisc add dev bottleneck parent 1:1 handle 10: "$@" || echo "FAILED tc $*"
    fi
    $ip netns exec dst $tc qdisc add dev sink root netem delay "$delay" limit 100000
}

# A line: NAME|DELAY[@MBPS]|QUEUE...|LOAD...
while IFS='|' read -r name delay queue load; do
    build "$delay" $queue
    echo "RUN $name"
    /load $load || echo "FAILED load"
    case "$queue" in cutline*)
        cutline show dev bottleneck --json >/run/list 2>/run/output || echo "FAILED cutline show: $(tr '\n' ' ' </run/output)"
        echo "LIST $(tr -d '\n' </run/list)"
        quietly cutline del dev bottleneck ;;
    esac
    for namespace in src r dst; do $ip netns del $namespace; done
done < /plan
echo DONE
poweroff -f
