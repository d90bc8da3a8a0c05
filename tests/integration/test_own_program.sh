#!/usr/bin/env bash
# Programs of the consumer's own machine on a real market: dynamic and static ones, with libraries in folders of their own,
# scripts, what is refused before anything is sent, and standard input that is piped in.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin own-program "$1"
command -v cc >/dev/null || skip "no compiler"
market_up --credits 100 --slots 1

# Each run ends with the program's own status, and what it printed is in `out`.
run() { "$bourse" run -y --exit-code "$@" >out 2>err </dev/null; }
refused() { # PATTERN ARGUMENT...
    local pattern=$1 status=0 jobs
    shift
    jobs=$(jobs_here)
    "$bourse" run -y "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "exit status $status and not 2 of run $*: $(cat out err)"
    grep -qE -- "$pattern" err || fail "expected \"$pattern\" of run $*: $(cat err)"
    [ "$(jobs_here)" = "$jobs" ] || fail "run $* left a job"
}
jobs_here() { "$bourse" ps --quiet | wc -l; }

# A library that no host has, found by $ORIGIN; the program says how it was started.
mkdir -p 'my tools/lib'
cat >odd.c <<'C'
int odd_answer(void) { return 42; }
C
cat >tool.c <<'C'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int odd_answer(void);
int main(int count, char **words)
{
    char line[64] = "";
    double x = count > 2 ? atof(words[2]) : 2;
    printf("%s %d %.3f\n", words[0], odd_answer(), cbrt(x));
    while (count > 1 && strcmp(words[1], "echo") == 0 && fgets(line, sizeof line, stdin) != NULL) {
        fputs(line, stdout);
    }
    return count > 1 && strcmp(words[1], "fail") == 0 ? 7 : 0;
}
C
# shellcheck disable=SC2016 # $ORIGIN is the loader's
cc -shared -fPIC -o 'my tools/lib/libodd-bourse.so' odd.c
# shellcheck disable=SC2016 # $ORIGIN is the loader's
cc -fno-builtin -o 'my tools/tool' tool.c -L'my tools/lib' -lodd-bourse -lm '-Wl,-rpath,$ORIGIN/lib'

run './my tools/tool' none 27 || fail "dynamic: $(cat out err)"
[ "$(cat out)" = './my tools/tool 42 3.000' ] || fail "dynamic: $(cat out)"
grep -qE 'tool, .*its loader and libraries: [4-9] files' err || fail "what is sent is not said: $(cat err)"
cp 'my tools/tool' tool
refused 'tool needs the library libodd-bourse.so, which is not found' ./tool
status=0
LD_LIBRARY_PATH="$work/my tools/lib" run ./tool fail || status=$?
[ "$status" -eq 7 ] || fail "the program's exit status 7 became $status: $(cat err)"
[ "$(cat out)" = './tool 42 1.260' ] || fail "LD_LIBRARY_PATH: $(cat out err)"

# The image holds the libraries alone, so a changed program has the same image.
images() { find "$market/provider/images" -mindepth 1 -maxdepth 1 -type d | wc -l; }
before=$(images)
[ "$before" -ge 1 ] || fail "no image was unpacked: $(ls "$market/provider")"
cc -fno-builtin -DCHANGED -O2 -o 'my tools/tool' tool.c -L'my tools/lib' -lodd-bourse -lm "-Wl,-rpath,\$ORIGIN/lib"
run './my tools/tool' || fail "changed: $(cat out err)"
[ "$(images)" = "$before" ] || fail "a changed program has another image: $before, then $(images)"

# A static program has no loader; one with the host's libraries is started by env.
cat >still.c <<'C'
#include <stdio.h>
int main(int count, char **words) { return printf("%s %d\n", words[0], count) < 0; }
C
if cc -static -o still still.c 2>/dev/null; then
    run ./still a b || fail "static: $(cat out err)"
    [ "$(cat out)" = './still 3' ] || fail "static: $(cat out)"
    grep -q 'needs no libraries' err || fail "static: $(cat err)"
fi
cc -o plain still.c
run --host-libraries ./plain a || fail "host libraries: $(cat out err)"
[ "$(cat out)" = './plain 2' ] || fail "host libraries: $(cat out)"
mkdir -p sub && cp plain sub/
(cd sub && run ../plain && [ "$(cat out)" = './plain 1' ]) || fail "from above: $(cat sub/out sub/err)"
run --array 1-3 ./plain '{index}' || fail "array: $(cat out err)"
[ "$(sort out | uniq -c | tr -s ' ')" = ' 3 ./plain 2' ] || fail "array: $(cat out)"
mkdir each && echo 1 >each/a && echo 2 >each/b
run --each 'each/*' --out '{out}' './my tools/tool' '{in}' && fail "an output that is not there passed"
run --each 'each/*' './my tools/tool' '{in}' || fail "each: $(cat out err)"
[ "$(sort -u out)" = './my tools/tool 42 1.260' ] || fail "each: $(cat out)"
printf 'run: [./plain, x]\nbudget: 1.00\n' >sub/job.yaml
"$bourse" submit sub/job.yaml -y --wait >out 2>err || fail "job file: $(cat out err)"
"$bourse" logs last >out || fail "job file: $(cat out)"
[ "$(cat out)" = './plain 2' ] || fail "job file: $(cat out)"

# Scripts run by their first line, on the host's interpreter.
# shellcheck disable=SC2016 # the scripts expand these
printf '#!/bin/sh -e\necho "$0 $*"\nfalse\necho not here\n' >script.sh
# shellcheck disable=SC2016 # the scripts expand these
printf '#!/usr/bin/env  bash\necho "${BASH_VERSION:+bash} $1"\n' >env.sh
chmod +x script.sh env.sh
run ./script.sh 'a b' && fail "sh -e went on: $(cat out)"
[ "$(cat out)" = './script.sh a b' ] || fail "script: $(cat out err)"
grep -q "script that the host's sh runs" err || fail "script: $(cat err)"
run ./env.sh 'x  y' || fail "env: $(cat out err)"
[ "$(cat out)" = 'bash x  y' ] || fail "env: $(cat out)"
# An input keeps its permission to be executed.
run --file script.sh -- sh -c 'test -x script.sh && ! test -x plain.txt' || fail "the bit is lost: $(cat out err)"

# Folders and patterns are inputs, with the names that the user wrote; a program among them is sent once.
mkdir -p 'data/deep er' && echo one >data/one.txt && echo two >'data/deep er/two.txt' && cp script.sh data/go
ln -s ../one.txt 'data/deep er/link'
run -f data/ -- sh -c 'find data -type f | sort; find data -type l; cat "data/deep er/link"; test -x data/go' || fail "a folder: $(cat out err)"
printf '%s\n' 'data/deep er/two.txt' data/go data/one.txt 'data/deep er/link' one | cmp - out || fail "a folder: $(cat out)"
mkdir -p data/plainer && touch data/plainer/three.txt
run -f 'data/*.txt' -f 'da*/plain*' -- sh -c 'find . -type f | sort' || fail "patterns: $(cat out err)"
printf './%s\n' data/one.txt data/plainer/three.txt | cmp - out || fail "patterns: $(cat out)"
(cd data && "$bourse" run -y -f . ./go inside >../out 2>../err </dev/null) && fail "sh -e went on"
[ "$(cat out)" = './go inside' ] || fail "a program in a folder: $(cat out err)"
printf 'run: [sh, -c, "cat data/*.txt"]\nfiles: [data]\nbudget: 1.00\n' >folder.yaml
"$bourse" submit folder.yaml -y --wait >out 2>err || fail "files: a folder: $(cat out err)"
"$bourse" logs last >out || fail "files: a folder: $(cat out)"
[ "$(cat out)" = one ] || fail "files: a folder: $(cat out)"

# A work folder is sent under the names below it, without what its ignore file leaves out.
mkdir -p project/src project/build/deep project/.git && touch project/build/deep/x.o project/.git/HEAD project/notes.txt
printf 'build/\n.*\n!.keep\n*.txt\n!/src/*.txt\n' >project/.bourseignore
touch project/.keep project/src/read.txt && cp script.sh project/run.sh
run --workdir project -- sh -c 'find . -type f | sort; test -x run.sh' || fail "a work folder: $(cat out err)"
printf './%s\n' .keep run.sh src/read.txt | cmp - out || fail "a work folder: $(cat out)"
(cd project && "$bourse" run -y --workdir . ./run.sh here >../out 2>../err </dev/null) && fail "sh -e went on"
[ "$(cat out)" = './run.sh here' ] || fail "a work folder with its program: $(cat out err)"
refused "'absent' is no folder here" --workdir absent -- true
printf '[\n' >project/.bourseignore
refused 'bourseignore: line 1: a set' --workdir project -- true
rm project/.bourseignore && ln -s /etc project/etc
refused 'project/etc leads out of the folder' --workdir project -- true

# What cannot run is refused before anything is sent.
refused 'No such file' ./absent
: >empty && chmod +x empty
refused 'neither an ELF program nor a script' ./empty
cp plain locked && chmod -x locked
refused 'chmod \+x' ./locked
refused 'no file that may be executed' ./sub
head -c 100 plain >short && chmod +x short
refused 'truncated' ./short
printf '#!/opt/venv/bin/python\n' >venv.py && chmod +x venv.py
refused 'below /usr and /bin' ./venv.py
printf '#!\n' >bare && chmod +x bare
refused 'begins with #!' ./bare
cc -c -o object.o odd.c && chmod +x object.o
refused 'no program' ./object.o
cp plain odd-machine && printf '\x03\x00' | dd of=odd-machine bs=1 seek=18 conv=notrunc status=none
refused 'kind of machine' ./odd-machine
ln -s /etc/passwd data/out
refused 'data/out leads out of the folder' -f data -- true
rm data/out && mkfifo data/pipe
refused 'data/pipe is a device, a socket or a pipe' -f data -- true
rm data/pipe && touch data/$'a\nb'
refused "a file's name cannot be used" -f data -- true
rm data/$'a\nb'
refused "no file or folder matches 'data/\*.none'" -f 'data/*.none' -- true
mkdir many && touch many/{1..256}
run -f many -- sh -c 'ls many | wc -l' || fail "a folder of many files: $(cat out err)"
[ "$(cat out)" = 256 ] || fail "a folder of many files: $(cat out)"
ln -s sub/plain link
run ./link || fail "a link to a program: $(cat out err)"
[ "$(cat out)" = './link 1' ] || fail "a link to a program: $(cat out)"

# What is piped in is the program's standard input, whole and unchanged.
seq 1 200000 >numbers
"$bourse" run -y -- sha256sum <numbers >out 2>err || fail "from a file: $(cat err)"
[ "$(cat out)" = "$(sha256sum <numbers)" ] || fail "from a file: $(cat out)"
# shellcheck disable=SC2002 # it is a pipe that is tested
cat numbers | "$bourse" run -y -- wc -l >out 2>err || fail "from a pipe: $(cat err)"
[ "$(tr -d ' ' <out)" = 200000 ] || fail "from a pipe: $(cat out)"
printf 'one\0two' | "$bourse" run -y -- cat >out 2>err || fail "with a NUL: $(cat err)"
printf 'one\0two' | cmp - out || fail "with a NUL: $(od -c out)"
printf 'in\n' | "$bourse" run -y './my tools/tool' echo 8 >out 2>err || fail "own program: $(cat err)"
[ "$(tail -n 1 out)" = in ] || fail "own program: $(cat out)"
printf 'in\n' | "$bourse" run -y --stdin text -- cat >out 2>err || fail "--stdin: $(cat err)"
[ "$(cat out)" = text ] || fail "--stdin: $(cat out)"
run -- wc -c || fail "/dev/null: $(cat out err)"
[ "$(cat out)" = 0 ] || fail "/dev/null: $(cat out err)"
: | "$bourse" run -y -- wc -c >out 2>err || fail "an empty pipe: $(cat err)"
[ "$(cat out)" = 0 ] || fail "an empty pipe: $(cat out)"
jobs=$(jobs_here)
"$bourse" run -y --array 1-2 -- cat <numbers >out 2>err && fail "two subtasks read one input"
grep -q 'the job has several subtasks: write < /dev/null' err || fail "several subtasks: $(cat err)"
[ "$(jobs_here)" = "$jobs" ] || fail "a refused run left a job"
truncate -s $((1024 * 1024 * 1024 + 1)) large
status=0
"$bourse" run -y -- wc -c <large >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "over the cap: $status $(cat err)"
grep -q 'more than 1073741824 bytes' err || fail "over the cap: $(cat err)"
rm large
script -qec "'$bourse' run -y -- cat" /dev/null </dev/null >terminal 2>&1 || fail "a terminal: $(cat terminal)"
echo "own programs ran, and nothing was left of what was refused"
