#!/usr/bin/env bash
# Prints the RUSTFLAGS of a release build: those of the environment, and the committed profile of what is executed how
# often (profile/README.md) if this compiler can read it. Without it the program does the same, more slowly.
#
# usage: RUSTFLAGS="$(scripts/release-flags.sh)" cargo build --release
set -euo pipefail
cd "$(dirname "$0")/.."
profile=$PWD/profile/weft.profdata
# The LLVM that wrote it: older ones may not know its format.
oldest=22

flags=${RUSTFLAGS:-}
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if [[ $PWD == *[[:space:]]* ]]; then
    echo "note: built without profile/weft.profdata, as there is a blank in the path of this directory" >&2
elif [ "${llvm:-0}" -lt "$oldest" ]; then
    echo "note: built without profile/weft.profdata: this Rust has LLVM ${llvm:-of no known version}, which is older than $oldest" >&2
else
    # A function that has changed since is compiled as without it: nothing to warn of.
    flags+=" -Cprofile-use=$profile -Cllvm-args=-no-pgo-warn-mismatch"
fi
echo "${flags# }"
