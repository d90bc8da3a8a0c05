#!/usr/bin/env bash
# A join that fails on the joiner's side loses nothing: folders that are open to others, disks that are full at any
# write, a kill between the broker's answer and the last file. Then the same invitation and key join, and the credits
# are there exactly once. Another key finds the invitation used.
set -u
bin=$(realpath "${1:?usage: test_join.sh BIN}")
bourse=$bin/bourse
agent=$bin/bourse-provider
[ -x "$bin/bourse-broker" ] || { echo "skipped: no bourse-broker"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-join.XXXXXX")
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR
export HOME=$work
broker=
mounted=
finish() {
    [ -z "$broker" ] || { kill "$broker" 2>/dev/null && wait "$broker" || true; }
    [ -z "$mounted" ] || umount "$mounted" || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1

fail() { echo "FAILED: $*" >&2; exit 1; }
# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
# shellcheck source=tests/support/parts.sh
. "$(dirname "$(realpath "$0")")/../support/parts.sh"

mkdir -m 700 market
own=(--key "$work/market/owner.key" --market "$work/market/market.yaml")
key=$("$bourse" key "${own[@]}" 2>/dev/null) || fail "no key"
cat >market/broker.yaml <<END
genesis:
  accounts:
    - {key: "$key", name: operator, roles: [operator, consumer], credits: "1000"}
END
"$bin/bourse-broker" run --dir market 2>broker.log &
broker=$!
until [ -e market/market.yaml ]; do
    kill -0 "$broker" 2>/dev/null || fail "the broker ended: $(cat broker.log)"
    read -rt 0.05 <> <(:) || true
done

invite() { # invite ROLE: one with 20 credits
    "$bourse" admin invite --role "$1" --credits 20 "${own[@]}" 2>invite.log || fail "invite: $(cat invite.log)"
}
accounts() { "$bourse" admin accounts --quiet "${own[@]}" | wc -l; }
has_credits() { # has_credits FOLDER: exactly those of one invitation
    expect 0 'available +20.00' "$bourse" balance --key "$1/consumer.key" --market "$1/market.yaml"
}
# join_as FOLDER INVITATION, provider_in FOLDER INVITATION: commands, for `timeout` runs no functions
printf '#!/bin/sh\nexec "%s" join "$2" --key "$1/consumer.key" --market "$1/market.yaml"\n' "$bourse" >join_as
printf '#!/bin/sh\nexec "%s" join "$2" --dir "$1"\n' "$agent" >provider_in
chmod +x join_as provider_in
PATH=$work:$PATH
is_joined() { # is_joined FOLDER: there is nothing else in it than what belongs there
    [ -s "$1/market.yaml" ] || fail "no market.yaml in $1"
    [ -z "$(find "$1" -name '*.joining' -o -name '.new*')" ] || fail "left behind: $(ls -A "$1")"
}

# ---------------------------------------------------------------- the folder of a broker

for_kurt=$(invite consumer)
cp market/market.yaml before.yaml
for place in "$work/market" "$work/market/market.yaml" "$work/market/other.yaml"; do
    expect 4 'market is the folder of a broker, .*another.*--market' "$bourse" join "$for_kurt" --key "$work/kurt.key" --market "$place"
    ! grep -q 'remove' err || fail "a file of the broker is to be removed: $(cat err)"
done
expect 1 'market is the folder of a broker' "$agent" join "$(invite provider)" --dir "$work/market"
cmp market/market.yaml before.yaml || fail "a join has changed the broker's file"
[ ! -e kurt.key ] && [ ! -e market/provider.key ] && [ ! -e market/other.yaml ] || fail "left by a refused join: $(ls -A . market)"
mkdir -m 700 kurt
expect 0 'consumer' join_as kurt "$for_kurt" # it was not redeemed
expect 4 'kurt/market.yaml exists: .*another place with --market' join_as kurt "$for_kurt"

# ---------------------------------------------------------------- a folder that others may enter

for_mara=$(invite consumer)
mkdir -m 755 mara
expect 2 'chmod 700' join_as mara "$for_mara"
# The key lies well, and the market's file does not.
mkdir -m 700 mara-keys
expect 2 'chmod 700' "$bourse" join "$for_mara" --key "$work/mara-keys/consumer.key" --market "$work/mara/market.yaml"
chmod 700 mara
expect 0 'consumer' "$bourse" join "$for_mara" --key "$work/mara-keys/consumer.key" --market "$work/mara/market.yaml"
mv mara-keys/consumer.key mara/
is_joined mara
has_credits mara
# The same key may ask again, and has what it has; another finds the invitation used.
mv mara/market.yaml mara/before.yaml
expect 0 'this key has redeemed this invitation before' join_as mara "$for_mara"
cmp mara/market.yaml mara/before.yaml || fail "the second answer differs"
has_credits mara
rm mara/market.yaml
expect 0 '"redeemed":true' "$bourse" join "$for_mara" --json --key "$work/mara/consumer.key" --market "$work/mara/market.yaml"
# Another invitation is not used by a key that has an account, and it is good for another key.
unused=$(invite consumer)
rm mara/market.yaml
expect 0 'this invitation was not redeemed for it' join_as mara "$unused"
rm mara/market.yaml
expect 0 '"redeemed":false' "$bourse" join "$unused" --json --key "$work/mara/consumer.key" --market "$work/mara/market.yaml"
has_credits mara
mkdir -m 700 nora
expect 0 'consumer' join_as nora "$unused"
has_credits nora
# One that another key has used: the broker knows it no more, and does not say by whom.
spent=$(invite consumer)
mkdir -m 700 otto
expect 0 'consumer' join_as otto "$spent"
rm mara/market.yaml
expect 0 'whether this invitation was redeemed for it is not known' join_as mara "$spent"
rm mara/market.yaml
expect 0 '"redeemed":null' "$bourse" join "$spent" --json --key "$work/mara/consumer.key" --market "$work/mara/market.yaml"
has_credits mara
mkdir -m 700 thief
expect 4 'INVITATION' join_as thief "$for_mara"
[ -z "$(find thief -name 'market.yaml*')" ] || fail "a refused join left a market: $(ls -A thief)"

for_lab=$(invite provider)
mkdir -m 755 lab
expect 1 'chmod 700' provider_in lab "$for_lab"
chmod 700 lab
expect 0 '' provider_in lab "$for_lab"
is_joined lab
[ -s lab/provider.yaml ] || fail "no provider.yaml"
expect 0 'has redeemed this invitation before' provider_in lab "$for_lab"
unused=$(invite provider)
expect 0 'this invitation was not redeemed for it' provider_in lab "$unused"
mkdir -m 700 lab2
expect 0 'joined' provider_in lab2 "$unused"
spent=$(invite provider)
mkdir -m 700 lab3
expect 0 'joined' provider_in lab3 "$spent"
expect 0 'whether this invitation was redeemed for it is not known' provider_in lab "$spent"
expect 4 'INVITATION|unknown, used' provider_in thief "$for_lab"
[ -z "$(find thief -name 'market.yaml*' -o -name 'provider.*')" ] || fail "a refused join left: $(ls -A thief)"

# ---------------------------------------------------------------- a disk that is full, at every write

mkdir -m 700 disk
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k,mode=700 tmpfs disk 2>/dev/null; then
    mounted=$work/disk
    for who in consumer provider; do
        join=join_as
        [ "$who" = consumer ] || join=provider_in
        refusals=0
        for pages in 0 1 2 3; do
            rm -rf disk/* && invitation=$(invite "$who")
            mkdir -m 700 disk/home
            dd if=/dev/zero of=disk/rest bs=4096 status=none 2>/dev/null
            truncate -s "-$((4096 * pages))" disk/rest
            if timeout 60 "$join" disk/home "$invitation" >out 2>err; then
                is_joined disk/home
            else
                grep -q 'No space left' out err || fail "$who with $pages pages: $(cat out err)"
                refusals=$((refusals + 1))
            fi
            rm -f disk/rest
            [ -e disk/home/market.yaml ] || expect 0 '' "$join" disk/home "$invitation"
            is_joined disk/home
            [ "$who" = provider ] || has_credits disk/home
        done
        [ "$refusals" -ge 2 ] || fail "the disk of the $who was never full where it counts"
    done
    umount "$mounted" && mounted=
else
    left_out full-disk "needs root and mounts"
fi

# ---------------------------------------------------------------- killed at every file that gets its name

if can_trace kills; then
    for who in consumer provider; do
        after=0 # kills when the account was made already
        for when in 1 2 3 4; do
            rm -rf killed && mkdir -m 700 killed && invitation=$(invite "$who")
            before=$(accounts)
            join=join_as
            [ "$who" = consumer ] || join=provider_in
            if LSAN_OPTIONS=detect_leaks=0 strace -f -qq -o /dev/null -e "inject=rename:signal=KILL:when=$when" \
                "$join" killed "$invitation" >out 2>err; then
                break # no file is given its name after that
            fi
            [ ! -e killed/market.yaml ] || fail "$who, rename $when: market.yaml is not the last"
            [ "$(accounts)" -eq "$before" ] || after=$((after + 1))
            made=$(accounts)
            expect 0 '' "$join" killed "$invitation"
            if [ "$made" -gt "$before" ]; then
                grep -q 'has redeemed this invitation before' out err || fail "$who, rename $when: $(cat out err)"
            else
                ! grep -q 'not used\|before' out err || fail "$who, rename $when: $(cat out err)"
            fi
            rm -f killed/.new-* # a write that a kill cut short
            is_joined killed
            [ "$who" = provider ] || has_credits killed
            [ "$(accounts)" -eq $((before + 1)) ] || fail "$who, rename $when: $(accounts) accounts, $before before"
        done
        [ "$after" -ge 1 ] || fail "no kill of the $who between the answer and the last file"
    done
fi
expect 0 'ok' "$bin/bourse-broker" audit "$work/market"
echo ok
