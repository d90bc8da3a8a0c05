#!/usr/bin/env bash
# Fails the build when the simulator holds anything in the place of what it is to test.
#
# usage: check_link.sh PROGRAM FOLDER-OF-ROOMS OBJECT...
# Of the pure rooms and of the broker's logic the simulator's own objects may define nothing; of the broker
# only what is the world's: queues between threads, the last word, the commit to a disk. With three brokers it is
# the whole disk of a broker, the calls to etcd's members, and the ports.
set -euo pipefail
program=$1
rooms=$2
shift 2
world='^(queue_[a-z_]+|fatal|fatal_deposed|storage_commit|storage_append|storage_apply|storage_sync_tables|storage_save_space|storage_write_acts)$'

if [ "$(basename "$program")" = sim-cluster ]; then
    world='^(queue_[a-z_]+|fatal|fatal_deposed|storage_[a-z_]+|snapshot_newest|snapshots_(start|apply)|history_mark_look|balance_check|etcd_mark_[a-z_]+|grpc_member_[a-z]+|config_limits_text|broker_open_ports|broker_announce|copy_follower_[a-z]+|membership_[a-z]+|transfer_wish_rank|reader_(start|stop)|trade_history_load)$'
fi

defined() { nm --defined-only --extern-only "$@" 2>/dev/null | awk 'NF == 3 && $2 ~ /[TDBRVW]/ { print $3 }' | sort -u; }
own=$(defined "$@")
declare -A of_room=() # a room's own symbols, read once
room_defines() { # ROOM: sets `symbols`
    [ -n "${of_room[$1]-}" ] || of_room[$1]=$(defined "$rooms/lib$1.a" || true)
    symbols=${of_room[$1]}
}

for room in base protocol matching ledger dispatch planner exchange provider_session consumer_session; do
    room_defines "$room"
    stolen=$(comm -12 <(echo "$own") <(echo "$symbols"))
    if [ -n "$stolen" ]; then
        echo "the simulator defines what lib$room.a is for: $stolen" >&2
        exit 1
    fi
done
room_defines broker
stolen=$(comm -12 <(echo "$own") <(echo "$symbols") | grep -Ev "$world" || true)
if [ -n "$stolen" ]; then
    echo "the simulator defines what libbroker.a is for: $stolen" >&2
    exit 1
fi

in_program=$(defined "$program")
need() { # ROOM SYMBOL...
    local room=$1 symbol
    room_defines "$room"
    shift
    for symbol; do
        if ! grep -qx "$symbol" <(echo "$symbols") || ! grep -qx "$symbol" <(echo "$in_program"); then
            echo "the simulator runs without $symbol of lib$room.a" >&2
            exit 1
        fi
    done
}
need exchange exchange_step exchange_load exchange_save exchange_state_hash
need provider_session agent_session_incoming agent_session_finished agent_session_tick
need consumer_session consumer_session_incoming consumer_session_request
need protocol dialogue_incoming envelope_read codec_decode identity_verify_envelope results_verify
need matching book_match book_match_by_rank
if [ "$(basename "$program")" = sim-cluster ]; then
    need protocol contacts_next_ns
    need broker broker_start_exchange broker_follow replicated_open replicated_follow replicated_lead replicated_append \
        succession_is_due etcd_log_take etcd_calls_run journal_etcd_open standby_start standby_applied group_write_entry trim_step \
        gateway_start core_start committer_start follower_start verify_start release_effects translate_entry
    exit 0
fi
need broker gateway_start core_start committer_start follower_start verify_start release_effects translate_entry \
    presence_next_notice replay_entry entry_write journal_memory_open logtime_stamp privileged_act_of act_log_open act_log_append
