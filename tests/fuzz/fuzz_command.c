/* Commands from the journal's bytes through the exchange, as at replay: no bytes that passed the
 * gateway may reach an assertion, and hash, walk and snapshot agree at the end.
 *
 * A command here: u8 account (255: the broker), u8 kind, u16 length, u32 milliseconds since the one
 * before, payload. The length in an envelope's head is set right, so that bodies may grow. */
#include "base/checked.h"
#include "base/cursor.h"
#include "broker/core/translate.h"
#include "protocol/envelope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH_AT = 48, COMMANDS_MOST = 400 };

struct day {
    struct exchange *exchange;
    struct exchange_effects effects;
    uint64_t index;
    int64_t now_ns;
    uint8_t payload[UINT16_MAX];
};

static bool next_command(struct day *day, struct reader *in, struct entry_command *ret)
{
    uint8_t who = reader_u8(in);
    uint8_t kind = reader_u8(in);
    uint16_t length = reader_u16(in);
    uint32_t passed_ms = reader_u32(in);
    const uint8_t *payload = reader_view(in, length);
    if (in->failed || kind < ENTRY_MESSAGE || kind > ENTRY_RESULTS) {
        return false;
    }
    if (length > 0) {
        memcpy(day->payload, payload, length);
    }
    if ((kind == ENTRY_MESSAGE || kind == ENTRY_RESULTS) && length >= ENVELOPE_HEAD_BYTES) {
        struct writer out = writer_over(day->payload + LENGTH_AT, 4);
        writer_u32(&out, (uint32_t)(length - ENVELOPE_HEAD_BYTES));
    }
    day->now_ns += passed_ms * NS_PER_MS;
    *ret = (struct entry_command){
        .log_time_ns = day->now_ns,
        .account = who < exchange_account_count(day->exchange) ? who : EXCHANGE_NO_ACCOUNT,
        .kind = (enum entry_command_kind)kind,
        .verdict = 1,
        .payload = day->payload,
        .payload_length = length};
    return true;
}

static void apply(struct day *day, const struct entry_command *entry)
{
    struct translation translation = {0};
    struct id128 cluster = exchange_cluster(day->exchange);
    bool is_first = exchange_index(day->exchange) == 0;
    if (is_first == (entry->kind == ENTRY_GENESIS) &&
        translate_entry(entry, day->index + 1, &cluster, &translation)) {
        exchange_effects_clear(&day->effects);
        if (exchange_step(day->exchange, &translation.command, &day->effects) == EXCHANGE_OK) {
            day->index++;
        }
    }
    translation_fini(&translation);
}

static void check_end(struct day *day, const struct exchange_limits *limits)
{
    struct hash32 hash = exchange_state_hash(day->exchange);
    struct hash32 walked = exchange_state_hash_walk(day->exchange);
    assert(hash32_equal(&hash, &walked));
    if (day->index == 0) {
        return;
    }
    size_t length;
    uint8_t *bytes = exchange_save(day->exchange, &length);
    assert(bytes != NULL);
    struct exchange_limits other = *limits; /* where a table puts things must not matter */
    other.table_key[1] = 7;
    struct exchange *again = exchange_load(&other, bytes, length);
    assert(again != NULL);
    struct hash32 loaded = exchange_state_hash(again);
    assert(hash32_equal(&hash, &loaded));
    exchange_destroy(&again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct day day;
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = 256;
    limits.jobs = 64;
    limits.leases = 256;
    limits.cells = 64;
    limits.classes = 64;
    limits.subtasks = 100000;
    day.exchange = exchange_create(&limits);
    day.index = 0;
    day.now_ns = INT64_C(1700000000) * NS_PER_S;
    assert(day.exchange != NULL);
    struct reader in = reader_over(data, size);
    struct entry_command command;
    for (int i = 0; i < COMMANDS_MOST && next_command(&day, &in, &command); i++) {
        apply(&day, &command);
    }
    check_end(&day, &limits);
    exchange_destroy(&day.exchange);
    exchange_effects_fini(&day.effects);
    day.effects = (struct exchange_effects){0};
    return 0;
}
