#!/usr/bin/env bash
# bench/residency_chains.sh [--json] [--chains "2 4"] [--links N] [--side N] [--rows N] [--rounds N] [--before BUILD] [BUILD] -
# chains of products over two of pocl's devices through a market: how much of their inputs the devices had already. Prints one
# JSON value.
#
# Each chain multiplies by a factor of its own. A product's result is the next one's input, so a chain that stays on its device
# copies nothing. With --before, a second market with the programs of that build runs the same jobs, in turns. The copies are
# counted by bourse-kernel, as `status` shows them. The first round warms up and does not count.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
chains="2 4" links=12 side=1024 rows=1024 rounds=5 build=build/release before=''
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --chains) chains=$2; shift 2 ;;
    --links) links=$2; shift 2 ;;
    --side) side=$2; shift 2 ;;
    --rows) rows=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --before) before=$(realpath "$2"); shift 2 ;;
    -*)
        echo "usage: bench/residency_chains.sh [--json] [--chains LIST] [--links N] [--side N] [--rows N] [--rounds N]" \
            "[--before BUILD] [BUILD]" >&2
        exit 2
        ;;
    *) build=$1; shift ;;
    esac
done
[ -r /etc/OpenCL/vendors/pocl.icd ] || { echo "residency_chains.sh: no pocl (Debian package pocl-opencl-icd)" >&2; exit 1; }
build=$(realpath "$build")
path=$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-chains.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
agents=()
kinds=(after)
[ -z "$before" ] || kinds=(before after)
enter() { # KIND: the market and the programs of that build
    local bin=$build/bin
    [ "$1" = after ] || bin=$before/bin
    export PATH=$bin:$path XDG_CONFIG_HOME=$work/$1/config XDG_STATE_HOME=$work/$1/state BOURSE_MARKET=$work/$1/market
    cd "$work/$1"
}
finish() {
    for agent in "${agents[@]}"; do
        kill "$agent" 2>/dev/null || true
        wait "$agent" 2>/dev/null || true
    done
    for kind in "${kinds[@]}"; do
        [ ! -d "$work/$kind" ] || { enter "$kind" && bourse down --dir "$work/$kind/market" >/dev/null 2>&1; } || true
    done
    cd /
    rm -rf "$work"
}
trap finish EXIT

figure() { # FIELD: of both devices, since their agents' starts
    for name in left right; do
        bourse-provider status --dir "$PWD/$name" --json | grep -o '"held":\[[^]]*\]' | grep -oE "\"$1\":[0-9]+" | cut -d: -f2
    done | awk '{s += $1} END {print s}'
}

for kind in "${kinds[@]}"; do
    mkdir -m 711 "$work/$kind"
    enter "$kind"
    bourse up --dir "$work/$kind/market" --slots 1 --price 5 --detach >/dev/null 2>&1
    for name in left right; do
        mkdir -m 700 "$name"
        bourse-provider join "$(bourse admin invite --role provider --name "$name" 2>/dev/null)" --dir "$PWD/$name" >/dev/null 2>&1
        cat >"$name/provider.yaml" <<END
name: $name-cores
slots: 1
price: 5
memory: 64MiB
disk: 16MiB
devices:
  - {opencl: 0, name: $name, price: 0.05, memory: 1GiB, disk: 256MiB}
END
        bourse-provider run --dir "$PWD/$name" >"$name.log" 2>&1 &
        agents+=($!)
        for _ in $(seq 1200); do
            ! bourse devices --needs "label = $name" --json 2>/dev/null | grep -q '"price_micro"' || break
            sleep 0.1 # between two looks
        done
        bourse devices --needs "label = $name" --json | grep -q '"price_micro"' || { cat "$name.log" >&2; exit 1; }
    done
done

job() { # CHAINS: the tasks of one link after those of the link before
    local files=''
    for c in $(seq "$1"); do
        files+="x$c.npy, w$c.npy, "
    done
    printf '%s\n' "name: chains" "executor: tensor" "expect: 50ms" "budget: 1" "needs: {api: opencl}" "files: [${files%, }]" "tasks:"
    for i in $(seq "$links"); do
        for c in $(seq "$1"); do
            if [ "$i" -eq 1 ]; then
                echo "  - {name: c$c-1, run: [matmul, x$c.npy, w$c.npy, y$c-1.npy], outputs: y$c-1.npy}"
            else
                echo "  - {name: c$c-$i, from: [c$c-$((i - 1))/y$c-$((i - 1)).npy]," \
                    "run: [matmul, y$c-$((i - 1)).npy, w$c.npy, y$c-$i.npy], outputs: y$c-$i.npy}"
            fi
        done
    done
}
declare -A seconds=() share=() copied=()
for round in $(seq 0 "$rounds"); do
    for count in $chains; do
        order=("${kinds[@]}")
        [ $((round % 2)) -eq 0 ] || mapfile -t order < <(printf '%s\n' "${kinds[@]}" | tac)
        for kind in "${order[@]}"; do
            enter "$kind"
            for c in $(seq "$count"); do
                matrix "x$c.npy" "$rows" "$side" $((1000 * round + 2 * c))
                matrix "w$c.npy" "$side" "$side" $((1000 * round + 2 * c + 1))
            done
            job "$count" >job.yaml
            held_before=$(figure saved_bytes) copied_before=$(figure copied_bytes)
            began=$(date +%s%N)
            bourse submit job.yaml -y --wait >out 2>&1 </dev/null || { cat out >&2; exit 1; }
            ended=$(date +%s%N)
            held=$(($(figure saved_bytes) - held_before)) moved=$(($(figure copied_bytes) - copied_before))
            [ "$round" -eq 0 ] && continue
            seconds[$kind$count]+=" $(awk -v t=$((ended - began)) 'BEGIN {print t / 1e9}')"
            share[$kind$count]+=" $(awk -v h="$held" -v c="$moved" 'BEGIN {print h / (h + c)}')"
            copied[$kind$count]+=" $moved"
        done
    done
done
printf '{"machine":"%s, %d processors","kernel":"%s","load":"%s","links":%d,"side":%d,"rows":%d,"rounds":%d' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(cut -d' ' -f1 /proc/loadavg)" \
    "$links" "$side" "$rows" "$rounds"
for kind in "${kinds[@]}"; do
    enter "$kind"
    printf ',"%s":{"version":"%s"' "$kind" "$(bourse version | awk '{print $2; exit}')"
    for count in $chains; do
        printf ',"chains_%d":{"held_share":%s,"held_share_range":%s,"copied_bytes":%s,"copied_range":%s,"seconds":%s,"seconds_range":%s}' \
            "$count" "$(median <<<"${share[$kind$count]}")" "$(spread <<<"${share[$kind$count]}")" \
            "$(median <<<"${copied[$kind$count]}")" "$(spread <<<"${copied[$kind$count]}")" \
            "$(median <<<"${seconds[$kind$count]}")" "$(spread <<<"${seconds[$kind$count]}")"
    done
    printf '}'
done
printf '}\n'
