#include "broker/storage/replay.h"

#include "base/cursor.h"
#include "broker/core/translate.h"
#include "broker/rules_known.h"
#include "broker/storage/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool replay_knows_rules(uint32_t rules)
{
    const struct rules_known known = rules_known();
    return rules == 0 || (rules >= known.first && rules <= known.last);
}

void replay_refuse_rules(uint32_t rules, const char *what, struct problem *ret_problem)
{
    const struct rules_known known = rules_known();
    problem_set(ret_problem,
                "RULES: %s under rules %" PRIu32 ", and this bourse-broker, release %s, knows "
                "rules %" PRIu32 " to %" PRIu32 ": %s",
                what, rules, BOURSE_VERSION, known.first, known.last,
                rules > known.last
                    ? "start a newer release, which knows them"
                    : "start and cleanly stop the release before this one once, so that it leaves "
                      "a snapshot, then this one");
}

/* Limits count under the rules that they set. */
static uint32_t rules_of(const struct exchange *exchange, const struct entry_command *entry)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    return entry->kind == ENTRY_LIMITS ? reader_u32(&in) : exchange_rules(exchange);
}

bool replay_allows(const struct exchange *exchange, const struct entry_command *entry,
                   uint64_t index, struct problem *ret_problem)
{
    const uint32_t rules = rules_of(exchange, entry);
    char what[64];
    if (replay_knows_rules(rules)) {
        return true;
    }
    (void)snprintf(what, sizeof what, "the journal is from command %" PRIu64 " on", index);
    replay_refuse_rules(rules, what, ret_problem);
    return false;
}

bool replay_state_agrees(struct exchange *exchange, const struct entry_command *entry)
{
    if (entry->kind != ENTRY_TICK || entry->payload_length != TRANSLATE_STATE_BYTES) {
        return true;
    }
    const struct hash32 state = exchange_state_hash(exchange);
    return memcmp(state.bytes, entry->payload, sizeof state.bytes) == 0;
}

static enum replay_status replay_command(struct exchange *exchange,
                                         const struct entry_command *entry, uint64_t index,
                                         struct exchange_effects *effects,
                                         replay_on_effects *on_effects, void *context,
                                         struct problem *ret_problem)
{
    struct id128 cluster = exchange_cluster(exchange);
    struct translation translation = {0};
    enum replay_status status = REPLAY_WRONG;
    if (!replay_allows(exchange, entry, index, ret_problem)) {
        return REPLAY_OTHER_RULES;
    }
    if (!translate_entry(entry, index, &cluster, &translation)) {
        problem_set(ret_problem, "command %" PRIu64 " of the journal cannot be read back", index);
    } else if (!replay_state_agrees(exchange, entry)) {
        problem_set(ret_problem,
                    "before command %" PRIu64 " of the journal the replay has another state than "
                    "the broker that wrote the command",
                    index);
    } else {
        switch (exchange_step(exchange, &translation.command, effects)) {
        case EXCHANGE_OK:
            status = on_effects == NULL || on_effects(context, &translation, effects)
                         ? REPLAY_OK
                         : REPLAY_FAILED;
            break;
        case EXCHANGE_OUT_OF_ORDER:
            problem_set(ret_problem,
                        "command %" PRIu64 " of the journal does not follow the one before", index);
            break;
        case EXCHANGE_OUT_OF_MEMORY:
            problem_set(ret_problem, "out of memory at command %" PRIu64 " of the journal", index);
            status = REPLAY_FAILED;
            break;
        }
    }
    translation_fini(&translation);
    return status;
}

enum replay_status replay_entry(struct exchange *exchange, const void *bytes, size_t length,
                                replay_on_effects *on_effects, void *context,
                                struct problem *ret_problem)
{
    struct entry_head head;
    if (!entry_read_head(bytes, length, &head)) {
        problem_set(ret_problem, "an entry of the journal is not well formed");
        return REPLAY_WRONG;
    }
    struct exchange_effects effects = {0};
    struct entry_command command;
    size_t position = 0;
    uint64_t index = head.first_command;
    enum replay_status status = REPLAY_OK;
    while (status == REPLAY_OK && entry_next(bytes, length, &position, &command)) {
        status =
            replay_command(exchange, &command, index, &effects, on_effects, context, ret_problem);
        exchange_effects_clear(&effects);
        index++;
    }
    exchange_effects_fini(&effects);
    if (status == REPLAY_OK && index != head.first_command + head.count) {
        problem_set(ret_problem,
                    "entry %" PRIu64 " of the journal says %" PRIu32 " commands and has others",
                    head.index, head.count);
        status = REPLAY_WRONG;
    }
    return status;
}
