# SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
# The common beginning of vm.sh and vm_mq.sh, as /common.sh in the virtual machine: mounts, modules, and the functions that print lines.
/bin/busybox --install -s /bin
ip=/tools/ip tc=/tools/tc # Not busybox's own.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /run/netns /var
ln -s /run /var/run
mount -t bpf bpf /sys/fs/bpf
for module in /modules/*.ko; do insmod "$module" || echo "FAILED insmod $module"; done
sysctl -qw net.core.default_qdisc=pfifo
echo

status() { # STEP COMMAND...
    step=$1; shift
    "$@" >/run/output 2>&1
    echo "STATUS $step $?"
}
# `ip netns exec` would hide /sys/fs/bpf.
command() { nsenter --net=/run/netns/r /usr/bin/cutline qdisc "$@"; }
said() { echo "SAID $1 $(tr '\n' ' ' </run/output)"; }
pins() { echo "PINS $1 $(find /sys/fs/bpf/cutline 2>/dev/null | wc -l)"; }
# Lines of the kernel's log about a fault.
complaints() { dmesg | grep -E "WARNING|BUG|refcount|Oops|detected stall" | sed 's/^/KERNELMESSAGE /'; }
# The kernel frees programs and maps a while after their last use.
objects() { sleep 2; echo "OBJECTS $1 $(/qdisc objects)"; } # STEP
# Packets that the kernel keeps free for the next use do not count.
slab() {
    for cache in skbuff_head_cache skbuff_fclone_cache; do echo 1 >/sys/kernel/slab/$cache/shrink; done
    echo "SLAB $1 $(awk '/^skbuff_head_cache|^skbuff_fclone_cache/ { sum += $2 } END { print sum + 0 }' /proc/slabinfo)"
}
