#include "broker/core/translate.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "protocol/genesis.h"
#include "protocol/message.h"
#include "protocol/results.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Returns the SHA-256 of type and body, which D7 compares for "same id, other body". */
static struct hash32 body_hash(const struct envelope *envelope)
{
    uint8_t type[2];
    struct writer out = writer_over(type, sizeof type);
    writer_u16(&out, envelope->type);
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, type, sizeof type);
    sha256_add(&hash, envelope->body, envelope->body_length);
    return sha256_end(&hash);
}

void translate_presence(uint32_t account, uint8_t ret_payload[TRANSLATE_PRESENCE_BYTES])
{
    struct writer out = writer_over(ret_payload, TRANSLATE_PRESENCE_BYTES);
    writer_u32(&out, account);
}

/* ---------------------------------------------------------------- small parts */

static enum reject_code refuse(struct codec_error *error, enum reject_code code, const char *field,
                               int64_t value, int64_t limit)
{
    *error = (struct codec_error){.value = value, .limit = limit};
    (void)snprintf(error->field, sizeof error->field, "%s", field); /* our own names fit */
    return code;
}

/* Names of the exchange are shorter than those of the wire. The cut is between characters. */
static void copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *wire)
{
    size_t length = wire == NULL ? 0 : strlen(wire);
    if (length >= EXCHANGE_NAME_SIZE) {
        length = EXCHANGE_NAME_SIZE - 1;
        while (length > 0 && ((unsigned char)wire[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memset(ret_name, 0, EXCHANGE_NAME_SIZE); /* the state hash covers the whole field */
    if (length > 0) {
        memcpy(ret_name, wire, length);
    }
}

static bool ms_to_ns(int64_t ms, int64_t *ret_ns)
{
    return ms >= 0 && checked_mul(ms, NS_PER_MS, ret_ns);
}

static enum reject_code bad_time(struct codec_error *error, const char *field, int64_t ms)
{
    return refuse(error, REJECT_MALFORMED, field, ms, INT64_MAX / NS_PER_MS);
}

/* ---------------------------------------------------------------- accounts and operator */

static enum reject_code from_join(const Bourse__V1__Join *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_JOIN;
    command->join.account = codec_key(wire->account);
    /* The journal keeps the token inside the envelope; mostly the token is spent by then. */
    command->join.token_hash = sha256_of(wire->token.data, wire->token.len);
    copy_name(command->join.name, wire->name);
    return REJECT_NONE;
}

static enum reject_code from_mint(const Bourse__V1__Mint *wire, struct exchange_command *command)
{
    command->type = EXCHANGE_MINT;
    command->mint.account = codec_key(wire->account);
    command->mint.amount_micro = wire->amount_micro;
    return REJECT_NONE;
}

static enum reject_code from_invite(const Bourse__V1__InviteCreate *wire,
                                    struct exchange_command *command, struct codec_error *error)
{
    command->type = EXCHANGE_INVITE;
    command->invite.token_hash = codec_hash(wire->token_hash);
    command->invite.roles = wire->roles;
    command->invite.credits_micro = wire->credits_micro;
    copy_name(command->invite.name, wire->name);
    if (!ms_to_ns(wire->expires_ms, &command->invite.expires_ns)) {
        return bad_time(error, "expires_ms", wire->expires_ms);
    }
    return REJECT_NONE;
}

static enum reject_code from_freeze(const Bourse__V1__Freeze *wire,
                                    struct exchange_command *command)
{
    command->type = EXCHANGE_FREEZE;
    command->freeze.account = codec_key(wire->account);
    command->freeze.frozen = wire->frozen;
    return REJECT_NONE;
}

static enum reject_code from_bands(const Bourse__V1__SetBands *wire,
                                   struct exchange_command *command)
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

static enum reject_code from_owner(const Bourse__V1__SetOwner *wire, struct translation *ret)
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
    copy_name(ret->command.owner.name, wire->name);
    return REJECT_NONE;
}

static enum reject_code from_judge(const Bourse__V1__JudgeResult *wire,
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

/* ---------------------------------------------------------------- provider */

static enum reject_code from_advertise(const Bourse__V1__Advertise *wire, struct translation *ret)
{
    struct exchange_device *devices = arena_take(&ret->arena, wire->n_devices, sizeof *devices);
    if (devices == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_devices; i++) {
        const Bourse__V1__Device *from = wire->devices[i];
        /* The instrument is one attribute more, so a requirement may name it like any other. */
        struct attribute *attributes =
            arena_take(&ret->arena, from->n_attributes + 1, sizeof *attributes);
        if (attributes == NULL) {
            return REJECT_BUSY;
        }
        size_t count = 0;
        bool names_instrument = false;
        for (size_t k = 0; k < from->n_attributes; k++) {
            codec_attribute_from_wire(from->attributes[k], &attributes[count]);
            names_instrument =
                names_instrument || strcmp(attributes[count].name, "instrument") == 0;
            count++;
        }
        if (!names_instrument) {
            struct attribute *instrument = &attributes[count++];
            (void)snprintf(instrument->name, sizeof instrument->name, "instrument");
            instrument->is_text = true;
            (void)snprintf(instrument->text, sizeof instrument->text, "%s",
                           from->instrument); /* the codec has checked the length */
        }
        devices[i].device = codec_id(from->device);
        devices[i].slots = from->slots;
        devices[i].attributes = attributes;
        devices[i].attribute_count = count;
        copy_name(devices[i].label, from->label);
    }
    ret->command.type = EXCHANGE_ADVERTISE;
    ret->command.advertise =
        (struct exchange_advertise){.devices = devices, .count = wire->n_devices};
    return REJECT_NONE;
}

/* Refuses numbers that do not fit the exchange's types; the exchange checks the hours. */
static enum reject_code hours_from_wire(const Bourse__V1__AskPlace *wire, struct hours *ret_hours,
                                        struct codec_error *error)
{
    if (wire->n_hours > HOURS_WINDOWS_MOST) {
        return refuse(error, REJECT_LIMIT, "hours", (int64_t)wire->n_hours, HOURS_WINDOWS_MOST);
    }
    ret_hours->count = (uint32_t)wire->n_hours;
    ret_hours->offset_min = wire->has_offset_min ? wire->offset_min : 0;
    for (size_t i = 0; i < wire->n_hours; i++) {
        const Bourse__V1__AskHours *from = wire->hours[i];
        if (from->days > UINT8_MAX || from->from_min > UINT16_MAX || from->till_min > UINT16_MAX) {
            return refuse(error, REJECT_HOURS, "hours", (int64_t)i, HOURS_DAY_MIN);
        }
        ret_hours->windows[i] = (struct hours_window){.days = (uint8_t)from->days,
                                                      .from_min = (uint16_t)from->from_min,
                                                      .till_min = (uint16_t)from->till_min};
    }
    return REJECT_NONE;
}

static enum reject_code from_ask(const Bourse__V1__AskPlace *wire, struct translation *ret,
                                 struct codec_error *error)
{
    struct exchange_command *command = &ret->command;
    struct exchange_ask_account *to = arena_take(&ret->arena, wire->n_to, sizeof *to);
    if (to == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_to; i++) {
        to[i].has_key = wire->to[i]->has_account;
        if (to[i].has_key) {
            to[i].key = codec_key(wire->to[i]->account);
        }
        copy_name(to[i].name, wire->to[i]->name);
    }
    command->type = EXCHANGE_ASK;
    command->ask.device = codec_id(wire->device);
    command->ask.slots = wire->slots;
    command->ask.price_micro = wire->price_micro;
    if (wire->has_good_till_ms && !ms_to_ns(wire->good_till_ms, &command->ask.good_till_ns)) {
        return bad_time(error, "good_till_ms", wire->good_till_ms);
    }
    if (wire->has_max_term_ms && !ms_to_ns(wire->max_term_ms, &command->ask.max_term_ns)) {
        return bad_time(error, "max_term_ms", wire->max_term_ms);
    }
    struct exchange_terms *terms = &command->ask.terms;
    terms->is_interruptible = wire->has_interruptible && wire->interruptible;
    if (wire->has_notice_ms && !ms_to_ns(wire->notice_ms, &terms->notice_ns)) {
        return bad_time(error, "notice_ms", wire->notice_ms);
    }
    if (wire->has_minimum_run_ms && !ms_to_ns(wire->minimum_run_ms, &terms->minimum_run_ns)) {
        return bad_time(error, "minimum_run_ms", wire->minimum_run_ms);
    }
    if (wire->has_daily_ms && !ms_to_ns(wire->daily_ms, &command->ask.daily_ns)) {
        return bad_time(error, "daily_ms", wire->daily_ms);
    }
    command->ask.type =
        wire->has_order_type ? (enum exchange_order_type)wire->order_type : EXCHANGE_LIMIT;
    command->ask.to = to;
    command->ask.to_count = wire->n_to;
    return hours_from_wire(wire, &command->ask.hours, error);
}

static enum reject_code from_statement(const Bourse__V1__Statement *wire, struct translation *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < wire->n_leases; i++) {
        count += wire->leases[i]->n_work == 0 ? 1 : wire->leases[i]->n_work;
    }
    struct exchange_held *held = arena_take(&ret->arena, count, sizeof *held);
    if (held == NULL) {
        return REJECT_BUSY;
    }
    size_t at = 0;
    for (size_t i = 0; i < wire->n_leases; i++) {
        const Bourse__V1__HeldLease *lease = wire->leases[i];
        if (lease->n_work == 0) {
            held[at++] = (struct exchange_held){.lease = lease->lease};
        }
        for (size_t k = 0; k < lease->n_work; k++) {
            held[at++] = (struct exchange_held){.lease = lease->lease,
                                                .index = lease->work[k]->index,
                                                .attempt = lease->work[k]->attempt};
        }
    }
    assert(at == count);
    ret->command.type = EXCHANGE_STATEMENT;
    ret->command.statement = (struct exchange_statement){
        .held = held, .count = count, .as_of_ns = wire->has_as_of_ns ? wire->as_of_ns : 0};
    return REJECT_NONE;
}

static void result_from_wire(const Bourse__V1__Result *wire, ProtobufCBinaryData encoded,
                             struct exchange_result *ret_result)
{
    *ret_result = (struct exchange_result){
        .job = codec_id(wire->job),
        .index = wire->index,
        .attempt = wire->attempt,
        .lease = wire->lease,
        .device = codec_id(wire->device),
        .manifest = codec_hash(wire->manifest),
        .outcome = (uint8_t)wire->outcome,
        .is_simulated = wire->has_simulated && wire->simulated,
        .busy_ns = wire->busy_ns,
        .hash = sha256_of(encoded.data, encoded.len),
        .bytes = encoded.data,
        .length = (uint32_t)encoded.len,
        .lacks_factor = wire->has_lacks_factor && wire->lacks_factor,
        .verdict = (uint8_t)wire->verdict,
        .seed = wire->has_seed ? codec_hash(wire->seed) : (struct hash32){{0}},
    };
}

/* Keeps the outputs for the subtasks that wait for this one, in the form that Work carries. */
static bool keep_given(struct translation *ret, const Bourse__V1__Result *wire,
                       struct exchange_result *result)
{
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    given.index = wire->index;
    given.n_outputs = wire->n_outputs;
    given.outputs = wire->outputs;
    size_t length = bourse__v1__given__get_packed_size(&given);
    assert(length <= UINT32_MAX); /* no longer than the result and an index */
    result->given_length = (uint32_t)length;
    if (length > LIMIT_GIVEN_BYTES) {
        return true;
    }
    uint8_t *bytes = arena_take(&ret->arena, length, 1);
    if (bytes != NULL) {
        (void)bourse__v1__given__pack(&given, bytes); /* as long as measured */
    }
    result->given = bytes;
    return bytes != NULL;
}

/* Files have one order, so equal files give equal checkpoints. */
static bool is_saved_in_order(const Bourse__V1__Saved *saved)
{
    for (size_t i = 1; saved != NULL && i < saved->n_files; i++) {
        if (strcmp(saved->files[i - 1]->name, saved->files[i]->name) >= 0) {
            return false;
        }
    }
    return true;
}

/* Keeps the result's checkpoint as Work carries it, but not its attempt; drops a large one. */
static bool keep_saved(struct translation *ret, const Bourse__V1__Result *wire,
                       struct exchange_result *result)
{
    if (wire->saved == NULL || wire->saved->n_files == 0) {
        return true;
    }
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    saved.n_files = wire->saved->n_files;
    saved.files = wire->saved->files;
    const size_t length = bourse__v1__saved__get_packed_size(&saved);
    if (length > LIMIT_CHECKPOINT_BYTES) {
        return true;
    }
    uint8_t *bytes = arena_take(&ret->arena, length, 1);
    if (bytes != NULL) {
        (void)bourse__v1__saved__pack(&saved, bytes); /* as long as measured */
    }
    result->saved = bytes;
    result->saved_length = (uint32_t)length;
    return bytes != NULL;
}

static bool make_room_for_wire(struct translation *ret, size_t count)
{
    if (!ret->keeps_wire) {
        return true;
    }
    ret->results_wire = arena_take(&ret->arena, count, sizeof(Bourse__V1__Result *));
    ret->results_count = ret->results_wire == NULL ? 0 : (uint32_t)count;
    return ret->results_wire != NULL;
}

/* Takes the result over; frees it where the caller does not keep wire results. */
static void keep_wire(struct translation *ret, size_t position, Bourse__V1__Result **result)
{
    if (ret->results_wire != NULL) {
        ret->results_wire[position] = *result;
        *result = NULL;
    }
    codec_result_free(result);
}

static enum reject_code from_results(const Bourse__V1__Results *wire, const struct id128 *cluster,
                                     struct translation *ret, struct codec_error *error)
{
    assert(wire->n_results <= LIMIT_RESULTS);
    if (wire->n_results == 0) {
        return refuse(error, REJECT_MALFORMED, "results", 0, LIMIT_RESULTS);
    }
    struct exchange_result *results = arena_take(&ret->arena, wire->n_results, sizeof *results);
    struct hash32 *leaves = arena_take(&ret->arena, wire->n_results, sizeof *leaves);
    if (results == NULL || leaves == NULL || !make_room_for_wire(ret, wire->n_results)) {
        return REJECT_BUSY;
    }
    ret->can_store_again = wire->has_can_store_again && wire->can_store_again;
    for (size_t i = 0; i < wire->n_results; i++) {
        Bourse__V1__Result *result = NULL;
        switch (codec_decode_result(wire->results[i].data, wire->results[i].len, &result, error)) {
        case CODEC_OK:
            break;
        case CODEC_OUT_OF_MEMORY:
            return REJECT_BUSY;
        case CODEC_UNKNOWN_TYPE:
        case CODEC_TOO_LARGE:
        case CODEC_MALFORMED:
            return REJECT_MALFORMED;
        }
        bool ours = memcmp(result->cluster.data, cluster->bytes, sizeof cluster->bytes) == 0;
        struct key32 provider = codec_key(result->provider);
        if (i == 0) {
            ret->results_provider = provider;
        }
        bool same_provider = key32_equal(&provider, &ret->results_provider);
        result_from_wire(result, wire->results[i], &results[i]);
        const bool is_ordered = is_saved_in_order(result->saved);
        bool is_kept = keep_given(ret, result, &results[i]) && keep_saved(ret, result, &results[i]);
        keep_wire(ret, i, &result);
        if (!is_kept) {
            return REJECT_BUSY;
        }
        if (!ours) {
            return refuse(error, REJECT_MALFORMED, "results.cluster", (int64_t)i, 0);
        }
        if (!same_provider) {
            return refuse(error, REJECT_MALFORMED, "results.provider", (int64_t)i, 0);
        }
        if (!is_ordered) {
            return refuse(error, REJECT_MALFORMED, "results.saved.files", (int64_t)i, 0);
        }
        leaves[i] = results_leaf(wire->results[i].data, wire->results[i].len);
    }
    ret->results_root = results_root(leaves, wire->n_results);
    ret->results_leaves = leaves;
    ret->results_count = (uint32_t)wire->n_results;
    memcpy(ret->results_signature.bytes, wire->signature.data, sizeof ret->results_signature.bytes);
    ret->command.type = EXCHANGE_RESULTS;
    ret->command.results = (struct exchange_results){.results = results, .count = wire->n_results};
    ret->results = results;
    return REJECT_NONE;
}

/* ---------------------------------------------------------------- consumer */

/* Returns false when a limit is both a cap and a value. */
static bool from_limit(bool has_cap, int64_t cap_micro, const Bourse__V1__Value *value,
                       int64_t *ret_micro, uint32_t *ret_rate)
{
    *ret_micro = value != NULL ? value->micro : has_cap ? cap_micro : -1;
    *ret_rate = value != NULL ? value->rate : RATE_NONE;
    return value == NULL || !has_cap;
}

static enum reject_code from_parts(const Bourse__V1__SubmitJob *wire, struct translation *ret,
                                   struct codec_error *error)
{
    struct exchange_part *parts = arena_take(&ret->arena, wire->n_parts, sizeof *parts);
    struct requirement *needs = arena_take(&ret->arena, wire->n_parts, sizeof *needs);
    if (parts == NULL || needs == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_parts; i++) {
        const Bourse__V1__Part *from = wire->parts[i];
        if (!codec_requirement_from_wire(from->needs, &needs[i])) {
            return refuse(error, REJECT_REQUIREMENT, "parts.needs", 0, REQUIREMENT_NODES_MAX);
        }
        parts[i] = (struct exchange_part){
            .subtasks = from->subtasks,
            .needs = &needs[i],
            .slots = from->slots,
            .at_most = from->at_most,
        };
        if (!from_limit(from->has_cap_micro, from->cap_micro, from->value, &parts[i].cap_micro,
                        &parts[i].rate)) {
            return refuse(error, REJECT_PRICE, "parts.cap_micro", from->cap_micro, 0);
        }
        if (!ms_to_ns(from->limit_ms, &parts[i].limit_ns)) {
            return bad_time(error, "parts.limit_ms", from->limit_ms);
        }
        if (!ms_to_ns(from->term_ms, &parts[i].term_ns)) {
            return bad_time(error, "parts.term_ms", from->term_ms);
        }
        parts[i].expect_ns = from->has_expect_ns ? from->expect_ns : 0;
        if (!from->has_expect_ns && from->has_expect_ms &&
            !ms_to_ns(from->expect_ms, &parts[i].expect_ns)) {
            return bad_time(error, "parts.expect_ms", from->expect_ms);
        }
    }
    ret->command.submit.parts = parts;
    ret->command.submit.part_count = wire->n_parts;
    return REJECT_NONE;
}

/* Lists of the graph stay in the body, which the translation owns. */
static bool from_graph(const Bourse__V1__Graph *wire, struct translation *ret)
{
    struct exchange_graph *graph = arena_take(&ret->arena, 1, sizeof *graph);
    if (graph != NULL) {
        *graph = (struct exchange_graph){
            .rank = wire->rank,
            .rank_count = wire->n_rank,
            .expect_ms = wire->expect_ms,
            .expect_count = wire->n_expect_ms,
            .after_count = wire->after_count,
            .after_count_count = wire->n_after_count,
            .after = wire->after,
            .after_length = wire->n_after,
        };
        ret->command.submit.graph = graph;
    }
    return graph != NULL;
}

static enum reject_code from_submit(const Bourse__V1__SubmitJob *wire, struct translation *ret,
                                    struct codec_error *error)
{
    struct exchange_submit *submit = &ret->command.submit;
    struct requirement *needs = arena_take(&ret->arena, 1, sizeof *needs);
    if (needs == NULL) {
        return REJECT_BUSY;
    }
    if (!codec_requirement_from_wire(wire->needs, needs)) {
        return refuse(error, REJECT_REQUIREMENT, "needs", 0, REQUIREMENT_NODES_MAX);
    }
    if (!from_limit(wire->has_cap_micro, wire->cap_micro, wire->value, &submit->cap_micro,
                    &submit->rate)) {
        return refuse(error, REJECT_PRICE, "cap_micro", wire->cap_micro, 0);
    }
    if (!ms_to_ns(wire->limit_ms, &submit->limit_ns)) {
        return bad_time(error, "limit_ms", wire->limit_ms);
    }
    if (!ms_to_ns(wire->term_ms, &submit->term_ns)) {
        return bad_time(error, "term_ms", wire->term_ms);
    }
    submit->expect_ns = wire->has_expect_ns ? wire->expect_ns : 0;
    if (!wire->has_expect_ns && wire->has_expect_ms &&
        !ms_to_ns(wire->expect_ms, &submit->expect_ns)) {
        return bad_time(error, "expect_ms", wire->expect_ms);
    }
    if (wire->has_good_till_ms && !ms_to_ns(wire->good_till_ms, &submit->good_till_ns)) {
        return bad_time(error, "good_till_ms", wire->good_till_ms);
    }
    submit->type =
        wire->has_order_type ? (enum exchange_order_type)wire->order_type : EXCHANGE_LIMIT;
    ret->command.type = EXCHANGE_SUBMIT;
    copy_name(submit->name, wire->name);
    submit->manifest = codec_hash(wire->manifest);
    submit->subtasks = wire->subtasks;
    submit->budget_micro = wire->budget_micro;
    submit->needs = needs;
    submit->slots = wire->slots;
    submit->at_most = wire->at_most;
    submit->retries = wire->has_retries ? wire->retries : 0;
    submit->crash_limit = wire->has_crash_limit ? wire->crash_limit : EXCHANGE_CRASH_LIMIT;
    submit->has_interruptions = wire->has_interruptions;
    submit->interruptions = wire->has_interruptions ? wire->interruptions : 0;
    submit->has_checkpoints = wire->has_checkpoint && wire->checkpoint;
    /* The wire counts the error that stops the job; the exchange counts those allowed. */
    submit->error_limit =
        wire->has_error_limit && wire->error_limit > 0 ? wire->error_limit - 1 : UINT32_MAX;
    submit->verify = strcmp(wire->verify, "none") == 0    ? EXCHANGE_VERIFY_NONE
                     : strcmp(wire->verify, "cheap") == 0 ? EXCHANGE_VERIFY_CHEAP
                                                          : EXCHANGE_VERIFY_UNKNOWN;
    if (wire->graph != NULL && !from_graph(wire->graph, ret)) {
        return REJECT_BUSY;
    }
    return from_parts(wire, ret, error);
}

static enum reject_code from_replace(const Bourse__V1__OrderReplace *wire,
                                     struct exchange_command *ret_command,
                                     struct codec_error *error)
{
    int64_t limit_micro;
    uint32_t rate;
    if (!from_limit(wire->has_price_micro, wire->price_micro, wire->value, &limit_micro, &rate)) {
        return refuse(error, REJECT_PRICE, "price_micro", wire->price_micro, 0);
    }
    ret_command->type = EXCHANGE_REPLACE;
    ret_command->replace = (struct exchange_replace){
        .order = codec_id(wire->order),
        .part = wire->has_part ? wire->part : EXCHANGE_ANY_PART,
        .has_slots = wire->has_slots,
        .has_price = wire->has_price_micro || wire->value != NULL,
        .has_budget = wire->has_budget_micro,
        .slots = wire->slots,
        .price_micro = limit_micro,
        .rate = rate,
        .budget_micro = wire->budget_micro,
    };
    return REJECT_NONE;
}

/* ---------------------------------------------------------------- entry points */

bool translate_is_command(enum message_type type)
{
    switch ((int)type) {
    case MESSAGE_JOIN:
    case MESSAGE_MINT:
    case MESSAGE_INVITE_CREATE:
    case MESSAGE_FREEZE:
    case MESSAGE_HALT:
    case MESSAGE_SET_BANDS:
    case MESSAGE_SET_OWNER:
    case MESSAGE_JUDGE_RESULT:
    case MESSAGE_ADVERTISE:
    case MESSAGE_ASK_PLACE:
    case MESSAGE_ORDER_CANCEL:
    case MESSAGE_ORDER_REPLACE:
    case MESSAGE_STATEMENT_HELD:
    case MESSAGE_RESULTS:
    case MESSAGE_SUBMIT_JOB:
    case MESSAGE_JOB_CANCEL:
        return true;
    default:
        return false; /* reads, session messages, and what only the broker sends */
    }
}

static enum reject_code command_from_body(enum message_type type, const struct id128 *cluster,
                                          struct translation *ret, struct codec_error *error)
{
    const void *body = ret->body;
    switch ((int)type) {
    case MESSAGE_JOIN:
        return from_join(body, &ret->command);
    case MESSAGE_MINT:
        return from_mint(body, &ret->command);
    case MESSAGE_INVITE_CREATE:
        return from_invite(body, &ret->command, error);
    case MESSAGE_FREEZE:
        return from_freeze(body, &ret->command);
    case MESSAGE_HALT:
        ret->command.type = EXCHANGE_HALT;
        ret->command.halt.halted = ((const Bourse__V1__Halt *)body)->halted;
        return REJECT_NONE;
    case MESSAGE_SET_BANDS:
        return from_bands(body, &ret->command);
    case MESSAGE_SET_OWNER:
        return from_owner(body, ret);
    case MESSAGE_JUDGE_RESULT:
        return from_judge(body, &ret->command);
    case MESSAGE_ADVERTISE:
        return from_advertise(body, ret);
    case MESSAGE_ASK_PLACE:
        return from_ask(body, ret, error);
    case MESSAGE_ORDER_CANCEL:
        ret->command.type = EXCHANGE_CANCEL_ORDER;
        ret->command.cancel_order.order = codec_id(((const Bourse__V1__OrderCancel *)body)->order);
        return REJECT_NONE;
    case MESSAGE_ORDER_REPLACE:
        return from_replace(body, &ret->command, error);
    case MESSAGE_STATEMENT_HELD:
        return from_statement(body, ret);
    case MESSAGE_RESULTS:
        return from_results(body, cluster, ret, error);
    case MESSAGE_SUBMIT_JOB:
        return from_submit(body, ret, error);
    case MESSAGE_JOB_CANCEL:
        ret->command.type = EXCHANGE_CANCEL_JOB;
        ret->command.cancel_job.job = codec_id(((const Bourse__V1__JobCancel *)body)->job);
        return REJECT_NONE;
    default:
        return REJECT_NONE; /* a read needs nothing but its body */
    }
}

enum reject_code translate_message(const struct envelope *envelope, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *ret_error)
{
    assert(ret->body == NULL);
    *ret_error = (struct codec_error){0};
    enum message_type type = (enum message_type)envelope->type;
    switch (codec_decode(type, envelope->body, envelope->body_length, &ret->body, ret_error)) {
    case CODEC_OK:
        break;
    case CODEC_UNKNOWN_TYPE:
        return REJECT_TYPE;
    case CODEC_TOO_LARGE:
        return REJECT_TOO_LARGE;
    case CODEC_MALFORMED:
        return REJECT_MALFORMED;
    case CODEC_OUT_OF_MEMORY:
        return REJECT_BUSY;
    }
    ret->command.id = envelope->id;
    ret->command.created_ms = envelope->created_ms;
    ret->command.body = body_hash(envelope);
    return command_from_body(type, cluster, ret, ret_error);
}

Bourse__V1__Given *translate_given(const struct exchange_given *given)
{
    return bourse__v1__given__unpack(NULL, given->length, given->bytes);
}

Bourse__V1__Saved *translate_saved(const struct exchange_given *saved)
{
    return bourse__v1__saved__unpack(NULL, saved->length, saved->bytes);
}

/* ---------------------------------------------------------------- from the journal */

static bool from_genesis(const struct entry_command *entry, struct translation *ret)
{
    struct genesis genesis;
    if (!genesis_read(entry->payload, entry->payload_length, &genesis)) {
        return false;
    }
    struct exchange_genesis_account *accounts =
        arena_take(&ret->arena, genesis.account_count, sizeof *accounts);
    if (accounts == NULL) {
        return false;
    }
    for (uint16_t i = 0; i < genesis.account_count; i++) {
        accounts[i].key = genesis.accounts[i].key;
        accounts[i].roles = genesis.accounts[i].roles;
        accounts[i].credits_micro = genesis.accounts[i].credits_micro;
        copy_name(accounts[i].name, genesis.accounts[i].name);
    }
    ret->command.type = EXCHANGE_GENESIS;
    ret->command.genesis = (struct exchange_genesis){.cluster = genesis.cluster,
                                                     .fee_ppm = genesis.fee_ppm,
                                                     .price_band_micro = genesis.price_band_micro,
                                                     .accounts = accounts,
                                                     .account_count = genesis.account_count};
    return true;
}

static bool from_presence(const struct entry_command *entry, enum exchange_command_type type,
                          struct translation *ret)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    ret->command.type = type;
    ret->command.provider = reader_u32(&in);
    return reader_finished(&in);
}

void translate_limits(const struct exchange_set_limits *set,
                      uint8_t ret_payload[TRANSLATE_LIMITS_BYTES])
{
    const struct exchange_limits *limits = &set->limits;
    const uint32_t numbers[] = {set->rules,
                                limits->accounts,
                                limits->invitations,
                                limits->jobs,
                                limits->jobs_per_account,
                                limits->asks,
                                limits->leases,
                                limits->attempts,
                                limits->ids_per_account,
                                limits->devices_per_provider,
                                limits->cells_per_account,
                                limits->classes_per_account};
    struct writer out = writer_over(ret_payload, TRANSLATE_LIMITS_BYTES);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        writer_u32(&out, numbers[i]);
    }
    writer_u64(&out, limits->subtasks);
    writer_u64(&out, limits->subtasks_per_account);
    assert(!out.failed && out.position == TRANSLATE_LIMITS_BYTES);
}

static bool from_limits(const struct entry_command *entry, struct translation *ret)
{
    struct exchange_limits *limits = &ret->command.set_limits.limits;
    uint32_t *const numbers[] = {&ret->command.set_limits.rules,
                                 &limits->accounts,
                                 &limits->invitations,
                                 &limits->jobs,
                                 &limits->jobs_per_account,
                                 &limits->asks,
                                 &limits->leases,
                                 &limits->attempts,
                                 &limits->ids_per_account,
                                 &limits->devices_per_provider,
                                 &limits->cells_per_account,
                                 &limits->classes_per_account};
    struct reader in = reader_over(entry->payload, entry->payload_length);
    bool good = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = reader_u32(&in);
        good = good && *numbers[i] > 0;
    }
    limits->subtasks = reader_u64(&in);
    good = good && limits->subtasks > 0;
    /* Entries of earlier programs end here: they had no cap for each account. */
    limits->subtasks_per_account = 0;
    if (reader_left(&in) > 0) {
        limits->subtasks_per_account = reader_u64(&in);
        good = good && limits->subtasks_per_account > 0;
    }
    ret->command.type = EXCHANGE_LIMITS;
    return reader_finished(&in) && good;
}

void translate_epoch(const struct exchange_epoch *epoch, uint8_t ret_payload[TRANSLATE_EPOCH_BYTES])
{
    struct writer out = writer_over(ret_payload, TRANSLATE_EPOCH_BYTES);
    writer_bytes(&out, epoch->commitment.bytes, sizeof epoch->commitment.bytes);
    writer_bytes(&out, epoch->secret.bytes, sizeof epoch->secret.bytes);
    assert(!out.failed && out.position == TRANSLATE_EPOCH_BYTES);
}

static bool from_epoch(const struct entry_command *entry, struct translation *ret)
{
    struct reader in = reader_over(entry->payload, entry->payload_length);
    struct exchange_epoch *epoch = &ret->command.epoch;
    reader_bytes(&in, epoch->commitment.bytes, sizeof epoch->commitment.bytes);
    reader_bytes(&in, epoch->secret.bytes, sizeof epoch->secret.bytes);
    ret->command.type = EXCHANGE_EPOCH;
    return reader_finished(&in);
}

/* Dice come with results and with nothing else. */
static bool from_message(const struct entry_command *entry, const struct id128 *cluster,
                         struct translation *ret)
{
    struct envelope envelope;
    struct codec_error error;
    if (envelope_read(entry->payload, entry->payload_length, LIMIT_MESSAGE_BYTES, &envelope) !=
            ENVELOPE_OK ||
        !translate_is_command((enum message_type)envelope.type) ||
        translate_message(&envelope, cluster, ret, &error) != REJECT_NONE) {
        return false;
    }
    bool is_results = ret->command.type == EXCHANGE_RESULTS;
    if (is_results) {
        ret->command.results.dice = entry->dice;
        for (uint32_t i = 0; i < ret->results_count; i++) {
            ret->results[i].is_missing =
                (entry->verdict & ENTRY_MISSING) != 0 && entry_results_has(&entry->missing, i);
        }
    }
    return is_results == (entry->kind == ENTRY_RESULTS);
}

bool translate_entry(const struct entry_command *entry, uint64_t index, const struct id128 *cluster,
                     struct translation *ret)
{
    bool understood = false;
    switch (entry->kind) {
    case ENTRY_MESSAGE:
    case ENTRY_RESULTS:
        understood = from_message(entry, cluster, ret);
        break;
    case ENTRY_GENESIS:
        understood = from_genesis(entry, ret);
        break;
    case ENTRY_TICK:
        ret->command.type = EXCHANGE_TICK;
        understood = entry->payload_length == 0;
        break;
    case ENTRY_SUSPECT:
        understood = from_presence(entry, EXCHANGE_SUSPECT, ret);
        break;
    case ENTRY_RETURNED:
        understood = from_presence(entry, EXCHANGE_RETURNED, ret);
        break;
    case ENTRY_GOODBYE:
        understood = from_presence(entry, EXCHANGE_GOODBYE, ret);
        break;
    case ENTRY_LIMITS:
        understood = from_limits(entry, ret);
        break;
    case ENTRY_EPOCH:
        understood = from_epoch(entry, ret);
        break;
    }
    ret->command.index = index;
    ret->command.log_time_ns = entry->log_time_ns;
    ret->command.account = entry->account;
    return understood;
}
