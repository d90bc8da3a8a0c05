#include "tests/sim/oracle.h"

#include "base/sha256.h"
#include "broker/core/translate.h"
#include "broker/storage/entry.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "tests/sim/oracle_models.h"
#include "tests/support/member_entry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { SNAPSHOT_EVERY = 997 };

struct oracle oracle;

uint32_t oracle_put_item(void **items, uint32_t *count, uint32_t *capacity, size_t size)
{
    if (*count == *capacity) {
        uint32_t grown = *capacity == 0 ? 64 : 2 * *capacity;
        *items = sim_grow(*items, grown * size);
        *capacity = grown;
    }
    memset((char *)*items + *count * size, 0, size);
    return (*count)++;
}

/* ---------------------------------------------------------------- one command */

static void on_record(const struct exchange_command *command, const struct ledger_record *record,
                      const struct exchange_effect *next)
{
    static const char *const kinds[] = {
        "",    "account", "transfer", "hold", "capture", "release", "expire", "fee",  "job",
        "ask", "bid",     "cancel",   "fill", "result",  "settled", "flag",   "held", "epoch"};
    trace("  %s: job %02x%02x, lease %" PRIu64
          ", subtask %u.%u, status %u, outcome %u, price %" PRId64 ", slots %u, amount %" PRId64,
          kinds[record->kind], record->job.bytes[0], record->job.bytes[1], record->lease,
          record->index, record->attempt, record->status, record->outcome, record->price_micro,
          record->slots, record->amount_micro);
    oracle_move_money(record);
    switch (record->kind) {
    case LEDGER_JOB:
        oracle_on_job(command, record);
        break;
    case LEDGER_BID:
        oracle_on_bid(command, record);
        break;
    case LEDGER_HOLD:
        oracle_on_hold(command, record);
        break;
    case LEDGER_ASK:
        oracle_on_ask(command, record);
        break;
    case LEDGER_CANCEL:
        oracle_on_cancel(record);
        break;
    case LEDGER_FILL:
        oracle_on_fill(record, next);
        break;
    case LEDGER_HELD:
        oracle_on_held(command, record);
        break;
    case LEDGER_RESULT:
        oracle_on_result(command, record);
        break;
    case LEDGER_SETTLED:
        oracle_on_settled(record);
        break;
    case LEDGER_ACCOUNT:
        oracle_on_account(command, record);
        break;
    case LEDGER_TRANSFER:
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
    case LEDGER_FEE:
    case LEDGER_FLAG:
    case LEDGER_EPOCH:
        break;
    }
}

static void on_first_accept(const struct exchange_command *command)
{
    if (command->type == EXCHANGE_ADVERTISE) {
        oracle_on_advertise(command);
    } else if (command->type == EXCHANGE_INVITE) {
        oracle_on_invite(command);
    } else if (command->type == EXCHANGE_BANDS) {
        oracle_on_bands(&command->bands);
    }
    oracle_on_privilege(command);
}

static void on_effects(const struct exchange_command *command)
{
    if (command->type == EXCHANGE_GOODBYE) {
        oracle_on_goodbye(command->provider);
    } else if (command->type == EXCHANGE_STATEMENT) {
        oracle.stated_ns[command->account] = oracle.log_time_ns;
    }
    if (command->type == EXCHANGE_OUTAGE) {
        oracle_on_outage(command->outage_ns);
    }
    if (command->type == EXCHANGE_GENESIS) {
        oracle.bands.most_micro = command->genesis.price_band_micro;
    }
    for (size_t i = 0; i < oracle.effects.count; i++) {
        const struct exchange_effect *effect = &oracle.effects.items[i];
        const char *wrong = checks_model_read(&oracle.checks, command, effect);
        if (wrong != NULL) {
            sim_fail("command %" PRIu64 ": %s", oracle.command, wrong);
        }
        switch (effect->type) {
        case EFFECT_ACCEPT:
            oracle_on_accept(effect, command);
            if (!effect->repeated) {
                on_first_accept(command);
            }
            break;
        case EFFECT_REJECT:
            oracle.counts.rejected++;
            if (command->type == EXCHANGE_JOIN) {
                oracle_on_refused_join(command, effect);
            }
            break;
        case EFFECT_LEDGER:
            on_record(command, &effect->ledger, i + 1 < oracle.effects.count ? effect + 1 : NULL);
            break;
        case EFFECT_LEASE_GRANT:
            oracle_on_grant(effect);
            break;
        case EFFECT_LEASE_NOTICE:
            oracle_on_notice(effect);
            break;
        case EFFECT_WITHDRAW:
            oracle_on_withdraw(effect);
            break;
        case EFFECT_LEASE_RENEW:
        case EFFECT_LEASE_END:
            oracle_on_lease_effect(effect);
            break;
        case EFFECT_DISPATCH:
            oracle_on_dispatch(effect);
            break;
        case EFFECT_ACCOUNT:
        case EFFECT_JOB:
        case EFFECT_ASK:
            break;
        }
    }
}

static const char *command_name(const struct entry_command *entry)
{
    static const char *const own[] = {
        [ENTRY_GENESIS] = "genesis",   [ENTRY_TICK] = "tick",       [ENTRY_SUSPECT] = "suspect",
        [ENTRY_RETURNED] = "returned", [ENTRY_GOODBYE] = "goodbye", [ENTRY_LIMITS] = "limits",
        [ENTRY_EPOCH] = "epoch",       [ENTRY_OUTAGE] = "outage"};
    struct envelope envelope;
    bool is_message =
        member_entry(entry) && envelope_read(entry->payload, entry->payload_length,
                                             LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK;
    return is_message ? message_name((enum message_type)envelope.type) : own[entry->kind];
}

static void apply(const struct entry_command *entry)
{
    struct translation translation = {0};
    if (!translate_entry(entry, oracle.command + 1, &oracle.cluster, &translation)) {
        sim_fail("command %" PRIu64 " cannot be read back", oracle.command + 1);
    }
    if (member_entry(entry)) {
        oracle_check_genuine(entry, &translation.command);
    }
    oracle_check_log_time(entry);
    oracle_check_dice(&translation.command);
    trace("command %" PRIu64 " of account %d: %s", oracle.command + 1, (int)entry->account,
          command_name(entry));
    exchange_effects_clear(&oracle.effects);
    if (exchange_step(oracle.exchange, &translation.command, &oracle.effects) != EXCHANGE_OK) {
        sim_fail("command %" PRIu64 " cannot be applied", oracle.command + 1);
    }
    oracle.command++;
    oracle.log_time_ns = entry->log_time_ns;
    if (entry->kind == ENTRY_GENESIS) {
        oracle.cluster = exchange_cluster(oracle.exchange);
    }
    oracle_note_claims(&translation.command);
    on_effects(&translation.command);
    oracle_check_money();
    oracle_check_promises();
    oracle_check_types();
    oracle_look_at_jobs();
    oracle_check_all_bids();
    oracle_check_at_rest();
    oracle_check_state();
    translation_fini(&translation);
}

static void take_entry(const struct journal_entry *entry)
{
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
    if (!entry_read_head(entry->bytes, entry->length, &head) ||
        !hash32_equal(&head.previous, &oracle.chain) || head.index != oracle.entry + 1 ||
        head.first_command != oracle.command + 1) {
        sim_fail("entry %" PRIu64 " does not follow the one before", oracle.entry + 1);
    }
    while (entry_next(entry->bytes, entry->length, &position, &command)) {
        apply(&command);
    }
    oracle.entry++;
    oracle.chain = sha256_of(entry->bytes, entry->length);
    oracle_check_acts(&oracle.chain);
    oracle_keep_entry(entry);
    if (oracle.entry % SNAPSHOT_EVERY == SNAPSHOT_EVERY / 2) {
        free(oracle.snapshot);
        oracle.snapshot = exchange_save(oracle.exchange, &oracle.snapshot_length);
        oracle.snapshot_entry = oracle.entry;
    }
}

void oracle_follow(void)
{
    struct process *before = process_enter(NULL);
    while (oracle.log.last() > oracle.entry) {
        struct journal_entry entry;
        enum journal_status status = oracle.log.next(oracle.entry + 1, &entry);
        if (status == JOURNAL_OK) {
            take_entry(&entry);
        } else if (status != JOURNAL_UNAVAILABLE) {
            sim_fail("the log cannot be read: %s", journal_status_text(status));
        }
    }
    process_leave(before);
}

/* ---------------------------------------------------------------- life, reads */

void oracle_start(const struct oracle_log *log, const struct exchange_limits *limits)
{
    memset(&oracle, 0, sizeof oracle);
    oracle.log = *log;
    oracle.limits = limits;
    oracle.exchange = exchange_create(limits);
    assert(oracle.exchange != NULL);
}

void oracle_knows(uint32_t account, const struct key32 *transport)
{
    assert(account < ACCOUNTS_HERE);
    oracle.transports[account] = *transport;
}

uint64_t oracle_commands(void)
{
    return oracle.command;
}

uint64_t oracle_entries(void)
{
    return oracle.entry;
}

const struct exchange *oracle_exchange(void)
{
    return oracle.exchange;
}

struct oracle_counts oracle_counts(void)
{
    return oracle.counts;
}
