#!/usr/bin/env bash
# Folders of many files on a real market: as outputs, with what a program may leave in them, as inputs of more files than a
# manifest lists, from task to task, and what is refused before anything is sent.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin folders "$1"
market_up --credits 100 --slots 1 --programs sh

run() { "$bourse" run -y --exit-code "$@" >out 2>err </dev/null; }
jobs_here() { "$bourse" ps --quiet | wc -l; }
refused() { # STATUS PATTERN ARGUMENT...
    local expected=$1 pattern=$2 status=0
    shift 2
    "$bourse" run -y "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq "$expected" ] || fail "exit status $status and not $expected of run $*: $(cat out err)"
    grep -qE -- "$pattern" err || fail "expected \"$pattern\" of run $*: $(cat err)"
}
tree() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); } # FOLDER: its files by name, with their hashes
# FOLDER: its folders, and its links with their targets
bare() { (cd "$1" && find . -type d -printf '%p/\n' -o -type l -printf '%p>%l\n' | LC_ALL=C sort); }
# FOLDER: the permissions and times of all that is in it
looks() { (cd "$1" && find . -mindepth 1 -printf '%p %y %m %T@\n' | sed -E 's/ l 777 / l - /' | LC_ALL=C sort); }

# A program that nobody has is refused once.
refused 5 '^bourse: 0 of 1 device fits; 1 fails on program = "nobody-has-it"' -- nobody-has-it
[ "$(grep -c 'fit' err)" = 1 ] || fail "the refusal is said more than once: $(cat err)"

# A folder comes back as it was, with names that a shell would take apart, empty folders, and links that stay in it.
# shellcheck disable=SC2016 # the jail's shell expands it
make='cd results; mkdir -p a/b/c "odd name"; i=0; while [ $i -lt 300 ]; do echo $i >a/f$i; i=$((i+1)); done
: >a/b/empty; echo deep >a/b/c/x.txt; echo odd >"odd name/it'"'"'s"; echo ü >ä; ln -s /etc/passwd link; ln -s .. up-link
mkdir -p none a/none/deeper; ln -s a folder-link; ln -s ../large a/l; ln -s absent dangling; ln -s . self; ln -s loop loop
mkfifo pipe; head -c 3000000 /dev/zero >large; printf "#!/bin/sh\n" >tool; chmod 4755 tool'
mkdir expected
(mkdir expected/results && cd expected && sh -c "$make" && rm results/link results/up-link results/pipe)
run --out results/ -o here -- sh -c "$make" || fail "a folder: $(cat out err)"
[ "$(tree here)" = "$(tree expected)" ] || fail "another tree came back: $(diff <(tree here) <(tree expected))"
[ -z "$(find here -type p)" ] || fail "a pipe came back"
[ "$(bare here)" = "$(bare expected)" ] || fail "other folders or links came back: $(diff <(bare here) <(bare expected))"
grep -q 'left out of results/: 3 links, devices, pipes or sockets' err || fail "what is left out is not told: $(cat err)"
"$bourse" logs last >logs 2>&1 || fail "logs: $(cat logs)"
"$bourse" fetch last -o again 2>err || fail "fetch: $(cat err)"
[ "$(tree again)" = "$(tree expected)" ] || fail "fetch brought another tree"
[ "$(bare again)" = "$(bare expected)" ] || fail "fetch brought other folders or links"
"$bourse" fetch last -o again 2>err || fail "fetch again: $(cat err)"
echo changed >again/results/a/f7
status=0
"$bourse" fetch last -o again 2>err || status=$?
{ [ "$status" -ne 0 ] && grep -q 'nothing is overwritten' err; } || fail "a changed file was overwritten: $(cat err)"
[ "$(cat again/results/a/f7)" = changed ] || fail "a changed file was overwritten"

# Nothing is written through a link that lies in the way.
mkdir outside trap
ln -s ../outside trap/results
"$bourse" fetch last -o trap 2>err && fail "a link was followed"
[ -z "$(ls -A outside)" ] || fail "files were written through a link"

# A file that the program could execute comes back so, as the umask here allows, and without setuid.
make='printf "#!/bin/sh\necho ran\n" >tool; cp tool secret; cp tool data; chmod 6755 tool; chmod 700 secret; chmod 655 data'
(umask 027 && run --out tool --out secret --out data -o modes -- sh -c "$make") || fail "files of three modes: $(cat out err)"
modes() { (cd "$1" && stat -c '%a %n' tool secret data | tr '\n' ' '); } # FOLDER
[ "$(modes modes)" = "750 tool 750 secret 640 data " ] || fail "modes under umask 027: $(modes modes)"
[ "$(modes/tool)" = ran ] || fail "a fetched program does not start"
(umask 022 && "$bourse" fetch last -o modes-again 2>err) || fail "fetch: $(cat err)"
[ "$(modes modes-again)" = "755 tool 755 secret 644 data " ] || fail "modes under umask 022: $(modes modes-again)"
# A file that is there gets the mode of a new one, and keeps its bytes.
chmod 600 modes-again/tool modes-again/secret
chmod 777 modes-again/data
(umask 027 && "$bourse" fetch last -o modes-again 2>err) || fail "fetch over files: $(cat err)"
[ "$(modes modes-again)" = "750 tool 750 secret 640 data " ] || fail "modes of files that were there: $(modes modes-again)"
"$bourse" receipt last --all -o receipts >out 2>err || fail "receipt: $(cat out err)"
"$bourse" verify receipts/* --key "$("$bourse" key --log)" >out 2>err || fail "a receipt with modes: $(cat out err)"

# The same work leaves the same archive, so the hash of a folder can be compared.
archive() { "$bourse" logs last --json 2>/dev/null | grep -oE '\{[^{}]*"name":"results/"[^{}]*\}' | grep -oE '[0-9a-f]{64}'; }

# A pattern brings back what matches: files, and whole folders, with names that a shell would take apart.
# shellcheck disable=SC2016 # the jail's shell expands it
make='mkdir -p results/deep run-1/sub run-2; echo a >part-a; echo b >"part b"; echo c >part-ü; chmod +x part-a
echo x >results/x.csv; echo y >results/y.txt; echo z >results/deep/z.csv; ln -s /x.csv results/l.csv; ln -s x.csv results/m.csv; echo h >results/.h.csv
echo 1 >run-1/sub/.one; echo 2 >run-2/two; echo 3 >run-3'
run --out 'part*' --out 'results/*.csv' --out 'run-*/' --out 'part-?' -o matched -- sh -c "$make" || fail "patterns: $(cat out err)"
files_in() { (cd "$1" && find . -type f | LC_ALL=C sort | tr '\n' ' '); } # FOLDER
[ "$(files_in matched)" = "./part b ./part-a ./part-ü ./results/x.csv ./run-1/sub/.one ./run-2/two " ] ||
    fail "patterns brought $(files_in matched)"
[ -x matched/part-a ] && [ ! -x matched/part-ü ] || fail "the modes of a pattern's files: $(ls -l matched)"
[ "$(bare matched | grep '>')" = './results/m.csv>x.csv' ] || fail "the links of patterns: $(bare matched)"
chmod -x matched/part-a
chmod +x matched/part-ü
"$bourse" fetch last -o matched 2>err || fail "fetch over a pattern's files: $(cat err)"
[ -x matched/part-a ] && [ ! -x matched/part-ü ] || fail "the modes of a pattern's files that were there: $(ls -l matched)"
"$bourse" logs last --json >out 2>&1
grep -q 'left out of results/\*.csv: 1 links' out || fail "a link is not told: $(cat out)"
"$bourse" fetch last -o matched >out 2>err || fail "a second fetch of patterns: $(cat err)"
"$bourse" receipt last --all -o pattern-receipts >out 2>err || fail "receipt: $(cat out err)"
"$bourse" verify pattern-receipts/* --key "$("$bourse" key --log)" >out 2>err || fail "a receipt with patterns: $(cat out err)"
refused 1 'output part-\* matches no file' --out 'part-*' -- sh -c 'echo x >other'
refused 2 'must be a path inside the work folder' --out '../*' -- sh -c :
refused 2 'must be a path inside the work folder' --out '/etc/*' -- sh -c :
refused 2 'has "\*\*"' --out 'results/**/x' -- sh -c :
refused 2 'also takes "part-a"' --out 'part-*' --out part-a -- sh -c :
# What an input is called means nothing in a pattern.
mkdir odd
echo one >'odd/a[1].txt'
echo two >odd/a1.txt
cat >odd/each.yaml <<'Y'
each: "*.txt"
run: [sh, -c, 'mkdir "$0.d"; cp "$0" "$0.d/x.csv"; echo no >"$0.d/x.txt"', "{in}"]
outputs: ["{in}.d/*.csv"]
Y
"$bourse" submit odd/each.yaml -y --wait -o each >out 2>err || fail "patterns with {in}: $(cat out err)"
[ "$(cat 'each/a[1].txt.d/x.csv' each/a1.txt.d/x.csv)" = $'one\ntwo' ] || fail "patterns with {in} brought $(files_in each)"
[ "$(find each -type f | wc -l)" = 2 ] || fail "patterns with {in} brought $(files_in each)"

# What a program may leave: nothing, too much, too deep.
refused 1 'results/.* holds no file' --out results/ -- sh -c :
refused 1 'results/.* holds no file' --out results/ -- sh -c 'mkdir results/a'
refused 1 'results.* is no folder' --out results/ -- sh -c 'rmdir results; echo x >results'
refused 1 'results.* symbolic link' --out results/ -- sh -c 'rmdir results; mkdir other; echo x >other/f; ln -s other results'
# shellcheck disable=SC2016 # the jail's shell expands it
refused 1 'more than 64 folders in one another' --out results/ -- \
    sh -c 'cd results; i=0; while [ $i -lt 70 ]; do mkdir d; cd d; i=$((i+1)); done; echo x >f'
refused 1 'control characters' --out results/ -- sh -c 'echo x >"results/$(printf "a\001b")"'
cat >small.yaml <<'Y'
run: [sh, -c, "head -c 2000000 /dev/zero >results/zeros"]
outputs: [results/]
limits: {output: 1MB}
Y
status=0
"$bourse" submit small.yaml -y --wait >out 2>err || status=$?
[ "$status" -ne 0 ] || fail "a folder above the output limit was taken"
"$bourse" logs last >out 2>&1 || true
grep -q 'take [0-9]* bytes; the output limit is 1000000 bytes' out err || fail "the limit is not said: $(cat out err)"
refused 2 'lies below' --out results/ --out results/a -- sh -c :
refused 2 'must be a path inside the work folder' --out ../results/ -- sh -c :

# More files than a manifest lists go as archives. A changed file changes one of them alone.
mkdir -p data/sub
for i in $(seq 1200); do echo "$i" >"data/sub/f$i"; done
head -c 1500000 /dev/urandom >data/alone
printf '#!/bin/sh\necho ran\n' >data/tool
chmod +x data/tool
run -f data --out back/ -o round -- sh -c 'data/tool; cp -r data back' || fail "many inputs: $(cat out err)"
[ "$(cat out)" = ran ] || fail "a packed file cannot be executed: $(cat out err)"
[ -x round/back/data/tool ] && [ ! -x round/back/data/alone ] || fail "other modes came back: $(ls -l round/back/data)"
[ "$(tree round/back/data)" = "$(tree data)" ] || fail "other inputs came: $(diff <(tree round/back/data) <(tree data) | head)"

# A folder arrives as `rsync -a` would bring it: empty folders, links, permissions and times.
mkdir -p stage/empty/deeper stage/src stage/shut
echo 'int x;' >stage/src/a.c
echo object >stage/src/a.o
echo secret >stage/private
printf '#!/bin/sh\n' >stage/tool
chmod 600 stage/private
chmod 750 stage/tool
chmod 550 stage/shut
ln -s src/a.c stage/link
ln -s ../src stage/src/back
ln -s src stage/to-folder
ln -s absent stage/dangling
ln -s . stage/self
ln -s loop-b stage/loop-a
ln -s loop-a stage/loop-b
touch -d '2020-01-01 10:00:00.5' stage/src/a.c
touch -d '2020-01-01 10:00:00.75' stage/src/a.o
touch -d '1969-12-31 23:59:58.25 UTC' stage/private
touch -h -d '2001-02-03' stage/link
touch -d '2010-01-01' stage/src stage/empty/deeper
# shellcheck disable=SC2016 # the jail's shell expands it
look='find . -mindepth 1 -printf "%p %y %m %T@\n" | sed -E "s/ l 777 / l - /" | LC_ALL=C sort'
for folder in stage many-files; do
    run --workdir "$folder" -- sh -c "$look" || fail "a work folder: $(cat out err)"
    [ "$(cat out)" = "$(looks "$folder")" ] || fail "$folder arrived otherwise: $(diff out <(looks "$folder"))"
    [ "$folder" = many-files ] || cp -a stage many-files
    [ -d many-files/lots ] || { mkdir many-files/lots && (cd many-files/lots && seq 300 | xargs touch -d '2015-05-05 05:05:05.05'); }
done
run -f stage -- sh -c 'cd stage && readlink link src/back self && cat to-folder/a.c link && [ src/a.o -nt src/a.c ] && echo more >>private' ||
    fail "links and times: $(cat out err)"
[ "$(cat out)" = $'src/a.c\n../src\n.\nint x;\nint x;' ] || fail "links and times: $(cat out)"
# Empty folders and links go from task to task, and come back.
run --workdir stage --out back/ -o staged -- sh -c 'mkdir -p back && cp -a empty link src dangling back' || fail "there and back: $(cat out err)"
[ "$(bare staged/back)" = "$(printf '%s\n' ./ './dangling>absent' ./empty/ ./empty/deeper/ './link>src/a.c' ./src/ './src/back>../src')" ] ||
    fail "there and back: $(bare staged/back)"
# A task has a listing of its own folder beside that of the job.
cat >two-trees.yaml <<'Y'
files: [many-files]
tasks:
  - name: with
    files: [stage]
    run: [sh, -c, "readlink stage/link many-files/self; stat -c %Y stage/private; test -d stage/empty/deeper"]
  - name: without
    run: [sh, -c, "test ! -e stage && readlink many-files/link"]
Y
"$bourse" submit two-trees.yaml -y --wait >out 2>err || fail "two listings: $(cat out err)"
[ "$("$bourse" logs last/with 2>err)" = $'src/a.c\n.\n-2' ] || fail "a task's folder: $("$bourse" logs last/with 2>&1)"
[ "$("$bourse" logs last/without 2>err)" = src/a.c ] || fail "the job's folder: $("$bourse" logs last/without 2>&1)"
# The archive of an output has no times, so two who ran the same work at different times agree.
twice='mkdir results/none; echo x >results/x; ln -s x results/l; touch -d @$1 results/x'
run --out results/ -o first -- sh -c "$twice" sh 1000000000 || fail "an output: $(cat out err)"
first_hash=$(archive)
run --out results/ -o second -- sh -c "$twice" sh 2000000000 || fail "an output: $(cat out err)"
{ [ -n "$first_hash" ] && [ "$(archive)" = "$first_hash" ]; } || fail "the time changes an output: $first_hash and $(archive)"
# A link that could lead out is refused before anything is sent.
for target in /etc ../outside src/../../outside; do
    ln -s "$target" stage/out
    refused 2 'the symbolic link .*out (leads out of the folder|has an absolute target|has ".." behind a name)' --workdir stage -- sh -c :
    rm stage/out
done

stored() { "$bourse" balance --json | grep -oE '"stored_bytes":[0-9]+' | cut -d: -f2; }
run --workdir data -- sh -c 'ls sub | wc -l' || fail "a work folder of many files: $(cat out err)"
[ "$(cat out)" = 1200 ] || fail "the work folder has $(cat out) files"

# A folder goes from task to task.
cat >tasks.yaml <<'Y'
tasks:
  - name: first
    run: [sh, -c, "mkdir -p parts/x parts/none; echo one >parts/x/1; echo two >parts/2; ln -s x/1 parts/l"]
    outputs: [parts/]
  - name: second
    run: [sh, -c, "cat taken/l taken/2 >sum.txt; test -d taken/none; test -L taken/l"]
    from: {taken/: first/parts/}
    outputs: [sum.txt]
Y
"$bourse" submit tasks.yaml -y --wait -o tasks >out 2>err || fail "tasks: $(cat out err)"
"$bourse" fetch last -o tasks >out 2>err || fail "tasks: $(cat out err)"
[ "$(cat tasks/second/sum.txt)" = $'one\ntwo' ] || fail "the task took $(cat tasks/second/sum.txt)"
[ "$(cat tasks/first/parts/x/1)" = one ] || fail "the folder of a task did not come"
# So does a file's permission to be executed, also into the rest of a job that is resumed. The second task always fails.
cat >build.yaml <<'Y'
tasks:
  - name: build
    run: [sh, -c, 'printf "#!/bin/sh\necho built\n" >tool; cp tool data; chmod +x tool']
    outputs: [tool, data]
  - name: use
    run: [sh, -c, 'test ! -x data && bin/tool; exit 3']
    from: {bin/tool: build/tool, data: build/data}
Y
"$bourse" submit build.yaml -y --wait >out 2>err && fail "a task that fails did not fail"
[ "$("$bourse" logs last/use 2>err)" = built ] || fail "a program from task to task: $(cat out err)"
"$bourse" resume last -y --wait >out 2>err && fail "a resumed task that fails did not fail"
[ "$("$bourse" logs last/use 2>err)" = built ] || fail "a program of a resumed job: $(cat out err)"
cat >parts.yaml <<'Y'
tasks:
  - name: split
    run: [sh, -c, "echo 1 >p-1; echo 2 >p-2; mkdir r; echo 3 >r/3.csv; echo 4 >r/4.txt; echo 5 >r/5.log"]
    outputs: ["p-*", "r/*.csv", "r/*.txt"]
  - name: join
    run: [sh, -c, "cat p-1 p-2 r/*; exit 3"]
    from: ["split/p-*", "split/r/*.csv", "split/r/*.txt"]
  - name: moved
    run: [sh, -c, "ls; cat q/*"]
    from: {q/: "split/p-*"}
Y
"$bourse" submit parts.yaml -y --wait >out 2>err && fail "a task that fails did not fail"
[ "$("$bourse" logs last/join 2>err)" = $'1\n2\n3\n4' ] || fail "files of patterns from task to task: $("$bourse" logs last/join 2>&1; cat out err)"
[ "$("$bourse" logs last/moved 2>err)" = $'q\n1\n2' ] || fail "files of a pattern in a folder: $("$bourse" logs last/moved 2>&1)"
"$bourse" resume last -y --wait >out 2>err && fail "a resumed task that fails did not fail"
[ "$("$bourse" logs last/join 2>err)" = $'1\n2\n3\n4' ] || fail "files of patterns in a resumed job: $("$bourse" logs last/join 2>&1; cat out err)"
sed 's,taken/: first,taken: first,' tasks.yaml >wrong.yaml
"$bourse" plan wrong.yaml >out 2>err && fail "a folder was taken as a file"
grep -q 'ends with a slash' err || fail "a folder as a file: $(cat err)"

# Too many files are refused with the figures, before anything is sent.
# They are in memory where that is possible: a disk needs seconds for so many.
crowd=$(mktemp -d /dev/shm/bourse-folders.XXXXXX 2>/dev/null || mktemp -d "$work/crowd.XXXXXX")
trap 'rm -rf "$crowd"; fire_end' EXIT
mkdir "$crowd/many"
(cd "$crowd/many" && seq 131073 | xargs touch)
before=$(jobs_here)
cd "$crowd"
refused 2 "'many' stands for more than 131072 files" -f many -- sh -c :
cd "$work"
[ "$(jobs_here)" = "$before" ] || fail "a refused job is there"
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'bourse-??????' -user "$(id -u)" -newer small.yaml 2>/dev/null)" ] ||
    fail "a refused job left a file"
market_audit
