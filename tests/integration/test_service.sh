#!/usr/bin/env bash
# Both daemons as services: they say when they are ready, that they live, and when they stop. SIGHUP reads their configs
# again, and a config with a fault changes nothing.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin service "$1"
market_up --slots 1

supervise() { # NAME: sets `notify`; what the service of that name says is in NAME.said
    notify=$work/$1.notify
    mkfifo "$work/$1.end"
    "$support/supervisor.pl" "$notify" "$work/$1.said" <>"$work/$1.end" &
    started+=("$!")
    until_true 60 test -S "$notify" || fail "no supervisor for $1"
}
says() { # NAME PATTERN COUNT
    [ "$(grep -cE -- "$2" "$work/$1.said" 2>/dev/null)" -ge "$3" ]
}
must_say() { until_true 60 says "$@" || fail "$1 did not say $2: $(cat "$work/$1.said")"; }
logs() { grep -qE -- "$2" "$work/$1"; }
must_log() { until_true 60 logs "$@" || fail "$1 does not say: $2"; }

# ---------------------------------------------------------------- the broker
kill "$broker"
ended "$broker" 60 || fail "the broker does not end"
supervise broker
broker_start env NOTIFY_SOCKET="$notify" WATCHDOG_USEC=400000
must_say broker '^READY=1$' 1
broker_await || fail "the broker is ready and has no market.yaml"
must_say broker '^WATCHDOG=1$' 3

cp "$market/broker.yaml" before.yaml
echo 'limits: {rate: 4321, rate_anonymous: 12, steps: 5000000, jobs: 777}
heartbeat: 2s' >>"$market/broker.yaml"
kill -HUP "$broker"
must_log broker.log 'in force: limits.rate 5000 -> 4321, limits.rate_anonymous 20 -> 12, limits.steps 4000000 -> 5000000$'
must_log broker.log 'only a restart changes heartbeat, jobs [0-9]+ -> 777$'
cp before.yaml "$market/broker.yaml"
echo 'limits: {rate: many}' >>"$market/broker.yaml"
kill -HUP "$broker"
must_log broker.log 'error SIGHUP: .*broker.yaml:.*nothing was changed'
cp before.yaml "$market/broker.yaml"
kill -HUP "$broker"
must_log broker.log 'in force: limits.rate 4321 -> 5000'
"$bourse" balance >/dev/null || fail "the broker does not answer after SIGHUP"

# ---------------------------------------------------------------- the agent
folder=$market/provider
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
supervise provider
NOTIFY_SOCKET=$notify WATCHDOG_USEC=400000 "$bin/bourse-provider" run --market "$market" >agent.log 2>&1 &
agent=$!
must_say provider '^READY=1$' 1
must_say provider '^WATCHDOG=1$' 3
priced() { # MICRO: an ask at that price stands
    "$bourse" devices --json >devices.json 2>/dev/null && grep -q "\"price_micro\":$1[,}]" devices.json
}
cat "$folder/provider.yaml" >config.before
config() { # LINE...: the config as before, with these lines in the place of such keys
    local line
    cp config.before config.now
    for line; do sed -i "/^${line%%:*}:/d" config.now; done
    printf '%s\n' "$@" >>config.now
    cat config.now >"$folder/provider.yaml"
}
config 'price: 0.37'
kill -HUP "$agent"
must_log agent.log 'info SIGHUP: the config was read again; 1 device is offered on its terms$'
until_true 60 priced 370000 || fail "the new price is not on the market: $(cat devices.json)"
config 'price: 0.41' 'spool: elsewhere'
kill -HUP "$agent"
must_log agent.log 'warning SIGHUP: the config changes the key "spool", and only a restart applies that'
config 'price: 0.41' 'visible: [/usr/share]'
kill -HUP "$agent"
must_log agent.log 'warning SIGHUP: the config changes the key "visible", and only a restart applies that'
config 'price: 0.41' 'processes: 99'
kill -HUP "$agent"
device_waits() { [ "$(grep -c 'the config changes the device ".*", and only a restart' agent.log)" -eq 1 ]; }
until_true 60 device_waits || fail "another size of a device: $(tail -n 3 agent.log)"
config 'price: many'
kill -HUP "$agent"
must_log agent.log 'error SIGHUP: .*provider.yaml:.*; the offer stays as it was$'
priced 370000 || fail "a config with a fault changed the offer: $(cat devices.json)"

"$bourse" run -y -- xz --version >run.log 2>&1 || fail "run: $(cat run.log)"
has "$(cat run.log)" "xz (XZ Utils)"

kill -TERM "$agent"
wait "$agent" || fail "the agent ended with $?"
agent=
must_say provider '^STOPPING=1\|WATCHDOG_USEC=600000000$' 1

# ---------------------------------------------------------------- a key that the supervisor hands over
mkdir -m 700 "$work/credentials"
cp -p "$folder/provider.key" "$work/credentials/provider.key"
chmod 400 "$work/credentials/provider.key"
chmod 500 "$work/credentials"
[ "$(id -u)" -ne 0 ] || chown bourse "$work/credentials"
cp config.before "$folder/provider.yaml"
export CREDENTIALS_DIRECTORY=$work/credentials
expect 1 'provider.key is there, and the service has a credential of that name, too' \
    "$bin/bourse-provider" run --market "$market"
mv "$folder/provider.key" provider.key
"$bin/bourse-provider" run --market "$market" >handed.log 2>&1 &
agent=$!
must_log handed.log 'connected; offering 1 slot'
unset CREDENTIALS_DIRECTORY
kill -TERM "$agent"
wait "$agent" || fail "the agent with a credential ended with $?"
agent=
market_audit
must_say broker '^STOPPING=1\|WATCHDOG_USEC=600000000$' 1

# ---------------------------------------------------------------- the market's keys as credentials
kept=$work/broker-keys
mkdir -m 700 "$kept"
cp -p "$market"/{broker,log,audit}.key "$kept/"
export CREDENTIALS_DIRECTORY=$kept
expect 1 '[.]key is there, and the service has a credential of that name, too' \
    "$bin/bourse-broker" run --dir "$market"
rm "$market"/{broker,log,audit}.key
sed -i 2d "$kept/log.key"
expect 1 'the credential log.key lacks the line "signed"' "$bin/bourse-broker" run --dir "$market"
echo signed >>"$kept/log.key"
mkdir -m 700 "$work/empty"
cp -p "$market/broker.yaml" "$work/empty/"
expect 1 'a credential of that name founds none' "$bin/bourse-broker" run --dir "$work/empty"
broker_start
broker_await || fail "no start with credentials: $(tail -n 3 broker.log)"
unset CREDENTIALS_DIRECTORY
market_audit # which misses no key
"$bin/bourse-broker" backup --with-keys "$market" "$work/copy" >backup.log 2>&1 || fail "backup: $(cat backup.log)"
has "$(cat backup.log)" "without keys"
sed -E 's/^0/x/; s/^[^x]/0/; s/^x/1/' "$market/log.public" >other.public # another first digit
cat other.public >"$market/log.public"
expect 1 'the broker had another key as a credential' "$bin/bourse-broker" audit "$market"
rm "$market/log.public"
expect 1 'the file is missing' "$bin/bourse-broker" audit "$market"
cp -p "$kept"/*.key "$market/"
broker_start
broker_await || fail "no start with key files: $(tail -n 3 broker.log)"
[ ! -e "$market/broker.public" ] || fail "a key file has a public key beside it"
market_audit

# ---------------------------------------------------------------- a broker that is not reached: why, and where
lone=$work/lone
mkdir -m 700 "$lone"
cp provider.key "$lone/provider.key"
chmod 600 "$lone/provider.key"
echo 'slots: 1' >"$lone/provider.yaml"
sed -E 's#^control:.*#control: "tcp://127.0.0.1:1"#; s#^blobs:.*#blobs: "tcp://127.0.0.1:1"#' known.yaml >"$lone/market.yaml"
chmod 600 "$lone/market.yaml"
"$bin/bourse-provider" run --dir "$lone" >lone.log 2>&1 &
agent=$!
must_log lone.log 'warning the broker at tcp://127.0.0.1:1 does not answer: .*refuses connections to port 1.*; trying again$'
expect 6 '127.0.0.1 refuses connections to port 1' "$bin/bourse-provider" earnings --dir "$lone"
kill -TERM "$agent"
wait "$agent" || true # nobody takes its leave
agent=
fire_end
echo ok
