#!/usr/bin/env bash
# The programs under test, with their sanitizers, plan each study of docs/studies on its pool and on
# one device, which may be too small for it. scripts/test compares the figures of docs/speedups.md
# with those of the release (scripts/speedups): a figure does not depend on the build, and the
# release prints it in a third of the time.
set -euo pipefail
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR
bourse=$(realpath "$1")/bourse
cd "$(dirname "$(realpath "$0")")/../.."

fail() { echo "speedups: $*" >&2; exit 1; }
# makespan STATUS... -- OPTION...: the plan ends with one of these; what ends with 0 has a makespan.
makespan() {
    local allowed=" " status=0
    while [ "$1" != -- ]; do allowed+="$1 " && shift; done
    shift
    plan=$("$bourse" plan --json "$@" 2>&1) || status=$?
    [[ $allowed == *" $status "* ]] || fail "plan $*: ended with $status: $plan"
    [ "$status" -ne 0 ] || grep -qE '"makespan_s":[0-9]' <<<"$plan" || fail "plan $*: no makespan: $plan"
}
studies=(docs/studies/*.yaml)
[ "${#studies[@]}" -ge 6 ] || fail "${#studies[@]} studies: six are known"
for study in "${studies[@]}"; do
    makespan 0 -- --file "$study"
    makespan 0 5 -- --file "$study" --devices mi300x
done
echo "${#studies[@]} studies planned, on their pools and on one device"
