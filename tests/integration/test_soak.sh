#!/usr/bin/env bash
# A minute of scripts/soak on the build under test; the half-hour form is for a release build (BOURSE_LONG=yes runs ten minutes here).
set -euo pipefail
bin=$(realpath "$1")
seconds=75
[ "${BOURSE_LONG:-no}" != yes ] || seconds=600
exec bash "$(dirname "$(realpath "$0")")/../../scripts/soak" --seconds "$seconds" --bin "$bin"
