#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
# The first process of the virtual machine of `make test-vm`: uses the queueing disciplines as an operator does, and prints what happened.
# validate/qdisc_vm.py judges it. A line is "STATUS step code", "SHOW step {statistics}", "LIST step [statistics of the command]", "TC step [statistics]",
# "RESULT {load}" after "RUN step", "SAID step output", "PINS step number", "OBJECTS step number", "MEMORY {bytes}", "AVAILABLE step kilobytes", "SALT step number", "SIX {stream}", "COST {program}", "BLAST step instructions", "LEFT step [statistics of tc]", or "SLAB step objects".
. /common.sh
sysctl -qw net.core.rmem_max=67108864 kernel.bpf_stats_enabled=1
echo "KERNEL $(uname -r)"

up() { $ip -n "$1" link set "$2" up; }

for namespace in src r dst; do $ip netns add $namespace && $ip -n $namespace link set lo up; done
$ip link add out mtu 986 netns src type veth peer name in mtu 986 netns r
$ip link add sink mtu 986 netns dst type veth peer name bottleneck mtu 986 netns r
for host in 1 11 12; do $ip -n src addr add 10.0.1.$host/24 dev out; done
$ip -n r addr add 10.0.1.2/24 dev in
$ip -n dst addr add 10.0.2.1/24 dev sink
$ip -n r addr add 10.0.2.2/24 dev bottleneck
for link in src:out r:in r:bottleneck dst:sink; do
    $ip -n ${link%:*} link set ${link#*:} gso_max_segs 1
    up ${link%:*} ${link#*:}
done
$ip -n src route add default via 10.0.1.2
$ip -n dst route add default via 10.0.2.2
$ip netns exec r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1
for namespace in src dst; do
    $ip netns exec $namespace sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_ecn=0 net.ipv6.conf.all.disable_ipv6=1
done
$ip netns exec dst $tc qdisc add dev sink root netem delay 50ms limit 100000

# As `command` of vm_common.sh: `ip netns exec` would hide /sys/fs/bpf.
qdisc() { nsenter --net=/run/netns/r /qdisc "$@"; }
attach() { $ip netns exec r $tc qdisc add dev bottleneck root handle 10: "$kind"; }
detach() { $ip netns exec r $tc qdisc del dev bottleneck root; }
show() { # STEP
    echo "TC $1 $($ip netns exec r $tc -s -j qdisc show dev bottleneck | tr -d '\n')"
    echo "SHOW $1 $(qdisc show $folder 3)"
}
run() { # STEP LOAD...: the queue's packets and those that the load received
    step=$1; shift
    echo "RUN $step"
    /load "$@" | grep -v ^QUEUE
    show "$step"
}
# STEP: the other end receives frames for an address that is not its own, and drops them. Before that, the kernel frees the memory of earlier steps.
blast() {
    sleep 5
    $ip -n r neigh replace 10.0.2.77 lladdr "$($ip -n dst -br link show sink | awk '{ print $3 }')" dev bottleneck
    nsenter --net=/run/netns/r /blast 20000 10.0.2.77 "$1"
}
# STEP: on a full link. Packets that are dropped are not sent, which takes instructions, too.
blast_full() {
    blast "$1"
    echo "LEFT $1 $($ip netns exec r $tc -s -j qdisc show dev bottleneck root | tr -d '\n')"
}
list() { echo "LIST $1 $(command show dev ${2:-bottleneck} --json | tr -d '\n')"; } # STEP [INTERFACE]

# The kernel frees memory a while after its last use.
available() { sleep 5; echo 3 >/proc/sys/vm/drop_caches; echo "AVAILABLE $1 $(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)"; } # STEP: kB of the machine

full_mbps=60 # Less than a sender without a pause sends through any of the queues.

for queue in $(cat /queues); do
    kind=cutline_${queue}3 folder=/sys/fs/bpf/cutline/${queue}3
    options=; [ $queue = tsq ] && options="--aqm pi --tsq"
    echo "QDISC $queue"
    objects before
    # An interface without traffic keeps the programs loaded.
    status loaded command add dev lo --rate 1Gbit $options
    said loaded
    [ -d $folder ] || continue

    # Refusals.
    status unconfigured attach
    status set qdisc set $folder 3 bottleneck link_bps 5
    status out-of-range attach
    status set qdisc set $folder 3 bottleneck link_bps 10000000
    status attached attach
    status twice $ip netns exec r $tc qdisc replace dev bottleneck root handle 11: $kind
    show attached

    # A link of 10 Mbit/s, TCP with the largest hint, and two kinds of calls: 23 is the code point of hint 6.
    run mixed 1 14 4 tcp:10:reno udp:call:4:128000:cbr:0:23 udp:plain:4:128000:cbr
    /qdisc costs
    run overload 2 6 2 udp:flood:1:20000000:cbr udp:call:4:128000:cbr:0:23

    # The other laws under TSQ, with the papers' gains and weights.
    if [ $queue = tsq ]; then
        status set qdisc set $folder 3 bottleneck law 2 pi2.alpha 360287970 pi2.beta 3602879701 pi2.target 20000000 pi2.t_update 32000000
        show before-pi2
        run pi2 8 24 4 tcp:10:reno udp:call:20:128000:cbr:0:23 udp:plain:20:128000:cbr
        delays=; for level in $(seq 16); do delays="$delays red.delay.$level $((level * 5000000))"; done
        status set qdisc set $folder 3 bottleneck law 3 red.min_th 20971520 red.max_th 83886080 red.max_p 23058430092136940 red.w_q 2305843009213694 red.ln_keep 2308151931299330 \
            red.w_t 23058430092136940 red.interval 500000000 red.alpha 0 red.beta 1037629354146162304 red.range 115292150460684704 red.floor 11529215046068470 red.ceiling 1152921504606846976 \
            red.mean_packet 1000 red.gentle 1 $delays
        show before-redw
        run redw 9 24 4 tcp:10:reno udp:call:20:128000:cbr:0:23 udp:plain:20:128000:cbr
        status set qdisc set $folder 3 bottleneck law 1 pi.a 21006229813936 pi.b 20937054523660 pi.q_ref 209715200 pi.period 5882353 pi.mean_packet 0
    fi

    # Changes while traffic flows: the rate, and a rate that is out of range.
    /load 3 9 1 tcp:10:reno >/dev/null &
    load=$!
    sleep 3
    status set qdisc set $folder 3 bottleneck shape_bps 4000000
    sleep 1; show slower
    sleep 2; show slower-later
    status set qdisc set $folder 3 bottleneck shape_bps 7
    sleep 1; show refused
    # The next change begins with the configuration in use.
    status after-refused command change dev bottleneck --limit "800 packets"
    status set qdisc set $folder 3 bottleneck shape_bps 10000000
    wait $load
    show changed

    # The interface goes down and up under load.
    /load 4 8 1 tcp:10:reno >/dev/null &
    load=$!
    sleep 2; $ip -n r link set bottleneck down; show down
    sleep 1; up r bottleneck; $ip -n r route replace 10.0.2.0/24 dev bottleneck; sleep 1; show up
    wait $load
    show up-later

    # Large packets that the interface would segment.
    for link in src:out r:in r:bottleneck dst:sink; do $ip -n ${link%:*} link set ${link#*:} gso_max_segs 64; done
    run segments 5 8 2 tcp:4:reno udp:call:4:128000:cbr:0:23
    for link in src:out r:in r:bottleneck dst:sink; do $ip -n ${link%:*} link set ${link#*:} gso_max_segs 1; done

    # A limit of one packet at last.
    /load 6 5 1 tcp:10:reno udp:call:4:128000:cbr:0:23 >/dev/null &
    load=$!
    sleep 2; show before-one-packet
    status set qdisc set $folder 3 bottleneck limit_packets 1
    sleep 1; show one-packet
    wait $load
    status detached detach
    status forget qdisc forget $folder 3 bottleneck
    status forgotten attach
    sleep 1

    # As an operator: the command alone. Twice, then where another queueing discipline is set.
    status add command add dev bottleneck --rate 10Mbit --overhead none $options
    said add
    echo "MEMORY $(qdisc memory $folder bottleneck)"
    status add-twice command add dev bottleneck --rate 10Mbit $options
    said add-twice
    $ip netns exec r $tc qdisc add dev in root handle 77: pfifo
    status add-foreign command add dev in --rate 100Mbit $options
    said add-foreign
    status replace command add dev in --rate 100Mbit $options --replace
    status replace-own command add dev in --rate 200Mbit $options --replace
    # The other queue cannot be loaded: this one stays.
    case $queue in tsq) other= ;; *) other="--tsq" ;; esac
    status unloadable nsenter --net=/run/netns/r env CUTLINE_BPF=/none /usr/bin/cutline qdisc add dev in --rate 100Mbit --replace $other
    said unloadable
    status kept command show dev in
    status del command del dev in
    status del-twice command del dev in
    said del-twice
    status wrong command add dev in --rate 1bit

    # Changes while packets flow.
    /load 10 9 1 tcp:10:reno udp:call:4:128000:cbr:0:23 >/dev/null &
    load=$!
    sleep 3; list flowing
    status change command change dev bottleneck --rate 4Mbit
    said change
    sleep 1; list slower
    sleep 2; list slower-later
    status change command change dev bottleneck --rate 10Mbit --limit "500 packets"
    status change-larger command change dev bottleneck --limit "5000 packets"
    wait $load
    list changed
    command show dev bottleneck
    status metrics command show dev bottleneck --metrics

    # The salt of Sieve's table is drawn again every minute: in the midst of this load.
    if [ $queue = sieve ]; then
        salt=$(qdisc salt $folder bottleneck)
        [ "${salt% *}" -gt 8 ] && sleep $((${salt% *} - 8))
        echo "SALT before ${salt#* }"
        echo "RUN rotated"
        /load 12 14 4 tcp:10:reno udp:call:4:128000:cbr:0:23 udp:plain:4:128000:cbr | grep -v ^QUEUE
        salt=$(qdisc salt $folder bottleneck)
        echo "SALT after ${salt#* }"
        list rotated
    fi

    # TCP over IPv6, of this host, with EF and packets of several segments.
    $ip -n r link add six type veth peer name six-peer netns dst
    for link in r:six:1 dst:six-peer:2; do
        namespace=${link%%:*} name=${link#*:}; name=${name%:*}
        $ip netns exec $namespace sysctl -qw net.ipv6.conf.$name.disable_ipv6=0
        $ip -n $namespace addr add fd00::${link##*:}/64 dev $name nodad
        up $namespace $name
    done
    status six-add command add dev six --rate 10Mbit --overhead none $options
    /six r dst fd00::2 46 4
    list six six
    status six-del command del dev six
    $ip -n r link del six

    # Frames of all kinds, on an interface with jumbo frames and the largest limit. Code point N has the hint N mod 16 + 1.
    $ip -n r link add wide mtu 9000 type veth peer name wide-peer mtu 9000
    up r wide; up r wide-peer
    hints=; for point in $(seq 0 63); do hints="$hints --hint $point=$((point % 16 + 1))"; done
    status wide-add command add dev wide --rate 1Gbit --overhead none --limit "1000000 packets" $options $hints
    status wide-larger command change dev wide --limit "1000001 packets"
    status frames $ip netns exec r /frames wide points
    sleep 1; list points wide
    status frames $ip netns exec r /frames wide malformed
    sleep 1; list malformed wide
    status frames $ip netns exec r /frames wide jumbo 20
    sleep 1; list jumbo wide
    if [ $queue = sieve ]; then
        status frames $ip netns exec r /frames wide flows 1000000
        list flows wide # At once: a cell of the table counts as used for tau.
    fi
    # The MTU becomes smaller than the packets that wait.
    status wide-change command change dev wide --rate 1Mbit
    status frames $ip netns exec r /frames wide jumbo 12
    $ip -n r link set wide mtu 1500
    sleep 3; list smaller wide
    status frames $ip netns exec r /frames wide extensions
    sleep 1; list extensions wide
    status wide-del command del dev wide
    $ip -n r link del wide

    # An interface with two transmit queues: below `mq` there is no place, and in its place only when that is allowed.
    $ip -n r link add many numtxqueues 2 type veth peer name many-peer
    up r many; up r many-peer
    $ip netns exec r $tc qdisc add dev many root handle 1: mq
    status under-mq $ip netns exec r $tc qdisc add dev many parent 1:1 "$kind"
    status over-mq command add dev many --rate 10Gbit $options
    said over-mq
    $ip netns exec r $tc qdisc del dev many root
    status many-add command add dev many --rate 10Gbit $options
    said many-add
    status many-del command del dev many
    status many-instances command add dev many --rate 10Mbit --instances 7 $options
    said many-instances
    status many-del command del dev many
    $ip -n r link del many

    # An interface that vanishes with its queue.
    $ip -n r link add gone type veth peer name peer
    up r gone
    status add command add dev gone --rate 10Mbit $options
    $ip -n r link del gone
    status del command del dev gone
    said del-gone
    status no-interface command del dev gone
    # Another interface's change frees the memory, so nothing is left for `del`.
    $ip -n r link add gone type veth peer name peer
    up r gone
    status add command add dev gone --rate 10Mbit $options
    $ip -n r link del gone
    status change command change dev bottleneck --rate 10Mbit
    status no-interface command del dev gone

    # Added and removed under load.
    status del command del dev bottleneck
    slab before
    /load 11 600 1 tcp:10:reno udp:call:4:128000:cbr:0:23 >/dev/null &
    load=$!
    sleep 1
    rounds=$(cat /rounds)
    for round in $(seq $rounds); do
        status round-add command add dev bottleneck --rate 10Mbit $options
        [ $round = $rounds ] && sleep 1 && list last-round
        status round-del command del dev bottleneck
    done
    kill $load; wait $load
    sleep 3
    slab after

    # The programs are unloaded with the last queue.
    pins loaded
    objects loaded
    status del command del dev lo
    pins unloaded
    objects unloaded
    status unknown attach

    # A hundred interfaces beside room for 40,000.
    for number in $(seq 100); do $ip -n r link add hundred$number type veth peer name peer$number; done
    available before
    status add command add dev lo --rate 1Gbit --instances 40000 $options
    available loaded
    for number in $(seq 100); do status hundred-add command add dev hundred$number --rate 10Mbit $options; done
    available added
    for number in $(seq 100); do
        status hundred-del command del dev hundred$number
        $ip -n r link del hundred$number
    done

    # Without shaping, in front of a device without a rate: everything passes.
    status set qdisc set $folder 3 bottleneck shape_bps 0 link_bps 1000000000
    status attached attach
    run unshaped 7 4 1 udp:call:4:128000:cbr:0:23 udp:plain:4:128000:cbr
    sysctl -qw kernel.bpf_stats_enabled=0
    blast $queue
    sysctl -qw kernel.bpf_stats_enabled=1
    status detached detach
    status forget qdisc forget $folder 3 bottleneck

    # On a full link: the sender never waits, and the queue drops the rest.
    status add command add dev bottleneck --rate ${full_mbps}Mbit --overhead none $options
    sysctl -qw kernel.bpf_stats_enabled=0
    blast_full $queue-full
    sysctl -qw kernel.bpf_stats_enabled=1
    status del command del dev bottleneck
    status del command del dev lo
done

# The kernel's own on the same packets, for the costs beside each other.
for kind in noqueue blackhole pfifo fq_codel "cake unlimited"; do
    $ip netns exec r $tc qdisc add dev bottleneck root handle 10: $kind >/dev/null 2>&1
    blast ${kind% *}
    detach >/dev/null 2>&1
done
# FQ-CoDel has no rate: it is below HTB, with its default burst.
$ip netns exec r $tc qdisc add dev bottleneck root handle 10: cake bandwidth ${full_mbps}mbit || echo "FAILED cake"
blast_full cake-full
detach
$ip netns exec r $tc qdisc add dev bottleneck root handle 1: htb default 1 &&
    $ip netns exec r $tc class add dev bottleneck parent 1: classid 1:1 htb rate ${full_mbps}mbit &&
    $ip netns exec r $tc qdisc add dev bottleneck parent 1:1 handle 10: fq_codel || echo "FAILED htb"
blast_full fq_codel-full
detach
complaints
echo "DONE"
poweroff -f
