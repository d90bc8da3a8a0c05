#!/usr/bin/env bash
# The broker challenges what devices claim. An honest agent is found in time. One whose profile claims ten times its speed is lowered to
# what it showed, also after the broker was killed and after the agent claimed it again. One that guesses loses its ask for a time.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin challenge "$1" bourse-tensor bourse-audit lying-provider

# Of the device of an account: one figure of its last challenge, or its claim.
challenge() { # ACCOUNT KEY
    "$bourse" devices --json --timeout 5s 2>/dev/null | perl -MJSON::PP -e '
        my ($account, $key) = @ARGV;
        for my $line (<STDIN>) {
            my $all = eval { decode_json($line) } or next;
            for my $device (ref $all eq "ARRAY" ? @$all : @{ $all->{devices} // [$all] }) {
                next if $device->{provider} ne $account;
                my ($claim) = map { $_->{value} } grep { $_->{name} eq "gemm_fp32" } @{ $device->{attributes} };
                print $key eq "claim" ? $claim // 0
                    : $key eq "price" ? $device->{price_micro} // "none" : $device->{challenge}{$key};
            }
        }' "$@"
}
is() { [ "$(challenge "$1" "$2")" = "$3" ]; } # ACCOUNT KEY VALUE
run_agent() { # NAME [PROGRAM]: in the background; its number is in $agent_of
    "${2:-$bin/bourse-provider}" run --dir "$work/$1" >>"agent-$1.log" 2>&1 </dev/null &
    agent_of=$!
    started+=("$agent_of")
}

market_up --credits 10 --slots 1
market_config 'heartbeat: 200ms' 'challenge: 1s'
# ---------------------------------------------------------------- an honest one
until_true 90 is provider outcome ok || fail "the honest agent: $("$bourse" devices --json; cat "$market/provider.log" broker.log)"
"$bourse" devices >devices.txt
has "$(cat devices.txt)" '; challenged 2'
"$bin/bourse-provider" why --dir "$market/provider" >why.txt 2>&1
has "$(cat why.txt)" '(gemm_fp32): ok'
# Whoever buys hears it, too. On a busy machine, the next challenge may find it slow.
counts='"challenged":\{"ok":[01],"lowered":[01],"failed":[01],"claimed":0\}'
expect 0 '^provider +present .* 1 (ok|lowered|failed) *$' "$bourse" providers
expect 0 "$counts" "$bourse" providers --json
printf 'run: [sleep, "1"]\nbudget: 1\n' >any.yaml
expect 0 "by the broker's challenge: 1 (ok|lowered|failed) " "$bourse" quote any.yaml
expect 0 "$counts" "$bourse" quote any.yaml --json
expect 0 '^speed of provider/.*: challenged 2[0-9-]*: [a-z]+' "$bourse" plan any.yaml
expect 0 '"challenge":\{"outcome":"(ok|slow|wrong|unanswered)",' "$bourse" plan any.yaml --json
# ---------------------------------------------------------------- one that claims ten times its speed

agent_join "$work/liar" --name liar <<<'slots: 1'
run_agent liar
until_true 90 is liar outcome ok || fail "the liar, while it was honest: $("$bourse" devices --json)"
kill -TERM "$agent_of"
ended "$agent_of" 60 || fail "the liar does not end"
real=$(sed -n 's/.*"gemm_mflops": \([0-9]*\).*/\1/p' liar/profile.json)
[ "$real" -gt 0 ] || fail "no profile: $(cat liar/profile.json)"
# The start measures less than the file says, and believes the file for seven days.
sed -i "s/\"gemm_mflops\": $real/\"gemm_mflops\": ${real}0/" liar/profile.json
run_agent liar
until_true 60 is liar claim "${real}0" || fail "the false claim is not there: $("$bourse" devices --json)"
is_lowered() {
    local limit claim
    limit=$(challenge liar limit_mflops) claim=$(challenge liar claim)
    [ "${limit:-0}" -gt 0 ] && [ "$claim" -le "$limit" ] && ! is liar price none
}
until_true 200 is_lowered || fail "the false claim stands: $("$bourse" devices --json)"
shown=$(challenge liar limit_mflops) # more as soon as it shows more
[ "$shown" -lt "$((real * 4))" ] || fail "$real Mflop/s were claimed as ${real}0 and lowered to $shown only"
grep -q 'when the broker challenged its speed' agent-liar.log || fail "its owner is not told: $(cat agent-liar.log)"
"$bin/bourse-provider" status --dir "$work/liar" >status.txt 2>&1
has "$(cat status.txt)" 'when the broker challenged its speed'
"$bin/bourse-provider" why --dir "$work/liar" >why.txt 2>&1
has "$(cat why.txt)" 'no ask of a claim above'
"$bourse" devices >devices.txt
has "$(cat devices.txt)" 'lowered to'
expect 0 '^liar +present .* 1 lowered *$' "$bourse" providers
expect 0 "by the broker's challenge: .*[12] lowered" "$bourse" quote any.yaml

# A broker that is killed knows it still, and a start of the agent that claims as much as before gets no ask for it.
kill -TERM "$agent_of"
ended "$agent_of" 60 || fail "the liar does not end"
kill -KILL "$broker"
ended "$broker" 60 || fail "the broker does not end"
broker_start
broker_await || fail "the broker does not start again"
run_agent liar
until_true 90 is_lowered || fail "after the kill: $("$bourse" devices --json)"
has "$(cat agent-liar.log)" 'the broker refused the ask: CHALLENGE: gemm_fp32'
until_true 90 is provider outcome ok || fail "the honest agent after the kill: $("$bourse" devices --json)"

# ---------------------------------------------------------------- one that guesses, and one that never answers

agent_join "$work/guesser" --name guesser <<<'slots: 1'
BOURSE_TEST_LIE=guessing run_agent guesser "$bin/lying-provider"
agent_join "$work/mute" --name mute <<<'slots: 1'
BOURSE_TEST_LIE=mute run_agent mute "$bin/lying-provider"
is_closed() { is "$1" outcome "$2" && is "$1" price none && [ "$(challenge "$1" closed_ms)" -gt 0 ]; }
until_true 90 is_closed guesser wrong || fail "guesses are believed: $("$bourse" devices --json)"
"$bin/bourse-provider" why --dir "$work/guesser" >why.txt 2>&1
has "$(cat why.txt)" 'the answers were wrong; its asks are closed for'
until_true 200 is_closed mute unanswered || fail "silence is believed: $("$bourse" devices --json)"
# Others use this machine, so an honest claim may have been lowered to what it showed meanwhile; it never loses its ask for long.
honest_stands() { ! is provider price none; }
until_true 90 honest_stands || fail "the honest agent lost its ask: $("$bourse" devices --json)"
market_audit
echo "$real Mflop/s claimed as ${real}0 were lowered to $shown: ok"
