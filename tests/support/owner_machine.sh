# For tests of the owner in charge: a machine of their own that the agent's sensors look at, and what the agent and its jobs say.
# shellcheck shell=bash
# The names that are used here are tests/support/market.sh's.
# shellcheck disable=SC2154,SC2034
provider=$bin/bourse-provider
folder=$market/provider
own() { # STATUS PATTERN COMMAND OPTION...: of the agent in the market's folder
    local want=$1 pattern=$2 command=$3
    shift 3
    expect "$want" "$pattern" "$provider" "$command" --dir "$folder" "$@"
}
stands() { # PATTERN: so says status
    "$provider" status --json --dir "$folder" >status.json 2>status.err && grep -qE -- "$1" status.json
}
must_stand() { until_true 60 stands "$1" || fail "status never said '$1': $(cat status.json status.err)"; }
job_is() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }
must_be() { until_true 60 job_is "$1" "$2" || fail "job $1 never was '$2': $(cat ps.json)"; }
submit() { # NAME LINES...: prints the id
    printf 'name: %s\nbudget: 1.00\nat_most: 1\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
jobs_of() { perl "$support/descendants.pl" "$agent" "$1" | awk '{ print $1 }'; } # PROGRAM: their processes
all_are() { # STATE PROGRAM: every process of the program below the agent is in this state, and there is one
    local pid states=
    for pid in $(jobs_of "$2"); do states+=$(ps -o stat= -p "$pid" | cut -c1); done
    [ -n "$states" ] && [ -z "${states//$1/}" ]
}

# ---------------------------------------------------------------- the machine

machine=$work/machine
mkdir -p "$machine/dev/pts" "$machine/proc/1" "$machine/sys/class/power_supply"
touch "$machine/dev/tty1"
press_key() { touch -a "$machine/dev/tty1"; }
owner_comes() { # and types until owner_goes
    rm -f enough_keys
    while [ ! -e enough_keys ]; do
        press_key
        sleep 0.3 # between two keys
    done &
    typist=$!
    started+=("$typist")
}
owner_goes() { touch enough_keys && wait "$typist"; }
spin() { # TICKS: others use so much of the processors
    ticks=$((ticks + $1))
    echo "cpu  $ticks 0 0 1000 0 0 0 0 0 0" >"$machine/proc/stat.new"
    mv "$machine/proc/stat.new" "$machine/proc/stat"
}
ticks=0
spin 0
echo '1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 1 0 1 1 1' >"$machine/proc/1/stat"
