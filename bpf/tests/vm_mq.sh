#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
# The first process of the second virtual machine of `make test-vm`, which has two processors: a queue for each of two transmit queues, with senders that
# are pinned to a processor and so to a transmit queue. validate/qdisc_vm.py judges it. Lines are as those of vm.sh.
. /common.sh
echo "KERNEL $(uname -r) with $(grep -c ^processor /proc/cpuinfo) processors"

for namespace in r dst; do $ip netns add $namespace && $ip -n $namespace link set lo up; done
$ip link add many numtxqueues 2 numrxqueues 2 netns r type veth peer name sink numtxqueues 2 numrxqueues 2 netns dst
$ip -n r link set many gso_max_segs 1
$ip -n r addr add 10.0.3.2/24 dev many
$ip -n dst addr add 10.0.3.1/24 dev sink
$ip -n dst link set sink up
# The other end takes what comes for an address that is not its own, and drops it.
raise() {
    $ip -n r link set many up
    $ip -n r route replace 10.0.3.0/24 dev many
    $ip -n r neigh replace 10.0.3.77 lladdr "$($ip -n dst -br link show sink | awk '{ print $3 }')" dev many
}
raise
# `ip netns exec` shows the interfaces of the namespace in /sys. Each processor has its transmit queue.
$ip netns exec r /bin/busybox sh -c 'for queue in 0 1; do echo $((queue + 1)) >/sys/class/net/many/queues/tx-$queue/xps_cpus || echo "FAILED xps $queue"; done'

list() { # STEP: all transmit queues together, and each
    echo "LIST $1 $(command show dev many --json | tr -d '\n')"
    echo "TC $1 $($ip netns exec r $tc -s -j qdisc show dev many | tr -d '\n')"
}
# PROCESSOR KBPS SECONDS: always in the background, whose process becomes the sender.
send() { exec nsenter --net=/run/netns/r /pinned "$1" 10.0.3.77 "$2" "$3"; }
# STEP SECONDS: readings a second after the start, and so many seconds later.
between() { sleep 1; list "$1"; sleep "$2"; list "$1-later"; }

for queue in $(cat /queues); do
    options=; [ $queue = tsq ] && options="--aqm pi --tsq"
    echo "QDISC $queue"
    status add command add dev many --rate 10Mbit --overhead none --mq $options
    said add
    status add-twice command add dev many --rate 10Mbit --mq $options

    # Each processor alone, then both: the link is full.
    send 0 14000 7 & between first 5; wait
    send 1 14000 7 & between second 5; wait
    send 0 14000 12 & send 1 14000 12 & between both 10; wait
    # One has little to send: the other one has the rest.
    send 0 14000 8 & send 1 2000 8 & between little 6; wait

    # A change while both send.
    send 0 14000 9 & send 1 14000 9 &
    sleep 2
    status change command change dev many --rate 4Mbit --mq
    said change
    between slower 5; wait
    status change command change dev many --rate 10Mbit

    # The interface goes down and up under load.
    send 0 14000 5 & send 1 14000 5 &
    sleep 1; $ip -n r link set many down; list down; sleep 1; raise; sleep 1; list up; wait
    sleep 2; list settled
    status replace command add dev many --rate 20Mbit --overhead none --mq --replace $options
    status del command del dev many
    status del-twice command del dev many

    # Another program takes a transmit queue: its queue stays until it is named.
    status add command add dev many --rate 10Mbit --mq $options
    major=$($ip netns exec r $tc qdisc show dev many | awk '$2 == "mq" { print $3 }')
    $ip netns exec r $tc qdisc replace dev many parent "${major}2" pfifo
    status del-others command del dev many
    said del-others
    echo "TC others $($ip netns exec r $tc -s -j qdisc show dev many | tr -d '\n')"
    status del-all command del dev many --all
    echo "TC none $($ip netns exec r $tc -s -j qdisc show dev many | tr -d '\n')"

    # The card's own rate: nothing is shaped, and nothing lost.
    status add command add dev many --rate 1Gbit --unshaped --mq $options
    send 0 14000 3 & send 1 14000 3 & wait
    sleep 1; list unshaped
    status del command del dev many

    # A driver that has allocated a transmit queue for each processor, of which one is in use; and one with too many in use.
    $ip -n r link add spare type veth peer name spare-peer
    status spare-add command add dev spare --rate 10Mbit --mq $options
    echo "LIST spare $(command show dev spare --json | tr -d '\n')"
    status spare-del command del dev spare
    $ip -n r link del spare
    $ip -n r link add wide numtxqueues 300 type veth peer name wide-peer
    status too-many command add dev wide --rate 10Mbit --mq $options
    said too-many
    $ip -n r link del wide

    # Added and removed while both send.
    slab before
    send 0 14000 400 & first=$!
    send 1 14000 400 & second=$!
    sleep 1
    rounds=$(($(cat /rounds) / 5 + 1))
    for round in $(seq $rounds); do
        status round-add command add dev many --rate 10Mbit --mq $options
        [ $round = $rounds ] && sleep 1 && list last-round
        status round-del command del dev many
    done
    kill $first $second 2>/dev/null; wait
    sleep 2
    slab after
    pins unloaded
done
complaints
echo "DONE"
poweroff -f
