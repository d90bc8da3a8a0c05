#!/usr/bin/env bash
# scripts/check-layout finds each kind of fault that is planted in a small tree, and nothing in the tree without it. The list of
# exceptions covers a known fault, complains once the fault is gone, and may not grow.
set -euo pipefail
source_folder=$(dirname "$(realpath "$0")")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "test_layout: $*" >&2; exit 1; }
command -v git >/dev/null || { echo "test_layout: git is not installed" >&2; exit 77; }

mkdir -p "$work/tree/scripts/layout" "$work/tree/base" "$work/tree/ledger"
cd "$work/tree"
cp "$source_folder/scripts/check-layout" scripts/
printf '%s\n' 'room base:' 'room ledger: base' 'lines 30' 'units 3' 'columns 100' 'readme 5' >scripts/layout/rules
cat >base/sum.h <<'END'
/* A sum adds two numbers. */
int sum_of(int a, int b);
END
cat >base/sum.c <<'END'
#include "base/sum.h"

int sum_of(int a, int b)
{
    return a + b;
}
END
cat >ledger/total.c <<'END'
/* A total is the sum of an account. */
#include "base/sum.h"

int total_of(int a)
{
    return sum_of(a, a);
}
END
echo 'This room adds; read `sum.h` first.' >base/README.md
echo 'This room totals; read `total.c` first.' >ledger/README.md
git init -q . && git config user.email layout@localhost && git config user.name layout
commit() { git add -A && git commit -q -m "$1"; }
commit tree

clean() { scripts/check-layout >out 2>&1 || fail "the tree is not clean: $(cat out)"; }
clean
# finds NAME PATTERN: one line of the output begins with it, and the status is 1.
finds() {
    local status=0
    scripts/check-layout >out 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$1: status $status: $(cat out)"
    grep -qE "^$1: $2" out || fail "$1 is not found: $(cat out)"
    git checkout -q -- . && git clean -qfd -e out
}

sed -i '1a #include "ledger/total.h"' base/sum.c
echo '/* A total is kept. */' >ledger/total.h
finds room 'base/sum.c -> ledger/total.h'

printf '/* A part is a piece. */\n#include "base/whole.h"\n' >base/part.h
printf '/* A whole has parts. */\n#include "base/part.h"\n' >base/whole.h
finds circle 'base/part'

printf '/* The first one calls the second. */\nint first_of(int a)\n{\n    return second_of(a);\n}\n' >ledger/first.c
printf '/* The second one calls the first. */\nint second_of(int a)\n{\n    return first_of(a);\n}\n' >ledger/second.c
finds recursion 'ledger/(first.c:first_of|second.c:second_of)'

printf 'int helper(void)\n{\n    return 1;\n}\n' >>base/sum.c
finds prefix base/sum.c:helper

for _ in $(seq 30); do echo; done >>base/sum.c
finds lines 'base/sum.c \([0-9]+\)'

for name in one two three; do echo '/* A file is small. */' >base/$name.h; done
finds units 'base \(4\)'

mkdir base/inner && echo '/* A sum is done again. */' >base/inner/sum.h
finds name base/sum.h

rm ledger/README.md
finds readme ledger
echo 'Read `gone.h` first.' >ledger/README.md
finds readme 'ledger/README.md: gone.h'
seq 6 >ledger/README.md
finds readme 'ledger/README.md'

printf '/* %0100d */\n' 1 >>base/sum.c
finds columns 'base/sum.c \(1\)'

printf 'static struct sum\n    kept; /* so long a comment that the declaration was broken */\n' >>base/sum.c
finds type-alone 'base/sum.c \(1\)'

sed -i '1s/.*/\/* of an account *\//' ledger/total.c
finds opening ledger/total.c

printf '/* Of one account, the oldest on top. */\n' >>base/sum.c
finds fragment 'base/sum.c \(1\)'

# ---- the list of exceptions
printf 'int helper(void)\n{\n    return 1;\n}\n' >>base/sum.c
scripts/check-layout --record || fail "no list was written"
sed -i 's/^prefix .*/& # it helps/' scripts/layout/exceptions
clean
commit "a list"
clean
scripts/check-layout --record
grep -q 'helper # it helps$' scripts/layout/exceptions || fail "the reason is lost: $(cat scripts/layout/exceptions)"
clean

printf 'int aid(void)\n{\n    return 1;\n}\n' >>base/sum.c
scripts/check-layout --record
finds prefix 'scripts/layout/exceptions grew from 1 to 2'

git show HEAD^:base/sum.c >base/sum.c
finds prefix 'base/sum.c:helper: the exception is no longer needed'

scripts/check-layout --wrong >out 2>&1 && fail "an unknown option is taken"
[ $? -eq 2 ] || true
echo "room of nothing" >>scripts/layout/rules
status=0
scripts/check-layout >out 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "rules that cannot be read end with $status"
