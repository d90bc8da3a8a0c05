#!/usr/bin/env bash
# What the guides promise a newcomer, as printed there: an operator with a key of his own and a broker on TCP, a provider
# and a consumer who join by invitation, a job in a root file system; refusals in credits, pipes, progress, reasons.
set -euo pipefail
bin=$(realpath "$1")
bourse=$bin/bourse
for program in bourse-broker bourse-provider bourse-worker; do
    [ -x "$bin/$program" ] || { echo "skipped: no $program"; exit 77; }
done
command -v bwrap >/dev/null || { echo "skipped: no bubblewrap"; exit 77; }
if [ "$(id -u)" -eq 0 ] && ! id bourse >/dev/null 2>&1; then
    echo "skipped: no user bourse for the agent"
    exit 77
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse newcomer.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR
broker=
agent=
finish() {
    [ -z "$agent" ] || { kill "$agent" 2>/dev/null && wait "$agent" || true; }
    [ -z "$broker" ] || { kill "$broker" 2>/dev/null && wait "$broker" || true; }
    rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
# shellcheck source=tests/support/rights.sh
. "$(dirname "$(realpath "$0")")/../support/rights.sh"

# The operator: a key made on first use, a broker on TCP ports, invitations.
mkdir operator mara
export HOME=$work/operator BOURSE_KEY=$work/operator/.config/bourse/operator.key
expect 0 'new key in' "$bourse" key
key=$(cat out)
[ "$(stat -c %a "$BOURSE_KEY")" = 600 ] || fail "the key file is open"
expect 0 "^$key$" "$bourse" key
[ "$(cat err)" = "the key in $BOURSE_KEY (environment BOURSE_KEY)" ] || fail "the second look says another key: $(cat err)"
expect 0 "\"key\":\"$BOURSE_KEY\"" "$bourse" key --json
expect 0 "^$key$" "$bourse" key --quiet
[ ! -s err ] || fail "a quiet look speaks: $(cat err)"
mkdir -m 700 market
write_config() {
    cat >market/broker.yaml <<END
origin: exchange.example/main
listen: tcp://127.0.0.1:$1
blob_listen: tcp://127.0.0.1:$(($1 + 1))
genesis:
  accounts:
    - {key: "$key", name: operator, roles: [operator, consumer], credits: "1000"}
END
}
# Ports may be taken: a few are tried.
for port in $((20000 + $$ % 10000)) $((30000 + $$ % 10000)) $((40000 + $$ % 10000)); do
    write_config "$port"
    expect 0 'is fine' "$bin/bourse-broker" run --dir market --check-config
    "$bin/bourse-broker" run --dir market 2>broker.log &
    broker=$!
    until [ -e market/market.yaml ] || ! kill -0 "$broker" 2>/dev/null; do read -rt 0.05 <> <(:) || true; done
    [ -e market/market.yaml ] && break
    broker=
done
[ -n "$broker" ] || { cat broker.log; echo "skipped: no free port"; exit 77; }
# Also as root the broker keeps no right that it does not use, in none of its threads.
bare "$broker" || fail "the broker has rights: $(cat rights)"
if [ "$(id -u)" -eq 0 ]; then
    grep -q 'running as root, with no capability' broker.log || fail "the broker's log: $(cat broker.log)"
fi
cp market/market.yaml operator/
export BOURSE_MARKET=$work/operator/market.yaml
grep -q 'tcp://127' "$BOURSE_MARKET" || fail "market.yaml does not name the port"
expect 0 '^bourse-invite-1' "$bourse" admin invite --role provider --name fast-lab
for_provider=$(cat out)
expect 0 '^bourse-invite-1' "$bourse" admin invite --role consumer --credits 20 --name mara
for_mara=$(cat out)
expect 0 '^bourse-invite-1' "$bourse" admin invite --role consumer --credits 7 --name wrong
for_wrong=$(cat out)
expect 0 '^[0-9a-f]{64}$' "$bourse" admin accounts --quiet
grep -q "^$key$" out || fail "admin accounts --quiet prints: $(cat out)"
expect 4 'amount: 9223372036854.775807 credits' "$bourse" admin mint "$key" 9223372036854.775807
unset BOURSE_MARKET BOURSE_KEY

# The provider: look, join, offer.
expect 0 '"isolation' "$bin/bourse-provider" probe --json
grep -q '"isolation":{"level":0' out && { echo "skipped: this machine cannot isolate jobs"; exit 77; }
mkdir -m 700 attic
for name in sim.fake '' $'attic\nroof'; do # it costs nothing: no invitation, no key, no folder
    expect 2 'name.*nothing was redeemed' "$bin/bourse-provider" join "$for_provider" --name "$name" --dir "$work/misnamed"
    [ ! -e "$work/misnamed" ] || fail "a join that was refused left a folder"
done
expect 0 '' "$bin/bourse-provider" join "$for_provider" --name attic --dir "$work/attic"
expect 4 '^bourse-provider: INVITATION: The invitation is unknown, used or expired' "$bin/bourse-provider" join "$for_provider" --dir "$work/late"
[ ! -e "$work/late" ] || fail "a join that the broker refused left a folder"
expect 0 'has redeemed this invitation before' "$bin/bourse-provider" join "$for_provider" --name attic --dir "$work/attic"
expect 0 'is not known: .* with its --name' "$bin/bourse-provider" join "$for_provider" --dir "$work/attic"
# An invitation for another role makes no provider, and an agent with such a key, or none that is known, ends.
mkdir -m 700 wrong
expect 4 'another role' "$bin/bourse-provider" join "$for_wrong" --dir "$work/wrong"
install -m 600 operator/market.yaml wrong/market.yaml
expect 4 'no provider in this market' "$bin/bourse-provider" run --dir "$work/wrong"
expect 0 '' "$bin/bourse-provider" run --check-config --dir "$work/attic"
echo 'image_files: 150' >>"$work/attic/provider.yaml"
"$bin/bourse-provider" run --dir "$work/attic" 2>provider.log &
agent=$!

# The consumer: join, and work; the first job waits until the agent's offer stands.
export HOME=$work/mara
expect 2 'no key in .*join' "$bourse" balance --market "$work/operator/market.yaml"
expect 0 'consumer' "$bourse" join "$for_mara" --name mara
expect 0 'available +20.00' "$bourse" balance
expect 0 '^2$' "$bourse" run -y --anyway --budget 1 -- expr 1 + 1
expect 0 "$(printf '%s' 'done')" "$bourse" ps

# Whoever may write market.yaml chooses the broker: no program reads it then.
for mode in 666 620; do
    chmod "$mode" "$work/mara/.config/bourse/market.yaml" "$work/operator/market.yaml"
    refused="market.yaml has mode 0$mode, and others might have changed it.*chmod go-w"
    expect 2 "$refused" "$bourse" balance
    expect 2 "$refused" "$bourse" key --log
    expect 2 "$refused" "$bourse" admin accounts --market "$work/operator/market.yaml" \
        --key "$work/operator/.config/bourse/operator.key"
    chmod "$mode" wrong/market.yaml
    "$bin/bourse-provider" run --dir "$work/wrong" 2>err && fail "an agent trusts a market.yaml of mode $mode"
    grep -q "$refused" err || fail "the agent says: $(cat err)"
done
chmod 600 "$work/mara/.config/bourse/market.yaml" "$work/operator/market.yaml"
expect 0 'available' "$bourse" balance

# Refusals say credits; nothing is below the least.
expect 4 'INSUFFICIENT_FUNDS: budget: 2000.00 credits are needed, and [0-9.]+ are available' "$bourse" run -y --budget 2000 -- true
expect 4 '"exit":4,"code":24,"field":"budget_micro","value":2000000000,"limit":[0-9]+}' \
    "$bourse" run -y --json --budget 2000 -- true
expect 4 'cap: 2000.00 credits, limit 1000.00' "$bourse" run -y --cap 2000 -- true
expect 4 'budget of 0 holds nothing' "$bourse" run -y --budget 0 -- true
expect 4 'is below 0\.[0-9]+, which one lease takes: .*--anyway' "$bourse" run -y --budget 0.000001 -- true
expect 5 'slots >= 4000 .best [0-9]+.*--anyway' "$bourse" run -y --slots 4000 -- true
expect 5 'memory >= 900.0 GiB .best [0-9.]+ [MG]iB.*--anyway and --budget' "$bourse" run -y --needs 'memory >= 900GiB' -- true
expect 2 'nobody asks a price.*--budget' "$bourse" run -y --anyway --needs 'memory >= 900GiB' -- true
expect 4 'STATE: job .* has ended: ' "$bourse" cancel last
expect 4 '^bourse: INVITATION: The invitation is unknown, used or expired' env HOME="$work/attic" "$bourse" join "$for_mara"
expect 3 "'9' is no subtask of job .*; its only subtask is 0" "$bourse" receipt last 9

# One digit is enough where it is unique.
"$bourse" ps -q >ids
[ "$(wc -l <ids)" -eq 1 ] || fail "more than one job: $(cat ids)"
expect 0 "^$(cat ids)$" "$bourse" ps -q "$(cut -c1 ids)"

# What the program printed last may lack an end of line; what `run` says begins a line of its own.
expect 0 '' "$bourse" run -y --budget 1 -- sh -c 'printf oops >&2'
grep -qx oops err && grep -qE '^job .* done' err || fail "the last lines are glued: $(cat err)"

# A job in a root file system of its own; and what went wrong in one that is none.
mkdir -p root/bin root/etc
cp -L /bin/sh /bin/cat root/bin/
{ ldd /bin/sh; ldd /bin/cat; } | grep -oE '/[^ ]+' | sort -u | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
done
tar cf tools.tar -C root .
cat >image.yaml <<'YAML'
name: in-an-image
array: 1-2
image: tools.tar
env: {GREETING: "hello {index}"}
stdin: "line {index}\n"
run: [sh, -c, 'cat >"{out}"; echo "$GREETING" >>"{out}"; [ ! -e /etc/passwd ] && [ ! -e /usr/bin/xz ]']
outputs: ["{out}"]
limit: 20s
limits: {memory: 64MiB, processes: 8, disk: 5MB, output: 1kB, cpu: 5s}
YAML
expect 0 'submitted|[0-9a-f]{8}' "$bourse" submit image.yaml -y --wait -o results
printf 'line 2\nhello 2\n' | cmp - results/2/2 || fail "the image's output differs"
# A compressed image is refused before it travels; one that is damaged inside fails with its reason.
gzip -c tools.tar >bad.tar
sed -i "s/tools.tar/bad.tar/; s/array: 1-2/array: 1-1/" image.yaml
expect 2 'image.yaml:[0-9]+: image: bad.tar is no image: no plain tar' "$bourse" submit image.yaml -y --wait
head -c 5000 tools.tar >bad.tar
expect 2 'image.yaml:[0-9]+: image: bad.tar is no image: cut at byte 5000' "$bourse" submit image.yaml -y --wait
tar cf bad.tar -T /dev/null
expect 2 'image.yaml:[0-9]+: image: bad.tar is no image: the archive has no file' "$bourse" submit image.yaml -y --wait
mkdir -p hard && echo text >hard/one && ln hard/one hard/two
tar cPf bad.tar --transform='s,^hard,/hard,' hard
expect 2 'image: bad.tar is no image: "/hard/[a-z]+" .* hard link to an absolute path' "$bourse" submit image.yaml -y --wait
# An image of more files than the owner allows is not sent to the owner's device.
mkdir many && (cd many && seq 200 | xargs touch)
tar cf bad.tar many
expect 5 '1 fails on image_files >= 201 \(best 150\).*with an image of at most 150 files instead of 201 it fills' \
    "$bourse" submit image.yaml -y --wait
! grep -q 'not image_files' out err || fail "a change that no person would say: $(cat out err)"
# What only the agent finds is the job's own fault, at its first try, and leaves nothing on the owner's disk.
own_fault() { # own_fault REASON
    expect 1 "subtask 1: .*$1" "$bourse" submit image.yaml -y --wait
    ! grep -q "provider's fault" out err || fail "the provider is blamed: $(cat out err)"
    expect 0 '"tries":1,' "$bourse" ps last --json
    expect 0 'no try would use it: mend the image and submit the job anew' "$bourse" explain last
    ! grep -q 'bourse resume' out || fail "what would fail the same way is advised: $(cat out)"
    [ "$(find attic/images -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ] || fail "left on the disk: $(ls attic/images)"
}
mkdir -p odd/x && touch odd/x/y odd/z
tar cf bad.tar -C odd --transform='s,^z,x/y/z,' x z
own_fault 'the image is unfit, tar says: '

# Asked for by name, progress shows with --quiet too, and stdout still holds the id alone.
expect 0 '[0-9]+/40 done' "$bourse" run -y --quiet --progress --array 1-40 -- sleep 0.1
[ ! -s out ] || fail "--quiet printed: $(cat out)"

# Who has read enough closes the pipe, and nobody complains; a full disk is told.
"$bourse" ledger 2>err | head -n 1 >out
"$bourse" ledger --json 2>>err | head -c 1 >out
for command in "logs last" "ps last" "run -y --quiet -- seq 100000"; do
    # shellcheck disable=SC2086
    "$bourse" $command 2>>err </dev/null | true
done
[ ! -s err ] || fail "a closed pipe: $(cat err)"
if [ -w /dev/full ]; then
    for command in "ps" "ledger --json"; do
        got=0
        # shellcheck disable=SC2086
        "$bourse" $command >/dev/full 2>err || got=$?
        [ "$got" -eq 2 ] || fail "$command on a full disk ended with $got"
    done
fi

# All of it stops when told to, and the history holds.
kill "$agent"
wait "$agent" || fail "the agent ended with $?: $(tail -n 3 provider.log)"
agent=
kill "$broker"
wait "$broker" || fail "the broker ended with $?"
broker=
expect 0 'audit: ok' "$bin/bourse-broker" audit "$work/market"
expect 0 'replay ok' "$bin/bourse-broker" replay --verify "$work/market"
echo "a newcomer's first hour: ok"
