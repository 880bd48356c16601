#!/usr/bin/env bash
# Runs `make demo` and `make test` as the very first commands in freshly made Debian systems, and
# says how long each took. Every command gets a root directory of its own with nothing in it but
# the minimal system, make and a clean clone of the last commit.
#
# Everything is mounted inside a private mount and process namespace: whatever way the script
# ends, the kernel takes the mounts and processes away, and the temporary directory is removed.
#
# usage: scripts/fresh-debian.sh [SUITE] [COMMAND...]
#   SUITE     bookworm (default), trixie, or any suite that debootstrap knows
#   COMMAND   make targets to run, default: demo test
# environment:
#   MIRROR       the archive (default: where this host's apt gets its own release from)
#   ARCHIVE_PARTS  components of the archive, default: main (Ubuntu needs main,universe)
#   TOOLCHAIN    host: give this host's Rust to the new system; none: let it find its own.
#                Default: host for bookworm, which has no rustup package, otherwise none
#   http_proxy, https_proxy, no_proxy, SSL_CERT_FILE    are handed on
set -euo pipefail
script=$(readlink -f "$0")
repository=$(cd "$(dirname "$script")/.." && pwd)

die() {
    echo "error: $*" >&2
    exit 1
}

# --- inside the private namespaces -------------------------------------------------------------

# Mounts what a running system has into the root directory $1.
mount_system() {
    local root=$1
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
}

# Lets the new system use this host's name servers, certificates and, if wanted, its Rust.
lend_host() {
    local root=$1 sysroot
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    if [ -n "${SSL_CERT_FILE:-}" ]; then
        cp -L "$SSL_CERT_FILE" "$root/opt/certificates.pem"
    fi
    if [ "$TOOLCHAIN" = host ]; then
        sysroot=$(cd "$repository" && rustc --print sysroot)
        mkdir "$root/opt/rust"
        mount --bind "$sysroot" "$root/opt/rust"
        mount -o remount,bind,ro "$root/opt/rust"
    fi
}

# Runs a command in the new system with an environment that holds nothing of this host's but
# proxies and certificates. pivot_root, and not chroot alone, because the kernel refuses user
# namespaces to a process in a chroot.
enter() {
    local root=$1 name keep=()
    shift
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || keep+=("$name=${!name}")
    done
    if [ -e "$root/opt/certificates.pem" ]; then
        keep+=("SSL_CERT_FILE=/opt/certificates.pem" "CURL_CA_BUNDLE=/opt/certificates.pem"
            "CARGO_HTTP_CAINFO=/opt/certificates.pem")
    fi
    (
        cd "$root"
        mkdir -p .host
        # The host's tree, and the script's own file with it, goes away with the umount.
        # shellcheck disable=SC2016
        exec unshare --mount bash -c '
            pivot_root . .host
            umount -l /.host
            exec "$@"' enter chroot . /usr/bin/env -i \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rust/bin \
            HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 CI=true "${keep[@]}" "$@"
    )
}

# Makes a system in $1 and runs `make $2` in it as the first command.
inside() {
    local root=$1 target=$2
    local begin status=0
    echo "== a fresh $SUITE for make $target"
    debootstrap --variant=minbase --include=make --components="$ARCHIVE_PARTS" "$SUITE" "$root" "$MIRROR" >"$root.log" 2>&1 || {
        tail -n 20 "$root.log" >&2
        die "debootstrap failed"
    }
    git clone -q --no-hardlinks "$repository" "$root/root/weft"
    mount_system "$root"
    lend_host "$root"
    begin=$SECONDS
    enter "$root" make -C /root/weft "$target" </dev/null || status=$?
    echo $((SECONDS - begin)) >"$root.seconds"
    return "$status"
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
    exit
fi

# --- outside -----------------------------------------------------------------------------------

# The archive this host's own release comes from, as apt understands its sources.
host_mirror() {
    local codename
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk -v codename="$codename" '$1 == codename && $2 == "main" { print $3; exit }'
}

[ "$(id -u)" = 0 ] || die "this needs root"
for command in debootstrap git unshare pivot_root; do
    command -v "$command" >/dev/null || die "this needs $command: apt-get install debootstrap git util-linux"
done
SUITE=${1:-bookworm}
[ $# = 0 ] || shift
targets=("$@")
[ $# -gt 0 ] || targets=(demo test)
MIRROR=${MIRROR:-$(host_mirror)}
[ -n "$MIRROR" ] || die "cannot tell where this host's packages come from: set MIRROR"
case $SUITE in
bookworm) TOOLCHAIN=${TOOLCHAIN:-host} ;;
*) TOOLCHAIN=${TOOLCHAIN:-none} ;;
esac
ARCHIVE_PARTS=${ARCHIVE_PARTS:-main}
export SUITE MIRROR ARCHIVE_PARTS TOOLCHAIN

work=$(mktemp -d "${TMPDIR:-/var/tmp}/weft-fresh.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP

echo "commit $(git -C "$repository" rev-parse --short HEAD), $SUITE, $(uname -m), $(nproc) cores"
report=()
status=0
for target in "${targets[@]}"; do
    outcome=ok
    mkdir "$work/$target"
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        "$script" --inside "$work/$target" "$target" || {
        outcome=FAILED
        status=1
    }
    seconds=$(cat "$work/$target.seconds" 2>/dev/null || echo '?')
    report+=("$(printf '%-10s %-12s %-7s %5s s' "$SUITE" "make $target" "$outcome" "$seconds")")
    rm -rf --one-file-system "${work:?}/$target"
done
printf '\n'
printf '%s\n' "${report[@]}"
exit "$status"
