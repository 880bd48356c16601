#!/usr/bin/env bash
# Makes a Debian or Ubuntu system able to run a make target: checks for what is needed, says what
# is missing, installs it. Does nothing, quickly, when everything is there.
#
# usage: scripts/bootstrap.sh GROUP...     (groups: scripts/packages.sh)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# The Rust version that rust-toolchain.toml pins; every cargo at least as new will do.
wanted=$(sed -n 's/^channel *= *"\([0-9.]*\)".*/\1/p' rust-toolchain.toml)
[ -n "$wanted" ] || die "rust-toolchain.toml names no channel"

# --- system packages -------------------------------------------------------------------------

installed() {
    have dpkg-query && [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints the packages of the given groups that are missing, one a line.
missing_packages() {
    local group package command
    while read -r group package command; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        [ -n "$command" ] && have "$command" && continue
        installed "$package" || echo "$package"
    done <<<"$packages" | sort -u
}

is_root() { [ "$(id -u)" = 0 ]; }

# True for root, and for those who may become root: at a terminal sudo can ask for a password.
can_be_root() { is_root || { have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; }

# Ends with the one command that installs the given packages unless we can run it ourselves.
need_root() {
    can_be_root ||
        die "this needs root: run \`apt-get update && apt-get install -y $*\` as root, then try again"
}

as_root() {
    if is_root; then "$@"; else sudo "$@"; fi
}

updated=
apt_update() {
    [ -n "$updated" ] && return
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null
    updated=yes
}

# Prints the services of the given packages that shall stay off.
services_of() {
    local package units
    while read -r package units; do
        case " $* " in *" $package "*) printf '%s ' "$units" ;; esac
    done <<<"$services"
}

# SYSTEMD_OFFLINE keeps systemctl(1) from starting what the packages ask it to start.
apt_install() {
    local environment=(DEBIAN_FRONTEND=noninteractive) units
    say "installing with apt-get: $*"
    read -ra units <<<"$(services_of "$@")"
    [ "${#units[@]}" = 0 ] || environment+=(SYSTEMD_OFFLINE=1)
    as_root env "${environment[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    [ "${#units[@]}" != 0 ] && have systemctl || return 0
    say "leaving these services off: ${units[*]}"
    as_root env SYSTEMD_OFFLINE=1 systemctl --quiet disable "${units[@]}" ||
        say "warning: ${units[*]} could not be disabled and may start at the next boot"
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" = 0 ] && return
    say "missing system packages: ${missing[*]}"
    have apt-get || die "no apt-get here: install what your distribution calls ${missing[*]}, then try again"
    # Whoever has to ask an administrator asks once, for everything.
    can_be_root || rust_is_there || ! packaged_rustup || missing+=(rustup)
    need_root "${missing[@]}"
    apt_update
    apt_install "${missing[@]}"
}

# --- Rust ------------------------------------------------------------------------------------

# True when dotted version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# True when rustup, if there is one, or else a plain cargo can build the workspace.
rust_is_there() {
    if have rustup; then
        install_toolchain
    elif have cargo && have rustc; then
        at_least "$(cargo --version | cut -d ' ' -f 2)" "$wanted"
    else
        return 1
    fi
}

# Has rustup fetch the pinned toolchain with the linters, unless it is installed already.
# No self-update: a rustup that came as a package belongs to the package manager.
install_toolchain() {
    local toolchain=${RUSTUP_TOOLCHAIN:-$wanted} parts
    parts=$(rustup component list --toolchain "$toolchain" 2>/dev/null || true)
    if grep -q '^rustc.*(installed)' <<<"$parts" &&
        grep -q '^clippy.*(installed)' <<<"$parts" &&
        grep -q '^rustfmt.*(installed)' <<<"$parts"; then
        return
    fi
    say "installing Rust $toolchain with rustup"
    rustup toolchain install "$toolchain" --no-self-update --profile minimal -c clippy -c rustfmt >&2 ||
        die "rustup could not install Rust $toolchain: see above"
}

packaged_rustup() { apt-cache show rustup >/dev/null 2>&1; }

# The distribution's rustup takes the place of its older cargo and rustc. Prints what else would
# have to go, which is for the administrator to decide.
removed_besides_rust() {
    apt-get install -s --no-install-recommends rustup |
        sed -n 's/^Remv \([^ ]*\).*/\1/p' |
        grep -Ev '^(cargo|rustc|rustfmt|rust-.*|libstd-rust-.*)$' || true
}

install_rust() {
    local others where="from https://rustup.rs"
    rust_is_there && return
    say "no suitable Rust: weft needs $wanted or newer$(have cargo && echo ", $(cargo --version | cut -d ' ' -f 1,2) is older")"
    have apt-get || die "install rustup $where, then try again"
    can_be_root && apt_update
    if ! packaged_rustup; then
        die "this distribution has no package rustup: install rustup $where, then try again"
    fi
    others=$(removed_besides_rust | paste -s -d ' ')
    [ -z "$others" ] || die "installing the package rustup would remove $others: install it yourself, or rustup $where"
    need_root rustup
    apt_install rustup
    hash -r
    rust_is_there || die "the package rustup brought no working Rust $wanted"
}

[ $# -gt 0 ] || die "usage: scripts/bootstrap.sh GROUP..."
install_packages "$@"
install_rust
