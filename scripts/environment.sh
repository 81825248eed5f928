# The project's own Python environment, made once. Sourced by the other scripts, which set $root first.
#
#   need_environment run     the package and what it needs
#   need_environment dev     also the tools of the trade (tests, checks)
#
# The warm path starts no process: a stamp newer than pyproject.toml and constraints.txt is proof enough. Where it is
# older, the hash it holds decides, so that a fresh checkout of the same files does not install again.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$@"; exit 1; }

environment_hash() { cat "$root/pyproject.toml" "$root/constraints.txt" | cksum; }

fresh() { # stamp
    [ "$1" -nt "$root/pyproject.toml" ] && [ "$1" -nt "$root/constraints.txt" ]
}

need_environment() { # run | dev
    fresh "$root/.venv/.keryx-$1" && return
    if [ "$1" = run ] && fresh "$root/.venv/.keryx-dev"; then return; fi
    # Two that start at once: the second waits here, then finds the work done.
    if command -v flock >/dev/null 2>&1; then
        ( flock 9 && make_environment "$1" ) 9>"$root/.environment.lock" || exit 1
    else
        ( make_environment "$1" ) || exit 1
    fi
}

make_environment() { # run | dev
    stamp=$root/.venv/.keryx-$1
    fresh "$stamp" && return
    hash=$(environment_hash)
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$hash" ]; then
        touch "$stamp"
        return
    fi
    usable_python "$root/.venv/bin/python" && "$root/.venv/bin/python" -c 'import pip' 2>/dev/null || make_venv
    if [ "$1" = dev ]; then wanted=".[dev]"; else wanted="."; fi
    say "installing Keryx and what it needs into .venv (once; about a minute)"
    ( cd "$root" && .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
        --constraint constraints.txt --editable "$wanted" ) >&2 ||
        die "the installation failed; the lines above say why. Run the same command again to go on."
    # Here, because where PYTHONDONTWRITEBYTECODE is set no start would ever do it, and each would take longer.
    "$root/.venv/bin/python" -m compileall -q "$root/src" || true
    printf '%s\n' "$hash" >"$stamp"
}

make_venv() {
    python=$(choose_python)
    [ -n "$python" ] || die "Keryx needs Python 3.11 or newer, and there is none on the PATH. Install one and try again."
    say "making .venv with $("$python" --version)"
    # Debian ships Python without ensurepip; its package for it is named after the version.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || {
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" || die "this Python cannot make environments; install python$version-venv."
    }
    "$python" -m venv --clear "$root/.venv" >&2 || die "could not make $root/.venv; the lines above say why."
}

# The first Python that is new enough and was built with optimisation; else the first that is new enough. Those that version
# managers build often are not, and take a fifth longer for everything; those of distributions (/usr) are.
choose_python() {
    first=
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python /usr/bin/python3; do
        usable_python "$candidate" || continue
        : "${first:=$candidate}"
        if "$candidate" -c 'import ensurepip, sys, sysconfig, venv
built = sysconfig.get_config_var("CONFIG_ARGS") or ""
sys.exit(sys.base_prefix != "/usr" and "--enable-optimizations" not in built)' 2>/dev/null; then
            first=$candidate
            break
        fi
    done
    printf '%s' "$first"
}

usable_python() { # command
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

apt_install() { # package…
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" = 0 ]; then as_root=; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else return 1; fi
    say "installing $* with apt"
    $as_root apt-get update -qq >&2 || return 1
    # What is there already stays as it is: a test run is no reason to upgrade somebody's machine.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-upgrade "$@" >&2
}
