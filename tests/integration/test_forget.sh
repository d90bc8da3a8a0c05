#!/usr/bin/env bash
# What an account stores is shown by job, and the files of ended jobs are freed on request: the quota at once, the disk after the
# grace. Files that another job uses stay, and an open job loses nothing. A broker that is killed meanwhile goes on at its next start.
# Receipts and the audit are as before, fetch and logs say what happened, and the same files can be sent again.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin forget "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

market_up --credits 100 --slots 1
blob_of() { local hash && hash=$(sha256sum <"$1" | cut -d' ' -f1) && echo "$market/blobs/${hash:0:2}/$hash"; }
used() { "$bourse" storage --quiet; }

# Two jobs use one large file, and each has one of its own.
for name in shared first second; do
    head -c 100000 /dev/zero | tr '\0' "${name:1:1}" >"$name.bin"
done
run() { # NAME FILE [LINE of the job file]
    printf '%s\n' "name: $1" "files: [$2, shared.bin]" "run: [sh, -c, 'cat shared.bin $2 >$1.out; echo $1 ran']" "outputs: $1.out" \
        'budget: 1.00' 'cap: 1.00' "${3:-}" >"$1.yaml"
    "$bourse" submit "$1.yaml" -y --quiet --wait >"$1.id" 2>submit.log || fail "submit $1: $(cat submit.log)"
}
run first first.bin
run second second.bin 'retain: 300d'
"$bourse" receipt "$(cat first.id)" --all -o proofs >/dev/null 2>&1 || fail "receipts"
"$bourse" fetch "$(cat first.id)" -o before >/dev/null 2>&1 || fail "fetch before"
cp -r proofs proofs.before

# What is stored: both jobs, each with what it uses, and when that expires.
"$bourse" storage >storage.txt || fail "storage"
grep -qE '^stored +[0-9.]+ (KiB|KB|kB|MB|MiB) of ' storage.txt || fail "storage: $(cat storage.txt)"
[ "$(grep -cE "^($(cut -c1-8 first.id)|$(cut -c1-8 second.id)) +(first|second) " storage.txt)" = 2 ] || fail "storage: $(cat storage.txt)"
"$bourse" storage --json >storage.json || fail "storage --json"
"$bourse" balance >balance.txt && grep -q '^stored ' balance.txt || fail "balance does not say what is stored: $(cat balance.txt)"
# Each job: two inputs, one output of 200000 bytes, its manifest and what it printed.
tr '{' '\n' <storage.json | grep -c '"bytes":40[0-9]*,' | grep -qx 2 || fail "sizes: $(cat storage.json)"
[ "$(grep -o '"expires_ms"' storage.json | wc -l)" = 1 ] || fail "only the second job's files expire: $(cat storage.json)"
all=$(used)
[ "$all" -gt 700000 ] && [ "$all" -lt 710000 ] || fail "$all bytes are stored"

# A dry run frees nothing.
"$bourse" forget "$(cat first.id)" --dry-run --json >dry.json || fail "dry run"
[ "$(used)" = "$all" ] || fail "a dry run freed something"
freed=$(number freed_bytes dry.json)
[ "$freed" -gt 300000 ] && [ "$freed" -lt 305000 ] || fail "the dry run: $(cat dry.json)"

# A job that is open keeps its files, whatever is asked.
kill -STOP "$agent"
printf '%s\n' 'name: open' 'files: first.bin' "run: [sh, -c, 'cat first.bin >open.out']" 'outputs: open.out' 'budget: 1.00' 'cap: 1.00' >open.yaml
"$bourse" submit open.yaml -y --quiet --anyway >open.id 2>submit.log || fail "submit open: $(cat submit.log)"
"$bourse" forget "$(cat open.id)" >out.txt 2>&1 && fail "an open job was forgotten: $(cat out.txt)"
has "$(cat out.txt)" "is open, and needs its files"

# The first job's output and texts go; the shared file stays for the second job, its input for the open one.
"$bourse" forget "$(cat first.id)" --json >forget.json || fail "forget: $(cat forget.json)"
freed=$(number freed_bytes forget.json)
[ "$freed" -gt 200000 ] && [ "$freed" -lt 205000 ] || fail "freed: $(cat forget.json)"
"$bourse" forget "$(cat first.id)" >again.txt 2>&1 || fail "forget again: $(cat again.txt)"
has "$(cat again.txt)" "are forgotten already"
for what in "fetch $(cat first.id) -o after" "logs $(cat first.id)"; do
    # shellcheck disable=SC2086 # words
    "$bourse" $what >out.txt 2>&1 && fail "$what of a forgotten job"
    has "$(cat out.txt)" "\`bourse forget\` freed them on"
done
"$bourse" fetch "$(cat second.id)" -o second.before >/dev/null 2>&1 || fail "the other job lost its files"

# Receipts are as before, to the byte, and the audit finds no fault.
"$bourse" receipt "$(cat first.id)" --all -o proofs.after >/dev/null 2>&1 || fail "receipts after"
"$bourse" verify proofs.before proofs.after >/dev/null 2>&1 || fail "receipts do not verify"

# A broker that is killed between the note of a job and the end of its work goes on at the next start: the job is noted and none of
# its files is condemned yet, the worst case.
broker_kill
sqlite3 "$market/blobs/blobs.db" "INSERT INTO forgotten SELECT x'$(cat second.id)', account, at_ms, reason, 0 FROM forgotten;" || fail "sqlite3"
# The grace passes: it is a minute at least, so the notes are made older.
printf 'limits: {forget_grace: 1s}\n' >>"$market/broker.yaml"
"$bin/bourse-broker" run --dir "$market" >short.log 2>&1 && fail "a grace of a second is taken"
grep -q 'forget_grace' short.log || fail "a grace of a second: $(cat short.log)"
sed -i 's/^limits: .*/limits: {forget_grace: 1m, retain_least: 0s}/' "$market/broker.yaml"
broker_start
broker_await
kill -CONT "$agent"
"$bourse" wait "$(cat open.id)" >/dev/null 2>wait.log || fail "the open job does not end well: $(cat wait.log)"
"$bourse" fetch "$(cat open.id)" -o open.out >/dev/null 2>&1 || fail "the open job lost its output"
is_condemned() { [ "$(sqlite3 "$market/blobs/blobs.db" "SELECT state FROM forgotten WHERE job = x'$(cat second.id)'")" = 1 ]; }
until_true 60 is_condemned || fail "the job that a killed broker had begun to forget is not gone on with"
[ -e "$(blob_of second.bin)" ] || fail "a file went before the end of the grace"
broker_kill
sqlite3 "$market/blobs/blobs.db" 'UPDATE condemned SET since_s = 1; UPDATE forgotten SET at_ms = 1' || fail "sqlite3"
broker_start
broker_await
is_gone() { [ ! -e "$1" ]; }
until_true 60 is_gone "$(blob_of second.bin)" || fail "the file of a job that a killed broker had begun to forget is still there"
until_true 60 is_gone "$(blob_of before/first.out)" || fail "a forgotten output is still on the disk"
until_true 60 is_gone "$(blob_of shared.bin)" || fail "a file that no job uses is still on the disk"
[ -e "$(blob_of first.bin)" ] || fail "the file of a job that is there is gone"
[ "$(sqlite3 "$market/blobs/blobs.db" "SELECT count(*) FROM condemned")" = 0 ] || fail "condemned blobs are left"

# The same files can be sent again, and the job runs as before.
run first first.bin
"$bourse" fetch "$(cat first.id)" -o again >/dev/null 2>&1 && cmp again/first.out before/first.out || fail "the files cannot be sent again"

# All ended jobs go with one command, unless they ended too short a time ago.
"$bourse" forget --ended --older 1h -y >out.txt 2>&1 || fail "forget --older: $(cat out.txt)"
has "$(cat out.txt)" "no job of this account that ended so long ago has files left"
"$bourse" forget --ended -y >out.txt 2>&1 || fail "forget --ended: $(cat out.txt)"
has "$(cat out.txt)" "of 2 jobs; stored 0"
[ "$(used)" = 0 ] || fail "$(used) bytes are stored when all is forgotten"

# A job says how long its files stay.
sed 's/^name: first/name: brief\nretain: 0s/' first.yaml >brief.yaml
"$bourse" submit brief.yaml -y --quiet --wait >brief.id 2>submit.log || fail "submit brief: $(cat submit.log)"
nothing_stored() { [ "$(used)" = 0 ]; }
until_true 60 nothing_stored || fail "the files of a job with retain: 0s stay"
"$bourse" fetch "$(cat brief.id)" -o brief >out.txt 2>&1 && fail "files that expired were fetched"
has "$(cat out.txt)" "they expired on"

# The next start has nothing to warn of, and the audit agrees.
broker_kill
broker_start
broker_await
if grep -E "blobs/ lacks|of them (is|are) gone" "$market"/broker.log; then fail "the broker warns of files that were forgotten"; fi
kill "$broker"
ended "$broker" 60 || fail "the broker does not stop"
"$bin/bourse-broker" audit "$market" >audit.log 2>&1 || fail "audit: $(cat audit.log)"
fire_end
