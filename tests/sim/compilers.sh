#!/usr/bin/env bash
# The simulator built by clang gives the traces of the one built by gcc, line for line: nothing in them depends on
# what a compiler may choose (P8). usage: compilers.sh SOURCE-FOLDER BUILD-FOLDER. Exit status 77: clang is not here.
# Only the simulator is built by clang, with -O1 to save time, in BUILD-FOLDER/sim/clang, which the next run finds again.
set -euo pipefail
source_folder=$1
build=$2
command -v clang >/dev/null || { echo "compilers: no clang: scripts/setup installs it" >&2; exit 77; }
other=$build/sim/clang
cmake -S "$source_folder" -B "$other" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=None \
    -DBOURSE_FAST_OPTIONS=-O1 -DBOURSE_WERROR=ON >/dev/null
cmake --build "$other" --target sim --parallel 1 >"$other/build.log" 2>&1 || { tail -n 30 "$other/build.log" >&2; exit 1; }
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
