/* One step of the exchange checks a command's id and sender and applies the command. */
#include "exchange/account/invitations.h"
#include "exchange/agenda.h"
#include "exchange/command/apply.h"
#include "exchange/market/market.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/ids.h"
#include "exchange/state/limits.h"
#include "exchange/state/lookup.h"
#include "exchange/state/tracking.h"
#include "exchange/work/juries.h"

static void accept(struct exchange *exchange, uint64_t index, bool repeated)
{
    struct exchange_effect *effect =
        effect_emit(exchange, EFFECT_ACCEPT, exchange->command->account);
    effect->origin = exchange->command->origin;
    effect->id = exchange->command->id;
    effect->index = index;
    effect->repeated = repeated;
}

/* Repeats the earlier answer to the id, or refuses an id that came before with another body. */
static void answer_again(struct exchange *exchange, const struct id_entry *known)
{
    if (!hash32_equal(&known->body, &exchange->command->body)) {
        effect_reject(exchange, XREJECT_ID_REUSED, "id", 0, 0);
    } else if (known->is_refused) {
        const struct exchange_reject *why = &((const struct refused_id *)known)->why;
        effect_reject(exchange, why->code, why->field, why->value, why->limit)->repeated = true;
    } else {
        accept(exchange, known->index, true);
    }
}

static bool is_from_broker(enum exchange_command_type type)
{
    return type == EXCHANGE_GENESIS || type == EXCHANGE_TICK || type == EXCHANGE_SUSPECT ||
           type == EXCHANGE_RETURNED || type == EXCHANGE_GOODBYE || type == EXCHANGE_LIMITS ||
           type == EXCHANGE_EPOCH || type == EXCHANGE_OUTAGE;
}

static void resume_juries(struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        juries_resume(exchange, LIST_ELEMENT(at, struct job, all));
    }
}

static void apply_from_broker(struct exchange *exchange, const struct exchange_command *command)
{
    if (command->type == EXCHANGE_GENESIS) {
        if (!exchange->has_genesis) {
            apply_genesis(exchange, &command->genesis);
        }
    } else if (command->type == EXCHANGE_SUSPECT) {
        apply_suspect(exchange, command->provider);
    } else if (command->type == EXCHANGE_RETURNED) {
        apply_returned(exchange, command->provider);
    } else if (command->type == EXCHANGE_GOODBYE) {
        apply_goodbye(exchange, command->provider);
    } else if (command->type == EXCHANGE_LIMITS &&
               exchange_may_take_rules(exchange, command->set_limits.rules)) {
        limits_restore(exchange, &command->set_limits);
        resume_juries(exchange);
    } else if (command->type == EXCHANGE_EPOCH) {
        apply_epoch(exchange, &command->epoch);
    } else if (command->type == EXCHANGE_OUTAGE) {
        apply_outage(exchange, command->outage_ns);
    }
}

static void apply_message(struct exchange *exchange, const struct exchange_command *command)
{
    switch (command->type) {
    case EXCHANGE_JOIN:
        apply_join(exchange, &command->join);
        break;
    case EXCHANGE_MINT:
        apply_mint(exchange, &command->mint);
        break;
    case EXCHANGE_INVITE:
        apply_invite(exchange, &command->invite);
        break;
    case EXCHANGE_FREEZE:
        apply_freeze(exchange, &command->freeze);
        break;
    case EXCHANGE_HALT:
        apply_halt(exchange, &command->halt);
        break;
    case EXCHANGE_BANDS:
        apply_bands(exchange, &command->bands);
        break;
    case EXCHANGE_OWNER:
        apply_owner(exchange, &command->owner);
        break;
    case EXCHANGE_JUDGE:
        apply_judge(exchange, &command->judge);
        break;
    case EXCHANGE_ADVERTISE:
        apply_advertise(exchange, &command->advertise);
        break;
    case EXCHANGE_ASK:
        apply_ask(exchange, &command->ask);
        break;
    case EXCHANGE_CANCEL_ORDER:
        apply_cancel_order(exchange, &command->cancel_order);
        break;
    case EXCHANGE_REPLACE:
        apply_replace(exchange, &command->replace);
        break;
    case EXCHANGE_STATEMENT:
        apply_statement(exchange, &command->statement);
        break;
    case EXCHANGE_RESULTS:
        apply_results(exchange, &command->results);
        break;
    case EXCHANGE_SUBMIT:
        apply_submit(exchange, &command->submit);
        break;
    case EXCHANGE_CANCEL_JOB:
        apply_cancel_job(exchange, &command->cancel_job);
        break;
    case EXCHANGE_GENESIS:
    case EXCHANGE_TICK:
    case EXCHANGE_SUSPECT:
    case EXCHANGE_RETURNED:
    case EXCHANGE_GOODBYE:
    case EXCHANGE_LIMITS:
    case EXCHANGE_EPOCH:
    case EXCHANGE_OUTAGE:
        break; /* commands of the broker: apply_from_broker */
    }
}

/* A frozen account may still state what it holds and hand in results, because the work was done. */
static bool frozen_may(enum exchange_command_type type)
{
    return type == EXCHANGE_RESULTS || type == EXCHANGE_STATEMENT;
}

static void step_message(struct exchange *exchange, const struct exchange_command *command)
{
    const struct member *member = lookup_sender(exchange);
    bool is_anonymous = member == NULL || command->account < ACCOUNT_FIRST_USER;
    if (is_anonymous && command->type != EXCHANGE_JOIN) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (command->type == EXCHANGE_JOIN && !is_anonymous &&
        !key32_equal(&member->key, &command->join.account)) {
        /* The sender has an account other than this one, so neither account keeps the id. */
        effect_reject(exchange, XREJECT_EXISTS, "account", 0, 0);
        return;
    }
    const bool has_id = ids_keep(command->type);
    if (has_id) {
        const struct id_entry *known = ids_find(exchange);
        if (known != NULL) {
            answer_again(exchange, known);
            return;
        }
    }
    exchange->accept_as = command->account;
    if (member != NULL && member->is_frozen && !frozen_may(command->type)) {
        effect_reject(exchange, XREJECT_FROZEN, "account", 0, 0);
    } else if (!has_id || ids_let_in(exchange)) {
        apply_message(exchange, command);
    }
    if (!exchange->is_rejected) {
        if (has_id) {
            ids_remember(exchange, exchange->accept_as);
        }
        accept(exchange, exchange->index, false);
    } else if (has_id && member != NULL) {
        ids_remember_refusal(exchange);
    }
}

enum exchange_status exchange_step(struct exchange *exchange,
                                   const struct exchange_command *command,
                                   struct exchange_effects *effects)
{
    if (command->index != exchange->index + 1 || command->log_time_ns < exchange->now_ns) {
        return EXCHANGE_OUT_OF_ORDER;
    }
    exchange->index = command->index;
    exchange->now_ns = command->log_time_ns;
    exchange->effects = effects;
    exchange->command = command;
    exchange->is_rejected = false;
    tracking_touch(exchange, &exchange->tracked);

    ids_expire(exchange);
    invitations_expire(exchange);
    agenda_fire(exchange);
    market_run(exchange); /* the command then meets a market at rest */
    if (is_from_broker(command->type)) {
        apply_from_broker(exchange, command);
    } else {
        step_message(exchange, command);
    }
    market_run(exchange);
    effects_flush_reports(exchange);
    agenda_weed(exchange);
    feed_settle(exchange);

    exchange->effects = NULL;
    exchange->command = NULL;
    return exchange->is_out_of_memory ? EXCHANGE_OUT_OF_MEMORY : EXCHANGE_OK;
}
