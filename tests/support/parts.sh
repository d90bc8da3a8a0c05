# shellcheck shell=bash
# Parts of a test that some machines cannot run. Sourced by the scripts of tests/integration.

# left_out PART WHY: says that this test goes on without a part. scripts/test fails when
# tests/skips.txt does not name TEST/PART.
left_out() {
    local test=${0##*/}
    echo "left out: ${test%.sh}/$1: $2"
}

# can_trace PART: true where strace can trace. Elsewhere the part is left out.
can_trace() {
    command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null && return 0
    left_out "$1" "strace cannot trace here"
    return 1
}

# is_root PART: true for root. For other users the part is left out.
is_root() {
    [ "$(id -u)" -ne 0 ] || return 0
    left_out "$1" "needs root"
    return 1
}
