#!/usr/bin/env bash
# The same recorded journal gives the same state hash, effects, tree and snapshot bytes, whoever compiled the
# exchange and wherever it runs (P8): gcc -O0 and -O2, clang -O3, the build under test (with its sanitizers),
# other locales and time zones, memory that is never zero. Each run replays from the first command, and again
# with a snapshot saved and loaded at seven places (tests/golden/golden_replay.c).
set -euo pipefail
bin=$(realpath "${1:?usage: test_determinism.sh BIN}")
cd "$(dirname "$0")/../.."
generated=$bin/../generated
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Nothing but the pure rooms and the broker's way back from an entry to a command. The exchange calls one file of the planner;
# a program that needs another does not link.
sources=(base/*.c protocol/*.c protocol/*/*.c matching/*.c ledger/*.c planner/schedule/online.c exchange/*.c exchange/*/*.c exchange/*/*/*.c
    broker/storage/entry.c broker/core/translate.c broker/core/translate_*.c broker/core/translation.c broker/core/arena.c broker/storage/replay.c broker/rules_known.c
    tests/support/journal_digest.c tests/golden/golden_replay.c "$generated/protocol/bourse.pb-c.c")

# The build under test has objects of gcc -O2 without sanitizers, for the simulator (cmake/sim.cmake). Objects
# for an optimisation of the whole program are others.
plain=$bin/../CMakeFiles
if ! grep -qE '^CMAKE_C_COMPILER:[A-Z]+=(.*/)?g?cc$' "$bin/../CMakeCache.txt" ||
    ! grep -qE '^BOURSE_FAST_OPTIONS:[A-Z]+=-O2' "$bin/../CMakeCache.txt" ||
    ! cc --version | grep -qi 'free software' ||
    grep -qiE '^CMAKE_INTERPROCEDURAL_OPTIMIZATION:[A-Z]+=(ON|YES|TRUE|1)' "$bin/../CMakeCache.txt"; then
    plain=$work/none
fi

# So has the simulator that clang builds with -O3.
others=$work/none
if command -v clang >/dev/null; then
    others=$(bash tests/sim/other_compiler.sh "$PWD" "$bin/..")/CMakeFiles
fi

# compile FOLDER COMPILER OPTION FILE: an object in the folder.
compile() {
    local object built=none
    case "$2 $3" in
    "gcc -O2") built=$plain ;;
    "clang -O3") built=$others ;;
    esac
    for object in "$built"/fast_*.dir/"$4.o"; do
        if [ -e "$object" ]; then
            ln -s "$object" "$1/$(tr / _ <<<"$4").o"
            return
        fi
    done
    "$2" -std=c17 -D_GNU_SOURCE -DBOURSE_VERSION='""' -DBOURSE_SOURCE_DIR="\"$PWD\"" "$3" -w -I. -I"$generated" \
        -c "$4" -o "$1/$(tr / _ <<<"$4").o"
}
export -f compile
export generated plain others

# build NAME COMPILER OPTION: a program of that name.
build() {
    mkdir "$work/$1.o"
    printf '%s\0' "${sources[@]}" |
        xargs -0 -P 2 -I FILE bash -c 'compile "$@" || exit 255' compile "$work/$1.o" "$2" "$3" FILE
    "$2" "$work/$1.o"/*.o -o "$work/$1" -lprotobuf-c -lsodium -lcrypto -lm
}

runs=0
# run [NAME=VALUE]... PROGRAM: replays; what it says of its locale and zone is left in $work/where.
run() {
    env "$@" >"$work/out" 2>"$work/where" || fail "$*: $(cat "$work/out" "$work/where")"
    runs=$((runs + 1))
}

build gcc-O0 gcc -O0
build gcc-O2 gcc -O2
run "$work/gcc-O0"
run "$work/gcc-O2"
run "$bin/../tests/golden_replay"
built="gcc -O0, gcc -O2, the build under test"
if command -v clang >/dev/null; then
    build clang-O3 clang -O3
    run "$work/clang-O3"
    built="$built, clang -O3"
else
    echo "skipped: clang is not installed"
fi

# Every byte that malloc gives and free takes back is something else than zero.
run MALLOC_PERTURB_=165 "$work/gcc-O2"
run GLIBC_TUNABLES=glibc.malloc.perturb=90:glibc.malloc.arena_max=1 "$work/gcc-O0"

for zone in Asia/Kathmandu America/St_Johns Pacific/Kiritimati; do
    run TZ="$zone" "$work/gcc-O2"
    [ ! -e "/usr/share/zoneinfo/$zone" ] || ! grep -q 'zone +0000' "$work/where" || fail "the zone $zone had no effect"
done

# Locales of our own, in a folder of our own: a comma for the decimal point, another i, another order.
locales=0
for locale in tr_TR de_DE; do
    if localedef --no-archive -i "$locale" -f UTF-8 "$work/$locale.UTF-8" 2>/dev/null; then
        run LOCPATH="$work" LC_ALL="$locale.UTF-8" "$work/gcc-O2"
        grep -q "locale $locale.UTF-8, one half is 0,5" "$work/where" || fail "the locale $locale had no effect: $(cat "$work/where")"
        run LOCPATH="$work" LC_ALL="$locale.UTF-8" TZ=Asia/Kathmandu "$work/gcc-O0"
        locales=$((locales + 1))
    else
        echo "skipped: no sources for the locale $locale (package locales)"
    fi
done

# The whole test can fail: an exchange that is told another time is not the same.
sed 's/command.log_time_ns = entry->log_time_ns/& + 1/' broker/core/translate.c >"$work/translate.c"
cmp -s broker/core/translate.c "$work/translate.c" && fail "translate.c changed: this test no longer bends it"
rm "$work/gcc-O0.o/broker_core_translate.c.o"
gcc -std=c17 -D_GNU_SOURCE -O0 -w -I. -I"$generated" -c "$work/translate.c" -o "$work/gcc-O0.o/bent.o"
gcc "$work/gcc-O0.o"/*.o -o "$work/bent" -lprotobuf-c -lsodium -lcrypto -lm
"$work/bent" >/dev/null 2>&1 && fail "a replay with other log times passed"
echo "$runs replays agree: $built; $locales locales, 3 time zones"
