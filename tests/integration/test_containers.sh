#!/usr/bin/env bash
# Jobs in container images on a real market: an OCI layout as folder and as tar, `docker save`, and names of skopeo. What the
# image says of its start is so in the jail, and an unfit image is refused before anything is sent, with nothing left behind.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/container.sh
. "$(dirname "$(realpath "$0")")/../support/container.sh"
fire_begin containers "$1"
busybox=$(command -v busybox) || skip "no busybox"
file -L "$busybox" | grep -q 'statically linked' || skip "no static busybox"
export TMPDIR=$work/tmp XDG_CACHE_HOME=$work/cache
mkdir tmp
[ "$(uname -m)" = x86_64 ] || arch=arm64
market_up --credits 100 --slots 1

run() { "$bourse" run -y --exit-code "$@" >out 2>err </dev/null; }
jobs_here() { "$bourse" ps --quiet | wc -l; }
cached() { find cache -type f 2>/dev/null | wc -l; }
held() { "$bourse" ledger --json | grep -oE '"held_micro":[0-9]+' | head -1; }
with=() # variables of the next refusal
refused() { # PATTERN ARGUMENT...
    local pattern=$1 status=0 jobs kept held
    shift
    jobs=$(jobs_here) kept=$(cached) held=$(held)
    env "${with[@]}" "$bourse" run -y "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "exit status $status and not 2 of run $*: $(cat out err)"
    grep -qE -- "$pattern" err || fail "expected \"$pattern\" of run $*: $(cat err)"
    [ "$(jobs_here)" = "$jobs" ] || fail "run $* left a job"
    [ "$(held)" = "$held" ] || fail "run $* holds money: $(held)"
    [ "$(cached)" = "$kept" ] || fail "run $* left an image: $(find cache)"
    [ -z "$(ls -A tmp)" ] || fail "run $* left temporary files: $(ls -A tmp)"
}

# ---------------------------------------------------------------- an image by hand

mkdir -p base/bin base/app base/etc base/old/deep change/app change/old
cp "$busybox" base/bin/busybox
for name in sh cat id pwd ls echo sleep true; do ln -s busybox "base/bin/$name"; done
printf 'root:x:0:0::/:/bin/sh\nworker:x:4321:8765::/:/bin/sh\n' >base/etc/passwd
printf 'crew:x:777:\n' >base/etc/group
echo first >base/app/first && echo gone >base/app/gone && echo old >base/old/deep/file
ln base/app/first base/app/linked
chmod 4755 base/bin/busybox
echo second >change/app/second && : >change/app/.wh.gone
echo new >change/old/new && : >change/old/.wh..wh..opq
layer base base.tar
layer change change.tar
gzip -nk base.tar
zstd -q change.tar
# shellcheck disable=SC2016 # the shell of the image expands it
say='id -u; id -g; pwd; ls; ls /old; echo "$GREETING {x} $*"'
start='{"Entrypoint":["/bin/sh","-c"],"Cmd":["'${say//\"/\\\"}'","zero","as the image says"],'
start+='"Env":["PATH=/bin","GREETING=hello {you}"],"WorkingDir":"/app","User":"worker"}'
config_of "$start" config.json base.tar change.tar
layout lay config.json base.tar.gz change.tar.zst
tar -C lay -cf lay.tar .
saved saved.tar config.json base.tar change.tar
printf '%s\n' 4321 8765 /app first linked second new 'hello {you} {x} as the image says' >expected

# ---------------------------------------------------------------- every form

for image in lay lay.tar saved.tar oci:lay:one docker-archive:saved.tar; do
    case $image in *:*) command -v skopeo >/dev/null || { left_out skopeo "skopeo is not installed"; continue; } ;; esac
    run --image "$image" || fail "$image: $(cat out err)"
    cmp -s out expected || fail "$image: $(cat out err)"
    [ -z "$(ls -A tmp)" ] || fail "$image left temporary files: $(ls -A tmp)"
done
# The image has the same bytes in each form, so it was flattened once, and unpacked once.
[ "$(cached)" -eq 1 ] || fail "the forms differ: $(find cache -type f)"
[ "$(find "$market/provider/images" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ] || fail "unpacked twice"

# Words replace the image's command; the entrypoint stays unless the job has another.
# shellcheck disable=SC2016 # the shell of the image expands it
run --image lay -- 'echo "words: $0"' zero || fail "words: $(cat out err)"
[ "$(cat out)" = 'words: zero' ] || fail "words: $(cat out)"
run --image lay --entrypoint /bin/echo -- a '{{b}}' || fail "entrypoint: $(cat out err)"
[ "$(cat out)" = 'a {b}' ] || fail "entrypoint: $(cat out)"
# shellcheck disable=SC2016 # the shell of the image expands it
run --image lay --entrypoint '' -e GREETING=mine -- sh -c 'echo $GREETING' || fail "no entrypoint: $(cat out err)"
[ "$(cat out)" = mine ] || fail "a variable of the job: $(cat out)"
# Files of the job lie in /work, and outputs come from there.
echo content >input.txt
# shellcheck disable=SC2016 # the shell of the image expands it
printf '%s\n' 'name: files' 'image: lay' 'each: input.txt' 'directory: /work' 'entrypoint: []' \
    'run: [sh, -c, "pwd; cat $0 /app/second > $1", "{in}", "{out}"]' 'outputs: ["{out}"]' >job.yaml
"$bourse" submit job.yaml -y --wait -o results >out 2>err || fail "a job file: $(cat out err)"
printf 'content\nsecond\n' | cmp - "$(find results -type f)" || fail "a job file: $(find results -type f)"
printf '%s\n' 'name: tasks' 'image: lay' 'tasks:' '- {name: a, run: ["echo a > /work/a"], outputs: a}' \
    '- {name: b, from: a, run: ["cat /work/a /app/second"]}' >tasks.yaml
"$bourse" submit tasks.yaml -y --wait >out 2>err || fail "tasks: $(cat out err)"
"$bourse" logs last >out || fail "tasks: $(cat out)"
grep -q second out || fail "tasks: $(cat out)"
# A program of this machine starts by itself in the image.
mkdir own && cp "$busybox" own/busybox
run --image lay ./own/busybox pwd || fail "a program of this machine: $(cat out err)"
[ "$(cat out)" = /app ] || fail "a program of this machine: $(cat out)"
# Users and folders in other words.
config_of '{"Cmd":["/bin/sh","-c","/bin/id -u; /bin/id -g; pwd"],"User":"99:crew","WorkingDir":"/made/here"}' numbers.json base.tar
layout numbers numbers.json base.tar
run --image numbers || fail "numbers: $(cat out err)"
printf '%s\n' 99 777 /made/here | cmp - out || fail "numbers: $(cat out)"
config_of '{"Cmd":["/bin/sh","-c","/bin/id -u; pwd"],"User":"root"}' root.json base.tar
cp -a base bare && rm -r bare/etc
layer bare bare.tar # an image needs no /etc/passwd for a number, and for root
for user in root 0 root:root 0:0; do
    config_of '{"Cmd":["/bin/sh","-c","/bin/id -u; pwd"],"User":"'$user'"}' "bare-${user/:/-}.json" bare.tar
    layout "bare-${user/:/-}" "bare-${user/:/-}.json" bare.tar
    run --image "bare-${user/:/-}" || fail "user $user without /etc/passwd: $(cat out err)"
    [ "$(head -n 1 out)" = 1000 ] || fail "user $user without /etc/passwd: $(cat out)"
done
config_of '{"Cmd":["/bin/sh","-c","/bin/id -u; pwd"],"User":"4242:17"}' bare-number.json bare.tar
layout bare-number bare-number.json bare.tar
run --image bare-number || fail "a number without /etc/passwd: $(cat out err)"
[ "$(head -n 1 out)" = 4242 ] || fail "a number without /etc/passwd: $(cat out)"
layout rooted root.json base.tar
run --image rooted || fail "root: $(cat out err)"
printf '%s\n' 1000 /work | cmp - out || fail "a jail has no root: $(cat out)"
run --image rooted --directory /absent && fail "a folder that is not there was found"
grep -q 'cannot start in its folder' out err || fail "an absent folder: $(cat out err)"
# A plain tar of a root goes as before.
run --image base.tar --directory /app -- /bin/ls || fail "a plain tar: $(cat out err)"
[ "$(tr '\n' ' ' <out)" = 'first gone linked ' ] || fail "a plain tar: $(cat out)"

# What the broker lost is sent again from the image itself.
printf '%s\n' 'name: again' 'image: saved.tar' 'run: ["sleep 1; exit 3"]' >again.yaml
"$bourse" submit again.yaml -y --wait >out 2>err && fail "exit 3 passed"
"$bourse" resume last -y --image lay --wait >out 2>err && fail "exit 3 passed"
grep -q 'cannot be sent' out err && fail "resume: $(cat out err)"

# An image for another architecture waits for a provider of that architecture: the need is never proposed for dropping.
# Its busybox has the number of that machine in its header. Programs of this machine in such an image are refused.
other=arm64 machine=aarch64 code='\267\0'
[ "$(uname -m)" = x86_64 ] || { other=amd64 machine=x86_64 code='\76\0'; }
arch=$other config_of "$start" foreign.json base.tar
layout foreign foreign.json base.tar
refused "leads to /bin/busybox, which is an ELF file for another machine than the image's, $machine" --image foreign
printf '%b' "$code" | dd of=base/bin/busybox bs=1 seek=18 conv=notrunc status=none
layer base theirs.tar
arch=$other config_of "$start" foreign.json theirs.tar
rm -rf foreign
layout foreign foreign.json theirs.tar
expect 5 "the job's image or program needs a provider with arch = \"$machine\": wait for one, or take an image" \
    "$bourse" run -y --image foreign
! grep -q 'without arch' out err || fail "an image without its architecture: $(cat out err)"

# ---------------------------------------------------------------- what is refused

# bad NAME: an image of one layer, the folder `bad`; with `raw.tar`, of that archive.
bad() {
    rm -rf odd odd.json
    [ -e raw.tar ] || layer bad raw.tar
    config_of "${start_of:-{\}}" odd.json raw.tar
    layout odd odd.json "${stored:-raw.tar}"
    rm -rf bad raw.tar
}
craft raw.tar ../../escape 0 '' && bad
refused 'layer 1 of 1: "../../escape".*the entry.s name has "\.\."' --image odd -- /x
craft raw.tar a/link 2 ../../etc/passwd && bad
refused 'is a link that leads out of the image' --image odd -- /x
craft raw.tar disk 4 '' && bad
refused 'is a device, and not below /dev' --image odd -- /x
craft raw.tar hard 1 absent && bad
refused 'a hard link to what is not there' --image odd -- /x
mkdir bad && : >bad/.wh.absent && bad
refused 'layer 1 of 1: ".wh.absent": the layer removes a file that no layer below has' --image odd -- /x
mkdir bad && ln -s /etc bad/tmp && touch bad/x && bad
refused 'a file or link at /tmp' --image odd -- /x
mkdir -p bad/only && bad
refused 'no file, and so no program' --image odd -- /x
mkdir bad && touch bad/x && start_of='{"User":"nobody-here"}' && bad
refused 'user "nobody-here" is neither a number' --image odd -- /x
mkdir bad && touch bad/x && start_of='{"WorkingDir":"/a/../b"}' && bad
refused 'WorkingDir is no plain absolute path' --image odd -- /x
start_of='{}'
mkdir bad && touch bad/x && bad
refused 'says no command; give one after --' --image odd
# A program that is not there, or below a file that lies over its folder.
mkdir bad && touch bad/x && start_of='{"Entrypoint":["/bin/none"]}' && bad
refused 'the program /bin/none is not in the image' --image odd
refused 'the program "none" is in no folder of its PATH, /usr/local/bin:/usr/bin:/bin' --image odd --entrypoint '' -- none
start_of='{}'
mkdir over && : >over/bin && layer over over.tar && config_of "$start" over.json base.tar over.tar
layout overlay over.json base.tar over.tar
refused 'the program /bin/sh lies below /bin, which is a file and no folder' --image overlay
mkdir bad && : >bad/.bourse-worker && bad
refused 'a file or folder at /.bourse-worker' --image odd -- /x
arch_was=${arch:-amd64}
arch=s390x && mkdir bad && touch bad/x && bad
refused 'is for the architecture "s390x"' --image odd -- /x
arch=$arch_was os=windows && mkdir bad && touch bad/x && bad
refused 'operating system "windows"' --image odd -- /x
os=linux
mkdir bad && touch bad/x && bad
refused 'needs asks for devices with arch = riscv64' --image odd --needs 'arch = riscv64' -- /x
# Digests, cuts and bombs.
flip "odd/blobs/sha256/$(digest odd.json)" 5
refused 'other bytes than its digest says' --image odd -- /x
mkdir bad && head -c 100000 /dev/urandom >bad/x && layer bad raw.tar && gzip -nk raw.tar
head -c 5000 raw.tar.gz >cut.gz && stored=cut.gz bad
refused 'cut: its compressed bytes end too early' --image odd -- /x
mkdir bad && touch bad/x && layer bad raw.tar && xz -k raw.tar && stored=raw.tar.xz bad
refused 'compressed by bzip2 or xz' --image odd -- /x
mkdir bad && touch bad/x && layer bad raw.tar
echo other >other && config_of '{}' odd.json other && rm -rf odd && layout odd odd.json raw.tar && rm -r bad raw.tar
refused 'other bytes than its diff_id says' --image odd -- /x
if [ "$long" = yes ]; then
    mkdir -p bad/d && seq 131072 | sed 's|^|bad/d/|' | xargs touch && bad
    refused 'more than 131072 files, folders and links' --image odd -- /x
fi
mkdir bad && touch bad/x && layer bad raw.tar
# shellcheck disable=SC2046 # a list
rm -rf odd && config_of '{}' odd.json $(yes raw.tar | head -129) && layout odd odd.json $(yes raw.tar | head -129)
refused 'more than 128: 129' --image odd -- /x
rm -r bad raw.tar
ln -s /etc/passwd odd/index.json.new && mv odd/index.json.new odd/index.json
refused 'no OCI image layout' --image odd -- /x
mkdir folder
refused 'is a folder and no OCI image layout' --image folder -- /x
refused 'No such file' --image absent.tar -- /x
refused 'absent: No such file or directory; an image is a folder, a tar, or a name such as docker:' --image absent
refused 'images are not taken from "podman:"; an image is a folder, a tar, or a name such as' --image podman://x -- /x
refused 'goes with an image only' --directory /x -- true
with=(PATH=/nowhere)
refused 'skopeo, which copies images from registries, is not installed' --image docker://x/y:1 -- /x
with=()
if command -v skopeo >/dev/null; then
    refused 'skopeo says: ' --image oci:absent:one -- /x
fi
# A saved archive whose configuration was changed.
saved twice.tar config.json base.tar change.tar
tar -xf twice.tar -C folder && sed -i 's/amd64/amd65/; s/arm64/arm65/' folder/*.json
mv "folder/$(digest config.json).json" folder/x && mv folder/x "folder/$(digest config.json).json"
tar -C folder -cf twice.tar .
refused 'has other bytes than its name says' --image twice.tar -- /x

market_audit
echo "five forms of one image, its start, and every unfit image refused: ok"
