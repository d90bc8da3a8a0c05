#!/usr/bin/env bash
# The pure rooms call nothing but memory, strings, arithmetic and their libraries' pure functions: a plain
# build of each has no undefined symbol outside the list below. No clock, socket, file, randomness, locale.
# The build under test has such objects of most rooms, without sanitizers, for the simulator (cmake/sim.cmake).
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "$1")
build=$(dirname "$bin")
generated=$build/generated
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

allowed='^(mem(cpy|move|set|cmp|chr|mem|rchr)|bcmp|str(len|nlen|cmp|ncmp|chr|rchr|str|cpy|ncpy|spn|cspn|pbrk)|strdup|strndup'
allowed+='|malloc|calloc|realloc|free|qsort|bsearch|abs|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
allowed+='|v?snprintf|sqrt|fmax|fmin|ceil|frexp|ldexp|round|__float(un)?tidf|__udivti3|__udivmodti4|__umodti3|__divti3|__modti3|__muloti4|isoc_'
allowed+='|SHA256_(Init|Update|Final)'                                      # base
allowed+='|yaml_[a-z_]+|json_[a-z_]+'                                       # formats: jansson keeps the order of keys
allowed+='|protobuf_c_[a-z_]+|bourse__v1__[a-z0-9_]+'                       # protocol: the schema
allowed+='|crypto_(sign|scalarmult|core_ed25519|hash|verify|generichash|box|onetimeauth)[a-z0-9_]*'
allowed+='|sodium_(memcmp|memzero|malloc|free|mprotect_[a-z]+|is_zero|base642bin|bin2base64|bin2hex|hex2bin))$'

# name: files
rooms="
base:base/*.c
formats:formats/*.c formats/*/*.c
protocol:protocol/*.c
matching:matching/*.c
numeric:numeric/*.c
ledger:ledger/*.c
planner:planner/*/*.c planner/*/*/*.c
exchange:exchange/*.c exchange/*/*.c exchange/*/*/*.c
provider_session:provider/session/*.c
consumer_session:consumer/client/session*.c
etcd_rules:broker/storage/etcd/proto.c broker/storage/etcd/etcd_message.c broker/storage/etcd/etcd_values.c broker/storage/etcd/etcd_version.c broker/storage/etcd/etcd_log*.c broker/storage/etcd/grpc.c broker/storage/etcd/trim.c
"
status=0
checked=0
built=0
# After an optimisation of the whole program, an object does not say what it calls.
has_plain=yes
grep -qiE '^CMAKE_INTERPROCEDURAL_OPTIMIZATION:[A-Z]+=(ON|YES|TRUE|1)' "$build/CMakeCache.txt" && has_plain=no
: >"$work/defined"
while IFS=: read -r room files; do
    [ -n "$room" ] || continue
    for file in $files; do
        [ -e "$file" ] || continue
        object="$work/$room-$(tr / - <<<"${file%.c}").o"
        plain="$build/CMakeFiles/fast_$room.dir/$file.o"
        [ "$file" != planner/schedule/online.c ] || plain="$build/CMakeFiles/fast_dispatch.dir/$file.o" # cmake/sim.cmake
        if [ "$has_plain" = yes ] && [ -e "$plain" ]; then
            ln -s "$plain" "$object"
            built=$((built + 1))
        else
            gcc -std=c17 -D_GNU_SOURCE -O1 -w -I. -I"$generated" -c "$file" -o "$object"
        fi
        checked=$((checked + 1))
    done
done <<<"$rooms"
nm --defined-only -f posix "$work"/*.o | awk 'NF > 1 {print $1}' | sort -u >"$work/defined"
nm -u -A -f posix "$work"/*.o | awk -v allowed="$allowed" '
    NR == FNR { defined[$1]; next }
    !($2 in defined) && $2 !~ allowed { bad[$1] = bad[$1] " " $2 }
    END { for (object in bad) print object " not pure:" bad[object] }' "$work/defined" - >"$work/bad"
if [ -s "$work/bad" ]; then
    sed "s|^$work/||" "$work/bad"
    status=1
fi
# What the exchange decides by has no floating point: not a word of it, and not in its machine code either, where the
# compiler can be told so.
if grep -nwE 'float|double|long double|math\.h' planner/schedule/online.[ch]; then
    echo "planner/online: floating point"
    status=1
fi
case $(uname -m) in
x86_64 | aarch64) gcc -std=c17 -D_GNU_SOURCE -O1 -w -I. -mgeneral-regs-only -c planner/schedule/online.c -o "$work/online.o" || status=1 ;;
esac
# The drawing of the rooms names every folder that has code.
sed -n '/^## Rooms/,/^## /p' docs/architecture.md >"$work/rooms"
while read -r folder; do
    grep -qE "(^|[ \`])${folder##*/}/" "$work/rooms" || { echo "docs/architecture.md does not name $folder"; status=1; }
done < <(find [a-z]* -name '*.c' -not -path 'build/*' -not -path 'tests/*' -not -path 'bench/*' -not -path 'docs/*' -printf '%h\n' | sort -u)
[ "$checked" -gt 20 ] || { echo "only $checked files looked at"; status=1; }
echo "$checked objects checked, $built of them of the build under test"
exit "$status"
