#!/usr/bin/env bash
# A terminal on a leased device: keys, window size and Ctrl-C reach the program, its exit status and its cost come back,
# and the user's own terminal is as before, whatever ends it. A broker that starts anew loses no byte. Nobody but the
# job's owner types, and a consumer that is killed frees the lease.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
leaks=yes
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin shell "$1" bourse-audit terminal-user
market_up --credits 100 --slots 2 --programs sh,sleep,stty,cat,tty,bash

# user SIZE NAME [ARGUMENT ...]: plays the script of standard input against `bourse shell`.
user() {
    local size=$1 name=$2
    shift 2
    "$bin/terminal-user" "$size" "$bourse" shell -y --budget 1 "$@" >"$name.out" 2>"$name.err" ||
        fail "$name: $(cat "$name.err")"
}
job_of() { "$bourse" ps last --json >job.json 2>&1 || fail "ps: $(cat job.json)"; }
is_idle() { "$bourse" devices --json >devices.json 2>&1 && ! grep -qE '"leased":[1-9]' devices.json; }
job_is() { job_of && [ "$(field state job.json)" = "$1" ]; }

# A prompt, an echo, the size and its change, the name of the terminal, Ctrl-C, the exit status.
user 91x33 person --limit 10m <<'END'
expect 60 connected
expect 20 $ 
type stty size\r
expect 20 33 91
size 120 40
type stty size\r
expect 20 40 120
type tty\r
expect 20 /dev/pts/
type sleep 1000; echo "rc=$?"\r
run sleep 0.5
type \x03
type echo "end-$((6 * 7))"\r
expect 20 end-42
type cat\r
type hello\r
expect 20 hello
expect 20 hello
type \x04
type echo a-~.-b\r
expect 20 a-~.-b
run sleep 0.2
type stty raw -echo; cat\r
expect 20 cat
run sleep 0.3
type q
expect 20 q
type \r~.
expect 20 you left
end 30 9
modes
END
has "$(cat person.out)" 'credits paid'
until_true 60 is_idle || fail "a lease stays: $(cat devices.json)"

# Ctrl-Z after a tilde, and signals, stop the command. The local shell has no line editing: nobody else sets the terminal
# back. While the command stands, the terminal is as it was, and whatever somebody makes of it then, the command has it
# raw again afterwards, with the new size.
echo "echo \$\$ >'$work/shell.pid'; exec '$bourse' shell -y --budget 1 --limit 10m" >start.sh
command -v dash >/dev/null || skip "no dash to stop the command in"
"$bin/terminal-user" 91x33 env PS1='local: ' ENV= dash -i >stopped.out 2>stopped.err <<END || fail "stopped: $(cat stopped.err)"
expect 20 local: 
modes
type sh start.sh\n
expect 60 connected
expect 20 $ 
type stty size\r
expect 20 33 91
type ~\x1a
expect 60 suspended
expect 60 local: 
modes
size 120 40
type echo "one-\$((6 * 7))"\n
expect 20 one-42
type stty -echo -icrnl; fg\n
expect 20 start.sh
type stty size\r
expect 60 40 120
type sleep 1000; echo "rc=\$?"\r
run sleep 0.5
type \x03
type echo "two-\$((6 * 7))"\r
expect 20 two-42
run kill -TSTP \$(cat shell.pid)
expect 60 suspended
expect 60 local: 
modes
type fg\n
expect 20 start.sh
type echo "three-\$((6 * 7))"\r
expect 60 three-42
run kill -STOP \$(cat shell.pid)
expect 60 local: 
size 70 20
type stty sane; fg\n
expect 20 start.sh
type stty size\r
expect 60 20 70
type \r~.
expect 60 you left
expect 60 local: 
modes
type exit\n
end 30 9
END
# The lease ends while the command is suspended: the user learns when and why, and of no lost broker.
echo "exec '$bourse' shell -y --budget 1 --limit 20s" >short.sh
cat >ended.sh <<END
for i in \$(seq 600); do '$bourse' ps last --json | grep -q '"state":"open"' || exit 0; sleep 0.1; done; exit 1
END
"$bin/terminal-user" 91x33 env PS1='local: ' ENV= dash -i >missed.out 2>missed.err <<END || fail "missed: $(cat missed.err)"
expect 20 local: 
type sh short.sh\n
expect 60 connected
expect 10 $ 
type ~\x1a
expect 10 suspended
expect 10 local: 
run bash ended.sh
type fg\n
expect 60 the lease ended at 20
expect 20 while this command was suspended
expect 20 shell ended (time limit: 
expect 20 credits paid
expect 60 local: 
modes
type exit\n
end 30 1
END
! grep -q 'cannot be reached\|is back' missed.out || fail "a broker was called lost: $(cat missed.out)"
# Without a shell that could go on with it, the command does not stop.
user 80x24 alone --limit 10m <<'END'
expect 60 connected
expect 20 $ 
type ~\x1a
expect 60 suspended
type echo "four-$((6 * 7))"\r
expect 20 four-42
type exit 3\r
end 60 3
modes
END
# Whoever stays away too long finds the shell ended, and pays no more.
"$bin/terminal-user" 91x33 env PS1='local: ' ENV= dash -i >away.out 2>away.err <<END || fail "away: $(cat away.err)"
expect 20 local: 
type sh start.sh\n
expect 60 connected
expect 20 $ 
type ~\x1a
expect 60 suspended
expect 60 local: 
run i=0; until "$bourse" ps last --json | grep -q '"state":"failed"'; do sleep 0.2; i=\$((i + 1)); [ \$i -lt 600 ] || exit 1; done
type fg\n
expect 60 the lease ended at 20
expect 20 shell ended (nobody asked for its terminal for 30 s)
expect 60 local: 
modes
type exit\n
end 30 129
END

# The exit status is the program's, and what it printed last is there.
user 80x24 status -- sh -c 'printf "%s" last-words; exit 7' <<'END'
expect 60 last-words
end 30 7
modes
END
user 80x24 killed -- sh -c 'kill -9 $$' <<'END'
end 60 137
modes
END

# A shell that stands still while its program runs and ends has what was printed afterwards. Its job waits at first, and
# the broker answers its question for output after 5 s: so the shell learns of the job's end before it has asked anew.
printf 'run: [sleep, "1000"]\narray: 1-2\nlimit: 30m\n' >blocker.yaml
blocker=$("$bourse" submit blocker.yaml -y -q --budget 10 2>blocker.err) || fail "blocker: $(cat blocker.err)"
user 80x24 still -- sh -c 'printf "%s" late-words; exit 7' <<END
expect 60 waiting
signal 19
run sleep 6; "$bourse" cancel "$blocker" >cancel.out 2>&1
run i=0; until "$bourse" ps last --json | grep -qE '"state":"(failed|done)"'; do sleep 0.2; i=\$((i + 1)); [ \$i -lt 600 ] || exit 1; done
signal 18
expect 60 late-words
end 30 7
modes
END

# A program may close its terminal before it ends, as cat does. Nobody hangs it up for that.
user 80x24 closes -- sh -c 'echo closing; exec <&- >&- 2>&-; sleep 1; exit 6' <<'END'
expect 60 closing
end 30 6
modes
END

# The echo of a key.
user 80x24 echoes -- cat <<'END'
expect 60 connected
run sleep 0.5
echo 200
type \r\x04
end 30 0
modes
END
median=$(sed -n 's/^echo median \([0-9]*\) us.*/\1/p' echoes.err)
[ -n "$median" ] || fail "no echo was measured: $(cat echoes.err)"
[ "$median" -lt 100000 ] || fail "a key's echo takes $median us"

# Much output is slowed down and stays whole; so is much input.
user 80x24 much -- sh -c 'stty -opost; i=0; while [ $i -lt 20000 ]; do echo "line $i of much"; i=$((i + 1)); done' <<'END'
expect 60 line 19999 of much
end 30 0
END
grep -o 'line [0-9]* of much' much.out | awk '$2 != NR - 1 { print "line", $2, "is the", NR; exit 1 }' >much.bad ||
    fail "output is not whole: $(cat much.bad)"
[ "$(grep -c 'of much' much.out)" -eq 20000 ] || fail "$(grep -c 'of much' much.out) of 20000 lines"

# A pipe: no echo, no raw mode, the end of input ends the shell, and its status is the last command's.
printf 'echo one\ncat\n' | "$bourse" shell -y -q --budget 1 >pipe.out 2>pipe.err || fail "a pipe: $(cat pipe.err)"
has "$(cat pipe.out)" 'one'
! grep -q 'echo one' pipe.out || fail "a pipe's input is echoed: $(cat pipe.out)"
status=0
echo 'exit 5' | "$bourse" shell -y -q --budget 1 >pipe.out 2>pipe.err || status=$?
[ "$status" -eq 5 ] || fail "exit status $status: $(cat pipe.out pipe.err)"

# An input that is empty has its end before the terminal is open, and ends the shell all the same.
"$bourse" shell -y -q --budget 1 --limit 60s </dev/null >pipe.out 2>pipe.err || fail "no input: $? $(cat pipe.out pipe.err)"
printf '' | "$bourse" shell -y -q --budget 1 --limit 60s >pipe.out 2>pipe.err || fail "an empty pipe: $(cat pipe.out pipe.err)"

# A signal ends the command, the job and the raw mode.
for number in 1 15; do
    user 80x24 "signal$number" <<END
expect 60 connected
expect 20 $ 
signal $number
end 30 $((128 + number))
modes
END
    until_true 60 job_is cancelled || fail "signal $number: $(cat job.json)"
done

# The limit is said before its end.
user 80x24 limit --limit 21s <<'END'
expect 60 connected
expect 40 ends this shell in 10.0s
end 60 1
modes
END
has "$(cat limit.out)" 'time limit'

# A broker that starts anew: what was typed and printed meanwhile comes once, and in order.
"$bin/terminal-user" 80x24 "$bourse" shell -y --budget 1 -- sh -c \
    'i=0; while [ $i -lt 400 ]; do echo "tick $i"; i=$((i + 1)); sleep 0.05; done; read -r word; echo "got $word"' \
    >restart.out 2>restart.err <<'END' &
expect 60 tick 20
run touch ticking
expect 120 tick 399
type wo
run sleep 0.2
type rd\r
expect 30 got word
end 60 0
modes
END
ticker=$!
started+=("$ticker")
until_true 60 test -e ticking || fail "nothing ticks: $(cat restart.err)"
broker_kill
ended "$broker" 60 || fail "the broker does not end"
sleep 1 # the shell goes on meanwhile
broker_start
broker_await || fail "the broker does not come back"
wait "$ticker" || fail "restart: $(cat restart.err)"
grep -o 'tick [0-9]*' restart.out | awk '$2 != NR - 1 { print "tick", $2, "is the", NR; exit 1 }' >restart.bad ||
    fail "after the restart: $(cat restart.bad)"

# A program that ends while the broker is away, for longer than its last bytes are kept otherwise: they come all the same.
"$bin/terminal-user" 80x24 "$bourse" shell -y --budget 1 -- sh -c \
    'echo going; sleep 6; printf "%s" parting-words; exit 6' \
    >parting.out 2>parting.err <<'END' &
expect 60 going
run touch parting
expect 120 parting-words
end 60 6
modes
END
parting=$!
started+=("$parting")
until_true 60 test -e parting || fail "nothing goes: $(cat parting.err)"
broker_kill
ended "$broker" 60 || fail "the broker does not end"
sleep 22 # the agent misses the broker, and the program ends, meanwhile
broker_start
broker_await || fail "the broker does not come back"
wait "$parting" || fail "the last bytes: $(cat parting.err parting.out)"

# A consumer that is killed: its program is hung up, and the lease goes back.
"$bin/terminal-user" 80x24 "$bourse" shell -y --budget 1 -- sh -c 'trap "" HUP; while :; do sleep 1; done' \
    >gone.out 2>gone.err <<'END'
expect 60 connected
signal 9
end 10 137
END
until_true 90 job_is failed || fail "the killed consumer's job: $(cat job.json)"
until_true 60 is_idle || fail "the killed consumer's lease stays: $(cat devices.json)"

# A provider that leaves ends the shell, and says so. Its job is not tried again, and costs nothing.
"$bourse" balance --json >before.json || fail "balance: $(cat before.json)"
"$bin/terminal-user" 80x24 "$bourse" shell -y --budget 1 >leaves.out 2>leaves.err <<END || fail "leaves: $(cat leaves.err)"
expect 60 connected
run kill $agent
expect 60 the provider left
end 30 1
modes
END
ended "$agent" 60 || fail "the agent does not leave"
job_is failed || fail "the job of a provider that left: $(cat job.json)"
agent_start "$market/provider"
started+=("$agent")
until_true 60 offered 2 || fail "the agent does not come back"
job_is failed || fail "the job is tried again: $(cat job.json)"
"$bourse" balance --json >balance.json || fail "balance: $(cat balance.json)"
[ "$(number available_micro balance.json)" -eq "$(number available_micro before.json)" ] ||
    fail "what was given back is paid: $(cat before.json balance.json)"

# A provider that is killed: the shell says that its device is lost, and what was held comes back.
"$bin/terminal-user" 80x24 "$bourse" shell -y --budget 1 >lost.out 2>lost.err <<END || fail "lost: $(cat lost.err)"
expect 60 connected
run kill -9 $agent
expect 120 the device was lost
end 60 1
modes
END
until_true 60 job_is cancelled || fail "the lost device's job: $(cat job.json)"
"$bourse" balance --json >balance.json || fail "balance: $(cat balance.json)"
[ "$(number held_micro balance.json)" -eq 0 ] || fail "money is held: $(cat balance.json)"

market_audit
echo "shell: a key's echo within $median us (median of 200): ok in $SECONDS s"
