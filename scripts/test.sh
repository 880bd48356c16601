#!/usr/bin/env bash
# Everything that must hold before a change is taken: formatting, lints, a release build, all
# tests, documentation without warnings. Ends at the first stage that fails, and says how long
# each stage took, and what was not run for lack of root or of a tool.
#
# usage: scripts/test.sh [lint|test|docs|all]...     (default: all)
set -euo pipefail
cd "$(dirname "$0")/.."

report=()
stage=
# Where tests that are not run say so, a line each: name, tab, reason (core/port/src/testing.rs).
WEFT_NOT_RUN=$(mktemp)
export WEFT_NOT_RUN
# The release build that goes on beside other stages: a group of processes of its own.
release=

# stage NAME COMMAND...: runs the command and notes how long it took.
stage() {
    local begin=$SECONDS
    stage=$1
    shift
    printf '\n== %s\n' "$stage"
    "$@"
    report+=("$(printf '%-28s %5d s' "$stage" $((SECONDS - begin)))")
    stage=
}

# Prints the table of stages, however the script ends.
finish() {
    local status=$?
    printf '\n'
    [ "${#report[@]}" = 0 ] || printf '%s\n' "${report[@]}"
    [ -z "$stage" ] || printf '%-28s failed\n' "$stage"
    printf '%-28s %5d s\n' total "$SECONDS"
    not_run
    [ -z "$release" ] || kill -- "-$release" 2>/dev/null || true
    rm -f "$WEFT_NOT_RUN"
    return "$status"
}
trap finish EXIT

# One line: how many tests were not run, by reason.
not_run() {
    [ -s "$WEFT_NOT_RUN" ] || return 0
    awk -F '\t' '
        { times[$2]++ }
        END {
            for (why in times) list = list (list ? "; " : "") times[why] " (" why ")"
            print "tests that were not run: " list
        }' "$WEFT_NOT_RUN"
}

lint() {
    stage "formatting" cargo fmt --all --check
    stage "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
    if command -v shellcheck >/dev/null; then
        stage "shell scripts" shellcheck -x scripts/*.sh .ci/run
    fi
    if command -v cargo-deny >/dev/null; then
        stage "licences and advisories" cargo deny --locked check
    fi
}

# Begins the release build. At its end it needs one processor for minutes, so other things are done beside it.
begin_release() {
    [ -z "$release" ] || return 0
    set -m
    RUSTFLAGS=$(scripts/release-flags.sh) quietly cargo build --release --locked -p weft </dev/null &
    release=$!
    set +m
}

# Waits for the end of the release build, which has said why if it has failed.
await_release() {
    local build=$release
    release=
    wait "$build"
}

tests() {
    local target=${CARGO_TARGET_DIR:-target}
    local all=(--workspace --exclude weft-bench-grpc --locked)
    begin_release
    stage "building of tests" cargo test --no-run "${all[@]}"
    stage "release build, the rest" await_release
    # One of the tests compares the packets of this build with those of the debug build.
    # Most of the time goes into tests that wait for the processes of a network which they have built.
    stage "tests" env WEFT_RELEASE="$(realpath "$target")/release/weft" \
        RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}" \
        cargo test "${all[@]}"
    stage "fuzzing, a few seconds each" fuzz
}

# Replays the committed corpus of every fuzz target and goes on from there for a moment, as many at
# once as there are processors.
fuzz() {
    quietly scripts/fuzz.sh --quick build
    export -f quietly
    # shellcheck disable=SC2016 # The shells that are started expand it.
    for path in fuzz/fuzz_targets/*.rs; do basename "$path" .rs; done |
        xargs -P "$(nproc)" -I '{}' bash -c 'quietly scripts/fuzz.sh --quick "$1" 3' - '{}'
}

# Runs a command whose output is of interest only if it fails.
quietly() {
    local log
    log=$(mktemp)
    echo "$*"
    if "$@" >"$log" 2>&1; then
        rm "$log"
    else
        cat "$log"
        rm "$log"
        return 1
    fi
}

docs() {
    stage "api documentation" env RUSTDOCFLAGS="-D warnings" \
        cargo doc --workspace --exclude weft-bench-grpc --no-deps --document-private-items --locked
    if command -v mdbook >/dev/null; then
        stage "book" mdbook build docs
    fi
}

[ $# -gt 0 ] || set -- all
for part in "$@"; do
    case $part in
    lint) lint ;;
    test) tests ;;
    docs) docs ;;
    all)
        begin_release
        lint
        tests
        docs
        ;;
    *)
        echo "usage: scripts/test.sh [lint|test|docs|all]..." >&2
        exit 2
        ;;
    esac
done
