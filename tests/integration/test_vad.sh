#!/usr/bin/env bash
# Silero's detector of speech over the recordings of pocketsphinx, a model with state: each chunk of 96 ms is a task that
# takes the state which the task before left. Speech is found at the same places as by ONNX Runtime called directly, and
# nowhere in silence. All recordings are rows of one batch.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/onnx_cases.sh
. "$support/onnx_cases.sh"
fire_begin vad "$1" bourse-audit onnx-cases
command -v perl >/dev/null || skip "no perl"
silero=$(realpath "$support/../../build/models/silero_vad.onnx" 2>/dev/null || true)
recordings=/usr/share/pocketsphinx/test/data
[ -r "$silero" ] || skip "no model of Silero: scripts/setup fetches it"
[ -d "$recordings/librivox" ] || skip "no recordings (Debian package pocketsphinx-testdata)"
onnx_begin
chunk=1536
cp "$silero" vad.onnx

# ---------------------------------------------------------------- chunks
# Writes chunk-K.npy with a row for each recording, and one of silence; h.npy and c.npy of zeros, and the rate.
cat >arrays.pl <<'END'
use strict;
use warnings;
my ($chunk, @files) = @ARGV;
sub npy {
    my ($file, $type, $shape, $bytes) = @_;
    my $h = "{'descr': '$type', 'fortran_order': False, 'shape': ($shape), }";
    $h .= ' ' x (63 - (10 + length $h) % 64) . "\n";
    open my $out, '>:raw', $file or die "$file: $!";
    print $out "\x93NUMPY\x01\x00", pack('v', length $h), $h, $bytes;
    close $out or die "$file: $!";
}
my (@rows, $frames);
for my $file (@files) {
    open my $in, '<:raw', $file or die "$file: $!";
    my $bytes = do { local $/; <$in> };
    if ($file =~ /\.wav$/) {
        my $place = index($bytes, 'data') + 8;
        $bytes = substr($bytes, $place, unpack('V', substr($bytes, $place - 4, 4)));
    }
    push @rows, [map { $_ / 32768 } unpack('s<*', $bytes)];
    my $count = int(@{$rows[-1]} / $chunk);
    $frames = $count if !defined $frames || $count > $frames;
}
push @rows, [];
for my $k (0 .. $frames - 1) {
    my $bytes = '';
    for my $row (@rows) {
        my @part = map { $row->[$_] // 0 } $k * $chunk .. ($k + 1) * $chunk - 1;
        $bytes .= pack('f<*', @part);
    }
    npy("chunk-$k.npy", '<f4', scalar(@rows) . ", $chunk", $bytes);
}
my $zeros = pack('f<*', (0) x (2 * @rows * 64));
npy("$_.npy", '<f4', '2, ' . scalar(@rows) . ', 64', $zeros) for qw(h c);
npy('sr.npy', '<i8', '', pack('q<', 16000));
print "$frames ", scalar(@rows), "\n";
END
mapfile -t files < <(find "$recordings" -name '*.wav' -o -name '*.raw' | LC_ALL=C sort)
[ "${#files[@]}" -eq 14 ] || fail "${#files[@]} recordings and not 14: ${files[*]}"
read -r frames rows < <(perl arrays.pl "$chunk" "${files[@]}") || fail "the recordings cannot be cut"
[ "$frames" -gt 50 ] || fail "only $frames chunks"

# ---------------------------------------------------------------- directly
for ((k = 0; k < frames; k++)); do
    mkdir "direct-$k"
    ln -s "$work/vad.onnx" "direct-$k/model.onnx"
    ln -s "$work/chunk-$k.npy" "direct-$k/i0.npy"
    ln -s "$work/sr.npy" "direct-$k/i1.npy"
    if [ "$k" -eq 0 ]; then
        ln -s "$work/h.npy" "direct-$k/i2.npy"
        ln -s "$work/c.npy" "direct-$k/i3.npy"
    else
        ln -s "$work/direct-$((k - 1))/o1.npy" "direct-$k/i2.npy"
        ln -s "$work/direct-$((k - 1))/o2.npy" "direct-$k/i3.npy"
    fi
    printf '%s\n' 'i input=i0.npy' 'i sr=i1.npy' 'i h=i2.npy' 'i c=i3.npy' 'o output=o0.npy' 'o hn=o1.npy' 'o cn=o2.npy' >"direct-$k/words"
    "$bin/onnx-cases" direct "$BOURSE_ONNXRUNTIME" "direct-$k" >direct.txt 2>&1 || fail "chunk $k, directly: $(cat direct.txt)"
done

# ---------------------------------------------------------------- through the market
{
    printf 'name: vad\nbudget: 10.00\nexecutor: onnx\ntasks:\n'
    for ((k = 0; k < frames; k++)); do
        printf -- '- name: c%s\n  outputs: [p.npy, hn.npy, cn.npy]\n' "$k"
        if [ "$k" -eq 0 ]; then
            printf '  files: [vad.onnx, sr.npy, chunk-0.npy, h.npy, c.npy]\n'
        else
            printf '  files: [vad.onnx, sr.npy, chunk-%s.npy]\n  from: {h.npy: c%s/hn.npy, c.npy: c%s/cn.npy}\n' "$k" $((k - 1)) $((k - 1))
        fi
        printf '  run: [vad.onnx, -i, input=chunk-%s.npy, -i, sr=sr.npy, -i, h=h.npy, -i, c=c.npy, -o, output=p.npy, -o, hn=hn.npy, -o, cn=cn.npy]\n' "$k"
    done
} >vad.yaml
timeout 500 "$bourse" submit -y vad.yaml -o market-results >out 2>err </dev/null || fail "the job: $(tail -n 5 out err)"
for ((k = 0; k < frames; k++)); do
    for pair in p=o0 hn=o1 cn=o2; do
        cmp -s "market-results/c$k/${pair%=*}.npy" "direct-$k/${pair#*=}.npy" || fail "chunk $k: ${pair%=*} differs"
    done
done

# ---------------------------------------------------------------- speech
# Prints the segments of each row, in chunks: speech begins at 0.5 and ends below 0.35 for three chunks.
cat >segments.pl <<'END'
use strict;
use warnings;
my ($rows, @files) = @ARGV;
my @found = map { [] } 1 .. $rows;
my @state = map { {from => -1, quiet => 0} } 1 .. $rows;
for my $k (0 .. @files) {
    my @p = (0) x $rows;
    if ($k < @files) {
        open my $in, '<:raw', $files[$k] or die "$files[$k]: $!";
        my $bytes = do { local $/; <$in> };
        @p = unpack('f<*', substr($bytes, -4 * $rows));
    }
    for my $i (0 .. $rows - 1) {
        my $s = $state[$i];
        if ($s->{from} < 0) {
            @$s{qw(from quiet)} = ($k, 0) if $p[$i] >= 0.5;
            next;
        }
        $s->{quiet} = $p[$i] < 0.35 ? $s->{quiet} + 1 : 0;
        next if $s->{quiet} < 3 && $k < @files;
        push @{$found[$i]}, "$s->{from}-" . ($k - $s->{quiet});
        $s->{from} = -1;
    }
}
print "$_ @{$found[$_]}\n" for 0 .. $rows - 1;
END
mapfile -t market_files < <(for ((k = 0; k < frames; k++)); do echo "market-results/c$k/p.npy"; done)
mapfile -t direct_files < <(for ((k = 0; k < frames; k++)); do echo "direct-$k/o0.npy"; done)
perl segments.pl "$rows" "${market_files[@]}" >market.txt
perl segments.pl "$rows" "${direct_files[@]}" >direct.txt
cmp -s market.txt direct.txt || fail "other segments: $(diff market.txt direct.txt)"
[ "$(tail -n 1 market.txt)" = "$((rows - 1)) " ] || fail "speech in silence: $(tail -n 1 market.txt)"
[ "$(grep -cE '^[0-9]+ [0-9]+-' market.txt)" -eq $((rows - 1)) ] || fail "a recording without speech: $(cat market.txt)"
market_audit
echo "vad: ok ($frames chunks of $((rows - 1)) recordings, $(grep -oE '[0-9]+-[0-9]+' market.txt | wc -l) segments)"
