#!/usr/bin/env bash
# Finds out what weft executes how often, for release builds: builds a weft that counts, has it run benchmarks,
# and writes profile/weft.profdata. As root, as the benchmarks are; 20 minutes with two processors, and 5 GB of disk space.
#
# usage: scripts/profile.sh
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}
[ $# = 0 ] || die "usage: scripts/profile.sh"
[ "$(id -u)" = 0 ] || die "the benchmarks need root: run it as root"
command -v rustup >/dev/null || die "llvm-profdata comes with rustup, which is not here: see https://rustup.rs"
rustup component add llvm-tools
host=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
target=${CARGO_TARGET_DIR:-target}/counts

# Each process writes a file of its own at its end, in a directory with its number: processes have users of their own,
# who cannot open the files of others.
counts=$(mktemp -d)
trap 'rm -rf "$counts" "$counts".*' EXIT
chmod 1777 "$counts"
# The same settings as those of a release, or functions have other names. Build scripts count, too; that is dropped.
RUSTFLAGS="--cfg weft_counts -Cprofile-generate=$counts/%p" \
    cargo build --release --locked -p weft --target-dir "$target"
find "$counts" -mindepth 1 -delete

# What shall be fast: routes from peers to the kernel, XIA packets, calls and messages between processes.
bench() {
    local result=$counts.json log=$counts.log
    say "== weft bench $*"
    # A goal that is missed ends it with an error, and such a build misses some.
    "$target/release/weft" bench "$@" --json "$result" >"$log" 2>&1 || true
    [ -s "$result" ] || {
        cat "$log" >&2
        die "\`weft bench $*\` measured nothing: see above"
    }
    rm "$result" "$log"
}
bench route-load --quick --runs 1
bench route-latency --quick --runs 1
bench route-storm --quick --runs 1
bench xip-engine --quick
bench xip-forward --runs 1 --only 'Zipf 1'
bench flow --quick
bench zfilter --quick

mapfile -t written < <(find "$counts" -name '*.profraw' -size +0)
[ "${#written[@]}" != 0 ] || die "no process has written what it counted"
# A process that was killed leaves a file in pieces, which is left out.
"$profdata" merge --sparse --failure-mode=all -o "$counts.profdata" "${written[@]}"
# Only the benchmarks' own processes would be in it if those of the nodes had a sandbox.
"$profdata" show --all-functions "$counts.profdata" | grep weft_bgp >/dev/null ||
    die "nothing of BGP was counted: the processes of the nodes wrote nothing"
cp "$counts.profdata" profile/weft.profdata
"$profdata" show profile/weft.profdata
