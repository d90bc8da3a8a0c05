#include "exchange/state/effects.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void free_blocks(struct exchange_effects *effects)
{
    while (effects->blocks != NULL) {
        struct exchange_block *next = effects->blocks->next;
        free(effects->blocks);
        effects->blocks = next;
    }
}

void exchange_effects_clear(struct exchange_effects *effects)
{
    free_blocks(effects);
    effects->count = 0;
}

void exchange_effects_fini(struct exchange_effects *effects)
{
    free_blocks(effects);
    free(effects->items);
    *effects = (struct exchange_effects){0};
}

struct exchange_effect *effect_emit(struct exchange *exchange, enum exchange_effect_type type,
                                    uint32_t account)
{
    struct exchange_effects *effects = exchange->effects;
    if (effects->count == effects->capacity) {
        size_t capacity = effects->capacity == 0 ? 64 : 2 * effects->capacity;
        struct exchange_effect *items = realloc(effects->items, capacity * sizeof *items);
        if (items == NULL) {
            exchange->is_out_of_memory = true;
            exchange->spare = (struct exchange_effect){.type = type, .account = account};
            return &exchange->spare;
        }
        effects->items = items;
        effects->capacity = capacity;
    }
    struct exchange_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof *effect);
    effect->type = type;
    effect->account = account;
    return effect;
}

struct ledger_record *effect_emit_ledger(struct exchange *exchange, enum ledger_kind kind)
{
    struct exchange_effect *effect = effect_emit(exchange, EFFECT_LEDGER, EXCHANGE_NO_ACCOUNT);
    feed_record(exchange);
    effect->ledger.kind = kind;
    effect->ledger.log_index = exchange->index;
    effect->ledger.log_time_ns = exchange->now_ns;
    return &effect->ledger;
}

/* The unit of a refused limit comes from the command, so that a repeated command gets the same
 * answer. */
static enum rate rate_refused(const struct exchange_command *command, const char *field,
                              int64_t value)
{
    uint32_t rate = RATE_NONE;
    if (command->type == EXCHANGE_REPLACE && strcmp(field, "price_micro") == 0) {
        rate = command->replace.rate;
    } else if (command->type == EXCHANGE_SUBMIT && strcmp(field, "cap_micro") == 0) {
        rate = command->submit.rate;
    } else if (command->type == EXCHANGE_SUBMIT && strcmp(field, "parts.cap_micro") == 0) {
        for (size_t i = command->submit.part_count; i-- > 0;) {
            const struct exchange_part *part = &command->submit.parts[i];
            rate = part->cap_micro == value ? part->rate : rate;
        }
    }
    return rate < RATES ? (enum rate)rate : RATE_NONE;
}

const char *effect_copy_reason(struct exchange *exchange, const char *reason)
{
    if (reason == NULL) {
        return NULL;
    }
    const size_t size = strlen(reason) + 1;
    struct exchange_block *block = memory_allocate(exchange, sizeof *block + size);
    if (block == NULL) {
        return NULL;
    }
    block->next = exchange->effects->blocks;
    exchange->effects->blocks = block;
    return memcpy(block + 1, reason, size);
}

/* Returns the operator's reason of a refusal with that code. */
static const char *reason_of(const struct exchange *exchange, uint32_t code)
{
    const struct member *sender = code == XREJECT_FROZEN ? lookup_sender(exchange) : NULL;
    return sender != NULL           ? sender->frozen_why
           : code == XREJECT_HALTED ? exchange->halted_why
                                    : NULL;
}

struct exchange_effect *effect_reject(struct exchange *exchange, uint32_t code, const char *field,
                                      int64_t value, int64_t limit)
{
    struct exchange_effect *effect =
        effect_emit(exchange, EFFECT_REJECT, exchange->command->account);
    effect->origin = exchange->command->origin;
    effect->id = exchange->command->id;
    effect->refused = exchange->command->type;
    effect->rate = rate_refused(exchange->command, field, value);
    effect->reason = effect_copy_reason(exchange, reason_of(exchange, code));
    effect->reject = (struct exchange_reject){.code = code, .value = value, .limit = limit};
    assert(strlen(field) < sizeof effect->reject.field);
    memcpy(effect->reject.field, field, strlen(field));
    exchange->is_rejected = true;
    exchange->rejection = effect->reject;
    return effect;
}

void effect_report_job(struct exchange *exchange, struct job *job)
{
    if (!job->is_reported) {
        job->is_reported = true;
        list_append(&exchange->reports, &job->report);
    }
}

void effects_flush_reports(struct exchange *exchange)
{
    while (!list_empty(&exchange->reports)) {
        struct job *job = LIST_ELEMENT(exchange->reports.next, struct job, report);
        list_remove(&job->report);
        job->is_reported = false;
        effect_emit(exchange, EFFECT_JOB, job->owner)->id = job->id;
    }
}
