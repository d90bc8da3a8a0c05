#!/usr/bin/env bash
# Inputs whose files the broker lost, or that have other bytes, before an agent asked for them: the job ends after the tries that
# it has and says which input is missing, is charged nothing and holds no device; the broker's log has each of them once a minute at most.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin blobs-lost "$1" bourse-tensor bourse-audit
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
file sound.npy sound
submit_product sound sound.npy

damage() { # FILE WAY
    local hash blob
    hash=$(sha256sum <"$1" | cut -d' ' -f1)
    blob=$market/blobs/${hash:0:2}/$hash
    [ -s "$blob" ] || fail "the broker has no file of $1"
    case $2 in
    gone) rm "$blob" ;;
    shorter) truncate -s 1000 "$blob" ;;
    other) flip "$blob" 5000 ;;
    esac
}
for way in $ways; do
    damage "$way.npy" "$way"
    damage "$way.bin" "$way"
done

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
    why=' does not have blob [0-9a-f]{64}; its log says why'
    failed "product-$way" "$way.npy" "$why"
    failed "text-$way" "$way.bin" "$why"
done
# Whoever has the file sends it again: the right bytes take the place of the others.
for way in $ways; do
    submit_product "again-$way" "$way.npy"
    submit "again-text-$way" "$way.bin" "run: [sh, -c, 'cat $way.bin >/dev/null']"
done
for way in $ways; do
    until_true 180 is_over "again-$way" "done" || fail "again-$way: $(cat ps.json)"
    until_true 180 is_over "again-text-$way" "done" || fail "again-text-$way: $(cat ps.json)"
    hash=$(sha256sum <"$way.npy" | cut -d' ' -f1)
    sha256sum <"$market/blobs/${hash:0:2}/$hash" | grep -q "^$hash" || fail "$way.npy is not mended"
done
until_true 180 is_over sound "done" || fail "no device is free for what waits behind them: $(cat ps.json)"

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
echo "inputs lost in three ways are told, the device is free: ok"
