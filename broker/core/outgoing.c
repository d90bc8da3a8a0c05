#include "broker/core/outgoing.h"

#include "base/text.h"
#include "broker/core/request.h"
#include "broker/fatal.h"
#include "formats/units.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/roles.h"
#include "protocol/route/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outgoing *outgoing_create(enum outgoing_kind kind)
{
    struct outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing != NULL) {
        outgoing->kind = kind;
    }
    return outgoing;
}

void outgoing_destroy(struct outgoing **self)
{
    struct outgoing *outgoing = *self;
    if (outgoing != NULL) {
        free(outgoing->body);
        free(outgoing);
        *self = NULL;
    }
}

struct outgoing *outgoing_account(const struct directory_account *account)
{
    struct outgoing *outgoing = outgoing_create(OUTGOING_ACCOUNT);
    if (outgoing == NULL) {
        return NULL;
    }
    outgoing->account = account->number;
    outgoing->opened = *account;
    if (account->frozen_why != NULL) {
        outgoing->length = strlen(account->frozen_why) + 1;
        outgoing->body = malloc(outgoing->length);
        if (outgoing->body == NULL) {
            outgoing_destroy(&outgoing);
            return NULL;
        }
        outgoing->opened.frozen_why = memcpy(outgoing->body, account->frozen_why, outgoing->length);
    }
    return outgoing;
}

struct outgoing *outgoing_message(enum outgoing_kind kind, enum message_type type,
                                  const ProtobufCMessage *body)
{
    struct outgoing *outgoing = outgoing_create(kind);
    if (outgoing == NULL) {
        return NULL;
    }
    outgoing->type = type;
    outgoing->body = codec_encode(body, &outgoing->length);
    if (outgoing->body == NULL) {
        outgoing_destroy(&outgoing);
    }
    return outgoing;
}

struct outgoing *outgoing_reply(const struct request *request, enum message_type type,
                                const ProtobufCMessage *body)
{
    struct outgoing *outgoing = outgoing_message(OUTGOING_REPLY, type, body);
    if (outgoing != NULL) {
        outgoing->session = request->session;
        outgoing->id = request->envelope.id;
    }
    return outgoing;
}

/* This suffix marks a field that holds micro-credits; people read credits. */
#define MICRO "_micro"

/* Writes which roles the account has, and of which it needs one. */
static void role_text(unsigned has, unsigned needs, char *ret_text, size_t capacity)
{
    char of_account[ROLES_TEXT_SIZE];
    char needed[ROLES_TEXT_SIZE];
    roles_text(has, of_account, sizeof of_account);
    roles_text(needs & ~(unsigned)ROLE_ANYONE, needed, sizeof needed);
    (void)snprintf(ret_text, capacity,
                   "the account has the role %s, and this needs %s%s: ask the operator for an "
                   "invitation with such a role.",
                   of_account, strchr(needed, ',') != NULL ? "one of the roles " : "the role ",
                   needed);
}

/* Writes the text of a refusal that the general advice of its code does not fit. Returns false for
 * any other. */
static bool own_text(enum reject_code code, const char *field, int64_t value, int64_t limit,
                     char *ret_text, size_t capacity)
{
    char asked[UNITS_TEXT_SIZE];
    char bound[UNITS_TEXT_SIZE];
    units_money_text(value, asked);
    units_money_text(limit, bound);
    if (code == REJECT_STATE && strcmp(field, "account") == 0) {
        (void)snprintf(ret_text, capacity,
                       "account: an account with the role operator cannot be frozen, because an "
                       "operator has to be left who can end a freeze.");
    } else if (code == REJECT_ROLE && limit != 0) {
        role_text((unsigned)value, (unsigned)limit, ret_text, capacity);
    } else if (code == REJECT_FUNDS && strcmp(field, "budget_micro") == 0) {
        (void)snprintf(ret_text, capacity,
                       "budget: %s credits are needed, and %s are available: lower the budget, or "
                       "ask the operator for credits.",
                       asked, bound);
    } else if (code == REJECT_BUDGET && strcmp(field, "budget_micro") == 0 && value < limit) {
        (void)snprintf(ret_text, capacity,
                       "budget: %s credits are below the %s that the job has now: a budget can "
                       "only be raised.",
                       asked, bound);
    } else if (code == REJECT_PRICE && strcmp(field, "value.rate") == 0) {
        (void)snprintf(ret_text, capacity,
                       "value: the order has another kind of price: give a cap where the bid has a "
                       "cap, and a value of the same rate where the bid has a value.");
    } else if (code == REJECT_PRICE && strcmp(field, "least_micro") == 0) {
        (void)snprintf(ret_text, capacity,
                       limit == 0 ? "least: %s credits is below zero: give a least of 0 or more."
                                  : "least: %s credits, above the most of %s: give a least up to "
                                    "the most, or a higher most (`bourse admin bands` shows both).",
                       asked, bound);
    } else if (code == REJECT_PRICE && strcmp(field, "most_micro") == 0) {
        (void)snprintf(ret_text, capacity,
                       "most: %s credits, at least %s: give a higher most, or stop trade with "
                       "`bourse admin halt`.",
                       asked, bound);
    } else if (code == REJECT_INVITATION) { /* the token is the invitation */
        (void)snprintf(ret_text, capacity, "%s", reject_advice(code));
    } else {
        return false;
    }
    return true;
}

/* Writes "budget: 5, limit 2; hold more or ask for less": the field, the numbers, the advice. */
static void reject_text(enum reject_code code, const char *field, int64_t value, int64_t limit,
                        char *ret_text, size_t capacity)
{
    const char *advice = reject_advice(code);
    const int name = (int)strlen(field) - (int)strlen(MICRO);
    const bool is_money = name > 0 && strcmp(field + name, MICRO) == 0;
    const int shown = is_money ? name : (int)strlen(field);
    if (own_text(code, field, value, limit, ret_text, capacity)) {
        return;
    }
    if (code == REJECT_SELF_MATCH) {
        (void)snprintf(ret_text, capacity, "%.*s: %s", shown, field, advice);
    } else if (code == REJECT_OUTPUT_NOT_STORED || code == REJECT_OUTPUT_LOST) {
        (void)snprintf(ret_text, capacity, "%s of subtask %lld: %s", field, (long long)value,
                       advice);
    } else if (code == REJECT_PRICE && limit == 0 && value != 0) { /* no price is good here */
        char asked[UNITS_TEXT_SIZE];
        units_text(is_money ? UNITS_MONEY : UNITS_COUNT, value, asked);
        (void)snprintf(ret_text, capacity, "%.*s: %s: %s", shown, field, asked, advice);
    } else if (is_money) {
        char asked[UNITS_TEXT_SIZE];
        char most[UNITS_TEXT_SIZE];
        units_money_text(value, asked);
        units_money_text(limit, most);
        (void)snprintf(ret_text, capacity, "%.*s: %s credits, limit %s: %s", name, field, asked,
                       most, advice);
    } else if (field[0] == '\0') {
        (void)snprintf(ret_text, capacity, "%s", advice);
    } else if ((value == 0 && limit == 0) || code == REJECT_STATE) {
        (void)snprintf(ret_text, capacity, "%s: %s", field, advice);
    } else {
        (void)snprintf(ret_text, capacity, "%s: %lld, limit %lld: %s", field, (long long)value,
                       (long long)limit, advice);
    }
}

static struct outgoing *encode_reject(uint64_t session, const struct id128 *id,
                                      const Bourse__V1__Reject *body)
{
    struct outgoing *outgoing = outgoing_message(OUTGOING_REPLY, MESSAGE_REJECT, &body->base);
    if (outgoing != NULL) {
        outgoing->session = session;
        outgoing->id = *id;
        outgoing->account = EXCHANGE_NO_ACCOUNT;
        outgoing->refused = (enum reject_code)body->code;
    }
    return outgoing;
}

static struct outgoing *say_reject(uint64_t session, const struct id128 *id, enum reject_code code,
                                   const char *field, int64_t value, int64_t limit, char *text)
{
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = (uint32_t)code;
    body.text = text;
    char name[64];
    (void)snprintf(name, sizeof name, "%s", field);
    if (field[0] != '\0') {
        body.field = name;
        body.has_value = body.has_limit = true;
        body.value = value;
        body.limit = limit;
    }
    return encode_reject(session, id, &body);
}

struct outgoing *outgoing_not_leader(uint64_t session, const struct id128 *id, char *leader)
{
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    char text[LIMIT_TEXT_BYTES];
    reject_text(REJECT_NOT_LEADER, "", 0, 0, text, sizeof text);
    body.code = REJECT_NOT_LEADER;
    body.text = text;
    body.leader_address = endpoint_is_tcp(leader, strlen(leader)) ? leader : NULL;
    return encode_reject(session, id, &body);
}

struct outgoing *outgoing_unsettled(uint64_t session, const struct id128 *id,
                                    struct quorum_note *note, int64_t now_ns)
{
    char text[LIMIT_TEXT_BYTES];
    const int64_t age_ms = quorum_note_text(note, now_ns, text, sizeof text);
    return say_reject(session, id, REJECT_NO_QUORUM, "journal", age_ms, 0, text);
}

struct outgoing *outgoing_no_quorum(const struct request *request, struct quorum_note *note,
                                    int64_t now_ns)
{
    struct outgoing *outgoing =
        outgoing_unsettled(request->session, &request->envelope.id, note, now_ns);
    if (outgoing != NULL) {
        outgoing->refused_type = (enum message_type)request->envelope.type;
    }
    return outgoing;
}

struct outgoing *outgoing_reject(uint64_t session, const struct id128 *id, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit)
{
    char text[LIMIT_TEXT_BYTES];
    reject_text(code, field, value, limit, text, sizeof text);
    return say_reject(session, id, code, field, value, limit, text);
}

struct outgoing *outgoing_reject_reason(uint64_t session, const struct id128 *id,
                                        enum reject_code code, const char *field,
                                        const char *reason)
{
    char text[LIMIT_TEXT_BYTES];
    char shown[LIMIT_TEXT_BYTES / 2];
    if (reason == NULL) {
        return outgoing_reject(session, id, code, field, 0, 0);
    }
    text_printable(reason, strlen(reason), shown, sizeof shown);
    (void)snprintf(text, sizeof text, "%s: the operator %s: \"%s\". %s", field,
                   code == REJECT_FROZEN ? "froze it" : "halted it", shown,
                   code == REJECT_FROZEN ? "Ask the operator to end the freeze."
                                         : reject_advice(code));
    return say_reject(session, id, code, field, 0, 0, text);
}

struct outgoing *outgoing_not_copied(const struct id128 *id, unsigned copies, const char *who)
{
    char text[LIMIT_TEXT_BYTES];
    char shown[LIMIT_TEXT_BYTES / 2];
    text_printable(who, strlen(who), shown, sizeof shown);
    (void)snprintf(text, sizeof text,
                   "copies: the file is on the leading broker and has to be on %u brokers: %s. Try "
                   "again; the operator can start the brokers that are away.",
                   copies, shown);
    return say_reject(0, id, REJECT_UNAVAILABLE, "copies", 1, copies, text);
}

struct outgoing *outgoing_reject_value(uint64_t session, const struct id128 *id,
                                       enum reject_code code, bool is_of_parts,
                                       const struct value *value, int64_t limit_micro)
{
    char text[LIMIT_TEXT_BYTES];
    char asked[VALUE_TEXT_SIZE];
    char most[UNITS_TEXT_SIZE];
    value_text(value, asked);
    units_money_text(limit_micro, most);
    (void)snprintf(text, sizeof text, "%svalue: %s, limit %s credits per slot-hour: %s",
                   is_of_parts ? "parts." : "", asked, most, reject_advice(code));
    return say_reject(session, id, code, is_of_parts ? "parts.value.micro" : "value.micro",
                      value->micro, limit_micro, text);
}

struct outgoing *outgoing_address(struct outgoing *outgoing, uint64_t session,
                                  const struct id128 *id)
{
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    outgoing->session = session;
    outgoing->id = *id;
    return outgoing;
}

struct outgoing *outgoing_refuse(const struct request *request, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit)
{
    struct outgoing *outgoing =
        outgoing_reject(request->session, &request->envelope.id, code, field, value, limit);
    if (outgoing != NULL) {
        outgoing->account = request->account;
        outgoing->refused_type = (enum message_type)request->envelope.type;
    }
    return outgoing;
}

void outgoing_drain(struct queue *queue)
{
    for (struct queue_link *link; (link = queue_pop(queue, 0)) != NULL;) {
        struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
        outgoing_destroy(&outgoing);
    }
}
