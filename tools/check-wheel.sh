#!/bin/sh
# From an empty environment to a first figure with a built wheel, by the README's own lines; the wheel's command; `pip install .`.
#
#   tools/check-wheel.sh target/wheels/cutline-*.whl [PYTHON]
#
# SKIP_SOURCE=1 leaves `pip install .` out, which builds everything again.
set -eu

wheel="$(realpath "$1")"
python="${2:-python3}"
root="$(realpath "$(dirname "$0")/..")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Nothing of the caller's is seen.
unset PYTHONPATH VIRTUAL_ENV PYTHONHOME CUTLINE_COMMAND

# block LANGUAGE NUMBER: the block of the README's section, as it is there.
block() {
    awk -v fence="\`\`\`$1" '/^## / { here = ($0 == "## In Python") } here && $0 == "```" { open = 0 } open { print } here && $0 == fence { open = 1 }' \
        "$root/README.md"
}
block python > "$work/lines.py"
[ "$(grep -c . "$work/lines.py")" = 4 ] || { echo "README.md, In Python: expected four lines of Python" >&2; exit 1; }
install="$(block sh | grep '^pip install')" || { echo "README.md, In Python: no line with pip install" >&2; exit 1; }

mkdir -p "$work/project/target"
ln -s "$(dirname "$wheel")" "$work/project/target/wheels"
ln -s "$root/examples" "$work/project/examples"
cd "$work/project"
began=$(date +%s.%N)
"$python" -m venv "$work/venv"
PATH="$work/venv/bin:$PATH"
sh -c "$install --quiet --disable-pip-version-check"
installed=$(date +%s.%N)
python "$work/lines.py"
ended=$(date +%s.%N)
head -c 300 call.svg | grep -q "<svg" || { echo "call.svg is no picture" >&2; exit 1; }
echo "from an empty environment to call.svg: $(echo "$ended $began" | awk '{ printf "%.1f", $1 - $2 }') s, of which pip install $(echo "$installed $began" | awk '{ printf "%.1f", $1 - $2 }') s"

said="$(cutline --version)"
module="$(python -c 'import cutline; print(cutline.__version__)')"
case "$said" in
    "cutline $module"*) echo "$said: $(command -v cutline)" ;;
    *) echo "cutline --version says \`$said\`, the module $module" >&2; exit 1 ;;
esac

[ -n "${SKIP_SOURCE:-}" ] && exit 0
"$python" -m venv "$work/source"
"$work/source/bin/pip" install --quiet --disable-pip-version-check "$root"
(cd / && "$work/source/bin/python" -c 'import cutline; assert cutline.translate("audio").hint' && "$work/source/bin/cutline" --version)
echo "pip install . works"
