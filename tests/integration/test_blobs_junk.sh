#!/usr/bin/env bash
# A provider stores blobs for a job that no result names, during its lease and after: the consumer's quota is not touched, the lease
# bounds them, they go when it is over, also across a restart, and the honest output of the same lease stays.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
fire_begin blobs-junk "$1" junk-storer bourse-audit bourse-tensor
command -v sqlite3 >/dev/null || skip "no sqlite3"

market_up --credits 100 --slots 1
db=$market/blobs/blobs.db
ask() { sqlite3 -readonly "$db" ".timeout 10000" "$1"; }
usage() { ask "SELECT coalesce(sum(bytes), 0) FROM usage"; }
pending() { ask "SELECT count(*) FROM pending"; }
job_is() { # JOB TEXT
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q "$2" ps.json
}
mkdir -m 700 keys
cp "$market/provider/provider.key" keys/junk.key && chmod 600 keys/junk.key && chown -R "$(id -u)" keys
junk() { # JOB COUNT BYTES: sets `taken` and `refusal`
    "$bin/junk-storer" "$market/market.yaml" keys/junk.key "$1" "$2" "$3" >junk.out 2>junk.log ||
        fail "junk-storer: $(cat junk.log)"
    read -r taken refusal <junk.out
}

# A job without outputs declares what its program prints, and no more: 64 MiB for each of 4 tries.
printf '%s\n' 'name: prints' 'run: [sleep, "600"]' 'budget: 1.00' 'cap: 1.00' >prints.yaml
job=$("$bourse" submit prints.yaml -y --quiet --anyway 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
junk "$job" 1 $(((256 << 20) + 1))
[ "$taken" -eq 0 ] || fail "no output is declared, and $taken blob of 256 MiB and a byte was taken"
[ "$refusal" -eq 41 ] || fail "the blob was refused with $refusal"
"$bourse" cancel "$job" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"

# A product declares the size of its largest tile.
multiplies() { "$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -q '"price_micro":[0-9]'; }
until_true 60 multiplies || fail "nobody multiplies: $(cat market/provider.log)"
"$maker" A.npy 60 50 1 whole
"$maker" B.npy 50 40 2 whole
"$bourse" run -y matmul A.npy B.npy -o C.npy --tiles 1x1 >product.log 2>&1 || fail "matmul: $(cat product.log)"
job=$("$bourse" ps --quiet | head -n 1)
junk "$job" 1 $((4 * ((64 << 20) + 70000 + 60 * 40 * 4)))
[ "$taken" -eq 0 ] || fail "a tile of 60 x 40 is declared, and a blob of 256 MiB and 318,400 bytes was taken"
[ "$refusal" -eq 41 ] || fail "the blob was refused with $refusal"

cat >job.yaml <<'END'
name: honest
run: [sh, -c, 'sleep 6; seq 1 20000 >result']
outputs: result
limits: {output: 1MB}
budget: 1.00
cap: 1.00
END
"$bourse" submit job.yaml -y --quiet --anyway >job.id 2>submit.log || fail "submit: $(cat submit.log)"
job=$(cat job.id)
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
is_counted() { [ "$(pending)" -eq 0 ]; }
until_true 30 is_counted || fail "the tile of the product does not count" # a moment after its result
before=$(usage)
junk "$job" 5 70000
[ "$taken" -eq 5 ] || fail "$taken of 5 were taken: $refusal"
[ "$(usage)" -eq "$before" ] || fail "what a lease stores counts: $before, then $(usage)"
[ "$(pending)" -eq "$taken" ] || fail "$taken were taken, $(pending) are there"
until_true 60 job_is "$job" '"state":"done"' || fail "it is not done: $(cat ps.json)"
"$bourse" fetch "$job" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
seq 1 20000 | cmp - out/result || fail "another output"
size=$(wc -c <out/result)
is_named() { [ "$(usage)" -eq $((before + size)) ]; } # a moment after its result
until_true 30 is_named || fail "the output does not count: $before + $size, $(usage)"

# After the lease it may store until its grace is over, as little as before; and nothing of it counts.
junk "$job" 1000 50001
[ "$refusal" -eq 41 ] || fail "the lease has no bound: $taken blobs were taken ($refusal)"
[ "$taken" -lt 100 ] || fail "one output is declared, and $taken were taken"
[ "$(usage)" -eq $((before + size)) ] || fail "what is stored after a lease counts: $(usage)"

# The broker is killed before it has written down what the result names, and with junk of a lease that nobody has any more: the
# next start finds the result in the ledger, keeps what it names, and removes the rest.
stored=$(pending)
[ "$stored" -gt 0 ] || fail "there is no junk"
broker_kill
hash=$(sha256sum <out/result | cut -d' ' -f1)
sqlite3 "$db" "INSERT INTO pending (provider, job, hash, account, size)
    SELECT pending.provider, pending.job, owner.hash, owner.account, $size FROM owner, pending WHERE owner.hash = x'$hash' LIMIT 1;
    DELETE FROM owner WHERE hash = x'$hash';
    UPDATE usage SET bytes = bytes - $size;
    UPDATE pending SET job = zeroblob(16) WHERE hash <> x'$hash';" || fail "sqlite3"
[ "$(usage)" -eq "$before" ] || fail "the output was not taken back: $(usage)"
broker_start
broker_await || fail "the broker does not start"
[ "$(ask "SELECT count(*) FROM pending WHERE hash = x'$hash'")" -eq 0 ] || fail "the output is not found in the ledger"
[ "$(usage)" -eq $((before + size)) ] || fail "the output does not count after the restart: $(usage)"
is_clean() { [ "$(pending)" -eq 0 ]; }
until_true 60 is_clean || fail "$(pending) of $stored are left"
[ "$(ask "SELECT count(*) FROM blob WHERE hash NOT IN (SELECT hash FROM owner)")" -eq 0 ] || fail "rows of junk are left"
rm -r out
"$bourse" fetch "$job" -o out >fetch.log 2>&1 || fail "fetch after the restart: $(cat fetch.log)"
seq 1 20000 | cmp - out/result || fail "another output after the restart"

# An output that rots before it is fetched: the client reads it where it lies, finds another hash and says so; the broker hashes it.
flip "$market/blobs/${hash:0:2}/$hash" 70000
rm -r out
! "$bourse" fetch "$job" -o out >fetch.log 2>&1 || fail "an output with another hash is fetched"
has "$(cat fetch.log)" "the broker has lost the output 'result' of subtask 0 of job $job"
has "$(cat fetch.log)" 'submit the job again, or ask the operator to put the blob'
grep -q "a blob could not be read: .*$hash: its bytes do not have its hash" broker.log || fail "the log does not name the output: $(cat fetch.log)"
[ "$(ask "SELECT count(*) FROM lost WHERE hash = x'$hash'")" -eq 1 ] || fail "the output is not lost"
# What is small lies in a row of the database, not in a file: the log says so, and who prints it hears what is lost.
printf '%s\n' 'name: small' 'run: [sh, -c, "echo said; echo left >left"]' 'outputs: left' 'budget: 1.00' >small.yaml
small=$("$bourse" submit small.yaml -y --wait --quiet 2>log) || fail "submit: $(cat log)"
for word in said left; do
    row=$(echo "$word" | sha256sum | cut -d' ' -f1)
    sqlite3 -cmd '.timeout 9000' "$db" "UPDATE blob SET bytes = zeroblob(length(bytes)) WHERE hash = x'$row'" || fail "sqlite3"
done
! "$bourse" fetch "$small" -o small.d >fetch.log 2>&1 || fail "an output of other bytes is fetched"
has "$(cat fetch.log)" "the broker has lost the output 'left' of subtask 0 of job $small"
! "$bourse" logs "$small" >logs.log 2>&1 || fail "a log of other bytes is printed"
has "$(cat logs.log)" "the broker has lost the standard output of subtask 0 of job $small"
grep -q "a blob could not be read: the row of blob $row in .*blobs.db: its bytes do not have its hash" broker.log ||
    fail "the log does not name the row: $(tail -n 5 broker.log)"
market_audit
echo "junk of a lease costs its consumer nothing and goes: ok"
