#!/bin/sh
# Makes the Debian package from the built files: the command, cutlined, the library of cutline exec, the kernel's queues, manuals, completions, documents, units.
#
#   tools/deb.sh target/release/cutline target/release/cutline-qdisc target/release/cutlined target/preload/libcutline_preload.so target/bpf 0.1.0 target/deb
set -eu

[ $# = 7 ] || { echo "usage: $0 COMMAND QDISC DAEMON LIBRARY OBJECTS VERSION FOLDER" >&2; exit 2; }
command="$1" qdisc="$2" daemon="$3" library="$4" objects="$5" version="$6" folder="$7"
here="$(cd "$(dirname "$0")/.." && pwd)"
stage="$folder/stage"
architecture="$(dpkg --print-architecture)"
package="$folder/cutline_${version}_$architecture.deb"

rm -rf "$stage"
mkdir -p "$stage/DEBIAN"
install -D -s -m 755 "$command" "$stage/usr/bin/cutline"
install -D -s -m 755 "$daemon" "$stage/usr/sbin/cutlined"
install -D -s -m 644 "$library" "$stage/usr/lib/cutline/libcutline_preload.so"
install -D -s -m 755 "$qdisc" "$stage/usr/lib/cutline/cutline-qdisc"
for queue in tsq sieve; do
    install -D -m 644 "$objects/$queue.bpf.o" "$stage/usr/lib/cutline/bpf/$queue.bpf.o"
done
"$here/tools/install-shared.sh" "$command" "$stage/usr/share"
install -D -m 644 "$here/docs/man/cutlined.8" "$stage/usr/share/man/man8/cutlined.8"
install -D -m 644 "$here/docs/man/cutlined.toml.5" "$stage/usr/share/man/man5/cutlined.toml.5"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
for example in router.toml cutlined.toml networkd/50-cutline.conf networkd/10-cutline.network; do
    install -D -m 644 "$here/packaging/$example" "$stage/usr/share/doc/cutline/examples/$example"
done
# A package's programs are below /usr, and what make installs below /usr/local.
for unit in cutline-router@.service cutline-setup@.service cutline-qdisc@.service cutlined.service \
    cutline-monitor.service; do
    mkdir -p "$stage/lib/systemd/system"
    sed 's|/usr/local/|/usr/|g' "$here/packaging/$unit" > "$stage/lib/systemd/system/$unit"
done
mkdir -p "$stage/etc/cutline/router" "$stage/etc/cutline/setup" "$stage/etc/cutline/qdisc"
{ echo "Files: *"; echo "License: Apache-2.0 or MIT"; echo "Files: /usr/lib/cutline/bpf/*"; echo "License: GPL-2.0 or Apache-2.0 or MIT"; } > "$stage/usr/share/doc/cutline/copyright"
cat "$here/LICENSE-APACHE" "$here/LICENSE-MIT" >> "$stage/usr/share/doc/cutline/copyright"

# The newest version of glibc whose symbols the programs use is the one that they need.
glibc="$(for file in "$command" "$qdisc" "$daemon" "$library"; do
    objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' || true
done | sed 's/GLIBC_//' | sort -Vu | tail -n 1)"
cat > "$stage/DEBIAN/control" <<END
Package: cutline
Version: $version
Architecture: $architecture
Maintainer: The Cutline developers <cutline@localhost>
Section: net
Priority: optional
Depends: libc6 (>= ${glibc:-2.36}), libgcc-s1, libelf1 | libelf1t64, zlib1g
Recommends: iproute2
Installed-Size: $(du -sk --exclude=DEBIAN "$stage" | cut -f1)
Description: traffic-sensitive quality of service
 Applications say how much they mind waiting, and queues let such packets
 cut in line and charge them with drops. Cutline has the queues for a Linux
 router, a simulator and a laboratory that run the same code, reservations,
 a traffic generator, and the evaluations of the papers behind it.
END
cat > "$stage/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
END
cat > "$stage/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
# What runs is stopped, so that it takes its queues and rules out of the network while it can.
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl stop 'cutline-router@*.service' 'cutline-setup@*.service' 'cutline-qdisc@*.service' cutlined.service cutline-monitor.service || true; fi
END
cat > "$stage/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ "$1" = purge ]; then rmdir --ignore-fail-on-non-empty /etc/cutline/router /etc/cutline/setup /etc/cutline/qdisc /etc/cutline 2>/dev/null || true; fi
END
chmod 755 "$stage/DEBIAN/postinst" "$stage/DEBIAN/prerm" "$stage/DEBIAN/postrm"
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
rm -rf "$stage"
echo "$package"
