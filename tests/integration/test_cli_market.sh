#!/usr/bin/env bash
# The command line against a real market of its own: run, submit, fetch, logs, cancel, receipts with every line
# tampered with, invitations, and nothing left running.
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

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse market.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
unset BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR
finish() {
    "$bourse" down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
# shellcheck source=tests/support/parts.sh
. "$(dirname "$(realpath "$0")")/../support/parts.sh"
# shellcheck source=tests/support/rights.sh
. "$(dirname "$(realpath "$0")")/../support/rights.sh"

# What is wrong is refused before anything is made; a first start that does not come up leaves its options to the next one.
expect 2 'nothing is started: .*slots: 4096, but this process' "$bourse" up --dir "$work/first" --detach --slots 4096
expect 2 'price 99999: .*band, 1000.00 credits' "$bourse" up --dir "$work/first" --detach --price 99999
[ ! -e "$work/first" ] || fail "a wrong option left a market: $(ls -R "$work/first")"
expect 8 'ends with' "$bourse" up --dir "$work/first" --detach --price 7 --wait 1ms
[ ! -e "$work/first/provider/provider.yaml" ] || fail "a start that timed out kept its options"

if ! "$bourse" up --dir "$work/market" --detach --credits 50 --wait 2m >out 2>err; then
    cat out err market/*.log >&2
    grep -q 'isolat' market/provider.log && { echo "skipped: this machine cannot isolate jobs"; exit 77; }
    fail "up"
fi
# Both are without a right that they do not use, and `up` says as whom they run. After a kill the market still has the
# offer of the agent before; what `up` says is of the new one.
says_whom() {
    grep -qE '^broker +process [0-9]+, root, with no capability$' out || fail "up does not say as whom: $(cat out)"
    grep -qE '^provider +process [0-9]+, user bourse: ' out || fail "up does not say as whom: $(cat out)"
}
if is_root users-of-up; then
    says_whom
    for pid in $(sed -nE 's/^(broker|provider) +process ([0-9]+),.*/\2/p' out); do
        kill -9 "$pid"
        while ps -o stat= -p "$pid" | grep -qv '^Z'; do sleep 0.05; done # it ends
    done
    expect 0 '^provider' "$bourse" up --dir "$work/market" --detach --wait 2m
    says_whom
fi
sed -nE 's/^(broker|provider) +process ([0-9]+),.*/\2/p' out >pids
[ "$(wc -l <pids)" -eq 2 ] || fail "two processes: $(cat out)"
helper=$(helper "$(tail -n 1 pids)")
for pid in $(cat pids); do
    for member in $(family "$pid"); do
        [ "$member" != "$helper" ] || continue
        bare "$member" || fail "process $member of $pid has rights: $(cat rights)"
    done
done
# The agent's helper stays root's for the end, so that it can remove what root made. Until then it
# acts as the agent's user, CAP_DAC_OVERRIDE sleeps, it may call little, and two files are open.
if is_root helper && "$bin/bourse-provider" probe --dir "$work/look" --json 2>/dev/null |
    grep -qE '"cgroup_version":[12]'; then
    [ -n "$helper" ] || fail "the agent has no helper for its control groups"
    bare "$helper" 0000000000000002 || fail "the helper has rights: $(cat rights)"
    user=$(id -u bourse)
    space="[[:space:]]+"
    grep -qE "^Uid:${space}0$space${user}${space}0$space$user\$" \
        "/proc/$helper/status" || fail "the helper is $(grep '^Uid:' "/proc/$helper/status")"
    grep -qE '^Gid:[[:space:]]+0[[:space:]]' "/proc/$helper/status" &&
        fail "the helper has the group of root"
    grep -qE '^Groups:.*[0-9]' "/proc/$helper/status" && fail "the helper has root's groups"
    grep -qE '^Seccomp:[[:space:]]*2$' "/proc/$helper/status" || fail "the helper has no filter"
    [ "$(ls "/proc/$helper/fd" | tr '\n' ' ')" = '0 1 ' ] || fail "the helper has open files"
    [ "$(readlink "/proc/$helper/cwd")" = / ] || fail "the helper keeps a folder in use"
fi
expect 4 'runs in .* already' "$bourse" up --dir "$work/market" --detach
expect 0 'available +50.00' "$bourse" balance
[ "$(stat -c %a market/owner.key)" = 600 ] || fail "owner.key is open"

expect 2 'a name has no control characters and no bidirectional marks' "$bourse" admin invite --role provider --name $'x\ny'

# One program: its output, its errors, its exit status.
expect 0 '^hello$' "$bourse" run -y -- echo hello
grep -q '^hello$' out || fail "the program's output is not on stdout"
expect 1 'exit code 3' "$bourse" run -y -- sh -c 'echo gone >&2; exit 3'
grep -q '^gone$' err || fail "the program's errors are not on stderr"
expect 1 '^nothing to fetch: subtask 0 of job [0-9a-f]{8} is not accepted; ' "$bourse" fetch last/0
expect 3 'failed' "$bourse" run -y --exit-code -- sh -c 'exit 3'
expect 2 'say -y' "$bourse" run -- true
expect 5 'anyway' "$bourse" run -y -- no-such-program-anywhere
expect 5 'providers offer programs by name: write absent, or copy the program here and send it as ./absent' \
    "$bourse" run -y /bin/absent
expect 4 'band|price|budget|funds' "$bourse" run -y --budget 99999 -- true

# What a program prints cannot steer a terminal: there it is shown, elsewhere it comes as it is.
printf '\033]0;title\007\033[31mred\r\302\233\342\200\256nur \303\244\377\tend\n' >trick
# shellcheck disable=SC2028 # these are the words that a terminal shows
echo '\x1b]0;title\x07\x1b[31mred\r\u009b\u202enur ä\xff	end' >shown
on_terminal() { script -qec "$*" /dev/null </dev/null | tr -d '\r' >terminal; }
on_terminal "'$bourse' run -y -f trick -- cat trick 2>err" || fail "run on a terminal: $(cat terminal err)"
cmp terminal shown || fail "run shows on a terminal: $(od -c terminal)"
on_terminal "'$bourse' run -y -f trick -- sh -c 'cat trick >&2' >out 2>&2" || fail "run: $(cat terminal)"
grep -qxFf shown terminal || fail "run shows of stderr: $(od -c terminal)"
on_terminal "'$bourse' logs last --stderr 2>err" || fail "logs on a terminal: $(cat terminal err)"
grep -qxFf shown terminal || fail "logs shows on a terminal: $(od -c terminal)"
on_terminal "'$bourse' logs last 0 --stderr 2>err" || fail "logs on a terminal: $(cat terminal err)"
cmp terminal shown || fail "logs 0 shows on a terminal: $(od -c terminal)"
tr -d '\r' <trick >raw
on_terminal "'$bourse' logs last 0 --stderr --raw 2>err" || fail "logs --raw: $(cat terminal err)"
cmp terminal raw || fail "logs --raw on a terminal: $(od -c terminal)"
"$bourse" logs last 0 --stderr >out && cmp out trick || fail "logs into a file: $(od -c out)"
"$bourse" run -y -f trick -- cat trick >out 2>err && cmp out trick || fail "run into a file: $(od -c out)"
on_terminal "'$bourse' run -y --raw -f trick -- cat trick 2>err" || fail "run --raw: $(cat terminal err)"
cmp terminal raw || fail "run --raw on a terminal: $(od -c terminal)"
# Nor can a name, and no file is called what misnames it.
name=$'\033[2Jx\342\200\256'
on_terminal "'$bourse' ps '$name'; '$bourse' plan '$name.yaml'" && fail "there is such a job"
grep -q $'\033\\|\342\200\256' terminal && fail "a refusal steers the terminal: $(od -c terminal)"
expect 2 'would misname its file' "$bourse" run -y --out $'a\342\200\256txt.sh' -- true

# A job over files with odd names, in a folder with a space in its name.
mkdir -p 'in/a b'
for i in 1 2 3 4 5 6 7 8; do echo "file $i" >"in/a b/f $i.txt"; done
cat >job.yaml <<'YAML'
name: twice
each: "in/*/*.txt"
run: [sh, -c, 'mkdir -p "$(dirname "$2")" && cat "$1" "$1" >"$2"; echo did "$1"', sh, "{in}", "{out}"]
outputs: ["{out}"]
expect: 50ms
YAML
expect 0 'subtasks +8' "$bourse" plan job.yaml
expect 0 '^[0-9a-f]{32}$' "$bourse" submit job.yaml -y --wait --quiet
job=$(cat out)
expect 0 "^$job$" "$bourse" ps "${job:0:8}" --quiet
expect 0 '"accepted":8' "$bourse" ps last --json
expect 0 '^did in/a b/f 3.txt$' "$bourse" logs last 2
expect 0 '^did in/a b/f 3.txt$' "$bourse" logs last/2
expect 0 '8 files of 8' "$bourse" fetch last -o results
for i in 1 2 3 4 5 6 7 8; do
    printf 'file %s\nfile %s\n' "$i" "$i" | cmp - "results/in/a b/f $i.txt" || fail "output $i differs"
done
expect 0 '0 fetched, 8 there' "$bourse" fetch last -o results
echo mine >'results/in/a b/f 1.txt'
expect 2 'nothing is overwritten' "$bourse" fetch last -o results
[ "$(cat 'results/in/a b/f 1.txt')" = mine ] || fail "a file was overwritten"

# Receipts: good ones pass with the key alone, and one changed line is refused.
key=$("$bourse" key --log)
expect 0 '8 receipts' "$bourse" receipt last --all -o proofs
expect 0 'not checked' "$bourse" verify proofs --key "$key"
expect 0 '"checked":"none","check":""' "$bourse" verify proofs --key "$key" --json
expect 0 '8 verified, 0 failed' env -i "HOME=$work" "$bourse" verify proofs --key "$key"
receipt=$(find proofs -name '*-0.receipt')
lines=$(wc -l <"$receipt")
for line in $(seq 1 "$lines"); do
    awk -v n="$line" 'NR == n {c = substr($0, 1, 1); $0 = (c == "A" ? "B" : "A") substr($0, 2)} {print}' \
        "$receipt" >changed
    expect 7 '^failed ' "$bourse" verify changed --key "$key"
done
other=$(echo "$key" | sed 's/^[^+]*/somebody-else/')
expect 2 'verifier key' "$bourse" verify "$receipt" --key "$other"

# Waiting ends, the job goes on; cancelling ends it.
expect 8 'goes on without' "$bourse" run -y --wait-at-most 500ms -- sleep 60
expect 0 '.' "$bourse" cancel last
expect_soon 0 '"state":"cancelled"' "$bourse" ps last --json

# A cap below every ask: it waits, and says so once, also where nothing else is said.
expect 8 'no ask is at or below the cap of 0.01 .*, the lowest ask that would do is at 0.10; the job waits' \
    "$bourse" run -y --quiet --cap 0.01 --wait-at-most 300ms -- echo cheap
grep -q 'offer  none now' err && fail "--quiet shows the quote"
expect 0 '.' "$bourse" cancel last
expect 8 '"name":"TIMED_OUT"' "$bourse" run -y --json --cap 0.01 --wait-at-most 300ms -- echo cheap
! grep -q 'the job waits' err || fail "--json says on stderr: $(cat err)"
expect 0 '.' "$bourse" cancel last
expect 5 '' "$bourse" run -y --cap 0.01 --order ioc -- echo cheap
grep -q '^  offer  none now: .*at 0.10 instead of 0.01 it fills now' err || fail "the quote does not name the cap: $(cat err)"
! grep -q 'the job waits' err || fail "an order that does not rest waits: $(cat err)"

# A list of needs: the first that can be had is taken, and without one the job waits for the first.
printf 'needs: [kind = gpu, {kind: cpu, memory: 100TiB}, kind = cpu]\nrun: [echo, chosen]\n' >choice.yaml
expect 0 '"choice":3' "$bourse" quote choice.yaml --json
expect 0 '^Quote$' "$bourse" plan choice.yaml
grep -q '^needs       3 of 3: kind = cpu; no slot for those before can be had now at this price' err || fail "which needs were taken is not said: $(cat err)"
expect 0 '.' "$bourse" submit choice.yaml -y --wait
expect 0 '^chosen$' "$bourse" logs last
printf 'needs: [kind = cpu, kind = gpu]\ncap: 0.01\nrun: [echo, chosen]\n' >none.yaml
expect 5 '"choice":1' "$bourse" quote none.yaml --json
expect 5 'none now' "$bourse" quote none.yaml
grep -q '^needs       1 of 2: kind = cpu; none of the list can be had now, so the job waits for the first' err || fail "the first needs are not said: $(cat err)"

# Submitted while every slot is taken: priced by what is taken, and started once it is free.
printf 'name: all\narray: 1-256\nrun: [sleep, "60"]\nexpect: 1m\nlimit: 2m\n' >all.yaml
all=$("$bourse" submit all.yaml -y --quiet 2>err) || fail "all.yaml: $(cat err)"
expect 8 'has not ended: every device that fits is busy' "$bourse" run -y --wait-at-most 300ms -- echo second
grep -q '^  offer  none now: .*within the limit .* busy' err || fail "the quote does not say that all is taken: $(cat err)"
[ "$(grep -vcE '^bourse: |^        ' err)" -le 5 ] || fail "an offer of more than five lines: $(cat err)"
expect 0 'every device that fits is busy' "$bourse" ps last
expect 3 'subtask 0 has no result yet' "$bourse" logs last 0
expect 3 'subtask 0 has no result yet' "$bourse" receipt last 0
expect 0 'no subtask of job [0-9a-f]* has a result yet' "$bourse" logs last
expect 0 '.' "$bourse" cancel "$all"
expect_soon 0 '"state":"cancelled"' "$bourse" ps "$all" --json
expect 3 "subtask 256 was cancelled before it had a result; .bourse ps ${all:0:8}. says" "$bourse" logs "$all" 256
expect 3 'subtask 256 was cancelled before' "$bourse" receipt "$all" 256
expect 3 "'257' is no subtask of job ${all:0:8}; its subtasks are 1 to 256" "$bourse" receipt "$all" 257
expect 3 "'one' is no subtask of job" "$bourse" receipt "$all" one
expect 0 '^second$' "$bourse" logs last --follow
expect 3 'Not found' "$bourse" ps 00000000000000000000000000000000
expect 3 'no job' "$bourse" logs ffffffffffff

# The market: what is there, and what of it fits.
expect 0 'provider.* cpu ' "$bourse" devices
expect 0 '^[0-9a-f]{32}$' "$bourse" devices --quiet
device=$(cat out)
expect 0 "\"device\":\"$device\"" "$bourse" devices --json --needs 'kind = cpu'
expect 0 'GFLOPS fp64, .*GiB/s declared by its owner' "$bourse" devices # and of each figure where it is from
expect 0 '"name":"gflops","value":[0-9]+,"source":"declared".*"name":"memory","value":[0-9]+,"source":"declared"' "$bourse" devices --json
expect 0 '^bandwidth +[0-9.]+ .*declared by its owner' "$bourse" devices "${device:0:8}"
! grep -qi measured out || fail "what its owner says is called measured: $(cat out)"
expect 0 '^memory +.* declared' "$bourse" devices "${device:0:8}"
expect 0 '^bf16 +- +unknown' "$bourse" devices "${device:0:8}"
expect 0 '^[0-9a-f]{32}$' "$bourse" devices --quiet --needs 'measured = bandwidth'
expect 0 '"devices":\[\]' "$bourse" devices --json --needs 'measured = memory'
expect 2 'unknown figure "bf17"; did you mean "bf16"' "$bourse" devices --needs 'measured = bf17'
expect 3 'devices. lists them' "$bourse" devices nothing-of-that-name
expect 2 'say --catalogue' "$bourse" devices nvidia-h100-sxm5
expect 2 'does not go with an ID' "$bourse" devices --needs 'kind = cpu' "${device:0:8}"
expect 0 '"devices":\[\]' "$bourse" devices --json --needs 'kind = tpu'
expect 2 'did you mean' "$bourse" devices --needs 'knd = tpu'

# Work is planned on what is on offer, by what the agent measured, at its price.
expect 0 '"form":"(single|split|graph)".*"devices":\[\{"device":"[^"]*provider[^"]*","id":null,"machine":0,"hour_micro":[0-9]+' \
    "$bourse" plan matmul --set dtype=fp32 --devices market --json
expect 0 'estimated +from declared figures: by the devices. owners' "$bourse" plan matmul --set dtype=fp32 --devices market
"$bourse" plan matmul --set dtype=fp32 --devices market --quiet >a && "$bourse" plan matmul --set dtype=fp32 --on-offer --quiet >b || fail "--on-offer"
cmp a b || fail "--on-offer is not --devices market: $(cat a b)"
"$bourse" plan matmul --set dtype=fp32 --market "$work/market" --quiet >b || fail "--market PATH"
cmp a b || fail "--market PATH alone is not --devices market: $(cat a b)"
expect 0 'h100-sxm5' "$bourse" plan matmul --market "$work/market" --devices h100
expect 2 'not both' "$bourse" plan matmul --devices market --devices h100

expect 0 'provider +present +1 ' "$bourse" providers
expect 0 '"state":"present"' "$bourse" providers --json
instrument=$("$bourse" devices --json | sed -E 's/.*"instrument":"([^"]*)".*/\1/')
expect 0 "$instrument +0.10 " "$bourse" book --instrument "$instrument"
expect 3 "no instrument 'no .\"such.\" one' is offered or was traded here" "$bourse" book --json --instrument 'no "such" one'
expect 3 "did you mean $instrument" "$bourse" book --instrument "${instrument}x"
expect 3 "did you mean $instrument" "$bourse" prices "${instrument}x"
expect 0 '"asks":\[\]' "$bourse" book --json --instrument tpu.google.v5p # of the catalogue, and not here
expect 0 '"prices":\[\]' "$bourse" prices --json sim.tpu.google.v5p
expect 0 '"providers":1' "$bourse" book --json --needs 'kind = cpu' --instrument "$instrument"
expect 2 '.' "$bourse" book --needs 'kind ='
expect 0 "$instrument +[0-9]+ +0.10" "$bourse" trades
expect 0 '"price_micro":100000' "$bourse" trades --json --limit 1
[ "$("$bourse" trades --quiet --limit 3 | wc -l)" = 3 ] || fail "trades --limit 3"
wanting=$("$bourse" submit all.yaml -y --quiet --anyway --budget 1 2>err) || fail "all.yaml: $(cat err)"
expect 0 "${wanting:0:8} +bid +market +all " "$bourse" order list
expect 0 '"side":"bid"' "$bourse" order list --json
expect 2 "bourse cancel ${wanting:0:8}" "$bourse" order cancel "$wanting"
expect 3 'NOT_FOUND: order: no order of this account begins with ffffffff' "$bourse" order cancel ffffffff
# The terms of a job that waits: its place, its price, its budget. What is refused changes nothing.
expect 2 'say what is to change' "$bourse" order replace "$wanting"
expect 2 'bid of a job, which has no --price' "$bourse" order replace "$wanting" --price 1
expect 2 'order place has no --cap' "$bourse" order place "$wanting" --cap 1
expect 3 'no order' "$bourse" order replace ffffffff --cap 1
expect 4 'PRICE: price: .* limit 1000' "$bourse" order replace "$wanting" --cap 999999999
expect 4 'BUDGET: budget: 0.50 credits are below the 1.00 that the job has now' "$bourse" order replace "$wanting" --budget 0.5
expect 4 'INSUFFICIENT_FUNDS' "$bourse" order replace "$wanting" --budget 5000
expect 0 "^$wanting$" "$bourse" order replace "${wanting:0:8}" --cap 0.07 --at-most 64
grep -q 'as the market is now, the job waits: .*the one on offer asks more' err || fail "a cap below every ask is not warned of: $(cat out err)"
expect 0 '"price_micro":70000' "$bourse" order list --json
expect 0 '"replaced"' "$bourse" order replace last --budget 1.5 --json
expect 0 '"budget":"1.50"' "$bourse" ps "$wanting" --json
expect 2 'did you mean .list' "$bourse" order lst
expect 0 '"bids":1' "$bourse" book --json
expect 0 '.' "$bourse" cancel "$wanting"
expect_soon 0 '"state":"cancelled"' "$bourse" ps "$wanting" --json # and its slots are free again

# A job that waits only so long.
expect 5 "the job's time was up" "$bourse" run -y --anyway --budget 1 --needs 'memory >= 900TiB' --good-till 1s -- true
expect 0 "the job's time was up" "$bourse" ps last
expect 2 'good-till' "$bourse" run -y --good-till 367d -- true

# Orders of other types: all at once or not at all, at once or never, and never at another's price.
expect 0 '^at once$' "$bourse" run -y --order fok -- echo 'at once'
expect 5 'what the job asked for at once was not on offer' \
    "$bourse" run -y --anyway --budget 1 --needs 'memory >= 900TiB' --order ioc -- true
expect 0 'what the job asked for at once was not on offer' "$bourse" ps last
printf 'name: now\norder: fok\nneeds: memory >= 900TiB\nrun: ["true"]\n' >now.yaml
expect 5 'cancelled: .* what the job asked for at once was not on offer' \
    "$bourse" submit -y --anyway --budget 1 now.yaml
expect 5 '"state":"cancelled"' "$bourse" submit -y --anyway --budget 1 --json now.yaml
expect 5 '^[0-9a-f]{32}$' "$bourse" submit -y --anyway --budget 1 --quiet --order ioc now.yaml
expect 0 '^[0-9a-f]{8}' "$bourse" submit -y --anyway --budget 1 --order market now.yaml
expect 0 '.' "$bourse" cancel last
expect 5 'WOULD_TRADE' "$bourse" run -y --order post-only --cap 1 -- true
expect 2 'every ask for what fits is above what the job would pay' "$bourse" run -y --value '0.000001 per fp64 TFLOP-hour' -- true
expect 2 "'gtc' is none of" "$bourse" run -y --order gtc -- true
printf 'name: gang\nrun: ["true"]\narray: 1-300\nat_most: 300\norder: all-or-none\n' >gang.yaml
gang=$("$bourse" submit gang.yaml -y --quiet 2>err) || fail "gang.yaml: $(cat err)"
expect 0 "${gang:0:8} +bid +all-or-none +gang " "$bourse" order list
expect 0 'the job waits until all that it asks for can be had at once' "$bourse" ps "$gang"
expect 0 '"bids":\[\]' "$bourse" book --json
expect 0 '^small$' "$bourse" run -y -- echo small
expect 0 '.' "$bourse" cancel "$gang"
expect 2 'order: all-or-none asks for everything at once, and the task' \
    "$bourse" plan <(printf 'tasks:\n  - {name: a, run: ["true"]}\n  - {name: b, run: ["true"], after: a}\norder: all-or-none\n')

# Money: every entry is there, and the operator can let somebody in.
expect 0 'hold' "$bourse" ledger
expect 0 'owner' "$bourse" admin accounts
expect 0 '^bourse-invite-1' "$bourse" admin invite --credits 5 --name ada
invitation=$(cat out)
expect 2 'did you mean consumer' "$bourse" admin invite --role consmer
expect 2 'no role .x.; consumer, provider, referee, auditor or risk' "$bourse" admin invite --role x
expect 0 'consumer' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" join "$invitation" --name ada
expect 0 'available +5.00' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" balance
expect 4 '.' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" admin accounts
expect 4 '.' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/bob" "$bourse" join "$invitation"
expect 3 '.' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" ps "$job"

# Halted, nothing new starts; resumed, it does.
expect 0 '' "$bourse" admin halt --reason test
expect 4 '.' "$bourse" run -y -- true
expect 0 '' "$bourse" admin halt --undo
expect 0 '' "$bourse" run -y -q -- true

"$bourse" run -y -q -- true >out 2>&1 || fail "true: $(cat out)"
expect 0 'left none; .bourse logs' "$bourse" fetch last -o nothing
[ ! -e nothing ] || fail "a folder was made for no outputs"

# Down, and up again: the same money, the same jobs.
cp market/market.yaml closed.yaml
expect 0 '' env BOURSE_MARKET="$work/market" "$bourse" down
grep -qE 'commands [1-9][0-9]*, dispatched [1-9][0-9]* subtasks, looked at edges [0-9]+ times' market/broker.log ||
    fail "the broker does not say what it decided: $(tail -n 5 market/broker.log)"
expect 6 '.' "$bourse" ps --timeout 1s
# A wait ends at its bound, also when no broker answers at all. A request alone would be given 30 s.
expect 8 'no broker answers at ' timeout 28 "$bourse" wait last --market closed.yaml --key market/owner.key --wait-at-most 2s
! command -v sqlite3 >/dev/null || sqlite3 market/ledger.db "UPDATE batches SET signature = zeroblob(64)"
# A broker that runs by itself keeps its market.yaml when `up` finds the folder taken.
rm -f "$work/market/market.yaml"
"$bin/bourse-broker" --dir "$work/market" 2>alone.log &
alone=$!
for _ in $(seq 1200); do
    [ ! -e "$work/market/market.yaml" ] || break
    sleep 0.1 # between two looks; the file is the event
done
"$bourse" up --dir "$work/market" --detach >out 2>err && fail "a second broker started: $(cat out)"
grep -q LOCKED err || fail "up does not say that the folder is taken: $(cat err)"
[ -e "$work/market/market.yaml" ] || fail "up removed the file of a broker that runs"
kill "$alone"
wait "$alone" || fail "the broker ended badly: $(cat alone.log)"

# What --dir says counts, and that other commands use another market is said.
expect 0 'Other commands use .*/elsewhere/market.yaml; they use this market after: export BOURSE_MARKET=.' \
    env BOURSE_MARKET="$work/elsewhere/market.yaml" "$bourse" up --dir "$work/market" --detach
expect 0 "$job" "$bourse" ps --quiet

# A receipt that would not verify is not written.
if command -v sqlite3 >/dev/null; then
    expect 7 'receipt of subtask 0 proves nothing: .*nothing was written' "$bourse" receipt "$job" 0 -o unproved
    expect 7 'proves nothing' "$bourse" receipt "$job" --all -o unproved
    [ -z "$(ls unproved)" ] || fail "a receipt was written that proves nothing: $(ls unproved)"
    expect 7 'proves nothing' "$bourse" receipt "$job" 0
    [ ! -s out ] || fail "a receipt was printed that proves nothing: $(cat out)"
fi

# Half of it killed: `up` says which half.
kill -9 "$(sed -n 's/^broker \([0-9]*\).*/\1/p' "$work/market/up.pids")"
for _ in $(seq 600); do
    "$bourse" up --dir "$work/market" --detach >out 2>err && fail "a second market started: $(cat out)"
    ! grep -q 'its broker ended' err || break
    sleep 0.1 # between two looks; that the process is gone is the event
done
grep -q 'its broker ended' err || fail "up does not say that the broker is dead: $(cat err)"
expect 0 '' "$bourse" down --dir "$work/market"
expect 3 'no market' "$bourse" down --dir "$work/market"

# Its blobs removed: the broker starts, and says what is gone.
! grep -q 'blobs/ lacks' market/broker.log || fail "blobs that are there are said to be gone: $(cat market/broker.log)"
rm -rf market/blobs market/market.yaml
"$bin/bourse-broker" --dir "$work/market" 2>lost.log &
alone=$!
for _ in $(seq 1200); do
    [ ! -e "$work/market/market.yaml" ] || break
    sleep 0.1 # between two looks; the file is the event
done
kill "$alone"
wait "$alone" || fail "the broker ended badly: $(cat lost.log)"
grep -qE 'blobs/ lacks the manifests of ([0-9]+) of \1 jobs and outputs of ([0-9]+) of \2 results' lost.log ||
    fail "nobody is told that the blobs are gone: $(cat lost.log)"
echo "the command line against a market: ok"
