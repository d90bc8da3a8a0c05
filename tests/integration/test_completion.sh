#!/usr/bin/env bash
# Completion, loaded into the shells themselves: every command and every option that help names is offered, job ids come
# from `bourse ps`, and files where the table says FILE. A shell that is not installed is named, and left out.
set -euo pipefail
bin=$(realpath "$1")
bourse=$bin/bourse
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse completion.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data TERM=dumb
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR

fail() { echo "FAILED: $*" >&2; exit 1; }
has() { # LINES LINE: one of them is it
    grep -qxF -- "$2" <<<"$1" || fail "expected \"$2\" among: $1"
}
lacks() { ! grep -qxF -- "$2" <<<"$1" || fail "did not expect \"$2\" among: $1"; }

# A market with two jobs: nothing else of `bourse` is needed for their ids.
mkdir bin
cat >bin/bourse <<END
#!/bin/sh
[ "\$1" != ps ] || { printf '%s\n' "\$*" >>"$work/asked"; echo 11aa; echo 22bb; exit 0; }
[ "\$1 \$2" != "order list" ] || { echo 33cc; exit 0; }
exec "$bourse" "\$@"
END
chmod +x bin/bourse
export PATH=$work/bin:$PATH
touch 'my job.yaml' other.yaml
mkdir folder
for shell in bash zsh fish; do
    "$bourse" completion $shell >$shell.completion || fail "completion $shell"
done
got=0
"$bourse" completion tcsh >out 2>err || got=$?
[ "$got" -eq 2 ] || fail "completion tcsh ended with $got"
grep -q 'bash, zsh and fish' err || fail "it does not say which there are: $(cat err)"
"$bourse" completion bash --json | grep -q '"shell":"bash"' || fail "completion --json"

commands=$("$bourse" help --json | grep -oE '"name":"[a-z]+","arguments"' | cut -d'"' -f4)
options_of() { "$bourse" "$1" --help | grep -oE '^  (-., |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }

# bash: the function is called as the shell would call it; the last word is the one that is being typed.
offer_bash() {
    # shellcheck disable=SC2016 # meant for the other shell
    bash --norc -c '. ./bash.completion
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _bourse bourse && printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
offered=$(offer_bash bourse '')
for command in $commands; do
    has "$offered" "$command"
    [ "$(offer_bash bourse "$command" -- | sort)" = "$(options_of "$command" | sort)" ] ||
        fail "bash: options of $command: $(offer_bash bourse "$command" --)"
done
[ "$(offer_bash bourse - | tr '\n' ' ')" = '--help --version ' ] || fail "bash: before the command: $(offer_bash bourse -)"
lacks "$offered" --version
[ "$(offer_bash bourse repo)" = report ] || fail "bash: $(offer_bash bourse repo)"
offered=$(offer_bash bourse fetch -o folder '')
has "$offered" last
has "$offered" 11aa
has "$offered" 22bb
lacks "$offered" folder
[ "$(offer_bash bourse report 2)" = 22bb ] || fail "bash: $(offer_bash bourse report 2)"
: >asked
[ -z "$(offer_bash bourse ps --market elsewhere x)" ] || fail "bash: an id that begins with x"
grep -q -- '--market elsewhere' asked || fail "bash: asked another market: $(cat asked)"
has "$(offer_bash bourse explain '')" 'my job.yaml'
has "$(offer_bash bourse explain '')" 22bb
has "$(offer_bash bourse submit my)" 'my job.yaml'
[ "$(offer_bash bourse fetch last -o '' | sort)" = "$(printf 'bin\nfolder')" ] || fail "bash: $(offer_bash bourse fetch last -o '')"
[ "$(offer_bash bourse ps --color = a)" = "$(printf 'auto\nalways')" ] || fail "bash: $(offer_bash bourse ps --color = a)"
has "$(offer_bash bourse help '')" report
[ "$(offer_bash bourse devices --estimate matm)" = matmul ] || fail "bash: $(offer_bash bourse devices --estimate matm)"
[ "$(offer_bash bourse devices --catalogue groq)" = groq-lpu-v1 ] || fail "bash: $(offer_bash bourse devices --catalogue groq)"
has "$(offer_bash bourse admin '')" mint
lacks "$(offer_bash bourse admin mint '')" mint
has "$(offer_bash bourse order cancel '')" 33cc
has "$(offer_bash bourse completion '')" fish
has "$(offer_bash bourse run -y bour)" bourse
has "$(offer_bash bourse run -y -- bour)" bourse
mkdir twice
ln -s "$work/bin/bourse" twice/bourse # a program that two folders of PATH have
[ "$(PATH=$work/twice:$PATH offer_bash bourse run -- bours | grep -cx bourse)" = 1 ] || fail "bash: a program twice"
rm -r twice
has "$(offer_bash bourse run -- cat oth)" other.yaml
[ -z "$(offer_bash bourse run -- cat --js)" ] || fail "bash: an option of ours for a program"

# A template of `run` has options of its own, but not where it is a program.
matmul=$("$bourse" help run matmul | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort)
has "$matmul" --tiles
has "$(offer_bash bourse run mat)" matmul
[ "$(offer_bash bourse run -y matmul A --  | sort)" = "$matmul" ] || fail "bash: $(offer_bash bourse run -y matmul A --)"
[ -z "$(offer_bash bourse run -- matmul --)" ] || fail "bash: options of a template for a program"
has "$(offer_bash bourse run matmul oth)" other.yaml

# The other programs: their own commands, and of each the options that its help names.
mkdir -p other.folder
for program in bourse-provider bourse-broker; do
    for shell in bash zsh fish; do
        "$bin/$program" completion $shell >"$program.$shell" || fail "$program completion $shell"
    done
    got=0
    "$bin/$program" completion tcsh >out 2>err || got=$?
    [ "$got" -eq 2 ] && [ ! -s out ] || fail "$program completion tcsh ended with $got"
    grep -q 'bash, zsh and fish\|bash, zsh or fish' err || fail "it does not say which there are: $(cat err)"
    ln -s "$bin/$program" "bin/$program"
done
commands_of() { # PROGRAM
    "$bin/$1" help | sed -nE "s/^  $1 \\[?([a-z]+)\\]? .*/\\1/p" | sort -u
}
named() { # PROGRAM COMMAND: the options that help names
    "$bin/$1" "$2" --help | grep -oE -- '--[a-z-]+' | grep -vE "$everywhere" | sort -u
}
everywhere='^--(help|log|log-json|json-logs)$'
offer_other() { # PROGRAM WORD...
    # shellcheck disable=SC2016 # meant for the other shell
    bash --norc -c '. "./$1.bash"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "_${1/-/_}" "$1" && [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
others=''
for program in bourse-provider bourse-broker; do
    [ "$(commands_of $program | wc -l)" -ge 7 ] || fail "$program help names only $(commands_of $program)"
    for command in $(commands_of $program); do
        has "$(offer_other $program '')" "$command"
        offered=$(offer_other $program "$command" --)
        has "$offered" --help
        [ "$(grep -vE "$everywhere" <<<"$offered" | sort || true)" = "$(named $program "$command")" ] ||
            fail "bash: options of $program $command: $offered, help names $(named $program "$command")"
        others+="$program $command"$'\n'
    done
    has "$(offer_other $program completion '')" fish
    has "$(offer_other $program --log '')" warning
    has "$(offer_other $program run --dir fold)" folder
    lacks "$(offer_other $program run --dir my)" 'my job.yaml'
    [ -z "$(offer_other $program run x)" ] || fail "bash: a word for $program run"
done
for program in bourse-provider bourse-broker; do
    has "$(offer_other $program run --)" --log-json
    lacks "$(offer_other $program run --)" --json-logs
done
has "$(offer_other bourse-provider probe --config = my)" 'my job.yaml'
[ -z "$(offer_other bourse-provider pause --for '')" ] || fail "bash: a duration"
has "$(offer_other bourse-broker audit fold)" folder
has "$(offer_other bourse-broker --adopt-journal --d)" --dir

if command -v fish >/dev/null; then
    # shellcheck disable=SC2016 # meant for the other shell
    offer_fish() { fish --no-config -c 'source fish.completion; complete -C $argv[1]' -- "$1" | cut -f 1; }
    offered=$(offer_fish 'bourse ')
    for command in $commands; do
        has "$offered" "$command"
        line=$(offer_fish "bourse $command --" | sort)
        [ "$line" = "$(options_of "$command" | sort)" ] || fail "fish: options of $command: $line"
    done
    has "$(offer_fish 'bourse --')" --version
    lacks "$(offer_fish 'bourse ps --')" --version
    has "$(offer_fish 'bourse report ')" 22bb
    has "$(offer_fish 'bourse report ')" last
    has "$(offer_fish 'bourse submit my')" 'my job.yaml'
    has "$(offer_fish 'bourse ps --color a')" always
    has "$(offer_fish 'bourse fetch last -o f')" folder/
    has "$(offer_fish 'bourse admin ')" mint
    lacks "$(offer_fish 'bourse admin invite --role ')" 'my job.yaml'
    has "$(offer_fish 'bourse admin invite --role ')" referee
    lacks "$(offer_fish 'bourse submit x.yaml --budget ')" 'my job.yaml'
    has "$(offer_fish 'bourse ps --key my')" 'my job.yaml'
    [ "$(offer_fish 'bourse run matmul A --' | sort)" = "$matmul" ] || fail "fish: $(offer_fish 'bourse run matmul A --')"
    # shellcheck disable=SC2016 # meant for the other shell
    offer_fish() { fish --no-config -c 'source $argv[1].fish; complete -C $argv[2]' -- "${1%% *}" "$1" | cut -f 1; }
    while read -r program command; do
        has "$(offer_fish "$program ")" "$command"
        line=$(offer_fish "$program $command --" | grep -vE "$everywhere" | sort || true)
        [ "$line" = "$(named "$program" "$command")" ] || fail "fish: options of $program $command: $line"
        has "$(offer_fish "$program --log w")" warning
        lacks "$(offer_fish "$program --log ")" 'my job.yaml'
        has "$(offer_fish "$program completion ")" zsh
        has "$(offer_fish "$program run --dir f")" folder/
    done <<<"${others%$'\n'}"
    has "$(offer_fish 'bourse-broker audit f')" folder/
    has "$(offer_fish 'bourse-provider probe --config my')" 'my job.yaml'
else
    echo "skipped in part: no fish"
fi

if command -v zsh >/dev/null; then
    # A shell with a terminal of its own, told to list; `compadd` says what would be shown.
    cat >offer.zsh <<'END'
zmodload zsh/zpty || exit 77
zpty shell zsh -f -i
zpty -w shell "PS1= ; cd ${(q)PWD}; fpath=(\$fpath); autoload -Uz compinit; compinit -D -u; source ./zsh.completion; source ./bourse-provider.zsh; source ./bourse-broker.zsh"
zpty -w shell 'compadd() { [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return } ; typeset -a seen; builtin compadd -O seen "$@"; print -rl -- $seen >>seen; builtin compadd "$@" }'
zpty -w shell 'finish() { comppostfuncs=(finish); compstate[insert]= compstate[list]=; print end >ended }; comppostfuncs=(finish)'
zpty -w shell 'setopt no_beep; print ready >ready'
while [[ ! -e ready ]]; do zpty -rt shell out || sleep 0.02; done
for line in "$@"; do
    rm -f seen ended
    zpty -n -w shell "$line"$'\t'
    while [[ ! -e ended ]]; do zpty -rt shell out || sleep 0.02; done
    print -r -- "== $line"
    [[ ! -e seen ]] || sort -u seen
    zpty -n -w shell $'\C-u'
done
END
    lines=('bourse ' 'bourse report ' 'bourse submit my' 'bourse ps --color a' 'bourse admin ' 'bourse run matmul A --' 'bourse --')
    for command in $commands; do lines+=("bourse $command --"); done
    lines+=('bourse-provider ' 'bourse-broker ' 'bourse-broker audit f' 'bourse-broker --d' 'bourse-provider run --log w' 'bourse-provider completion ')
    while read -r line; do lines+=("$line --"); done <<<"${others%$'\n'}"
    timeout 120 zsh -f offer.zsh "${lines[@]}" >offered.zsh || fail "zsh ended with $?: $(cat offered.zsh)"
    offer_zsh() { awk -v line="== $1" '$0 == line {f = 1; next} /^== / {f = 0} f' offered.zsh; }
    for command in $commands; do
        has "$(offer_zsh 'bourse ')" "$command"
        for option in $(options_of "$command"); do
            has "$(offer_zsh "bourse $command --")" "$option"
        done
    done
    has "$(offer_zsh 'bourse --')" --version
    has "$(offer_zsh 'bourse report ')" 22bb
    has "$(offer_zsh 'bourse report ')" last
    has "$(offer_zsh 'bourse submit my')" 'my\ job.yaml'
    has "$(offer_zsh 'bourse ps --color a')" always
    has "$(offer_zsh 'bourse admin ')" mint
    for option in $matmul; do has "$(offer_zsh 'bourse run matmul A --')" "$option"; done
    while read -r program command; do
        has "$(offer_zsh "$program ")" "$command"
        line=$(offer_zsh "$program $command --" | grep -vE "$everywhere" | sort || true)
        [ "$line" = "$(named "$program" "$command")" ] || fail "zsh: options of $program $command: $line"
    done <<<"${others%$'\n'}"
    has "$(offer_zsh 'bourse-broker audit f')" folder
    has "$(offer_zsh 'bourse-broker --d')" --dir
    has "$(offer_zsh 'bourse-provider run --log w')" warning
    has "$(offer_zsh 'bourse-provider completion ')" fish
else
    echo "skipped in part: no zsh"
fi
echo "completion in the shells that are here: ok"
