#!/usr/bin/env bash
# Root starts the agent as the user that its config names. The agent's user may write that config, so it must not be
# able to name somebody else: only root's own config may.
set -u
bin=$(realpath "${1:?usage: test_agent_user.sh BIN}")
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
id bourse >/dev/null 2>&1 || { echo "skipped: no user bourse"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 711 "$work"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# said OWNER USER [MODE]: what the agent says whose config is OWNER's, of that mode, and names USER. Its key is none, so
# it always ends.
said() {
    rm -rf "$work/agent"
    mkdir -m 700 "$work/agent"
    printf 'user: %s\n' "$2" >"$work/agent/provider.yaml"
    : >"$work/agent/provider.key"
    chown "$1" "$work/agent" "$work/agent/provider.yaml"
    chmod "${3:-600}" "$work/agent/provider.yaml"
    timeout 300 "$bin/bourse-provider" run --dir "$work/agent" 2>&1 && fail "an agent without a market goes on"
    stat -c %U "$work/agent" >"$work/owner"
}
refusal='belongs to another than that user or root'

out=$(said bourse nobody)
[[ $out == *"$refusal"* ]] || fail "the agent's user named another: $out"
[ "$(cat "$work/owner")" = bourse ] || fail "the folder was given away before the refusal"
out=$(said bourse bourse)
[[ $out != *"$refusal"* ]] || fail "its own user was refused: $out"
out=$(said root nobody)
[[ $out != *"$refusal"* ]] || fail "root's word was refused: $out"
[ "$(cat "$work/owner")" = nobody ] || fail "root's config named nobody, the folder is $(cat "$work/owner")'s"
for mode in 666 620; do
    out=$(said root nobody "$mode")
    [[ $out == *"others may write the file"*"chmod go-w"* ]] || fail "mode $mode names a user: $out"
    [ "$(cat "$work/owner")" = root ] || fail "mode $mode: the folder was given away before the refusal"
done

# An empty name is no folder: the current one keeps its owner.
mkdir -m 700 "$work/here"
for command in run probe drain; do
    out=$(cd "$work/here" && timeout 60 "$bin/bourse-provider" "$command" --dir '' 2>&1) &&
        fail "$command takes an empty name"
    [[ $out == *"is empty: look at --dir"* ]] || fail "$command of an empty name says: $out"
done
[ "$(stat -c %U "$work/here")" = root ] || fail "the folder here was given away"
echo ok
