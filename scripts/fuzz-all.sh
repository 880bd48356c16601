#!/usr/bin/env bash
# Fuzzes every target of fuzz/fuzz_targets in turn, or only those that are named, and writes
# docs/src/fuzzing-results.md. Targets that are not fuzzed keep their line of it.
# The work on one target is done by scripts/fuzz.sh TARGET SECONDS, whose exit status is 0 when
# nothing was found.
#
# usage: scripts/fuzz-all.sh [SECONDS [TARGET...]]     (seconds per target; default 600)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
results=docs/src/fuzzing-results.md

[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
    echo "usage: scripts/fuzz-all.sh [SECONDS [TARGET...]]" >&2
    exit 2
}
shopt -s nullglob
targets=(fuzz/fuzz_targets/*.rs)
[ "${#targets[@]}" -gt 0 ] || {
    echo "error: fuzz/fuzz_targets holds no target" >&2
    exit 1
}
chosen=("${@:2}")
for target in "${chosen[@]}"; do
    [ -f "fuzz/fuzz_targets/$target.rs" ] || {
        echo "error: there is no fuzz/fuzz_targets/$target.rs" >&2
        exit 2
    }
done
[ "${#chosen[@]}" -gt 0 ] || chosen=("${targets[@]}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The last value of a number that libFuzzer reports as "KEY VALUE" or "KEY: VALUE"; "?" if none.
last() {
    local value
    value=$(grep -oE "$2:? [0-9]+" "$1" | tail -n 1 | grep -oE '[0-9]+$') || value='?'
    printf '%s' "$value"
}

# libFuzzer's closing line is "Done RUNS runs in SECONDS second(s)"; "? ?" if it did not come so far.
done_line() {
    local line
    line=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) .*/\1 \2/p' "$1" | tail -n 1)
    printf '%s\n' "${line:-? ?}"
}

failed=0
rows=$scratch/rows
revision=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
git diff --quiet HEAD 2>/dev/null || revision+=', with local changes'
for path in "${chosen[@]}"; do
    target=$(basename "$path" .rs)
    log=$scratch/$target.log
    printf '\n== fuzzing %s for %s s\n' "$target" "$seconds"
    if scripts/fuzz.sh "$target" "$seconds" 2>&1 | tee "$log"; then
        finding=none
    else
        finding='**found, see fuzz/artifacts**'
        failed=1
    fi
    read -r inputs took < <(done_line "$log")
    printf '| `%s` | %s | %s | %s | %s | %s | %s | %s |\n' "$target" "$(date -u +%Y-%m-%d)" "$revision" \
        "$took" "$inputs" "$(last "$log" cov)" "$(last "$log" corp)" "$finding" >>"$rows"
done
# Those that were not fuzzed now.
for path in "${targets[@]}"; do
    line="| \`$(basename "$path" .rs)\` |"
    grep -qF "$line" "$rows" || grep -F "$line" "$results" >>"$rows" || true
done
sort -o "$rows" "$rows"

cat >"$results" <<END
# Fuzzing results

The last runs of \`make fuzz\`, which writes this page. \`make test\` replays the committed corpora and fuzzes
each target for a few seconds only.

Machine: $(uname -m), $(nproc) cores; compiler: $(rustc --version | cut -d ' ' -f 1,2).

Edges: places in the code that the inputs reached. Corpus: inputs kept because each reaches something new.

| target | day | revision | seconds | inputs tried | edges | corpus | findings |
|---|---|---|---|---|---|---|---|
$(cat "$rows")
END
printf '\nwrote %s\n' "$results"
exit "$failed"
