/* The log itself: only what its account really sent (P23), each id accepted once, log time that
 * keeps pace (D4), and that the log alone leads to the state. */
#include "tests/sim/oracle_models.h"

#include "broker/core/translate.h"
#include "broker/storage/replay.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

#include <inttypes.h>

static struct map_key digest_of(const struct key32 *transport, const struct envelope *envelope)
{
    uint64_t hash = map_hash(transport->bytes, sizeof transport->bytes, 1);
    hash = map_hash(&envelope->type, sizeof envelope->type, hash);
    if (envelope->type != MESSAGE_RESULTS) { /* of which only the body is signed */
        hash = map_hash(envelope->id.bytes, sizeof envelope->id.bytes, hash);
        hash = map_hash(&envelope->created_ms, sizeof envelope->created_ms, hash);
    }
    hash = map_hash(envelope->body, envelope->body_length, hash);
    return map_key_of(&hash, sizeof hash, 0);
}

void oracle_sends(const struct peer *peer, const uint8_t *bytes, size_t length)
{
    struct envelope envelope;
    if (envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK &&
        translate_is_command((enum message_type)envelope.type)) {
        struct map_key key = digest_of(&peer->transport, &envelope);
        map_put(&oracle.genuine, &key, 0);
    }
}

/* P23: nothing is in the log that its account did not send. */
void oracle_check_genuine(const struct entry_command *entry, const struct exchange_command *command)
{
    struct envelope envelope;
    if (envelope_read(entry->payload, entry->payload_length, LIMIT_MESSAGE_BYTES, &envelope) !=
        ENVELOPE_OK) {
        sim_fail("command %" PRIu64 " holds no message", oracle.command + 1);
    }
    const struct key32 *sender = oracle_sender(command);
    if (sender == NULL) {
        sim_fail("command %" PRIu64 ": who is account %u?", oracle.command + 1, entry->account);
    }
    struct map_key key = digest_of(sender, &envelope);
    if (!map_get(&oracle.genuine, &key, NULL)) {
        sim_fail("command %" PRIu64 " (%s) was never sent by account %u", oracle.command + 1,
                 message_name((enum message_type)envelope.type), entry->account);
    }
}

/* D4: log time goes on from the last command, whoever leads, at the pace of a monotonic clock, give
 * or take one in a hundred. A wall clock that jumps moves it no further. */
void oracle_check_log_time(const struct entry_command *entry)
{
    if (entry->kind == ENTRY_GENESIS) {
        oracle.began_ns = world.now_ns;
        oracle.began_log_ns = entry->log_time_ns;
    }
    int64_t passed_ns = world.now_ns - oracle.began_ns;
    int64_t most_ns = oracle.began_log_ns + passed_ns + passed_ns / 100 + SIM_S;
    if (entry->log_time_ns < oracle.log_time_ns) {
        sim_fail("command %" PRIu64 ": log time goes back", oracle.command + 1);
    }
    if (entry->log_time_ns > most_ns) {
        sim_fail("command %" PRIu64 ": log time is %" PRId64 " ms ahead of time",
                 oracle.command + 1, (entry->log_time_ns - most_ns) / SIM_MS);
    }
}

void oracle_on_accept(const struct exchange_effect *effect, const struct exchange_command *command)
{
    uint32_t account = command->account;
    if (command->type == EXCHANGE_JOIN) {
        (void)oracle_joined(&command->join.account,
                            &account); /* its id is kept under the new one */
    }
    struct map_key key = map_key_of(&effect->id, sizeof effect->id, account);
    uint32_t first;
    bool known = map_get(&oracle.accepted, &key, &first);
    if (command->type == EXCHANGE_STATEMENT || command->type == EXCHANGE_RESULTS) {
        return; /* safe to repeat by themselves */
    }
    if (known != effect->repeated) {
        sim_fail("command %" PRIu64 ": the same id is %s", oracle.command,
                 known ? "accepted twice" : "called a repetition, and is none");
    }
    if (known && effect->index != first) {
        sim_fail("command %" PRIu64 ": a repetition is answered with command %" PRIu64
                 ", the first was %u",
                 oracle.command, effect->index, first);
    }
    oracle.counts.repeated += known;
    oracle.counts.accepted++;
    if (!known) {
        map_put(&oracle.accepted, &key, (uint32_t)effect->index);
    }
}

bool oracle_accepted(uint32_t account, const struct id128 *id, uint64_t *ret_index)
{
    struct map_key key = map_key_of(id, sizeof *id, account);
    uint32_t index = 0;
    bool known = map_get(&oracle.accepted, &key, &index);
    *ret_index = index;
    return known;
}

void oracle_keep_entry(const struct journal_entry *entry)
{
    if (entry->index >= oracle.entries_capacity) {
        oracle.entries_capacity = oracle.entries_capacity == 0 ? 1024 : 2 * oracle.entries_capacity;
        oracle.entries = sim_grow(oracle.entries, oracle.entries_capacity * sizeof *oracle.entries);
    }
    uint8_t *bytes = sim_alloc(entry->length);
    memcpy(bytes, entry->bytes, entry->length);
    oracle.entries[entry->index].bytes = bytes;
    oracle.entries[entry->index].length = entry->length;
}

static void replay_from(struct exchange *exchange, uint64_t first, const char *what)
{
    struct problem problem = {.text = ""};
    for (uint64_t i = first; i <= oracle.entry; i++) {
        if (replay_entry(exchange, oracle.entries[i].bytes, oracle.entries[i].length, NULL, NULL,
                         &problem) != REPLAY_OK) {
            sim_fail("%s: %s", what, problem.text);
        }
    }
    struct hash32 state = exchange_state_hash(exchange);
    oracle_compare(oracle.command, &state, what);
    exchange_destroy(&exchange);
}

void oracle_replay_all(void)
{
    struct process *before = process_enter(NULL);
    replay_from(exchange_create(oracle.limits), 1, "replayed from zero");
    if (oracle.snapshot != NULL) {
        struct exchange *exchange =
            exchange_load(oracle.limits, oracle.snapshot, oracle.snapshot_length);
        if (exchange == NULL) {
            sim_fail("the snapshot after entry %" PRIu64 " does not load", oracle.snapshot_entry);
        }
        replay_from(exchange, oracle.snapshot_entry + 1, "snapshot and tail");
    }
    process_leave(before);
}
