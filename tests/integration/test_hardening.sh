#!/usr/bin/env bash
# Every program that an owner or an operator runs is compiled with the same warnings and the same hardening, those
# that run in jails too: the compile commands say so, and the programs themselves.
set -euo pipefail
bin=$1
commands=$(dirname "$bin")/compile_commands.json
fail() { echo "hardening: $*" >&2; exit 1; }

# each_command TARGET: one line for each source of the target, its own folder of objects named in it. What a
# program shares with its stand-ins in the tests has a folder, too (cmake/programs.cmake).
each_command() { grep -F -e "CMakeFiles/$1.dir/" -e "CMakeFiles/$1-parts.dir/" "$commands" | grep '"command"'; }
programs=(bourse bourse-broker bourse-provider bourse-audit bourse-worker bourse-tensor bourse-kernel bourse-plugin)
wanted=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -fno-omit-frame-pointer -fstack-protector-strong)
# What is compiled without sanitizers in every build has the library's checks of bounds instead.
fortified=(bourse-worker bourse-tensor bourse-kernel bourse-plugin)
grep -q -e '-Werror' "$commands" && wanted+=(-Werror)

for program in "${programs[@]}"; do
    [ "$(each_command "$program" | wc -l)" -gt 0 ] || fail "no source of $program in $commands"
    options=("${wanted[@]}")
    case " ${fortified[*]} " in *" $program "*) options+=(-D_FORTIFY_SOURCE=2) ;; esac
    for option in "${options[@]}"; do
        without=$(each_command "$program" | grep -cvF -- " $option " || true)
        [ "$without" -eq 0 ] || fail "$without sources of $program are compiled without $option"
    done
done

for program in "${programs[@]}"; do
    header=$(readelf -hlW "$bin/$program")
    # A build with sanitizers stays where it was linked, to start sooner (cmake/options.cmake). scripts/test also looks at the release.
    [ "$(each_command "$program" | grep -c -e '-fsanitize=address')" -gt 0 ] || grep -qE 'Type: +DYN' <<<"$header" || fail "$program is not position independent"
    grep -q 'GNU_RELRO' <<<"$header" || fail "$program has no RELRO"
    grep -qE 'GNU_STACK.* RWE ' <<<"$header" && fail "$program has an executable stack"
    # The worker is static: nothing is bound later than at its start.
    readelf -dW "$bin/$program" | grep -qE 'BIND_NOW|Flags:.*NOW' || fail "$program binds symbols late"
done
if readelf -lW "$bin/bourse-worker" | grep -q INTERP; then
    fail "bourse-worker needs a loader, which a root image may not have"
fi
