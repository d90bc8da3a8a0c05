#!/usr/bin/env bash
# The program that replays recorded flows of orders: a flow that is whole agrees, and one that is damaged is named, with status 1.
set -euo pipefail
matching=$(realpath "${1:?usage: test_flow.sh BIN}")/../bench/matching
[ -x "$matching" ] || { echo "skipped: no $matching"; exit 77; }
command -v perl >/dev/null || { echo "skipped: no perl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# Order 1 buys 5 at 10 and rests; 2 sells 3 at 9, which fills at 10; 1 is cancelled; 3 sells at once or not at all, and finds nobody.
perl -e '
use integer;
my $hash = 0xcbf29ce484222325;
$hash = ($hash ^ $_) * 0x100000001b3 for (1, 2, 10 << 32 | 3);
print pack("a8 V4 Q<13", "BOFLOW1\n", 1, 24, 1, 100, 1, 4, 7, 3, 3, 1, 0, 1, 1, 3, 0, $hash, 0);
print pack("Q< V3 C2 v", @$_, 0) for [1, 0, 10, 5, 0, 0], [2, 0, 9, 3, 0, 1], [1, 0, 0, 0, 1, 0], [3, 0, 10, 4, 2, 1];
' >"$work/whole"
[ "$(wc -c <"$work/whole")" -eq $((128 + 4 * 24)) ] || fail "the flow is not what it should be"
out=$("$matching" --flow "$work/whole" --rounds 1) || fail "a whole flow: $out"
case $out in
*'"agrees":true'*) ;;
*) fail "a whole flow does not agree: $out" ;;
esac

out=$("$matching" --flow <(cat "$work/whole") --rounds 1) || fail "a whole flow through a pipe: $out"
case $out in
*'"agrees":true'*) ;;
*) fail "a whole flow through a pipe does not agree: $out" ;;
esac

damaged() { # WORDS AT HEX: these bytes in place of what is there; AT end: behind it
    local status=0 at=$2
    cp "$work/whole" "$work/flow"
    [ "$at" != end ] || at=$(wc -c <"$work/flow")
    perl -e 'print pack("H*", $ARGV[0])' "$3" | dd of="$work/flow" bs=1 seek="$at" conv=notrunc status=none
    out=$("$matching" --flow "$work/flow" --rounds 1 2>&1) || status=$?
    [ "$status" -eq 1 ] || fail "$1: status $status, $out"
    case $out in
    "matching: "*"$1"*) ;;
    *) fail "\"$1\" is told as: $out" ;;
    esac
}
most=ffffffffffffffff
damaged 'not an order flow' 0 00
damaged 'before the clock' 24 "$most"
damaged 'before the clock' 24 0400000000000000
damaged 'cut short' 32 "$most"
damaged 'cut short' 32 0500000000000000
damaged 'behind the last record' 32 0300000000000000
damaged 'behind the last record' end 00
damaged 'a highest order above' 48 "$most"
damaged 'names no books, or more than there can be' 16 00000080
damaged 'record 1 names an order or a book' 136 01000000
damaged 'record 4 has an operation or a side' 220 07
damaged 'record 2 has an operation or a side' 173 07
damaged 'record 1 has no quantity, or a price' 140 00000000
damaged 'record 1 has no quantity, or a price' 140 65000000
damaged 'record 2 has no quantity, or a price' 168 00000000
damaged 'record 2 is an order that does not count up' 152 0100000000000000
truncate -s -1 "$work/whole"
damaged 'cut short' 0 42
echo "flows that are whole and damaged: ok"
