#!/bin/sh
# Installs the objects of the kernel's queues, if `make bpf` has built them.
#
#   tools/install-bpf.sh target/bpf /usr/local/lib/cutline/bpf
set -eu

[ $# = 2 ] || { echo "usage: $0 OBJECTS FOLDER" >&2; exit 2; }
for queue in tsq sieve; do
    if [ ! -f "$1/$queue.bpf.o" ]; then
        echo "$1/$queue.bpf.o is not built, so \`cutline qdisc\` has no queues to load: run \`make bpf\` and install again" >&2
        continue
    fi
    install -D -m 644 "$1/$queue.bpf.o" "$2/$queue.bpf.o"
done
