/* The audit log (P26): each privileged act that was applied has one record, of whoever did it, in
 * the transaction of its entry, whatever becomes of the broker meanwhile; and each start finds the
 * log that the one before left.
 *
 * The log is the production one (broker/core/act_log.h), over a database in memory that outlives
 * every broker. What a broker writes with an entry counts when that entry is in, and never if it
 * never is: one transaction. */
#include "tests/sim/oracle_models.h"

#include "broker/core/act_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static struct {
    sqlite3 *database;
    struct identity *key;
    struct act_log *acts;
    struct act_log_mark head; /* as HEAD has it */
    uint64_t written;
} audit_log;

static void open_log(bool is_first)
{
    struct problem problem = {.text = ""};
    if (!act_log_open(audit_log.database, is_first ? NULL : &audit_log.head, audit_log.key,
                      &oracle.cluster, &audit_log.acts, &problem)) {
        sim_fail("the audit log does not open: %s", problem.text);
    }
}

static void write_act(const struct act *act)
{
    if (act_log_append(audit_log.acts, act) != ACT_LOG_OK) {
        sim_fail("the audit log takes no record");
    }
    act_log_committed(audit_log.acts);
    audit_log.head = *act_log_mark(audit_log.acts);
    audit_log.written++;
    if (audit_log.head.number != audit_log.written) {
        sim_fail("record %" PRIu64 " of the audit log has number %" PRIu64, audit_log.written,
                 audit_log.head.number);
    }
}

void oracle_serves(void)
{
    struct process *before = process_enter(NULL);
    oracle_follow();
    bool is_first = audit_log.database == NULL;
    if (is_first) {
        static const uint8_t seed[32] = {26};
        audit_log.key = identity_create(seed);
        int code = sqlite3_open(":memory:", &audit_log.database);
        assert(audit_log.key != NULL && code == SQLITE_OK);
    }
    act_log_close(&audit_log.acts);
    open_log(is_first);
    const struct act begun = {.kind = ACT_START,
                              .log_time_ns = oracle.log_time_ns,
                              .account = EXCHANGE_NO_ACCOUNT,
                              .log_index = oracle.command,
                              .target = *identity_key(audit_log.key)};
    write_act(&begun);
    process_leave(before);
}

void oracle_offers_acts(const struct hash32 *chain, const struct act *acts, size_t count)
{
    struct process *before = process_enter(NULL);
    struct map_key key = map_key_of(chain, sizeof *chain, 0);
    uint32_t place = PUT(oracle.offers);
    struct seen_offer *offer = &oracle.offers.items[place];
    offer->count = count;
    offer->acts = sim_alloc((count + 1) * sizeof *acts);
    memcpy(offer->acts, acts, count * sizeof *acts);
    map_put(&oracle.offers.map, &key, place);
    process_leave(before);
}

void oracle_refuses(const struct refusal_count *refused, size_t count, int64_t log_ns)
{
    struct process *before = process_enter(NULL);
    for (size_t i = 0; i < count; i++) {
        if (refused[i].count == 0 || refused[i].code == REJECT_NONE ||
            (refused[i].account != EXCHANGE_NO_ACCOUNT &&
             refused[i].account >= exchange_account_count(oracle.exchange))) {
            sim_fail("a refusal of nothing, or to nobody, is to be recorded");
        }
        const struct act act = {.kind = ACT_REFUSAL,
                                .log_time_ns = log_ns,
                                .account = refused[i].account,
                                .log_index = oracle.command,
                                .code = (uint16_t)refused[i].code,
                                .type = (uint16_t)refused[i].type,
                                .count = refused[i].count};
        write_act(&act);
        oracle.counts.refusals++;
    }
    process_leave(before);
}

/* ---------------------------------------------------------------- what must be there */

void oracle_on_privilege(const struct exchange_command *command)
{
    enum act_kind kind = ACT_START;
    if (command->type == EXCHANGE_JOIN) {
        kind = ACT_JOIN;
    } else if (command->type == EXCHANGE_MINT) {
        kind = ACT_MINT;
    } else if (command->type == EXCHANGE_INVITE) {
        kind = ACT_INVITE;
    } else if (command->type == EXCHANGE_FREEZE) {
        kind = ACT_FREEZE;
    } else if (command->type == EXCHANGE_HALT) {
        kind = ACT_HALT;
    } else if (command->type == EXCHANGE_BANDS) {
        kind = ACT_BANDS;
    } else {
        return;
    }
    uint32_t place = PUT(oracle.privileged);
    oracle.privileged.items[place] =
        (struct seen_privilege){.kind = kind, .account = command->account, .index = oracle.command};
}

void oracle_check_acts(const struct hash32 *chain)
{
    struct map_key key = map_key_of(chain, sizeof *chain, 0);
    uint32_t place;
    if (!map_get(&oracle.offers.map, &key, &place)) {
        sim_fail("entry %" PRIu64 " is in, and no broker wrote it", oracle.entry);
    }
    struct seen_offer *offer = &oracle.offers.items[place];
    if (offer->count != oracle.privileged.count) {
        sim_fail("entry %" PRIu64 " has %u privileged acts, %zu are recorded", oracle.entry,
                 oracle.privileged.count, offer->count);
    }
    for (uint32_t i = 0; i < oracle.privileged.count; i++) {
        const struct seen_privilege *done = &oracle.privileged.items[i];
        const struct act *act = &offer->acts[i];
        if (act->kind != done->kind || act->account != done->account ||
            act->log_index != done->index) {
            sim_fail("command %" PRIu64 " is an act of kind %d of account %u; recorded is %d of "
                     "account %u at command %" PRIu64,
                     done->index, (int)done->kind, done->account, (int)act->kind, act->account,
                     act->log_index);
        }
        write_act(act);
        oracle.counts.acts++;
    }
    oracle.privileged.count = 0;
}
