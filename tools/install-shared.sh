#!/bin/sh
# Installs what does not depend on the machine: the manuals of the commands, completions for shells, documents and examples.
#
#   tools/install-shared.sh target/release/cutline ~/.local/share
set -eu

[ $# = 2 ] || { echo "usage: $0 COMMAND FOLDER" >&2; exit 2; }
command="$1"
share="$2"
here="$(dirname "$0")/.."

"$command" manuals "$share/man/man1"
while read -r shell path; do
    mkdir -p "$(dirname "$share/$path")"
    "$command" completions "$shell" > "$share/$path"
done <<'END'
bash bash-completion/completions/cutline
zsh zsh/site-functions/_cutline
fish fish/vendor_completions.d/cutline.fish
END
# As in the source, where help texts name them: docs/guide/scenario.md, examples/dumbbell.toml.
for folder in docs/guide docs/tutorials docs/figures docs/aqm docs/studies docs/schemas examples; do
    (cd "$here" && find "$folder" -type f) | while read -r file; do
        install -D -m 644 "$here/$file" "$share/doc/cutline/$file"
    done
done
install -D -m 644 "$here/packaging/CUTLINE-QOS-MIB.txt" "$share/snmp/mibs/CUTLINE-QOS-MIB.txt"
install -D -m 644 "$here/packaging/grafana-dashboard.json" "$share/doc/cutline/examples/grafana-dashboard.json"
install -D -m 644 "$here/docs/README.md" "$share/doc/cutline/docs/README.md"
install -D -m 644 "$here/docs/glossary.md" "$share/doc/cutline/docs/glossary.md"
install -D -m 644 "$here/README.md" "$share/doc/cutline/README.md"
