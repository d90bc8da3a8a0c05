#!/usr/bin/env bash
# bench/agent.sh [--json] [--seconds N] [BUILD] - what an agent without work takes: resident memory, of the agent and of each helper, and the share
# of a core over N seconds (60), once without `idle:` and once with it, when the machine counts as idle and everything is
# watched that this machine has. Prints one JSON value. The broker runs on this machine, too, and is not counted.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=60 build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --seconds) seconds=$2; shift 2 ;;
    -*) echo "usage: bench/agent.sh [--json] [--seconds N] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
export PATH=$PWD/$build/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-agent.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
finish() {
    bourse down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

agent_pid() { sed -n 's/^provider \([0-9]*\).*/\1/p' "$work/market/up.pids"; }
helpers() { perl tests/support/descendants.pl "$agent" | awk '{print $1}'; }
cpu_ns() { # PID...: exact, where ticks are samples
    for pid in "$@"; do cat "/proc/$pid/task/"*/schedstat; done | awk '{sum += $1} END {printf "%.0f", sum}'
}
cpu_percent() { # SECONDS: of one core, by the agent and its helpers
    local before pids
    mapfile -t pids < <(helpers)
    before=$(cpu_ns "$agent" "${pids[@]}")
    sleep "$1"
    awk -v ns=$(($(cpu_ns "$agent" "${pids[@]}") - before)) -v s="$1" 'BEGIN {printf "%.3f", ns / 1e9 / s * 100}'
}
rss_kib() { awk '$1 == "VmRSS:" {print $2}' "/proc/$1/status"; }
memory() { # the agent and each helper apart
    local pid apart=
    for pid in $(helpers); do apart+="${apart:+,}\"$(tr -d '"\\' <"/proc/$pid/comm") $pid\":$(rss_kib "$pid")"; done
    printf '"agent_rss_kib":%s,"helpers_rss_kib":{%s}' "$(rss_kib "$agent")" "$apart"
}
start() { # waits until the agent offers
    bourse up --dir "$work/market" --detach >/dev/null 2>&1
    agent=$(agent_pid)
    for _ in $(seq 600); do
        ! bourse-provider status --dir "$work/market/provider" --json | grep -q '"state":"offering"' || return 0
        sleep 0.1
    done
    echo "agent.sh: the agent does not offer: is the machine in use?" >&2
    exit 1
}

bourse up --dir "$work/market" --slots "$(nproc)" --programs sh --detach >/dev/null 2>&1
bourse down --dir "$work/market" >/dev/null 2>&1
start
sleep 5 # the start is over
plain_memory=$(memory)
plain_cpu=$(cpu_percent "$seconds")
bourse down --dir "$work/market" >/dev/null 2>&1

# What this machine lacks is not watched; the load of the machine's other work shall not stop the offer.
battery=pause
[ -d /sys/class/power_supply ] || battery=run
echo "idle: {after: 10s, load: 4096, programs: [no-such-program], battery: $battery}" >>"$work/market/provider/provider.yaml"
start
sleep 5
idle_memory=$(memory)
idle_cpu=$(cpu_percent "$seconds")
printf '{"machine":"%s, %d processors","kernel":"%s","processes":%d,"version":"%s","seconds":%d,' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" \
    "$(find /proc -maxdepth 1 -name '[0-9]*' | wc -l)" "$(bourse version | awk '{print $2; exit}')" "$seconds"
printf '"without_idle":{%s,"cpu_percent":%s},"with_idle":{%s,"cpu_percent":%s}}\n' "$plain_memory" "$plain_cpu" "$idle_memory" "$idle_cpu"
