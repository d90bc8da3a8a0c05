#!/usr/bin/env bash
# scripts/walk with the programs under test: three people on three machines, what their commands say, and how they end.
# Where mounts of its own are allowed, the walk finds a market that root left on this machine, and must not use it.
set -euo pipefail
bin=$(realpath "${1:?usage: test_walk.sh BIN}")
walk=$(dirname "$(realpath "$0")")/../../scripts/walk
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
unset BOURSE_MARKET BOURSE_KEY XDG_STATE_HOME
left_market='mount -t tmpfs none /var/lib 2>/dev/null'
if unshare -m sh -c "$left_market" 2>/dev/null; then
    # shellcheck disable=SC2016 # the inner shell expands them
    exec unshare -m bash -euc "$left_market"'
        mkdir -p -m 700 /var/lib/bourse/market
        "$1/bourse" key --key /var/lib/bourse/market/owner.key >/dev/null 2>&1
        exec "$2" --bin "$1" --quiet' - "$bin" "$walk"
fi
exec "$walk" --bin "$bin" --quiet
