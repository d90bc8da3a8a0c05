#include "broker/core/privileged_acts.h"

#include "formats/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void set_text(struct act *act, const char *text)
{
    (void)snprintf(act->text, sizeof act->text, "%s", text == NULL ? "" : text); /* cut */
}

/* Adds ", most 3.00", or nothing when the bound was not given. */
static void add_bound(char *text, size_t capacity, const char *name, bool is_said, int64_t micro)
{
    char money[UNITS_TEXT_SIZE];
    const size_t used = strlen(text);
    units_money_text(micro, money);
    if (is_said) {
        (void)snprintf(text + used, capacity - used, "%s%s %s", used > 0 ? ", " : "", name, money);
    }
}

/* Writes "least 0.50, most 3.00, notional 0.00: reason", with the bounds that were given. */
static void describe_bands(const struct exchange_bands *bands, const char *reason, struct act *act)
{
    char bounds[4 * UNITS_TEXT_SIZE] = "";
    add_bound(bounds, sizeof bounds, "least", bands->has_least, bands->least_micro);
    add_bound(bounds, sizeof bounds, "most", bands->has_most, bands->most_micro);
    add_bound(bounds, sizeof bounds, "notional", bands->has_notional, bands->notional_micro);
    set_text(act, bounds);
    if (reason != NULL) {
        const size_t used = strlen(act->text);
        (void)snprintf(act->text + used, sizeof act->text - used, ": %s", reason); /* cut */
    }
}

/* Writes "owner lab: reason", or "each its own: reason". */
static void describe_owner(const struct exchange_owner *owner, const char *reason, struct act *act)
{
    const bool is_named = owner->name[0] != '\0';
    const bool has_reason = reason != NULL && reason[0] != '\0';
    (void)snprintf(act->text, sizeof act->text, "%s%s%s%s", is_named ? "owner " : "each its own",
                   owner->name, has_reason ? ": " : "", has_reason ? reason : ""); /* cut */
}

/* Returns false for commands that are no privilege. */
static bool describe(const struct translation *translation, struct act *act)
{
    const struct exchange_command *command = &translation->command;
    const void *body = translation->body;
    switch (command->type) {
    case EXCHANGE_JOIN:
        act->kind = ACT_JOIN;
        act->target = command->join.account;
        set_text(act, command->join.name);
        return true;
    case EXCHANGE_MINT:
        act->kind = ACT_MINT;
        act->target = command->mint.account;
        act->amount_micro = command->mint.amount_micro;
        set_text(act, ((const Bourse__V1__Mint *)body)->note);
        return true;
    case EXCHANGE_INVITE:
        act->kind = ACT_INVITE;
        act->amount_micro = command->invite.credits_micro;
        act->state = command->invite.roles;
        set_text(act, command->invite.name);
        return true;
    case EXCHANGE_FREEZE:
        act->kind = ACT_FREEZE;
        act->target = command->freeze.account;
        act->state = command->freeze.frozen;
        set_text(act, ((const Bourse__V1__Freeze *)body)->reason);
        return true;
    case EXCHANGE_HALT:
        act->kind = ACT_HALT;
        act->state = command->halt.halted;
        set_text(act, ((const Bourse__V1__Halt *)body)->reason);
        return true;
    case EXCHANGE_BANDS:
        act->kind = ACT_BANDS;
        describe_bands(&command->bands, ((const Bourse__V1__SetBands *)body)->reason, act);
        return true;
    case EXCHANGE_OWNER:
        act->kind = ACT_OWNER;
        act->target = command->owner.accounts[0];
        act->state = (uint32_t)command->owner.count;
        describe_owner(&command->owner, ((const Bourse__V1__SetOwner *)body)->reason, act);
        return true;
    case EXCHANGE_GENESIS:
    case EXCHANGE_TICK:
    case EXCHANGE_ADVERTISE:
    case EXCHANGE_ASK:
    case EXCHANGE_CANCEL_ORDER:
    case EXCHANGE_REPLACE:
    case EXCHANGE_STATEMENT:
    case EXCHANGE_RESULTS:
    case EXCHANGE_SUSPECT:
    case EXCHANGE_RETURNED:
    case EXCHANGE_GOODBYE:
    case EXCHANGE_LIMITS:
    case EXCHANGE_EPOCH:
    case EXCHANGE_OUTAGE:
    case EXCHANGE_SUBMIT:
    case EXCHANGE_CANCEL_JOB:
    case EXCHANGE_JUDGE:
        break;
    }
    return false;
}

static bool is_privileged(enum exchange_command_type type)
{
    return type == EXCHANGE_JOIN || type == EXCHANGE_MINT || type == EXCHANGE_INVITE ||
           type == EXCHANGE_FREEZE || type == EXCHANGE_HALT || type == EXCHANGE_BANDS ||
           type == EXCHANGE_OWNER;
}

bool privileged_act_of(const struct group *group, const struct exchange_effect *effect,
                       struct act *ret_act)
{
    if (effect->type != EFFECT_ACCEPT || effect->repeated) {
        return false;
    }
    assert(effect->index >= group->first_command);
    assert(effect->index - group->first_command < group->command_count);
    const struct group_command *command = &group->commands[effect->index - group->first_command];
    if (command->request == NULL) {
        return false; /* a command of the broker itself */
    }
    *ret_act = (struct act){.log_time_ns = command->entry.log_time_ns,
                            .account = command->entry.account,
                            .log_index = effect->index};
    return describe(&command->request->translation, ret_act);
}

bool privileged_acts_in(const struct group *group)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < group->command_count; i++) {
        const struct request *request = group->commands[i].request;
        found = request != NULL && is_privileged(request->translation.command.type);
    }
    return found;
}
