/* Messages about members and of the operator become commands here. */
#include "broker/core/translate_internal.h"

#include "base/sha256.h"

enum reject_code translate_join(const Bourse__V1__Join *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_JOIN;
    command->join.account = codec_key(wire->account);
    /* The journal keeps the token inside the envelope; mostly the token is spent by then. */
    command->join.token_hash = sha256_of(wire->token.data, wire->token.len);
    translate_copy_name(command->join.name, wire->name);
    return REJECT_NONE;
}

enum reject_code translate_mint(const Bourse__V1__Mint *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_MINT;
    command->mint.account = codec_key(wire->account);
    command->mint.amount_micro = wire->amount_micro;
    return REJECT_NONE;
}

enum reject_code translate_invite(const Bourse__V1__InviteCreate *wire,
                                  struct exchange_command *command, struct codec_error *error)
{
    command->type = EXCHANGE_INVITE;
    command->invite.token_hash = codec_hash(wire->token_hash);
    command->invite.roles = wire->roles;
    command->invite.credits_micro = wire->credits_micro;
    translate_copy_name(command->invite.name, wire->name);
    if (!translate_ms_to_ns(wire->expires_ms, &command->invite.expires_ns)) {
        return translate_bad_time(error, "expires_ms", wire->expires_ms);
    }
    return REJECT_NONE;
}

enum reject_code translate_freeze(const Bourse__V1__Freeze *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_FREEZE;
    command->freeze.account = codec_key(wire->account);
    command->freeze.frozen = wire->frozen;
    command->freeze.reason = wire->reason;
    return REJECT_NONE;
}

enum reject_code translate_bands(const Bourse__V1__SetBands *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_BANDS;
    command->bands = (struct exchange_bands){
        .has_least = wire->has_least_micro,
        .has_most = wire->has_most_micro,
        .has_notional = wire->has_notional_micro,
        .least_micro = wire->has_least_micro ? wire->least_micro : 0,
        .most_micro = wire->has_most_micro ? wire->most_micro : 0,
        .notional_micro = wire->has_notional_micro ? wire->notional_micro : 0,
    };
    return REJECT_NONE;
}

enum reject_code translate_owner(const Bourse__V1__SetOwner *wire, struct translation *ret)
{
    struct key32 *accounts = arena_take(&ret->arena, wire->n_accounts, sizeof *accounts);
    if (accounts == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_accounts; i++) {
        accounts[i] = codec_key(wire->accounts[i]);
    }
    ret->command.type = EXCHANGE_OWNER;
    ret->command.owner.accounts = accounts;
    ret->command.owner.count = wire->n_accounts;
    translate_copy_name(ret->command.owner.name, wire->name);
    return REJECT_NONE;
}

enum reject_code translate_judge(const Bourse__V1__JudgeResult *wire,
                                 struct exchange_command *command)
{
    command->type = EXCHANGE_JUDGE;
    command->judge = (struct exchange_judge){
        .job = codec_id(wire->job),
        .index = wire->index,
        .attempt = wire->attempt,
        .result = codec_hash(wire->result),
        .seed = codec_hash(wire->seed),
        .verdict = (uint8_t)wire->verdict, /* the codec let no other number in */
    };
    return REJECT_NONE;
}
