# shellcheck shell=bash
# How commands end, for every test of them. To be sourced by who has `fail`.

# expect STATUS PATTERN COMMAND... checks the command's exit status and, unless the pattern is
# empty, what it says on stdout or stderr.
expect() {
    local want=$1 pattern=$2 got=0
    shift 2
    timeout 180 "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$want" ] || fail "$* ended with $got, not $want: $(tail -n 50 out err | tr -d '\0')"
    [ -z "$pattern" ] || grep -qaE -- "$pattern" out err ||
        fail "$* did not say '$pattern': $(tail -n 50 out err | tr -d '\0')"
}

# expect_soon STATUS PATTERN COMMAND... does the same for what follows from an event that is not
# there yet: within a minute.
expect_soon() {
    local want=$1 pattern=$2 got begun=$SECONDS deadline=$((SECONDS + 60))
    shift 2
    while [ "$SECONDS" -le "$deadline" ]; do
        got=0
        timeout 180 "$@" >out 2>err </dev/null || got=$?
        [ "$got" -ne "$want" ] || ! grep -qaE -- "$pattern" out err || return 0
        [ $((SECONDS - begun)) -gt 2 ] && sleep 0.3 || sleep 0.1 # between two looks
    done
    expect "$want" "$pattern" "$@"
}
