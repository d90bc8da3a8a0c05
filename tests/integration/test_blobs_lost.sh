#!/usr/bin/env bash
# Inputs whose files the broker lost, or that have other bytes, before an agent asked for them: the job ends after the tries that
# it has and says which input is missing, is charged nothing and holds no device; the broker's log has each of them once a minute at most.
# Whoever resumes the job or submits the same file again mends it; a client that waits for its job does so by itself. The same of images.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin blobs-lost "$1" bourse-tensor bourse-audit junk-storer
command -v sqlite3 >/dev/null || skip "no sqlite3"

market_up --credits 100 --slots 1
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"

# file NAME WORD: a matrix of its own bytes, so large that a product is computed with it where it lies.
file() { npy "$1" 1100 1100 && printf '%s' "$2" | dd of="$1" bs=1 seek=4000 conv=notrunc status=none; }
submit() { # NAME INPUT LINE...
    local name=$1 input=$2
    shift 2
    printf '%s\n' "name: $name" "files: [$input, b.npy]" "budget: 1.00" "cap: 1.00" "$@" >"$name.yaml"
    "$bourse" submit "$name.yaml" -y --quiet --anyway >"$name.id" 2>submit.log || fail "submit: $(cat submit.log)"
}
submit_product() { submit "$1" "$2" 'executor: tensor' "run: [matmul, $2, b.npy, c.npy]" 'outputs: c.npy'; }
file b.npy b
ways='gone shorter other'
for way in $ways; do
    file "$way.npy" "$way"
    submit_product "product-$way" "$way.npy"
    file "$way.bin" "text $way"
    submit "text-$way" "$way.bin" "run: [sh, -c, 'cat $way.bin >/dev/null']"
done
file unread.bin "text unread"
submit unread unread.bin "run: [sh, -c, 'cat unread.bin >/dev/null']"
file sound.npy sound
submit_product sound sound.npy
mkdir deep
for name in deep/one two; do
    file "$name.bin" "resumed $name"
done
printf '%s\n' 'name: resumed' 'files: [deep/one.bin, two.bin, b.npy]' 'budget: 1.00' 'cap: 1.00' \
    "run: [sh, -c, 'cat deep/one.bin two.bin >/dev/null']" >resumed.yaml
"$bourse" submit resumed.yaml -y --quiet --anyway >resumed.id 2>submit.log || fail "submit: $(cat submit.log)"
# Images: file systems in a tar, as unlike as one file makes them.
mkdir -p root/bin
cp -L /bin/sh root/bin/
ldd /bin/sh | grep -oE '/[^ ]+' | sort -u | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
done
image() { echo "$1" >root/name && tar cf "$1.tar" -C root .; }
image_job() { # NAME IMAGE
    printf '%s\n' "name: $1" "image: $2" "run: [sh, -c, 'read -r name </name && [ \"\$name\" = ${2%.tar} ]']" 'budget: 1.00' 'cap: 1.00' >"$1.yaml"
}
image rotten
image_job image rotten.tar
"$bourse" submit image.yaml -y --quiet --anyway >image.id 2>submit.log || fail "submit: $(cat submit.log)"

damage() { # FILE WAY
    local hash blob
    hash=$(sha256sum <"$1" | cut -d' ' -f1)
    blob=$market/blobs/${hash:0:2}/$hash
    [ -s "$blob" ] || fail "the broker has no file of $1"
    case $2 in
    gone) rm "$blob" ;;
    shorter) truncate -s 1000 "$blob" ;;
    other) flip "$blob" 5000 ;;
    unread) mv "$blob" "$blob.away" && ln -s "$blob.away" "$blob" ;; # it opens no links, as if the disk failed
    esac
}
for way in $ways; do
    damage "$way.npy" "$way"
    damage "$way.bin" "$way"
done
damage unread.bin unread
damage rotten.tar other
damage deep/one.bin other
damage two.bin gone

began_ms=$(now_ms)
agent_start "$market/provider"
started+=("$agent")
is_over() { # NAME STATE
    "$bourse" ps "$(cat "$1.id")" --json --timeout 5s >ps.json 2>/dev/null && grep -q "\"state\":\"$2\",\"reason\"" ps.json
}
failed() { # NAME FILE WHY
    until_true 180 is_over "$1" failed || fail "$1: $(cat ps.json; "$bourse" explain "$(cat "$1.id")" 2>&1)"
    "$bourse" ps "$(cat "$1.id")" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
    grep -qE "^ +0 +failed +3 .* input missing: input $2: the broker$3" ps.txt || fail "$1: $(cat ps.txt)"
    "$bourse" logs "$(cat "$1.id")" >logs.txt 2>&1 || true # nothing but that there is nothing
    has "$(cat logs.txt)" "input missing: input $2: the broker"
    grep -q '"charged_micro":0,' ps.json || fail "$1 was charged: $(cat ps.json)"
}
for way in $ways; do
    why=' does not have blob [0-9a-f]{64}; the broker.s log says why'
    failed "product-$way" "$way.npy" "$why"
    failed "text-$way" "$way.bin" "$why"
done
failed unread unread.bin ' cannot read blob [0-9a-f]{64}; the broker.s log says why'
! grep -q "provider's fault" ps.txt ps.json || fail "the provider is blamed for what the broker cannot read: $(cat ps.txt ps.json)"
until_true 180 is_over image failed || fail "image: $(cat ps.json; "$bourse" explain "$(cat image.id)" 2>&1)"
"$bourse" ps "$(cat image.id)" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
grep -qE '^ +0 +failed +3 .* image missing: ' ps.txt || fail "image: $(cat ps.txt)"
grep -q '"charged_micro":0,' ps.json || fail "image was charged: $(cat ps.json)"
grep -q "provider's fault" ps.txt ps.json && fail "the provider is blamed for the image: $(cat ps.txt ps.json)"
# Who resumes the job sends what is still here, and hears which file is not.
until_true 180 is_over resumed failed || fail "resumed: $(cat ps.json)"
mv two.bin moved.bin
if "$bourse" resume "$(cat resumed.id)" -y --cap 1.00 >resume.out 2>resume.log; then fail "a file that is not here is not missed: $(cat resume.log)"; fi
has "$(cat resume.log)" 'the broker lost two.bin, and it cannot be sent again: two.bin: No such file or directory'
has "$(cat resume.log)" '1 file that the job needs is lost and cannot be sent'
cp b.npy two.bin # as long, and with other bytes
if "$bourse" resume "$(cat resumed.id)" -y --cap 1.00 >resume.out 2>resume.log; then fail "another file was sent: $(cat resume.log)"; fi
has "$(cat resume.log)" 'two.bin: is another file than the job had'
mkdir elsewhere
mv deep elsewhere/deep
mv moved.bin elsewhere/two.bin
"$bourse" resume "$(cat resumed.id)" -y --quiet --cap 1.00 --files elsewhere >resumed-on.id 2>resume.log || fail "resume: $(cat resume.log)"
[ ! -s resume.log ] || fail "resume complains: $(cat resume.log)"
until_true 180 is_over resumed-on "done" || fail "what was sent again does not run: $(cat ps.json)"
if "$bourse" resume "$(cat image.id)" -y --cap 1.00 >resume.out 2>resume.log; then fail "a lost image is not missed: $(cat resume.log)"; fi
has "$(cat resume.log)" 'the broker lost the image'
"$bourse" resume "$(cat image.id)" -y --quiet --cap 1.00 --image rotten.tar >image-on.id 2>resume.log || fail "resume: $(cat resume.log)"
until_true 180 is_over image-on "done" || fail "the image that was sent again does not run: $(cat ps.json)"
# Whoever has the file sends it again: the right bytes take the place of the others.
for way in $ways; do
    submit_product "again-$way" "$way.npy"
    submit "again-text-$way" "$way.bin" "run: [sh, -c, 'cat $way.bin >/dev/null']"
done
"$bourse" submit image.yaml -y --quiet --anyway >again-image.id 2>submit.log || fail "submit: $(cat submit.log)"
for way in $ways; do
    until_true 180 is_over "again-$way" "done" || fail "again-$way: $(cat ps.json)"
    until_true 180 is_over "again-text-$way" "done" || fail "again-text-$way: $(cat ps.json)"
    hash=$(sha256sum <"$way.npy" | cut -d' ' -f1)
    sha256sum <"$market/blobs/${hash:0:2}/$hash" | grep -q "^$hash" || fail "$way.npy is not mended"
done
until_true 180 is_over again-image "done" || fail "again-image: $(cat ps.json)"
until_true 180 is_over sound "done" || fail "no device is free for what waits behind them: $(cat ps.json)"

# A client that waits for its job has the files still: the broker asks it, and the job ends well without a word from anybody.
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
image kept
image_job kept-image kept.tar
for way in $ways; do
    file "kept-$way.npy" "kept $way"
    printf '%s\n' "name: kept-$way" "files: [kept-$way.npy, b.npy]" 'executor: tensor' "run: [matmul, kept-$way.npy, b.npy, c.npy]" \
        'outputs: c.npy' 'budget: 1.00' 'cap: 1.00' >"kept-$way.yaml"
done
are_placed() { local name && for name in $(printf 'kept-%s ' $ways) kept-image; do [ -s "$name.id" ] || return 1; done; }
waiters=()
for name in $(printf 'kept-%s ' $ways) kept-image; do
    "$bourse" submit "$name.yaml" -y --wait --anyway >"$name.id" 2>"$name.out" &
    waiters+=("$!")
    started+=("$!")
done
until_true 60 are_placed || fail "the jobs do not wait: $("$bourse" ps 2>&1; cat kept-*.out)"
for way in $ways; do
    damage "kept-$way.npy" "$way"
done
damage kept.tar other
agent_start "$market/provider"
started+=("$agent")
for waiter in "${waiters[@]}"; do
    wait "$waiter" || fail "a job whose client waits ends with $?: $(tail -n 9 kept-*.out; "$bourse" ps --all 2>&1 | tail -n 9)"
done
for name in $(printf 'kept-%s.npy ' $ways) kept.tar; do
    hash=$(sha256sum <"$name" | cut -d' ' -f1)
    grep -q "a blob could not be read: .*$hash" "$market/broker.log" || fail "$name was never lost: $(tail -n 20 "$market/broker.log")"
    sha256sum <"$market/blobs/${hash:0:2}/$hash" | grep -q "^$hash" || fail "$name is not mended"
done

# A program that its image lacks is the job's own fault: one try, and no provider is blamed.
mkdir bare
echo bare >bare/name
tar cf bare.tar -C bare .
printf '%s\n' 'name: bare' 'image: bare.tar' 'run: [/bin/program]' 'budget: 1.00' 'cap: 1.00' >bare.yaml
if "$bourse" submit bare.yaml -y --wait --quiet >bare.id 2>bare.out; then fail "a program that is not there ran"; fi
"$bourse" ps "$(tail -n 1 bare.id)" >bare.txt 2>&1 || fail "ps: $(cat bare.txt)"
grep -qE '^ +0 +failed +1 .* /bin/program: no such program' bare.txt || fail "bare: $(cat bare.txt bare.out)"
grep -q "provider's fault" bare.txt bare.out && fail "the provider is blamed: $(cat bare.txt bare.out)"

# Nobody waits for this job. The agent that runs a part of it has its input and image still, and gives them back to the broker.
file shared.bin shared
cp -L "$(command -v sleep)" root/bin/
ldd "$(command -v sleep)" | grep -oE '/[^ ]+' | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
done
image held
cat >held.yaml <<'END'
name: held
image: held.tar
files: [shared.bin]
array: 0-1
run: [sh, -c, 'read -r name </name && [ "$name" = held ] && [ -s shared.bin ] && ([ {index} = 1 ] || sleep 600)']
limit: 15m
budget: 5.00
cap: 1.00
END
"$bourse" submit held.yaml -y --quiet --anyway >held.id 2>submit.log || fail "submit: $(cat submit.log)"
cached() { # FILE: the agent has it
    local hash
    hash=$(sha256sum <"$1" | cut -d' ' -f1)
    [ -s "$market/provider/cache/${hash:0:2}/$hash" ]
}
are_cached() { cached shared.bin && cached held.tar; }
until_true 60 are_cached || fail "the agent does not fetch the files of its job: $("$bourse" ps "$(cat held.id)" 2>&1)"
damage shared.bin gone
damage held.tar other
agent_join "$work/other" --name other <<<'programs: [sh, sleep]'
sed -i '/^slots:/d' other/provider.yaml
echo 'slots: 1' >>other/provider.yaml
holder=$agent
# Only who has a lease of the job hears which of its files are lost, and nothing of other jobs.
mkdir -m 700 keys
cp "$market/provider/provider.key" keys/holder.key && chmod 600 keys/holder.key && chown -R "$(id -u)" keys
damage gone.npy gone
lost_of() { "$bin/junk-storer" "$market/market.yaml" "$@" lost 2>lost.log || fail "junk-storer: $(cat lost.log)"; }
gone=$(sha256sum <gone.npy | cut -d' ' -f1)
# Its owner hears of it while somebody wants the file, which is so for some seconds after a resume that failed.
owner_hears() {
    if "$bourse" resume "$(cat product-gone.id)" -y --cap 1.00 --files keys >resume.out 2>resume.log; then fail "a file that is not there was sent: $(cat resume.log)"; fi
    lost_of "$market/owner.key" - | grep -q "$gone"
}
until_true 60 owner_hears || fail "the owner of a lost file does not hear of it: $(cat resume.log)"
[ "$(lost_of "$work/other/provider.key" "$(cat held.id)")" = refused ] || fail "who has no lease of the job hears what it lost"
of_holder=$(lost_of keys/holder.key "$(cat held.id)")
case $of_holder in *"$gone"* | refused) fail "who has a lease hears of another job's file, or of nothing: $of_holder" ;; esac
agent_start "$work/other"
started+=("$agent")
one_accepted() { "$bourse" ps "$(cat held.id)" --json >ps.json 2>/dev/null && [ "$(number accepted ps.json)" = 1 ]; }
until_true 120 one_accepted || fail "what the agent has still does not come back: $(cat ps.json; "$bourse" ps "$(cat held.id)" 2>&1; tail -n 5 agent-*.log)"
! grep -q 'input missing\|image missing' ps.json || fail "a try failed meanwhile: $(cat ps.json)"
for name in shared.bin held.tar; do
    hash=$(sha256sum <"$name" | cut -d' ' -f1)
    grep -q "a blob could not be read: .*$hash" "$market/broker.log" || fail "$name was never lost: $(tail -n 20 "$market/broker.log")"
    sha256sum <"$market/blobs/${hash:0:2}/$hash" | grep -q "^$hash" || fail "$name is not mended"
done
[ "$(grep -c 'this agent has sent the file again' agent-provider.log)" -ge 2 ] || fail "the agent did not send them: $(cat agent-provider.log)"
"$bourse" cancel "$(cat held.id)" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
kill "$agent"
ended "$agent" 60 || fail "the other agent does not end"
agent=$holder

keeps_none() {
    local file
    for file in "/proc/$agent/fd/"*; do
        [[ "$(readlink "$file")" != "$market/blobs/"* ]] || return 1
    done
}
until_true 60 keeps_none || fail "the idle agent keeps files of the broker's open"

minutes=$((($(now_ms) - began_ms) / 60000))
for way in $ways; do
    for kind in npy bin; do
        hash=$(sha256sum <"$way.$kind" | cut -d' ' -f1)
        lines=$(grep -c "a blob could not be read: .*$hash" "$market/broker.log" || true)
        [ "$lines" -ge 1 ] || fail "the log does not say that $way.$kind is lost: $(cat "$market/broker.log")"
        [ "$lines" -le $((1 + minutes)) ] || fail "the log of $way.$kind grows: $(cat "$market/broker.log")"
    done
done
market_audit
grep -q "a blob could not be read: .*$(sha256sum <rotten.tar | cut -d' ' -f1)" "$market/broker.log" || fail "the log does not say that the image is lost"
echo "inputs and an image lost are told, the device is free, and who has them mends them: ok"
