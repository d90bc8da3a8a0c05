#!/usr/bin/env bash
# The product of two matrices as one job over two agents. The product is put together exactly, refused before anything is
# sent when it cannot be made, gone on with after an interruption, and never given a name when it is wrong. How tiles go to
# agents by their speed is in test_matmul_speeds.sh.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/products.sh
. "$(dirname "$(realpath "$0")")/../support/products.sh"
fire_begin matmul "$1" bourse-audit bourse-tensor
command -v sqlite3 >/dev/null || skip "no sqlite3"
[ "$(nproc)" -ge 2 ] || skip "one processor"

jobs_are() { # COUNT
    "$bourse" ps --quiet >ids
    [ "$(wc -l <ids)" -eq "$1" ] || fail "$(wc -l <ids) jobs, not $1"
}
nothing_left() { [ -z "$(find . -maxdepth 1 -name '.bourse-*.part')" ] || fail "a part was left: $(ls -a)"; }

market_up --credits 1000 --slots 1
until_true 60 multiplying 1 || fail "nobody multiplies: $(cat market/provider.log)"

# ---------------------------------------------------------------- refused before anything is sent

matrix A.npy 60 50 1 whole
matrix B.npy 50 40 2 whole
product=("$bourse" run -y matmul A.npy B.npy -o C.npy)
expect 2 'as many columns as B has rows' "$bourse" run -y matmul A.npy A.npy -o C.npy
sed 's/<f4/<f8/' A.npy >wide.npy
expect 2 'float64|bytes of data' "$bourse" run -y matmul wide.npy B.npy -o C.npy
sed 's/<f4/<i4/' A.npy >whole.npy
expect 2 'int32' "$bourse" run -y matmul whole.npy B.npy -o C.npy
sed "s/'fortran_order': False/'fortran_order': True /" A.npy >fortran.npy
expect 2 'Fortran' "$bourse" run -y matmul fortran.npy B.npy -o C.npy
head -c -1 A.npy >short.npy
expect 2 'cut off' "$bourse" run -y matmul short.npy B.npy -o C.npy
sed 's/(60, 50), }           /(9223372036854775808, 50), }/' A.npy >huge.npy
expect 2 'larger than|bytes' "$bourse" run -y matmul huge.npy B.npy -o C.npy
expect 2 'no-such.npy' "$bourse" run -y matmul no-such.npy B.npy -o C.npy
expect 2 'one of the factors' "$bourse" run -y matmul A.npy B.npy -o B.npy
expect 2 'not ROWSxCOLUMNS' "${product[@]}" --tiles 4
expect 2 'a tile has one entry' "${product[@]}" --tiles 61x1
expect 2 'one.s own|C.npy' "$bourse" run -y matmul A.npy B.npy
expect 2 'No such file' "$bourse" run -y matmul A.npy B.npy -o no/such/C.npy
echo mine >diary
expect 2 '-o diary: the file is there and is no .npy file; give another name' "$bourse" run -y matmul A.npy B.npy -o diary
[ "$(cat diary)" = mine ] || fail "it was overwritten: $(cat diary)"
ln -s elsewhere.npy link.npy
expect 2 'link.npy: is not a regular file, and will not be replaced' "$bourse" run -y matmul A.npy B.npy -o link.npy
expect 5 'within the cap' "${product[@]}" --cap 0.000001
expect 4 'one lease takes' "${product[@]}" --budget 0.000001
expect 5 'nothing|no device|anyway' "$bourse" run -y --file A.npy --file B.npy -- matmul A.npy B.npy -o C.npy # the program of that name
jobs_are 0
[ ! -e C.npy ] || fail "a refused product left a file"
nothing_left

# ---------------------------------------------------------------- exact, over two agents

agent_join "$work/second" --name second <<<'slots: 1'
sed -i 's/^price:.*/price: 0.20/' "$work/second/provider.yaml"
last_core=$(taskset -pc $$ | grep -oE '[0-9]+$') # of those that this test may use
taskset -c "$last_core" "$bin/bourse-provider" run --dir "$work/second" >>"$work/agent-second.log" 2>&1 &
second=$!
started+=("$second")
until_true 60 multiplying 2 || fail "the second agent does not multiply: $(cat agent-second.log)"

cp A.npy C.npy # a .npy file of that name is replaced
expect 0 '' "${product[@]}" --tiles 3x2 --json
[ "$(field tiles out)" = 6 ] || fail "tiles: $(cat out)"
[ "$(field checked out)" = true ] || fail "not checked: $(cat out)"
[ "$(field max_rel_error out)" = 0.0 ] || fail "whole numbers are not exact: $(cat out)"
# The same in the slow way.
perl -e '
    sub matrix { open my $in, "<:raw", $_[0] or die; local $/; my $all = <$in>; $all =~ /\((\d+), (\d+)\)/ or die;
                 return ($1, $2, [unpack("f<*", substr($all, 128))]) }
    my ($m, $k, $a) = matrix("A.npy"); my (undef, $n, $b) = matrix("B.npy"); my ($r, $c, $found) = matrix("C.npy");
    die "shape ($r, $c)\n" if $r != $m || $c != $n;
    for my $i (0 .. $m - 1) { for my $j (0 .. $n - 1) { my $sum = 0;
        $sum += $a->[$i * $k + $_] * $b->[$_ * $n + $j] for 0 .. $k - 1;
        die "C[$i][$j]\n" if $sum != $found->[$i * $n + $j] } }' || fail "C is not the product"
nothing_left
# Too small to gain by a second device: left alone it stays whole, on one of the two, with or without the other on offer.
for slots in 2 1; do
    expect 0 '' "$bourse" run -y matmul A.npy B.npy -o again.npy --at-most "$slots" --json
    [ "$(field split out)" = false ] || fail "a small product was split: $(cat out)"
    [ "$(field tiles out) $(field providers out)" = "1 1" ] || fail "a small product is not whole: $(cat out)"
    [ "$(field predicted_ms out)" -le "$(field single_ms out)" ] || fail "planned worse than a single device: $(cat out)"
    cmp C.npy again.npy || fail "left alone it is another product"
done
# One tile each, and one for all: the same product.
for tiles in 1x1 60x1 7x5; do
    expect 0 '' "$bourse" run -q -y matmul A.npy B.npy -o again.npy --tiles "$tiles"
    cmp C.npy again.npy || fail "with tiles of $tiles another product"
done

# ---------------------------------------------------------------- one of little memory on offer

# Its tiles would be small ones: they are not made so for one device, and a tile that it cannot hold
# goes to the others.
agent_join "$work/small" --name small <<<$'slots: 1\nmemory: 64MiB\ndisk: 40MiB'
sed -i 's/^price:.*/price: 0.01/' "$work/small/provider.yaml"
"$bin/bourse-provider" run --dir "$work/small" >>"$work/agent-small.log" 2>&1 &
small=$!
started+=("$small")
until_true 60 multiplying 3 || fail "the small agent does not multiply: $(cat agent-small.log)"
zeros flat.npy 300 11000 # a third of it is above a quarter of what the small slot has
zeros tall.npy 11000 300
for options in '' '--at-most 1' '--tiles 1x1'; do
    # shellcheck disable=SC2086 # words
    expect 0 '' "$bourse" run -y matmul flat.npy tall.npy -o zero.npy $options --json
    # Left alone, a device of little memory takes tiles where the measured speeds make that faster.
    if [ -n "$options" ]; then
        [ "$(field tiles out)" -le 2 ] || fail "$options: one device of little memory makes tiles small for all: $(cat out)"
        ! grep -q '"device":"small"' out || fail "$options: it got a tile: $(cat out)"
    fi
    [ "$(field predicted_ms out)" -le "$(field single_ms out)" ] || fail "$options: planned worse than a single device: $(cat out)"
done
expect 2 'quarter of a slot.s memory' "$bourse" run -y matmul flat.npy tall.npy -o zero.npy --tiles 1x1 --cap 0.01
kill -TERM "$small"
ended "$small" 60 || fail "the small agent does not end"
rm zero.npy

# ---------------------------------------------------------------- interrupted, and wrong

expect 8 '--resume' "$bourse" run -y matmul A.npy B.npy -o late.npy --tiles 2x2 --wait-at-most 1ms
[ ! -e late.npy ] || fail "an unfinished product has its name"
nothing_left
expect 0 'checked' "$bourse" run matmul A.npy B.npy -o late.npy --resume last
cmp C.npy late.npy || fail "the product that was gone on with is another"
rm late.npy
expect 0 'not checked' "$bourse" run matmul -o late.npy --resume last
cmp C.npy late.npy || fail "without its factors it is another"
matrix other.npy 60 50 3 whole
expect 7 'wrong: tile \(0, 0\), subtask 0' "$bourse" run matmul other.npy B.npy -o wrong.npy --resume last
expect 7 'if A and B are the files it was made of, multiply again with --verify cheap' "$bourse" run matmul other.npy B.npy -o wrong.npy --resume last
[ ! -e wrong.npy ] || fail "a wrong product has a name"
nothing_left
matrix narrow.npy 50 30 3
expect 2 'but the product of these files' "$bourse" run matmul A.npy narrow.npy -o wrong.npy --resume last
"$bourse" run -y -q -- true >out 2>&1 || fail "true: $(cat out)"
expect 2 'was not made by' "$bourse" run matmul -o wrong.npy --resume last

# NaN and infinities: in their row, and nowhere else.
perl -e 'open my $f, "+<:raw", "A.npy"; seek $f, 128 + 4 * (7 * 50 + 3), 0; print $f pack("f<", "nan")'
expect 0 '' "${product[@]}" --tiles 2x2 --json
[ "$(field checked out)" = true ] || fail "NaN: $(cat out)"
perl -e 'open my $in, "<:raw", "C.npy"; local $/; my @c = unpack("f<*", substr(<$in>, 128)); my $nan = 0;
         for (0 .. $#c) { my $is = $c[$_] != $c[$_]; die "entry $_\n" if $is != (int($_ / 40) == 7); $nan += $is }
         exit($nan == 40 ? 0 : 1)' || fail "NaN is not where it belongs"

market_audit
echo "products: exact, resumed, refused: ok"
