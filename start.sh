#!/usr/bin/env bash
# Installs what is missing, then starts the service; --help lists the flags.
set -euo pipefail

here="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)"
source "$here/scripts/environment.sh"

prepare_environment "${NEODIM_VENV:-$here/.venv}"
# -P keeps modules of the current directory from being taken for ours.
exec "$venv/bin/python" -P -m workers.launcher "$@"
