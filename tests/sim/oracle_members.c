/* The oracle watches who becomes a member. An account is opened by the genesis, or by a JOIN with
 * the token of an invitation that stands, with its roles and its credits. The first such JOIN
 * spends the invitation. */
#include "tests/sim/oracle_models.h"

#include "base/sha256.h"
#include "ledger/accounts.h"
#include "protocol/reject.h"

#include <assert.h>
#include <inttypes.h>

void oracle_expects(const struct key32 *key, const struct key32 *transport)
{
    uint32_t place = PUT(oracle.newcomers);
    oracle.newcomers.items[place].key = *key;
    oracle.newcomers.items[place].transport = *transport;
}

static struct seen_newcomer *newcomer_of(const struct key32 *key)
{
    for (uint32_t i = 0; i < oracle.newcomers.count; i++) {
        if (key32_equal(&oracle.newcomers.items[i].key, key)) {
            return &oracle.newcomers.items[i];
        }
    }
    return NULL;
}

bool oracle_joined(const struct key32 *key, uint32_t *ret_account)
{
    const struct seen_newcomer *newcomer = newcomer_of(key);
    *ret_account = newcomer == NULL ? 0 : newcomer->account;
    return *ret_account != 0;
}

const struct key32 *oracle_sender(const struct exchange_command *command)
{
    if (command->account < ACCOUNTS_HERE) {
        return &oracle.transports[command->account];
    }
    const struct seen_newcomer *newcomer =
        command->type == EXCHANGE_JOIN ? newcomer_of(&command->join.account) : NULL;
    return newcomer == NULL ? NULL : &newcomer->transport;
}

static struct seen_invitation *invitation_of(const struct hash32 *token_hash)
{
    for (uint32_t i = 0; i < oracle.invitations.count; i++) {
        if (hash32_equal(&oracle.invitations.items[i].token_hash, token_hash)) {
            return &oracle.invitations.items[i];
        }
    }
    return NULL;
}

bool oracle_invited(const struct id128 *token)
{
    const struct hash32 token_hash = sha256_of(token, sizeof *token);
    return invitation_of(&token_hash) != NULL;
}

static bool stands(const struct seen_invitation *invitation)
{
    return invitation != NULL && !invitation->is_spent &&
           oracle.log_time_ns < invitation->invite.expires_ns;
}

void oracle_on_invite(const struct exchange_command *command)
{
    if (invitation_of(&command->invite.token_hash) != NULL) {
        sim_fail("command %" PRIu64 ": a token is invited twice", oracle.command);
    }
    uint32_t place = PUT(oracle.invitations);
    oracle.invitations.items[place].token_hash = command->invite.token_hash;
    oracle.invitations.items[place].invite = command->invite;
}

/* Returns what the records of this command give to `account`. */
static int64_t given_to(uint32_t account)
{
    int64_t given = 0;
    for (size_t i = 0; i < oracle.effects.count; i++) {
        const struct exchange_effect *effect = &oracle.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_TRANSFER &&
            effect->ledger.credit == account && effect->ledger.debit == ACCOUNT_MINT) {
            given += effect->ledger.amount_micro;
        }
    }
    return given;
}

void oracle_on_account(const struct exchange_command *command, const struct ledger_record *record)
{
    if (command->type == EXCHANGE_GENESIS) {
        return;
    }
    if (command->type != EXCHANGE_JOIN || !key32_equal(&record->owner, &command->join.account)) {
        sim_fail("command %" PRIu64 " opens an account for nobody", oracle.command);
    }
    struct seen_newcomer *newcomer = newcomer_of(&record->owner);
    struct seen_invitation *invitation = invitation_of(&command->join.token_hash);
    if (newcomer == NULL || newcomer->account != 0) {
        sim_fail("command %" PRIu64 ": an account for a stranger, or a second one", oracle.command);
    }
    if (!stands(invitation)) {
        sim_fail("command %" PRIu64 ": an account for an invitation that %s", oracle.command,
                 invitation == NULL ? "nobody wrote" : "is spent or over");
    }
    invitation->is_spent = true;
    assert(record->credit < ACCOUNTS_HERE);
    newcomer->account = record->credit;
    oracle.transports[record->credit] = newcomer->transport;
    if (record->roles != invitation->invite.roles ||
        given_to(record->credit) != invitation->invite.credits_micro) {
        sim_fail("command %" PRIu64 ": account %u has roles %u and %" PRId64
                 ", it was invited to %u and %" PRId64,
                 oracle.command, record->credit, record->roles, given_to(record->credit),
                 invitation->invite.roles, invitation->invite.credits_micro);
    }
    oracle.counts.joined++;
}

/* An invitation that stands is good for whoever is no member yet, unless its JOIN was refused
 * before. */
void oracle_on_refused_join(const struct exchange_command *command,
                            const struct exchange_effect *effect)
{
    uint32_t account;
    if (effect->reject.code == REJECT_INVITATION && !effect->repeated &&
        (stands(invitation_of(&command->join.token_hash)) ||
         oracle_accepted(oracle_joined(&command->join.account, &account) ? account
                                                                         : EXCHANGE_NO_ACCOUNT,
                         &effect->id, &(uint64_t){0}))) {
        sim_fail("command %" PRIu64 ": a JOIN is refused that is good, or was accepted before",
                 oracle.command);
    }
}
