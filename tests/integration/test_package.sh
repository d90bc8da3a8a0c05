#!/usr/bin/env bash
# Debian's packages: every file that `cmake --install` brings is in one package and no more, and each package has its control
# paragraph. The long form makes the packages, looks at them with lintian, and runs a job between their units.
set -euo pipefail
bin=$(realpath "${1:?usage: test_package.sh BIN}")
build=$(dirname "$bin")
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
debian=$source/packaging/debian

version=$(sed -nE 's/^project\(bourse VERSION ([0-9.]+).*/\1/p' "$source/CMakeLists.txt")
[ "$(sed -nE '1s/^bourse \(([^)]+)\).*/\1/p' "$debian/changelog")" = "$version" ] || fail "the changelog is of another version"
for list in "$debian"/*.install; do
    name=${list##*/}
    grep -qx "Package: ${name%.install}" "$debian/control" || fail "$name is of no package"
done
grep '^Package: ' "$debian/control" | cut -d' ' -f2 >"$work/packages"
while read -r package; do
    [ -s "$debian/$package.install" ] || fail "the package $package would be empty"
done <"$work/packages"

cmake=$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$build/CMakeCache.txt")
DESTDIR=$work/dest "$cmake" --install "$build" --prefix /usr >"$work/install.log" || fail "install: $(cat "$work/install.log")"
(cd "$work/dest" && find . ! -type d | cut -c3- | sort) >"$work/files"
[ "$(wc -l <"$work/files")" -gt 40 ] || fail "only these files are installed: $(cat "$work/files")"
while read -r file; do
    # The packages have the units in /lib, zsh's completions where Debian wants them, and the library in the folder of its architecture.
    place=$file
    [[ $file != usr/lib/systemd/system/* ]] || place=${file#usr/}
    [[ $file != usr/share/zsh/site-functions/* ]] || place=${file/site-functions/vendor-completions}
    [[ $file =~ ^usr/lib/(libbourse|pkgconfig) ]] && place=usr/lib/ARCH/${file#usr/lib/}
    count=0
    for list in "$debian"/*.install; do
        while read -r pattern; do
            # shellcheck disable=SC2053 # a pattern
            if [[ $place = $pattern || $place = $pattern/* ]]; then count=$((count + 1)); fi
        done <"$list"
    done
    [ "$count" -eq 1 ] || fail "$file is in $count packages"
done <"$work/files"

[ "${BOURSE_LONG:-no}" = yes ] || { echo "ok: whether the packages are made, the long form shows"; exit 0; }
command -v dh >/dev/null && command -v lintian >/dev/null || { echo "skipped: no debhelper, or no lintian"; exit 77; }
"$source/scripts/package" --lint >"$work/package.log" 2>&1 || fail "scripts/package: $(tail -n 30 "$work/package.log")"
while read -r package; do
    ls "$source/build/package/${package}_$version"_*.deb >/dev/null || fail "no package $package"
done <"$work/packages"
got=0
BOURSE_PACKAGES=$source/build/package bash "$source/tests/integration/test_units.sh" "$bin" || got=$?
[ "$got" -eq 0 ] || [ "$got" -eq 77 ] || fail "no job runs between the units of the packages"
echo ok
