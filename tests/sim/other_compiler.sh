#!/usr/bin/env bash
# Builds the simulator by clang in BUILD-FOLDER/sim/clang, where the next call finds it again, and prints that folder.
# usage: other_compiler.sh SOURCE-FOLDER BUILD-FOLDER. Exit status 77: clang is not here.
#
# sim_compilers compares its traces with those of gcc's simulator. integration_test_determinism replays journals with its
# objects, and so both need clang to compile the rooms once.
set -euo pipefail
source_folder=$(realpath "$1")
build=$(realpath "$2")
command -v clang >/dev/null || { echo "no clang: scripts/setup installs it" >&2; exit 77; }
other=$build/sim/clang
mkdir -p "$other"
exec 9>"$other/lock"
flock 9

# make FILE...: builds of the rooms the files of these names only; without names, of the whole rooms.
make() {
    local names="$*"
    cmake -S "$source_folder" -B "$other" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=None \
        "-DBOURSE_FAST_OPTIONS=-O3;-g1" "-DBOURSE_FAST_NAMES=${names// /;}" -DBOURSE_WERROR=ON >/dev/null
    ninja -C "$other" -t cleandead >/dev/null # nobody takes an object for new that is not
    cmake --build "$other" --target sim --parallel 1 >"$other/build.log" 2>&1
}

# A compiler may keep a call that another one finds to be dead. Then the link asks for a file more.
mapfile -t linked < <(grep -oE '[^/ ]+\.a\([^)]+\.c\.o\)' "$build/sim/sim.map" 2>/dev/null | sed -E 's/.*\((.*)\.o\)/\1/' | sort -u)
make "${linked[@]}" || make || { tail -n 30 "$other/build.log" >&2; exit 1; }
echo "$other"
