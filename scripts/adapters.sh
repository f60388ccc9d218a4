#!/usr/bin/env bash
# Makes .adapters-venv: the frameworks that there are adapters for, and this package, as the tests of
# the adapters and the type checker need them. Apart from .venv because they are large and bring a
# plugin for pytest. Does nothing where the environment is as it should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=.adapters-venv
wanted=(pyproject.toml examples/requirements.txt examples/constraints.txt)
mkdir -p "$environment"
exec 9>"$environment/.lock"
flock 9 # of two that come at once, one waits for the other
if cat "${wanted[@]}" | cmp --silent - "$environment/.installed"; then exit 0; fi

echo "adapters: installing the frameworks into $environment" >&2
"${PYTHON:-python3}" -m venv "$environment"
pip=("$environment/bin/python" -m pip --disable-pip-version-check install --quiet)
pip+=(-c examples/constraints.txt)
"${pip[@]}" hatchling editables
"${pip[@]}" --no-build-isolation -r examples/requirements.txt --editable .
cat "${wanted[@]}" >"$environment/.installed"
