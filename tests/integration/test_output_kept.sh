#!/usr/bin/env bash
# A result keeps the first MiB of a stream. Whoever prints it hears on standard error when more was written, also with
# -q; a failure and what was left out of a folder are told there, too.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin output-kept "$1"
market_up --credits 100 --slots 2 --programs sh,head,sleep,ln,mkdir

kept=1048576
run() { "$bourse" run -y --budget 1 --limit 2m "$@" </dev/null; }
says() { # WHAT PATTERN: err has one line with the pattern
    [ "$(grep -cE -- "$2" err)" -eq 1 ] || fail "$1: expected one line with \"$2\": $(cat err)"
}
silent() { # WHAT: err has nothing of what is kept
    ! grep -q 'kept' err || fail "$1 says that something is missing: $(cat err)"
}
has_kept() { # WHAT FILE
    [ "$(wc -c <"$2")" -eq "$kept" ] || fail "$1: $(wc -c <"$2") bytes and not $kept"
}
cut="^bourse: subtask 0: the first $kept of 3000000 bytes of standard output are kept"

# Into a file, with -q and without; the status stays 0.
much=(sh -c 'head -c 3000000 /dev/zero')
run -- "${much[@]}" >out 2>err || fail "run: $(cat err)"
has_kept run out && says run "$cut\$"
run -q -- "${much[@]}" >out 2>err || fail "run -q: $(cat err)"
has_kept 'run -q' out && says 'run -q' "$cut\$"
for options in '' -q --follow '--follow -q'; do
    # shellcheck disable=SC2086 # a list
    "$bourse" logs last $options >out 2>err || fail "logs $options: $(cat err)"
    has_kept "logs $options" out && says "logs $options" "$cut\$"
    # shellcheck disable=SC2086 # a list
    "$bourse" logs last 0 $options >out 2>err || fail "logs 0 $options: $(cat err)"
    has_kept "logs 0 $options" out && says "logs 0 $options" "$cut\$"
done
"$bourse" logs last --stderr >out 2>err || fail "logs --stderr: $(cat err)"
silent 'logs --stderr'

# Into a pipe, all may come live, and the result keeps less all the same.
run -- sh -c 'for i in 1 2 3; do head -c 1000000 /dev/zero; sleep 1; done' 2>err | cat >out
says 'a pipe' "$cut"
[ "$(wc -c <out)" -ne 3000000 ] || says 'a pipe with all' "$cut; all of them were printed\$"

# Exactly as much as is kept is all there is. Both streams have one line.
run -- sh -c "head -c $kept /dev/zero" >out 2>err || fail "a full stream: $(cat err)"
has_kept 'a full stream' out && silent 'a full stream'
run -- sh -c 'head -c 2000000 /dev/zero; head -c 3000000 /dev/zero >&2' >out 2>err || fail "both streams"
tr -d '\0' <err >words && mv words err
says 'both streams' "of 2000000 bytes of standard output are kept; the first $kept of 3000000 bytes of standard error are kept"

# Several subtasks have a line each, up to a cap.
run --array 1-12 -- sh -c 'head -c 1100000 /dev/zero' >out 2>err || fail "an array: $(cat err)"
for lines in "run" "logs last"; do
    [ "$lines" = run ] || "$bourse" logs last >out 2>err || fail "logs of an array: $(cat err)"
    [ "$(grep -cE '^bourse: subtask [0-9]+: the first' err)" -eq 8 ] || fail "$lines: lines of an array: $(cat err)"
    says "$lines" '^bourse: subtask 8: '
    says "$lines" '^bourse: 4 more subtasks have written more than is kept'
done

# A program that fails says both.
! run -q -- sh -c 'head -c 3000000 /dev/zero; exit 3' >out 2>err || fail "a failed program is no failure"
says 'a failed program' "program failed: .*3000000 bytes were written to standard output, and $kept are kept"

# -q concerns progress: a failure is told, with its reason, and an end without a result is, too.
status=0
run -q -- sh -c 'echo why >&2; exit 3' >out 2>err || status=$?
[ "$status" -eq 1 ] && [ ! -s out ] || fail "run -q of a failed job: status $status: $(cat out err)"
says 'run -q of a failed job' '^subtask 0: program failed'
says 'run -q of a failed job' '^job [0-9a-f]{8} failed: 0 of 1 accepted, 1 failed'
status=0
run -q --anyway --needs 'memory >= 900TiB' --order ioc -- true >out 2>err || status=$?
[ "$status" -eq 5 ] || fail "run -q of a job without a device: status $status: $(cat out err)"
says 'run -q of a job without a device' '^job .* cancelled: .*what the job asked for at once was not on offer'
printf 'name: fails\nrun: [sh, -c, exit 3]\nbudget: 1\n' >fails.yaml
status=0
"$bourse" submit fails.yaml -y -q --wait >out 2>err || status=$?
[ "$status" -eq 1 ] && grep -qxE '[0-9a-f]{32}' out || fail "submit -q of a failed job: status $status: $(cat out err)"
says 'submit -q of a failed job' '^subtask 0: program failed'

# What was left out of folders is one line, for several folders and subtasks, too.
make='mkdir -p results more; echo a >results/a; echo b >more/b; ln -s /etc/passwd results/l; ln -s /b more/m; ln -s ../b more/n; ln -s b more/kept'
left='left out of results/: 1 links, devices, pipes or sockets, as l; left out of more/: 2 links, devices, pipes or sockets, as [mn]'
for options in '' -q; do
    # shellcheck disable=SC2086 # a list
    run $options --out results/ --out more/ -o "one$options" -- sh -c "$make" >out 2>err || fail "run with links: $(cat err)"
    says "run $options with links" "^bourse: subtask 0: $left\$"
done
[ -f one/results/a ] && [ ! -e one/results/l ] && [ "$(readlink one/more/kept)" = b ] || fail "the folder came back with $(ls one/results)"
"$bourse" fetch last -o two >out 2>err || fail "fetch with links: $(cat err)"
says 'fetch with links' "^bourse: subtask 0: $left\$"
"$bourse" wait last >out 2>err || fail "wait with links: $(cat err)"
says 'wait with links' "^bourse: subtask 0: $left\$"
run --array 3-5 --out 'results/' -o three -- sh -c "$make; head -c 1100000 /dev/zero" >out 2>err || fail "an array with links: $(cat err)"
says 'an array with links' '^bourse: subtask 3: left out of results/: 1 links, .*, as l; 2 more subtasks have left something out, too$'
says 'an array with links' "^bourse: subtask 3: the first $kept of 1100000 bytes"
"$bourse" fetch last/4 -o four >out 2>err || fail "fetch of one: $(cat err)"
says 'fetch of one' '^bourse: subtask 4: left out of results/: 1 links, .*, as l$'
"$bourse" wait last 2>err >out || fail "wait of an array: $(cat err)"
says 'wait of an array' '; 2 more subtasks have left something out, too$'
run --out plain/ -o five -- sh -c 'mkdir -p plain; echo a >plain/a' >out 2>err || fail "a plain folder: $(cat err)"
! grep -q 'left out' err || fail "something is left out of a plain folder: $(cat err)"

market_audit
echo "ok"
