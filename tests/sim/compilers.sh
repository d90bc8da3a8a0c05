#!/usr/bin/env bash
# The simulator built by clang gives the traces of the one built by gcc, line for line: nothing in them depends on
# what a compiler may choose (P8). usage: compilers.sh SOURCE-FOLDER BUILD-FOLDER. Exit status 77: clang is not here.
set -euo pipefail
source_folder=$1
build=$2
other=$(bash "$(dirname "$0")/other_compiler.sh" "$source_folder" "$build") || exit
compiler() { readelf -p .comment "$1" | grep -oE 'GCC|clang' | sort -u | paste -sd ' '; }
case "$(compiler "$build/bin/sim") and $(compiler "$other/bin/sim")" in
*clang*and*clang*) echo "compilers: both simulators are clang's: configure the build with gcc" >&2; exit 1 ;;
*and*clang*) ;;
*) echo "compilers: $other/bin/sim is not clang's" >&2; exit 1 ;;
esac
for seed in 14 77; do
    "$build/bin/sim" --seed "$seed" --trace >"$other/gcc.trace"
    "$other/bin/sim" --seed "$seed" --trace >"$other/clang.trace"
    lines=$(wc -l <"$other/gcc.trace")
    [ "$lines" -gt 10000 ] || { echo "compilers: seed $seed: hardly a trace, $lines lines" >&2; exit 1; }
    cmp -s "$other/gcc.trace" "$other/clang.trace" || {
        echo "compilers: seed $seed: the traces of gcc (<) and clang (>) differ, and first here:" >&2
        { diff "$other/gcc.trace" "$other/clang.trace" || true; } | sed -n 1,5p >&2
        exit 1
    }
done
rm -f "$other/gcc.trace" "$other/clang.trace"
