#!/bin/sh
# Installs a Debian package over a copy of this system's files, looks whether its parts work, removes it, and compares what is left.
# Nothing of this system changes: what is written goes to a folder in memory that ends with the script. Run it as root.
#
#   tools/check-deb.sh target/deb/cutline_0.1.0_amd64.deb
set -eu

[ $# = 1 ] || { echo "usage: $0 PACKAGE" >&2; exit 2; }
if [ -z "${CUTLINE_CHECK_DEB:-}" ]; then
    exec env CUTLINE_CHECK_DEB=1 unshare --mount --propagation private "$0" "$(realpath "$1")"
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
    /lib/systemd/system/cutline-qdisc@.service /usr/lib/cutline/bpf/tsq.bpf.o /usr/lib/cutline/bpf/sieve.bpf.o \
    /usr/share/man/man1/cutline-run.1.gz \
    /usr/share/bash-completion/completions/cutline /usr/share/doc/cutline/docs/guide/scenario.md; do
    [ -s "$work/root$file" ] || { echo "$file is missing" >&2; exit 1; }
done
in_copy dpkg --purge cutline >/dev/null
files > "$work/after"
# Directories that the overlay has copied stay in its upper folder; files do not.
left="$(comm -13 "$work/before" "$work/after" | while read -r path; do
    if [ -f "$work/root/$path" ] && ! cmp -s "/$path" "$work/root/$path"; then echo "$path"; fi
done)"
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "installed, tried and removed; nothing is left"
