#!/usr/bin/env bash
# The simulator's tests, as ctest runs them. usage: run.sh seeds|replay|sanitized|cluster BIN-FOLDER
# With BOURSE_LONG=yes they run many more seeds.
set -euo pipefail
bin=$2
long=${BOURSE_LONG:-no}
jobs=$(nproc)
case $1 in
seeds) "$bin/sim" --seeds "1-$([ "$long" = yes ] && echo 10000 || echo 500)" --jobs "$jobs" --quiet ;;
sanitized) "$bin/sim-sanitized" --seeds "1-$([ "$long" = yes ] && echo 500 || echo 12)" --jobs "$jobs" --quiet ;;
cluster)
    "$bin/sim-cluster" --seeds "1-$([ "$long" = yes ] && echo 2000 || echo 100)" --jobs "$jobs" --quiet
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$bin/sim-cluster" --seed 7 --trace > "$folder/one"
    (cd / && LC_ALL=C TZ=Asia/Kathmandu "$bin/sim-cluster" --seed 7 --trace --jobs 3 > "$folder/two")
    [ "$(wc -l < "$folder/one")" -gt 2000 ] || { echo "seed 7 of the cluster: hardly a trace" >&2; exit 1; }
    cmp "$folder/one" "$folder/two"
    ;;
replay)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    for seed in 3 14 41; do
        "$bin/sim" --seed $seed --trace > "$folder/one"
        (cd / && LC_ALL=C TZ=Asia/Kathmandu "$bin/sim" --seed $seed --trace --jobs 3 > "$folder/two")
        [ "$(wc -l < "$folder/one")" -gt 10000 ] || { echo "seed $seed: hardly a trace" >&2; exit 1; }
        cmp "$folder/one" "$folder/two"
    done
    "$bin/sim-sanitized" --seed 3 --trace > "$folder/two"
    "$bin/sim" --seed 3 --trace | cmp - "$folder/two"
    if cmp -s "$folder/one" "$folder/two"; then
        echo "seeds 3 and 41 are the same" >&2
        exit 1
    fi
    ;;
*) echo "usage: run.sh seeds|replay|sanitized|cluster BIN-FOLDER" >&2; exit 2 ;;
esac
