#!/usr/bin/env bash
# The figures of docs/speedups.md are those that the programs print.
set -euo pipefail
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR
exec "$(dirname "$(realpath "$0")")/../../scripts/speedups" "$1" --check
