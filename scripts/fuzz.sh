#!/usr/bin/env bash
# Fuzzes one target of fuzz/fuzz_targets with libFuzzer, on the stable compiler.
#
# usage: scripts/fuzz.sh [--quick] TARGET SECONDS
#        scripts/fuzz.sh [--quick] build             (all targets)
#
# SECONDS 0 only replays the committed corpus. New inputs are kept in the target directory; an
# input that fails is written to fuzz/artifacts/TARGET, and the exit status is not 0. With --quick
# targets are compiled in less time and run more slowly.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n 's/^# usage: */usage: /p; s/^#        scripts/       scripts/p' scripts/fuzz.sh >&2
    exit 2
}
profile=release
if [ "${1:-}" = --quick ]; then
    profile=quick
    shift
fi
case $# in
1)
    [ "$1" = build ] || usage
    which=(--bins)
    ;;
2)
    target=$1
    seconds=$2
    [[ $seconds =~ ^(0|[1-9][0-9]*)$ ]] || usage
    [ -f "fuzz/fuzz_targets/$target.rs" ] || {
        echo "error: there is no fuzz/fuzz_targets/$target.rs" >&2
        usage
    }
    which=(--bin "$target")
    ;;
*) usage ;;
esac

# What libFuzzer needs to see: which edges are taken and what comparisons look for. Compiling for
# a named target keeps these flags away from build scripts and macros.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
-Cllvm-args=-simplifycfg-branch-fold-threshold=0"
build=${CARGO_TARGET_DIR:-fuzz/target}
cargo build --manifest-path fuzz/Cargo.toml --target-dir "$build" --target "$host" \
    --profile "$profile" "${which[@]}"
[ -n "${target:-}" ] || exit 0

found=$build/corpus/$target
artifacts=fuzz/artifacts/$target
corpus=fuzz/corpus/$target
mkdir -p "$found" "$artifacts" "$corpus"
options=(-artifact_prefix="$artifacts/" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1)
[ ! -f "fuzz/dictionaries/$target" ] || options+=(-dict="fuzz/dictionaries/$target")
if [ "$seconds" = 0 ]; then
    exec "$build/$host/$profile/$target" "${options[@]}" -runs=0 "$corpus"
fi
exec "$build/$host/$profile/$target" "${options[@]}" -max_total_time="$seconds" "$found" "$corpus"
