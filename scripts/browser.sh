#!/usr/bin/env bash
# Installs the browser that tests and screenshots look at the dashboard with, and two fonts that make
# the pictures the same everywhere: from the distribution, as root. Starts nothing.
set -euo pipefail

present() { command -v chromium >/dev/null; }

if present; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "browser: installing chromium" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=120 update >&2 || true
    apt-get -qq -o DPkg::Lock::Timeout=120 install --no-install-recommends --yes \
        chromium fonts-inter fonts-jetbrains-mono </dev/null >&2 || true
fi
if ! present; then
    echo "browser: chromium is missing and could not be installed; install it with your package" \
        "manager. What needs it will fail." >&2
    exit 1
fi
