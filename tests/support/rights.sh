# shellcheck shell=bash
# What rights the processes of a market have. To be sourced by a test.

# family PID: the process and all its descendants in this user namespace, one a line. The programs
# in a jail have namespaces of their own, and the tests of the jail look at those.
family() {
    local pid=$1 status
    [ "$(readlink "/proc/$pid/ns/user")" = "$(readlink /proc/self/ns/user)" ] || return 0
    echo "$pid"
    for status in $(grep -lE "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status 2>/dev/null); do
        status=${status#/proc/}
        family "${status%/status}"
    done
}

# bare PID [PERMITTED]: no thread of the process has an effective capability. No thread can gain
# one, but those that it may wake (0, or the set given). Only root may lower the bounding set, so
# other users keep theirs. The file `rights` has what the thread has that was looked at last.
bare() {
    local status permitted=${2:-0000000000000000}
    for status in /proc/"$1"/task/*/status; do
        grep -E '^(Name|Cap[A-Za-z]*|NoNewPrivs):' "$status" >rights || return 1
        grep -qE "^CapPrm:[[:space:]]*$permitted\$" rights || return 1
        ! grep -E '^Cap(Inh|Eff|Amb):' rights | grep -qvE '[[:space:]]0{16}$' || return 1
        [ "$(id -u)" -ne 0 ] || grep -qE '^CapBnd:[[:space:]]*0{16}$' rights || return 1
        grep -qE '^NoNewPrivs:[[:space:]]*1$' rights || return 1
    done
}

# helper PID prints the descendant of that agent which removes the control groups after the agent's
# end.
helper() {
    local pid
    for pid in $(family "$1"); do
        [ "$(cat "/proc/$pid/comm")" != bourse-cgroups ] || echo "$pid"
    done
}
