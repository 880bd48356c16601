#!/usr/bin/env bash
# The long tests: every property with many cases, many transfers through nodes that stay, many seeds
# of a bad network. Writes docs/src/soak-results.md.
#
# usage: scripts/soak.sh [CASES] [ROUNDS]     (default 10000 cases per property, 500 rounds)
set -euo pipefail
cd "$(dirname "$0")/.."
cases=${1:-10000}
rounds=${2:-500}
results=docs/src/soak-results.md
for number in "$cases" "$rounds"; do
    [[ $number =~ ^[1-9][0-9]*$ ]] || {
        echo "usage: scripts/soak.sh [CASES] [ROUNDS]" >&2
        exit 2
    }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rows=$scratch/rows
failed=0

# run NAME HOW COMMAND...: runs a part and notes what came of it.
run() {
    local name=$1 how=$2 begin=$SECONDS outcome=passed
    shift 2
    printf '\n== %s: %s\n' "$name" "$how"
    "$@" 2>&1 | tee "$scratch/log" || {
        outcome='**failed**'
        failed=1
    }
    # A filter that matches nothing would pass, too.
    [[ $outcome != passed ]] || grep -qE '^test result: .* [1-9][0-9]* passed' "$scratch/log" || {
        outcome='**nothing ran**'
        failed=1
    }
    printf '| %s | %s | %s | %s |\n' "$name" "$how" $((SECONDS - begin)) "$outcome" >>"$rows"
}

# Always of the whole workspace, so that nothing is built twice with other features.
all=(--workspace --exclude weft-bench-grpc --locked)
cargo test --profile quick "${all[@]}" --no-run
run "properties" "$cases cases of each" \
    env PROPTEST_CASES="$cases" cargo test --profile quick "${all[@]}" --lib --no-fail-fast
run "commits" "$cases sequences" \
    env PROPTEST_CASES="$cases" cargo test --profile quick "${all[@]}" --test commit
run "link-state routing" "$cases networks with faults" \
    env WEFT_LINKSTATE_SEEDS="$cases" cargo test --profile quick "${all[@]}" --test network -- \
    --include-ignored --nocapture
run "ten routers that speak BGP" "$cases networks with faults" \
    env WEFT_BGP_SEEDS="$cases" cargo test --profile quick "${all[@]}" --test bgp -- --ignored
run "routing cache against its model" "100,000,000 steps" \
    env WEFT_CACHE_STEPS=100000000 cargo test --profile quick "${all[@]}" --test xia cache::every
run "components that hang" "once each" \
    cargo test --profile quick "${all[@]}" --test commands -- --ignored
soak=(env WEFT_SOAK_ROUNDS="$rounds" cargo test --profile quick "${all[@]}" --test labs --
    --ignored --nocapture --test-threads 1)
run "nodes that stay" "$rounds transfers" "${soak[@]}" soak_nodes
run "processes of a BGP router, killed" "each 50 times" "${soak[@]}" soak_each_process_of_a_router
run "seeds of a bad network, simulated" "$rounds seeds" "${soak[@]}" soak_every_seed
run "link-state routing of whole nodes, simulated" "1,024 nodes" "${soak[@]}" soak_a_thousand

cat >"$results" <<END
# Soak results

The last full run of \`make soak SOAK_CASES=$cases SOAK_ROUNDS=$rounds\`, which writes this page.

| | |
|---|---|
| day | $(date -u +%Y-%m-%d) |
| revision | $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ', with local changes') |
| machine | $(uname -m), $(nproc) cores, Linux $(uname -r) |

* *Properties*: the unit and property tests of all crates, in release builds, with this many random cases
  for each property that does not set a number itself.
* *Commits*: random sequences of edits, commits, refusals, disk errors, power cuts and restarts, against a
  model; as many.
* *Link-state routing*: as many random networks whose links lose, double and reorder messages, are cut and
  mended, and whose nodes crash; when they come to rest, all routes are those of a reference. And a network
  of 1,000 nodes.
* *Ten routers that speak BGP*: as many random networks, with or without providers and customers, whose links fail, whose
  processes and routers are killed, and whose sessions are cleared; when they come to rest, BGP and the RIB of each use what a
  reference computation says, and no way goes around in circles.
* *Components that hang*: what runs after a component did not answer while an unconfirmed commit fell back.
* *Nodes that stay*: a 2 MB file is pushed to two receivers again and again, through five nodes on real
  interfaces, one of them plain Linux. At the end no node may take 4 MiB more than after ten
  transfers, or have another number of open descriptors.
* *Seeds*: the same network in the simulator, the last links with 5 % loss, 2 % duplicates, 5 %
  reordering and jitter; every receiver must have the exact file.
* *Link-state routing of whole nodes*: a torus of 32 by 32 simulated nodes, in which nobody states a route; every node has a way to every
  other, and another one while links are cut and a node dies.

| part | how much | seconds | outcome |
|---|---|---|---|
$(cat "$rows")
END
printf '\nwrote %s\n' "$results"
exit "$failed"
