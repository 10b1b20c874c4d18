#!/bin/sh
# Runs a command several times in a row beside busy loops, one for each processor, as `make soak` does with all tests.
#
#   tools/soak.sh ROUNDS COMMAND...
#
# Prints a line for each round; the output of a round is in target/soak-ROUND.log. A failed round does not end the others. Exits with 1 if
# a round failed.
set -eu
[ $# -ge 2 ] || { echo "usage: tools/soak.sh ROUNDS COMMAND..." >&2; exit 2; }
rounds=$1
shift
folder="$(dirname "$0")/../target"
mkdir -p "$folder"

loops=
stop() { for pid in $loops; do kill "$pid" 2>/dev/null || true; done; }
trap stop EXIT
trap 'exit 130' INT TERM
for _ in $(seq "$(nproc)"); do
    # Ends by itself if this script is killed with -9.
    (while kill -0 $$ 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; done) &
    loops="$loops $!"
done

failed=0
for round in $(seq "$rounds"); do
    begin=$(date +%s)
    if "$@" >"$folder/soak-$round.log" 2>&1; then result=passed; else result=failed failed=$((failed + 1)); fi
    echo "round $round of $rounds $result after $(($(date +%s) - begin)) s: target/soak-$round.log"
done
[ "$failed" = 0 ]
