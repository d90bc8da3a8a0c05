#!/usr/bin/env bash
# What `cmake --install` puts into a folder is whole: programs run from there, libbourse exports what its headers declare and
# nothing else, a program finds it by pkg-config, man finds the pages, the shells their completions, and systemd takes the units.
set -euo pipefail
bin=$(realpath "${1:?usage: test_installed.sh BIN}")
build=$(dirname "$bin")
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-installed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
left_out() { echo "left out: test_installed/$1: $2"; }
cmake=$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$build/CMakeCache.txt")
sanitizers=$(sed -n 's/^BOURSE_SANITIZE:STRING=//p' "$build/CMakeCache.txt")

# ---------------------------------------------------------------- another prefix, and DESTDIR
DESTDIR=$work/dest "$cmake" --install "$build" --prefix /opt/bourse >install.log || fail "install: $(tail -n 5 install.log)"
at=$work/dest/opt/bourse
lib=$(dirname "$(find "$at" -name 'libbourse.so')")
for file in bin/bourse bin/bourse-broker bin/bourse-provider bin/bourse-audit libexec/bourse/bourse-worker \
    libexec/bourse/bourse-tensor libexec/bourse/bourse-kernel libexec/bourse/bourse-plugin libexec/bourse/bourse-pjrt libexec/bourse/bourse-wasm libexec/bourse/bourse-onnx libexec/bourse/bourse-wasm.cjs include/bourse/bourse.h share/bash-completion/completions/bourse \
    share/man/man1/bourse.1 share/man/man5/bourse-job.5 share/man/man8/bourse-broker.8 share/man/man8/bourse-provider.8 \
    share/man/man8/bourse-audit.8 share/doc/bourse/README.md share/doc/bourse/CHANGELOG.md share/doc/bourse/docs/operator.md \
    lib/systemd/system/bourse-broker.service lib/systemd/system/bourse-provider.service \
    lib/systemd/user/bourse-provider.service lib/sysusers.d/bourse-broker.conf lib/sysusers.d/bourse-provider.conf \
    lib/tmpfiles.d/bourse-broker.conf lib/tmpfiles.d/bourse-provider.conf; do
    [ -s "$at/$file" ] || fail "$file is not installed"
done
[ -z "$(find "$work/dest" -mindepth 1 -maxdepth 1 ! -name opt)" ] || fail "files outside of the prefix: $(ls "$work/dest")"
! grep -rIl "$source\|$build\|$work" "$at/lib" "$at/include" "$at/share" "$lib/pkgconfig" || fail "the files above name this machine's folders"
grep -qx 'ExecStart=/opt/bourse/bin/bourse-broker run --dir /var/lib/bourse' "$at/lib/systemd/system/bourse-broker.service" ||
    fail "the unit names another program: $(grep Exec "$at/lib/systemd/system/bourse-broker.service")"
# Every page of docs/man is there, and so is every document that README.md names.
for page in "$source"/docs/man/*; do
    [ -n "$(find "$at/share/man" -name "${page##*/}")" ] || fail "the page ${page##*/} is not installed"
done
grep -oE '\]\(docs/[a-z]+\.md' "$source/README.md" | cut -c3- | sort -u | while read -r page; do
    [ -s "$at/share/doc/bourse/$page" ] || fail "README.md names $page, which is not installed"
done

# ---------------------------------------------------------------- programs find their helpers
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data
"$at/bin/bourse" --version | grep -qE '^bourse [0-9]' || fail "bourse --version"
for program in bourse bourse-broker bourse-provider; do
    cmp -s <("$at/bin/$program" completion bash) "$at/share/bash-completion/completions/$program" ||
        fail "the installed completion of $program is not the program's"
    zsh_function=_${program//-/_}
    cmp -s <("$at/bin/$program" completion zsh) "$at/share/zsh/site-functions/$zsh_function" ||
        fail "the installed completion of $program for zsh is not the program's"
    # Zsh calls the file by its name, and the file completes only when its function has that name.
    grep -qxF "$zsh_function() {" "$at/share/zsh/site-functions/$zsh_function" ||
        fail "the completion of $program for zsh has no function $zsh_function"
    cmp -s <("$at/bin/$program" completion fish) "$at/share/fish/vendor_completions.d/$program.fish" ||
        fail "the installed completion of $program for fish is not the program's"
    bash -c '. "$1" && complete -p "$2"' - "$at/share/bash-completion/completions/$program" "$program" >/dev/null ||
        fail "bash completes nothing for $program"
done
got=0
"$at/bin/bourse-broker" audit "$work" 2>audit.log || got=$?
[ "$got" -eq 3 ] || fail "bourse-broker does not find bourse-audit: $(cat audit.log)"
if command -v bwrap >/dev/null && { [ "$(id -u)" -ne 0 ] || id bourse >/dev/null 2>&1; }; then
    chmod 711 "$work"
    mkdir -m 700 agent
    got=0
    "$at/bin/bourse-provider" probe --dir "$work/agent" >probe.log 2>&1 || got=$?
    ! grep -q 'neither beside' probe.log || fail "bourse-provider does not find its helpers: $(cat probe.log)"
    [ "$got" -eq 0 ] || [ "$got" -eq 4 ] || fail "probe ended with $got: $(cat probe.log)"
    mv "$at/libexec/bourse/bourse-worker" kept
    ! "$at/bin/bourse-provider" probe --dir "$work/agent" >probe.log 2>&1 || fail "an agent without a worker"
    grep -q 'bourse-worker is neither beside this program nor in ../libexec/bourse' probe.log || fail "without a worker: $(cat probe.log)"
    mv kept "$at/libexec/bourse/bourse-worker"
else
    left_out helpers "no bubblewrap, or no user bourse"
fi

# ---------------------------------------------------------------- libbourse
nm -D --defined-only "$lib/libbourse.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
printf '#include <bourse/bourse.h>\n' >headers.c
cc -std=c17 -fsyntax-only -aux-info declared.txt -I "$at/include" headers.c
sed -nE 's#^/\* .*/bourse/.* \*/ extern [A-Za-z0-9_ ]*\*?(bourse_[a-z0-9_]+) \(.*#\1#p' declared.txt | sort -u >declared
[ "$(wc -l <declared)" -gt 50 ] || fail "only $(wc -l <declared) functions are declared"
diff declared exported >differ || fail "the headers declare (<) other symbols than libbourse exports (>): $(cat differ)"
[ "$(objdump -p "$lib/libbourse.so" | awk '$1 == "SONAME" { print $2 }')" = libbourse.so.0 ] || fail "the name of the library"

export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/dest
flags=${sanitizers:+-fsanitize=$sanitizers}
LD_LIBRARY_PATH=$lib CC="cc $flags" "$source/packaging/debian/tests/library" >library.log 2>&1 ||
    fail "a program with libbourse: $(cat library.log)"
grep -q /nonexistent library.log || fail "the program's error is: $(cat library.log)"

# ---------------------------------------------------------------- man, and systemd
if command -v mandoc >/dev/null; then
    mandoc -T lint -W error "$at"/share/man/man*/* || fail "man pages"
else
    left_out lint "no mandoc"
fi
if command -v man >/dev/null && [ "$(man --path 2>/dev/null)" ]; then
    for page in 'bourse.1' 'bourse-job.5' 'bourse-broker.8' 'bourse-provider.8' 'bourse-audit.8'; do
        [ "$(MANPATH=$at/share/man man -w "${page##*.}" "${page%.*}")" = "$at/share/man/man${page##*.}/$page" ] ||
            fail "man does not find $page"
    done
else
    left_out man "no man"
fi
if ! command -v systemd-analyze >/dev/null; then
    left_out units "no systemd-analyze"
else
    # systemd looks whether the programs of a unit are there: they are below the folder of this test.
    for unit in system/bourse-broker system/bourse-provider user/bourse-provider; do
        sed "s#/opt/bourse/bin/#$at/bin/#g" "$at/lib/systemd/$unit.service" >"${unit##*/}.service"
        systemd-analyze verify --man=no "--${unit%/*}" "$work/${unit##*/}.service" 2>&1 | grep -F "${unit##*/}.service" >verify.log || true
        [ ! -s verify.log ] || fail "$unit: $(cat verify.log)"
    done
    # exposed UNIT TENTHS: how exposed a service is, at most, from 0 to 100.
    exposed() {
        local found
        found=$(systemd-analyze security --offline=true --no-pager --threshold=100 "$at/lib/systemd/system/$1.service" |
            sed -nE 's/^→ Overall exposure level for .*: ([0-9]+)\.([0-9]) .*/\1\2/p')
        [ "$((10#$found))" -le "$2" ] || fail "$1 is exposed: $found tenths, and $2 at most are allowed"
    }
    exposed bourse-broker 14
    exposed bourse-provider 25
    mkdir -p root/etc
    touch root/etc/passwd root/etc/group
    systemd-sysusers --root="$work/root" "$at/lib/sysusers.d/bourse-broker.conf" "$at/lib/sysusers.d/bourse-provider.conf" ||
        fail "sysusers"
    for user in bourse:/var/lib/bourse-provider bourse-broker:/var/lib/bourse; do
        grep -qE "^${user%:*}:.*:${user#*:}:[^:]*/nologin$" root/etc/passwd || fail "user $user: $(cat root/etc/passwd)"
    done
    if [ "$(id -u)" -eq 0 ]; then
        systemd-tmpfiles --root="$work/root" --create "$at/lib/tmpfiles.d/bourse-broker.conf" "$at/lib/tmpfiles.d/bourse-provider.conf" ||
            fail "tmpfiles"
        [ "$(stat -c %a:%u root/var/lib/bourse)" = "700:$(awk -F: '$1 == "bourse-broker" { print $3 }' root/etc/passwd)" ] ||
            fail "the market's folder: $(stat -c %a:%u root/var/lib/bourse)"
        # The folder hides a /proc that shows the processes of others.
        hidden=$(sed -nE 's#^BindPaths=/proc:(/run/.*)/proc:norbind$#\1#p' "$at/lib/systemd/system/bourse-provider.service")
        [ "$(stat -c %a:%u "root$hidden")" = 700:0 ] || fail "the folder of the second /proc: $(stat -c %a:%u "root$hidden")"
    fi
fi
echo ok
