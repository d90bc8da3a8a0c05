#include "broker/core/release.h"

#include "base/checked.h"
#include "broker/answer/wire_view.h"
#include "broker/core/translate.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct release {
    release_send *send;
    void *context;
    size_t run_count;
    size_t run_bytes; /* size of the inputs of the run's work */
    const struct exchange_effect *work[LIMIT_DISPATCH];
};

static bool emit(struct release *release, struct outgoing *outgoing)
{
    if (outgoing == NULL) {
        return false;
    }
    release->send(release->context, outgoing);
    return true;
}

/* ---------------------------------------------------------------- answers */

static struct outgoing *accepted(const struct exchange_effect *effect)
{
    Bourse__V1__Accepted body = BOURSE__V1__ACCEPTED__INIT;
    body.index = effect->index;
    body.has_repeated = effect->repeated;
    body.repeated = effect->repeated;
    struct outgoing *outgoing = outgoing_message(OUTGOING_REPLY, MESSAGE_ACCEPTED, &body.base);
    if (outgoing != NULL) {
        outgoing->session = effect->origin;
        outgoing->id = effect->id;
    }
    return outgoing;
}

/* Returns the type of message that brings a command, or 0 for a command that only the broker
 * makes. */
static enum message_type message_of(enum exchange_command_type command)
{
    switch (command) {
    case EXCHANGE_JOIN:
        return MESSAGE_JOIN;
    case EXCHANGE_MINT:
        return MESSAGE_MINT;
    case EXCHANGE_INVITE:
        return MESSAGE_INVITE_CREATE;
    case EXCHANGE_FREEZE:
        return MESSAGE_FREEZE;
    case EXCHANGE_HALT:
        return MESSAGE_HALT;
    case EXCHANGE_BANDS:
        return MESSAGE_SET_BANDS;
    case EXCHANGE_OWNER:
        return MESSAGE_SET_OWNER;
    case EXCHANGE_JUDGE:
        return MESSAGE_JUDGE_RESULT;
    case EXCHANGE_ADVERTISE:
        return MESSAGE_ADVERTISE;
    case EXCHANGE_ASK:
        return MESSAGE_ASK_PLACE;
    case EXCHANGE_CANCEL_ORDER:
        return MESSAGE_ORDER_CANCEL;
    case EXCHANGE_REPLACE:
        return MESSAGE_ORDER_REPLACE;
    case EXCHANGE_STATEMENT:
        return MESSAGE_STATEMENT_HELD;
    case EXCHANGE_RESULTS:
        return MESSAGE_RESULTS;
    case EXCHANGE_SUBMIT:
        return MESSAGE_SUBMIT_JOB;
    case EXCHANGE_CANCEL_JOB:
        return MESSAGE_JOB_CANCEL;
    case EXCHANGE_GENESIS:
    case EXCHANGE_TICK:
    case EXCHANGE_SUSPECT:
    case EXCHANGE_RETURNED:
    case EXCHANGE_GOODBYE:
    case EXCHANGE_LIMITS:
    case EXCHANGE_EPOCH:
    case EXCHANGE_OUTAGE:
        break;
    }
    return (enum message_type)0;
}

static struct outgoing *rejected(const struct exchange_effect *effect)
{
    const struct exchange_reject *reject = &effect->reject;
    const enum reject_code code = (enum reject_code)reject->code;
    const struct value value = {reject->value, effect->rate};
    struct outgoing *outgoing =
        effect->reason != NULL ? outgoing_reject_reason(effect->origin, &effect->id, code,
                                                        reject->field, effect->reason)
        : code == REJECT_WOULD_TRADE && effect->rate != RATE_NONE
            ? outgoing_reject_value(effect->origin, &effect->id, code,
                                    strncmp(reject->field, "parts.", strlen("parts.")) == 0, &value,
                                    reject->limit)
            : outgoing_reject(effect->origin, &effect->id, code, reject->field, reject->value,
                              reject->limit);
    if (outgoing != NULL) {
        outgoing->account = effect->account;
        outgoing->refused_type = message_of(effect->refused);
    }
    return outgoing;
}

/* ---------------------------------------------------------------- pushes to a provider */

static struct outgoing *push(uint32_t provider, enum message_type type,
                             const ProtobufCMessage *body)
{
    struct outgoing *outgoing = outgoing_message(OUTGOING_PUSH, type, body);
    if (outgoing != NULL) {
        outgoing->account = provider;
    }
    return outgoing;
}

/* Rounds down, so that the agent stops before the broker stops paying. No message may say 0: an
 * agent that restarted is told of its lease again within the grace. */
static int64_t term_ms(int64_t term_ns)
{
    int64_t ms = term_ns / NS_PER_MS;
    return ms > 0 ? ms : 1;
}

static struct outgoing *granted(const struct exchange_effect *effect)
{
    const struct exchange_grant *grant = &effect->grant;
    Bourse__V1__LeaseGrant body = BOURSE__V1__LEASE_GRANT__INIT;
    body.lease = grant->lease;
    body.job = wire_view(&grant->job, sizeof grant->job);
    body.owner = wire_view(&grant->owner, sizeof grant->owner);
    body.device = wire_view(&grant->device, sizeof grant->device);
    body.slots = grant->slots;
    body.slots_per_subtask = grant->width;
    body.price_micro = grant->price_micro;
    body.term_ms = term_ms(grant->term_ns);
    body.manifest = wire_view(&grant->manifest, sizeof grant->manifest);
    body.limit_ms = grant->limit_ns / NS_PER_MS;
    body.has_ask = true;
    body.ask = wire_view(&grant->ask, sizeof grant->ask);
    body.has_checkpoint = grant->has_checkpoints;
    body.checkpoint = grant->has_checkpoints;
    return push(effect->account, MESSAGE_LEASE_GRANT, &body.base);
}

static struct outgoing *renewed(const struct exchange_effect *effect)
{
    Bourse__V1__LeaseRenew body = BOURSE__V1__LEASE_RENEW__INIT;
    body.lease = effect->lease.lease;
    body.term_ms = term_ms(effect->lease.term_ns);
    return push(effect->account, MESSAGE_LEASE_RENEW, &body.base);
}

static struct outgoing *ended(const struct exchange_effect *effect)
{
    Bourse__V1__LeaseEnd body = BOURSE__V1__LEASE_END__INIT;
    body.lease = effect->lease.lease;
    body.reason = effect->lease.reason;
    return push(effect->account, MESSAGE_LEASE_END, &body.base);
}

static struct outgoing *noticed(const struct exchange_effect *effect)
{
    Bourse__V1__LeaseNotice body = BOURSE__V1__LEASE_NOTICE__INIT;
    body.lease = effect->lease.lease;
    body.notice_ms = term_ms(effect->lease.term_ns);
    return push(effect->account, MESSAGE_LEASE_NOTICE, &body.base);
}

static struct outgoing *noted(const struct exchange_effect *effect)
{
    const struct exchange_ask_note *ask = &effect->ask;
    Bourse__V1__AskEvent body = BOURSE__V1__ASK_EVENT__INIT;
    body.device = wire_view(&ask->device, sizeof ask->device);
    body.order = wire_view(&ask->order, sizeof ask->order);
    body.stands = ask->stands;
    body.slots = ask->slots;
    body.price_micro = ask->price_micro;
    body.has_good_till_ms = ask->good_till_ns > 0;
    body.good_till_ms = ask->good_till_ns / NS_PER_MS;
    body.has_max_term_ms = ask->max_term_ns > 0;
    body.max_term_ms = ask->max_term_ns / NS_PER_MS;
    body.has_interruptible = body.has_notice_ms = body.has_minimum_run_ms =
        ask->terms.is_interruptible;
    body.interruptible = ask->terms.is_interruptible;
    body.notice_ms = ask->terms.notice_ns / NS_PER_MS;
    body.minimum_run_ms = ask->terms.minimum_run_ns / NS_PER_MS;
    return push(effect->account, MESSAGE_ASK_EVENT, &body.base);
}

/* ---------------------------------------------------------------- work, in groups */

/* The inputs of the run's work, and the hashes that the blob port must let the agent read. */
struct giving {
    Bourse__V1__Given **given; /* of all works, one after the other; owned */
    size_t count;
    Bourse__V1__Saved *saved[LIMIT_DISPATCH]; /* by work, owned; NULL: the work begins anew */
    struct hash32 *hashes;                    /* of all works, one after the other; owned */
    size_t hash_count;
    size_t hash_ends[LIMIT_DISPATCH]; /* by work */
};

static void giving_fini(struct giving *giving)
{
    for (size_t i = 0; i < giving->count; i++) {
        bourse__v1__given__free_unpacked(giving->given[i], NULL);
    }
    for (size_t i = 0; i < LIMIT_DISPATCH; i++) {
        if (giving->saved[i] != NULL) {
            bourse__v1__saved__free_unpacked(giving->saved[i], NULL);
        }
    }
    free(giving->given);
    free(giving->hashes);
}

static bool add_hashes(struct giving *giving, Bourse__V1__Output *const *files, size_t count)
{
    if (count == 0) {
        return true;
    }
    struct hash32 *larger =
        realloc(giving->hashes, (giving->hash_count + count) * sizeof *giving->hashes);
    if (larger == NULL) {
        return false;
    }
    giving->hashes = larger;
    for (size_t i = 0; i < count; i++) {
        larger[giving->hash_count++] = codec_hash(files[i]->hash);
    }
    return true;
}

static bool give_outputs(struct giving *giving, const struct exchange_work *work,
                         Bourse__V1__Work *item)
{
    item->n_given = work->given_count;
    item->given = work->given_count == 0 ? NULL : &giving->given[giving->count];
    for (uint32_t k = 0; k < work->given_count; k++) {
        Bourse__V1__Given *given = translate_given(&work->given[k]);
        if (given == NULL) {
            return false;
        }
        giving->given[giving->count++] = given;
        if (!add_hashes(giving, given->outputs, given->n_outputs)) {
            return false;
        }
    }
    return true;
}

/* Gives the checkpoint that the work goes on from, if there is one. */
static bool give_saved(struct giving *giving, size_t number, const struct exchange_work *work,
                       Bourse__V1__Work *item)
{
    if (work->saved.length == 0) {
        return true;
    }
    Bourse__V1__Saved *saved = translate_saved(&work->saved);
    giving->saved[number] = saved;
    if (saved == NULL || !add_hashes(giving, saved->files, saved->n_files)) {
        return false;
    }
    saved->has_attempt = true;
    saved->attempt = work->saved_by;
    item->saved = saved;
    return true;
}

static bool give(const struct release *release, struct giving *giving, Bourse__V1__Work *items)
{
    size_t count = 0;
    for (size_t i = 0; i < release->run_count; i++) {
        count += release->work[i]->work.given_count;
    }
    giving->given = count == 0 ? NULL : calloc(count, sizeof(Bourse__V1__Given *));
    bool good = count == 0 || giving->given != NULL;
    for (size_t i = 0; good && i < release->run_count; i++) {
        const struct exchange_work *work = &release->work[i]->work;
        good = give_outputs(giving, work, &items[i]) && give_saved(giving, i, work, &items[i]);
        giving->hash_ends[i] = giving->hash_count;
    }
    return good;
}

/* The right to read goes out first: the agent may ask as soon as it gets the work. */
static bool emit_rights(struct release *release, const struct giving *giving)
{
    bool good = true;
    size_t from = 0;
    for (size_t i = 0; good && i < release->run_count; i++) {
        const size_t length = (giving->hash_ends[i] - from) * sizeof *giving->hashes;
        struct outgoing *outgoing = length == 0 ? NULL : outgoing_create(OUTGOING_GIVEN);
        uint8_t *body = outgoing == NULL ? NULL : malloc(length);
        if (body != NULL) {
            memcpy(body, &giving->hashes[from], length);
            outgoing->account = release->work[i]->account;
            outgoing->lease = release->work[i]->work.lease;
            outgoing->index = release->work[i]->work.index;
            outgoing->body = body;
            outgoing->length = length;
        } else {
            outgoing_destroy(&outgoing);
        }
        good = length == 0 || emit(release, outgoing);
        from = giving->hash_ends[i];
    }
    return good;
}

static bool flush_work(struct release *release)
{
    if (release->run_count == 0) {
        return true;
    }
    struct giving giving = {0};
    Bourse__V1__Work items[LIMIT_DISPATCH];
    Bourse__V1__Work *pointers[LIMIT_DISPATCH];
    for (size_t i = 0; i < release->run_count; i++) {
        const struct exchange_work *work = &release->work[i]->work;
        bourse__v1__work__init(&items[i]);
        items[i].index = work->index;
        items[i].attempt = work->attempt;
        items[i].lane = work->lane;
        items[i].has_urgent = work->is_urgent;
        items[i].urgent = work->is_urgent;
        items[i].has_seed = !hash32_is_zero(&work->seed);
        items[i].seed = wire_view(&work->seed, sizeof work->seed);
        items[i].has_checked = items[i].has_seed;
        items[i].checked = work->checked;
        pointers[i] = &items[i];
    }
    const struct exchange_effect *first = release->work[0];
    struct outgoing *outgoing = NULL;
    if (!give(release, &giving, items) || !emit_rights(release, &giving)) {
        giving_fini(&giving);
        return false;
    }
    if (first->type == EFFECT_DISPATCH) {
        Bourse__V1__Dispatch body = BOURSE__V1__DISPATCH__INIT;
        body.lease = first->work.lease;
        body.n_work = release->run_count;
        body.work = pointers;
        outgoing = push(first->account, MESSAGE_DISPATCH, &body.base);
    } else {
        Bourse__V1__Withdraw body = BOURSE__V1__WITHDRAW__INIT;
        body.lease = first->work.lease;
        body.n_work = release->run_count;
        body.work = pointers;
        outgoing = push(first->account, MESSAGE_WITHDRAW, &body.base);
    }
    release->run_count = 0;
    release->run_bytes = 0;
    giving_fini(&giving);
    return emit(release, outgoing);
}

static size_t given_bytes(const struct exchange_work *work)
{
    enum { GIVEN_HEAD_BYTES = 4 };  /* a tag and a length of at most LIMIT_GIVEN_BYTES */
    enum { SAVED_HEAD_BYTES = 12 }; /* such a head, and the attempt that saved the checkpoint */
    size_t bytes = work->saved.length == 0 ? 0 : work->saved.length + SAVED_HEAD_BYTES;
    for (uint32_t i = 0; i < work->given_count; i++) {
        bytes += work->given[i].length + GIVEN_HEAD_BYTES;
    }
    return bytes;
}

static bool add_work(struct release *release, const struct exchange_effect *effect)
{
    enum { RUN_BYTES = LIMIT_LARGE_BODY_BYTES - 64 * LIMIT_DISPATCH }; /* without the inputs */
    const size_t bytes = given_bytes(&effect->work);
    if (release->run_count > 0) {
        const struct exchange_effect *first = release->work[0];
        bool fits = first->type == effect->type && first->account == effect->account &&
                    first->work.lease == effect->work.lease &&
                    release->run_count < LIMIT_DISPATCH && release->run_bytes + bytes <= RUN_BYTES;
        if (!fits && !flush_work(release)) {
            return false;
        }
    }
    release->work[release->run_count++] = effect;
    release->run_bytes += bytes;
    return true;
}

/* ---------------------------------------------------------------- notes for other threads */

/* Fills the directory's row from an account effect. */
static void fill_account(const struct exchange_effect *effect,
                         struct directory_account *ret_account)
{
    *ret_account = (struct directory_account){.number = effect->account,
                                              .key = effect->opened.key,
                                              .roles = effect->opened.roles,
                                              .frozen = effect->opened.frozen,
                                              .frozen_why = effect->reason};
    static_assert(sizeof ret_account->name == sizeof effect->opened.name, "one size of names");
    memcpy(ret_account->name, effect->opened.name, sizeof ret_account->name);
    /* The system's accounts have no key and no connection, so they keep zeros. */
    (void)identity_transport_of(&effect->opened.key, &ret_account->transport);
}

static struct outgoing *opened(const struct exchange_effect *effect)
{
    struct directory_account account;
    fill_account(effect, &account);
    return outgoing_account(&account);
}

static struct outgoing *serves(const struct exchange_effect *effect)
{
    struct outgoing *outgoing = outgoing_create(OUTGOING_SERVE);
    if (outgoing != NULL) {
        outgoing->account = effect->account;
        outgoing->lease = effect->grant.lease;
        outgoing->job = effect->grant.job;
        outgoing->manifest = effect->grant.manifest;
        outgoing->owner = effect->grant.owner;
        outgoing->owner_number = effect->grant.owner_number;
    }
    return outgoing;
}

static struct outgoing *serves_no_more(const struct exchange_effect *effect)
{
    struct outgoing *outgoing = outgoing_create(OUTGOING_UNSERVE);
    if (outgoing != NULL) {
        outgoing->account = effect->account;
        outgoing->lease = effect->lease.lease;
    }
    return outgoing;
}

unsigned release_names(bool is_taken, unsigned outcome)
{
    return RESULTS_STREAMS | (is_taken ? RESULTS_OUTPUTS : 0U) |
           (outcome == OUTCOME_PREEMPTED ? RESULTS_SAVED : 0U);
}

/* Tells the blob port that the job's owner may read the blobs of a result that is recorded, or is
 * held until its check. A result that was not accepted gives its streams, and its checkpoint. */
static bool names(struct release *release, const struct exchange_effect *effect)
{
    const struct ledger_record *record = &effect->ledger;
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    if (record->kind != LEDGER_RESULT && record->kind != LEDGER_HELD) {
        return true;
    }
    const bool is_taken = record->kind == LEDGER_HELD || record->status == ATTEMPT_ACCEPTED;
    const size_t count = results_blobs(record->result, record->result_length,
                                       release_names(is_taken, record->outcome), hashes);
    if (count == 0) {
        return true;
    }
    struct outgoing *outgoing = outgoing_create(OUTGOING_NAMED);
    uint8_t *body = malloc(count * sizeof *hashes);
    if (outgoing == NULL || body == NULL) {
        outgoing_destroy(&outgoing);
        free(body);
        return false;
    }
    memcpy(body, hashes, count * sizeof *hashes);
    outgoing->account = record->credit;
    outgoing->job = record->job;
    outgoing->body = body;
    outgoing->length = count * sizeof *hashes;
    return emit(release, outgoing);
}

static bool release_one(struct release *release, const struct exchange_effect *effect)
{
    switch (effect->type) {
    case EFFECT_ACCEPT:
        return emit(release, accepted(effect));
    case EFFECT_REJECT:
        return emit(release, rejected(effect));
    case EFFECT_ACCOUNT:
        return emit(release, opened(effect));
    case EFFECT_LEASE_GRANT:
        /* The right to read goes out first: the agent may ask as soon as it gets the lease. */
        return flush_work(release) && emit(release, serves(effect)) &&
               emit(release, granted(effect));
    case EFFECT_LEASE_RENEW:
        return flush_work(release) && emit(release, renewed(effect));
    case EFFECT_LEASE_NOTICE:
        return flush_work(release) && emit(release, noticed(effect));
    case EFFECT_LEASE_END:
        return flush_work(release) && emit(release, ended(effect)) &&
               emit(release, serves_no_more(effect));
    case EFFECT_ASK:
        return flush_work(release) && emit(release, noted(effect));
    case EFFECT_DISPATCH:
    case EFFECT_WITHDRAW:
        return add_work(release, effect);
    case EFFECT_LEDGER:
        return names(release, effect);
    case EFFECT_JOB:
        return true; /* for the committer and the core */
    }
    return true;
}

bool release_effects(const struct exchange_effects *effects, release_send *send, void *context)
{
    struct release release = {.send = send, .context = context};
    for (size_t i = 0; i < effects->count; i++) {
        if (!release_one(&release, &effects->items[i])) {
            return false;
        }
    }
    return flush_work(&release);
}
