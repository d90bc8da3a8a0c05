#!/usr/bin/env bash
# A job between the installed units (packaging/debian/tests/job), where no systemd runs: in a mount namespace of its own,
# `cmake --install` puts everything into /usr, sysusers.d and tmpfiles.d make users and folders, and the ExecStart lines run as
# these users. The machine itself stays as it is. With BOURSE_PACKAGES, a folder, the packages there are installed instead.
set -euo pipefail
bin=$(realpath "${1:?usage: test_units.sh BIN}")
build=$(dirname "$bin")
source=$(realpath "$(dirname "$0")/../..")
skip() { echo "skipped: $*"; exit 77; }

# Inside of the namespace, the script comes here a second time.
if [ "${2:-}" = inside ]; then
    work=$3
    mount --make-rprivate /
    for folder in etc usr; do
        mkdir -p "$work/$folder/new" "$work/$folder/work"
        lower=/$folder
        [ "$folder" != usr ] || lower=$work/dest/usr:/usr
        mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/$folder/new,workdir=$work/$folder/work" "/$folder" ||
            exit 78
    done
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /var/lib
    for daemon in bourse-broker bourse-provider; do
        systemd-sysusers "$daemon.conf"
        systemd-tmpfiles --create "$daemon.conf"
    done
    exec "$source/packaging/debian/tests/job"
fi

[ "$(id -u)" -eq 0 ] || skip "needs root"
for program in bwrap unshare systemd-sysusers systemd-tmpfiles setpriv xz; do
    command -v "$program" >/dev/null || skip "no $program"
done
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-units.XXXXXX")
trap 'umount "$work" 2>/dev/null || true; rm -rf "$work"' EXIT
mount -t tmpfs -o mode=711 tmpfs "$work" || skip "no tmpfs"
cmake=$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$build/CMakeCache.txt")
if [ -n "${BOURSE_PACKAGES:-}" ]; then
    for package in bourse bourse-broker bourse-provider; do
        dpkg-deb -x "$BOURSE_PACKAGES/${package}_"*.deb "$work/dest"
    done
    cp -r "$work/dest/lib/." "$work/dest/usr/lib" # both are one folder of a machine
else
    DESTDIR=$work/dest "$cmake" --install "$build" --prefix /usr >"$work/install.log" || { cat "$work/install.log"; exit 1; }
fi
# A killed process has no time to look for leaks.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
got=0
unshare --mount -- bash "$0" "$bin" inside "$work" >"$work/out" 2>&1 || got=$?
[ "$got" -ne 78 ] || skip "no overlay file system"
if [ "$got" -ne 0 ] && grep -q 'cannot isolate jobs' "$work/out"; then
    skip "this machine cannot isolate jobs"
fi
cat "$work/out"
[ "$got" -eq 0 ] || exit 1
grep -q '^a job ran between the units' "$work/out"
echo ok
