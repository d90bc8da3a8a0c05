#!/usr/bin/env bash
# Blobs that the ledger names and blobs/ no longer has are told at each start, also when new blobs
# have come since. Where only blobs.db is gone, the start keeps the files that are there, and gives
# outputs back to the owners of their jobs.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin blobs-gone "$1"
command -v sqlite3 >/dev/null || skip "no sqlite3"

market_up --credits 100 --slots 1
write_job() { # NAME BYTES: a job with an output of so many bytes, which its name begins
    printf '%s\n' "name: $1" "run: [sh, -c, '(echo $1; head -c $2 /dev/zero) >out.bin']" 'outputs: out.bin' \
        'budget: 1.00' 'cap: 1.00' >"$1.yaml"
}
submit() {
    write_job "$@"
    "$bourse" submit "$1.yaml" -y --quiet --wait --anyway >"$1.id" 2>"$1.out" || fail "submit: $(cat "$1.out")"
}
output() { { echo "$1" && head -c "$2" /dev/zero; } | sha256sum | cut -d' ' -f1; } # NAME BYTES
submit large 300000
submit larger 400000
submit small 100
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
broker_stop() {
    kill "$broker"
    ended "$broker" 60 || fail "the broker does not end"
}
again() { # COMMAND...: starts the broker again, with a new log; the command runs in between
    broker_stop
    "$@"
    : >"$work/broker.log"
    broker_start
    broker_await || fail "the broker does not start: $(cat "$work/broker.log")"
}
broker_stop
cp -a "$market/blobs" "$work/whole"
broker_start
broker_await || fail "the broker"
! grep -q 'blobs/ lacks' "$work/broker.log" || fail "blobs that are there are said to be gone: $(cat "$work/broker.log")"
later() { # NAME [FILE]: submits a job that waits, whose manifest is a new blob
    [ -e "$1.yaml" ] || write_job "$1" 10
    "$bourse" submit "$1.yaml" -y --quiet --anyway >"${2:-$1.id}" 2>"$1.out" || fail "submit: $(cat "$1.out")"
}

# ---- the folder is gone: told at the next start, and at the start after a new blob
again rm -rf "$market/blobs"
has "$(cat "$work/broker.log")" 'blobs/ lacks the manifests of 3 of 3 jobs and outputs of 3 of 3 results'
later first
again true
has "$(cat "$work/broker.log")" 'blobs/ lacks the manifests of 3 of 4 jobs and outputs of 3 of 3 results'

# ---- only blobs.db is gone: the files stay, and their owners get them
whole() { rm -rf "$market/blobs" && cp -a "$work/whole" "$market/blobs"; }
without_index() { whole && rm -f "$market/blobs/blobs.db"*; }
again without_index
log=$(cat "$work/broker.log")
has "$log" 'blobs/blobs.db was missing, and 2 files of blobs were there'
has "$log" '2 of them are outputs'
has "$log" 'blobs/ lacks the manifests of 4 of 4 jobs and outputs of 1 of 3 results'
for name in 'large 300000' 'larger 400000'; do
    # shellcheck disable=SC2086 # two words
    hash=$(output $name)
    [ -s "$market/blobs/${hash:0:2}/$hash" ] || fail "the file of ${name% *} was removed: $log"
done
fetch() { rm -rf got && "$bourse" fetch "$(cat "$1.id")" -o got >fetch.out 2>&1; }
! fetch large || fail "an output is fetched without the job's manifest"
has "$(cat fetch.out)" 'the broker has lost the manifest of job'
later second
again true # what was kept is kept, and nobody sweeps it
[ -s "$market/blobs/${hash:0:2}/$hash" ] || fail "the second start removed a file: $(cat "$work/broker.log")"
! grep -q 'blobs.db was missing' "$work/broker.log" || fail "blobs.db is there: $(cat "$work/broker.log")"

# ---- blobs.db of a backup beside newer files: outputs get their rows again, and are not swept
sqlite3 "$work/whole/blobs.db" "DELETE FROM blob WHERE hash = x'$hash'; DELETE FROM owner WHERE hash = x'$hash'" || fail "sqlite3"
merged() { rm -f "$market/blobs/blobs.db"* && cp -a "$work/whole/blobs.db" "$market/blobs/"; }
again merged
has "$(cat "$work/broker.log")" '1 file of an output that blobs/blobs.db did not name'
has "$(cat "$work/broker.log")" 'blobs/ lacks the manifests of 2 of 5 jobs and outputs of 0 of 3 results'
is_fetched() { fetch "$1"; } # an adopted file is hashed before it is given out
for name in 'large 300000' 'larger 400000' 'small 100'; do
    until_true 60 is_fetched "${name% *}" || fail "${name% *} is not given out: $(cat fetch.out)"
    # shellcheck disable=SC2086 # two words
    [ "$(find got -name out.bin -exec sha256sum {} + | cut -d' ' -f1)" = "$(output $name)" ] || fail "another file: $(find got)"
done

# ---- a file that is not what its name says is not given out
spoilt() { merged && flip "$market/blobs/${hash:0:2}/$hash" 390000; }
again spoilt
is_lost() { ! fetch larger && grep -q "$hash: its bytes do not have its hash" "$work/broker.log"; }
until_true 60 is_lost || fail "a spoilt file is given out: $(cat fetch.out "$work/broker.log")"
market_audit
echo "lost blobs are told at each start, and files without blobs.db stay: ok"
