#!/usr/bin/env bash
# scripts/walk with the programs under test: three people on three machines, what their commands say, and how they end.
set -euo pipefail
bin=$(realpath "${1:?usage: test_walk.sh BIN}")
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
exec "$(dirname "$(realpath "$0")")/../../scripts/walk" --bin "$bin" --quiet
