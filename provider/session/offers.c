/* provider/session/offers.c keeps the offers. The file advertises devices, places asks, and sends
 * the Statement.
 *
 * After a Welcome an ask keeps its place in the book if the broker says that it still stands. Then
 * the devices are advertised too, and advertising them anew would cancel the ask. Otherwise both
 * start anew. A refusal is tried again later, for a halted market opens again. */
#include "provider/session/agent_session_internal.h"

#include "base/checked.h"
#include "protocol/conditions.h"
#include "provider/session/offers_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OFFER_AGAIN_FIRST_NS (2 * NS_PER_S)
#define OFFER_AGAIN_LONGEST_NS (60 * NS_PER_S)

void offers_drop(struct agent_session *session)
{
    for (size_t i = 0; i < session->device_count; i++) {
        free(session->devices[i].attributes);
    }
    free(session->devices);
    session->devices = NULL;
    session->device_count = 0;
    free(session->asks);
    session->asks = NULL;
    session->ask_count = 0;
}

static void forget(struct agent_session *session, struct id128 *request)
{
    dialogue_forget(session->dialogue, request);
    memset(request, 0, sizeof *request);
}

static bool send_request(struct agent_session *session, int64_t now_ns, enum message_type type,
                         const struct id128 *id, const ProtobufCMessage *body)
{
    enum dialogue_status status = dialogue_request(session->dialogue, now_ns, type, id, body);
    if (status == DIALOGUE_OUT_OF_MEMORY) {
        session->counts.out_of_memory = true;
    }
    return status == DIALOGUE_OK;
}

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    /* The encoder only reads; the generated struct just has no const. */
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)bytes};
}

static int64_t after_refusal_ns(struct agent_session *session, int64_t now_ns)
{
    int64_t wait_ns = OFFER_AGAIN_FIRST_NS;
    for (uint32_t i = 0; i < session->offer_refusals && wait_ns < OFFER_AGAIN_LONGEST_NS; i++) {
        wait_ns *= 2;
    }
    if (wait_ns > OFFER_AGAIN_LONGEST_NS) {
        wait_ns = OFFER_AGAIN_LONGEST_NS;
    }
    session->offer_refusals++;
    return now_ns + wait_ns;
}

void offers_later(struct agent_session *session, int64_t now_ns)
{
    session->offer_again_ns = after_refusal_ns(session, now_ns);
}

/* A cancel that could not be queued is tried again like a refused offer. */
static void send_cancel(struct agent_session *session, int64_t now_ns, struct offered_ask *ask)
{
    Bourse__V1__OrderCancel body = BOURSE__V1__ORDER_CANCEL__INIT;
    body.order = view(ask->leaving.bytes, sizeof ask->leaving.bytes);
    struct id128 id = session_draw_id(session);
    if (send_request(session, now_ns, MESSAGE_ORDER_CANCEL, &id, &body.base)) {
        ask->cancel = id;
    } else {
        offers_later(session, now_ns);
    }
}

void offers_cancel_order(struct agent_session *session, int64_t now_ns, struct offered_ask *ask)
{
    ask->state = ASK_ABSENT;
    forget(session, &ask->check);
    if (id128_is_zero(&ask->order)) {
        return;
    }
    dialogue_forget(session->dialogue, &ask->order);
    ask->leaving = ask->order;
    memset(&ask->order, 0, sizeof ask->order);
    memset(&ask->cancel, 0, sizeof ask->cancel);
    send_cancel(session, now_ns, ask);
}

static void cancel_orders(struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        offers_cancel_order(session, now_ns, &session->asks[i]);
    }
}

/* Sends a replace that changes nothing: NOT_FOUND means that the ask is gone. */
static void send_check(struct agent_session *session, int64_t now_ns, struct offered_ask *ask)
{
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order = view(ask->order.bytes, sizeof ask->order.bytes);
    body.has_slots = body.has_price_micro = true;
    body.slots = ask->terms.slots;
    body.price_micro = ask->terms.price_micro;
    struct id128 id = session_draw_id(session);
    if (send_request(session, now_ns, MESSAGE_ORDER_REPLACE, &id, &body.base)) {
        ask->check = id;
    } else {
        offers_later(session, now_ns);
    }
}

/* A lost Statement would wait for the next Hello. */
void offers_state_later(struct agent_session *session, int64_t now_ns)
{
    session->state_again_ns = after_refusal_ns(session, now_ns);
}

static bool is_withheld(const struct agent_session *session)
{
    return session->paused || session->resting || session->draining;
}

size_t offers_name_accounts(const struct agent_conditions *of, const char *ret_to[AGENT_TO_MOST])
{
    for (uint32_t i = 0; i < of->to_count; i++) {
        ret_to[i] = of->to[i];
    }
    return of->to_count;
}

static void add_conditions(const struct agent_conditions *of, struct ask_conditions *ret_conditions,
                           Bourse__V1__AskPlace *body)
{
    const char *to[AGENT_TO_MOST];
    static_assert((int)AGENT_TO_MOST <= LIMIT_ASK_ACCOUNTS, "they fit a message");
    (void)conditions_to_wire(to, offers_name_accounts(of, to), &of->hours, of->daily_ms,
                             ret_conditions, body);
}

void offers_place_absent(struct agent_session *session, int64_t now_ns)
{
    if (!session->advertised || is_withheld(session)) {
        return;
    }
    for (size_t i = 0; i < session->ask_count; i++) {
        struct offered_ask *ask = &session->asks[i];
        if (ask->state != ASK_ABSENT || withheld_device(session, &ask->terms.device)) {
            continue;
        }
        Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
        body.device = view(ask->terms.device.bytes, sizeof ask->terms.device.bytes);
        body.slots = ask->terms.slots;
        body.price_micro = ask->terms.price_micro;
        body.has_max_term_ms = ask->terms.max_term_ms > 0;
        body.max_term_ms = ask->terms.max_term_ms;
        struct ask_conditions conditions;
        add_conditions(&ask->terms.conditions, &conditions, &body);
        body.has_interruptible = body.has_notice_ms = body.has_minimum_run_ms =
            ask->terms.is_interruptible;
        body.interruptible = ask->terms.is_interruptible;
        body.notice_ms = ask->terms.notice_ms;
        body.minimum_run_ms = ask->terms.minimum_run_ms;
        struct id128 id = session_draw_id(session);
        if (!send_request(session, now_ns, MESSAGE_ASK_PLACE, &id, &body.base)) {
            offers_later(session, now_ns);
            return;
        }
        ask->order = id;
        ask->state = ASK_SENT;
    }
}

struct wire_device {
    Bourse__V1__Device message;
    Bourse__V1__Attribute *attributes;
    Bourse__V1__Attribute **pointers;
};

static void attribute_to_wire(const struct attribute *attribute, Bourse__V1__Attribute *ret_wire)
{
    bourse__v1__attribute__init(ret_wire);
    ret_wire->name = (char *)(uintptr_t)attribute->name;
    if (attribute->is_text) {
        ret_wire->text = (char *)(uintptr_t)attribute->text;
    } else {
        ret_wire->has_number = 1;
        ret_wire->number = attribute->number;
    }
}

static bool device_to_wire(const struct offered_device *device, struct wire_device *ret_wire)
{
    size_t count = device->facts.attribute_count;
    ret_wire->attributes = calloc(count + 1, sizeof *ret_wire->attributes);
    ret_wire->pointers = calloc(count + 1, sizeof(Bourse__V1__Attribute *));
    if (ret_wire->attributes == NULL || ret_wire->pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        attribute_to_wire(&device->attributes[i], &ret_wire->attributes[i]);
        ret_wire->pointers[i] = &ret_wire->attributes[i];
    }
    Bourse__V1__Device *message = &ret_wire->message;
    bourse__v1__device__init(message);
    message->device = view(device->facts.device.bytes, sizeof device->facts.device.bytes);
    message->instrument = (char *)(uintptr_t)device->facts.instrument;
    message->slots = device->facts.slots;
    message->n_attributes = count;
    message->attributes = ret_wire->pointers;
    if (device->facts.label[0] != '\0') {
        message->label = (char *)(uintptr_t)device->facts.label;
    }
    return true;
}

/* While all devices are withheld, none is advertised. No ask for them stands then, and the broker
 * refuses one placed by hand. Their leases go on. */
static void advertise(struct agent_session *session, int64_t now_ns)
{
    size_t count = is_withheld(session) ? 0 : session->device_count;
    struct wire_device *wires = calloc(count + 1, sizeof *wires);
    Bourse__V1__Device **pointers = calloc(count + 1, sizeof(Bourse__V1__Device *));
    bool whole = wires != NULL && pointers != NULL;
    for (size_t i = 0; whole && i < count; i++) {
        whole = device_to_wire(&session->devices[i], &wires[i]);
        pointers[i] = &wires[i].message;
    }
    if (whole) {
        Bourse__V1__Advertise body = BOURSE__V1__ADVERTISE__INIT;
        body.n_devices = count;
        body.devices = pointers;
        struct id128 id = session_draw_id(session);
        if (send_request(session, now_ns, MESSAGE_ADVERTISE, &id, &body.base)) {
            session->advertise = id;
        } else {
            offers_later(session, now_ns);
        }
    } else {
        session->counts.out_of_memory = true;
    }
    for (size_t i = 0; wires != NULL && i < count; i++) {
        free(wires[i].attributes);
        free(wires[i].pointers);
    }
    free(wires);
    free(pointers);
}

static size_t stated_leases(const struct agent_session *session)
{
    size_t count = 0;
    for (const struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        count += !LIST_ELEMENT(link, struct lease, link)->released;
    }
    return count;
}

struct wire_statement {
    Bourse__V1__HeldLease *leases;
    Bourse__V1__HeldLease **lease_pointers;
    Bourse__V1__HeldWork *works;
    Bourse__V1__HeldWork **work_pointers;
};

static void fill_statement(const struct agent_session *session, const struct wire_statement *wire)
{
    size_t lease_at = 0;
    size_t work_at = 0;
    for (const struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        const struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        if (lease->released) {
            continue;
        }
        Bourse__V1__HeldLease *held = &wire->leases[lease_at];
        bourse__v1__held_lease__init(held);
        held->lease = lease->grant.lease;
        held->n_work = lease->work_count;
        held->work = &wire->work_pointers[work_at];
        wire->lease_pointers[lease_at++] = held;
        for (const struct list_link *inner = lease->works.next; inner != &lease->works;
             inner = inner->next) {
            const struct work *work = LIST_ELEMENT(inner, struct work, link);
            bourse__v1__held_work__init(&wire->works[work_at]);
            wire->works[work_at].index = work->index;
            wire->works[work_at].attempt = work->attempt;
            wire->work_pointers[work_at] = &wire->works[work_at];
            work_at++;
        }
    }
}

void offers_state(struct agent_session *session, int64_t now_ns)
{
    size_t count = stated_leases(session);
    size_t works = session->work_total;
    struct wire_statement wire = {
        .leases = calloc(count + 1, sizeof(Bourse__V1__HeldLease)),
        .lease_pointers = calloc(count + 1, sizeof(Bourse__V1__HeldLease *)),
        .works = calloc(works + 1, sizeof(Bourse__V1__HeldWork)),
        .work_pointers = calloc(works + 1, sizeof(Bourse__V1__HeldWork *)),
    };
    if (wire.leases != NULL && wire.lease_pointers != NULL && wire.works != NULL &&
        wire.work_pointers != NULL) {
        fill_statement(session, &wire);
        Bourse__V1__Statement body = BOURSE__V1__STATEMENT__INIT;
        body.n_leases = count;
        body.leases = wire.lease_pointers;
        const Bourse__V1__Welcome *welcome = dialogue_welcome(session->dialogue);
        body.has_as_of_ns = welcome->has_as_of_ns;
        body.as_of_ns = welcome->as_of_ns;
        struct id128 id = session_draw_id(session);
        if (send_request(session, now_ns, MESSAGE_STATEMENT_HELD, &id, &body.base)) {
            session->statement = id;
            session->state_again_ns = INT64_MAX;
        } else {
            session_note(session, "the statement of held work could not be queued");
            offers_state_later(session, now_ns);
        }
    } else {
        session->counts.out_of_memory = true;
    }
    free(wire.leases);
    free(wire.lease_pointers);
    free(wire.works);
    free(wire.work_pointers);
}

/* Sends cancels that the broker could not take, or that were never sent. */
static void cancel_again(struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        struct offered_ask *ask = &session->asks[i];
        if (!id128_is_zero(&ask->leaving) && id128_is_zero(&ask->cancel)) {
            send_cancel(session, now_ns, ask);
        }
    }
}

/* Returns true while asks wait for the broker's word on whether they stand. */
static bool check_asks(struct agent_session *session, int64_t now_ns)
{
    bool waits = false;
    for (size_t i = 0; i < session->ask_count; i++) {
        struct offered_ask *ask = &session->asks[i];
        if (ask->state != ASK_DOUBTED) {
            continue;
        }
        waits = true;
        if (id128_is_zero(&ask->check)) {
            send_check(session, now_ns, ask);
        }
    }
    return waits;
}

void offers_resume(struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < session->ask_count; i++) {
        struct offered_ask *ask = &session->asks[i];
        if (ask->state == ASK_STANDING || ask->state == ASK_DOUBTED) {
            ask->state = ASK_DOUBTED;
        } else {
            offers_cancel_order(session, now_ns, ask); /* in case it stands all the same */
        }
    }
    offers_place(session, now_ns);
}

void offers_renew(struct agent_session *session, int64_t now_ns)
{
    cancel_orders(session, now_ns);
    forget(session, &session->advertise);
    session->advertised = false;
    if (session_ready(session)) { /* otherwise the next Welcome does it */
        offers_place(session, now_ns);
    }
}

void offers_place(struct agent_session *session, int64_t now_ns)
{
    session->offer_again_ns = INT64_MAX;
    cancel_again(session, now_ns);
    if (check_asks(session, now_ns)) {
        return;
    }
    if (!session->advertised) {
        if (id128_is_zero(&session->advertise)) {
            advertise(session, now_ns);
        }
        return;
    }
    offers_place_absent(session, now_ns);
}

/* ---------------------------------------------------------------- offers */

static bool copy_devices(struct offered_device *copies, const struct agent_device *devices,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        copies[i].facts = devices[i];
        size_t attributes = devices[i].attribute_count;
        copies[i].attributes = calloc(attributes + 1, sizeof(struct attribute));
        if (copies[i].attributes == NULL) {
            return false;
        }
        memcpy(copies[i].attributes, devices[i].attributes, attributes * sizeof(struct attribute));
        copies[i].facts.attributes = copies[i].attributes;
    }
    return true;
}

static bool offer_fits(const struct agent_device *devices, size_t device_count, size_t ask_count)
{
    bool fits = device_count <= LIMIT_DEVICES && ask_count <= AGENT_ASKS_MAX;
    for (size_t i = 0; fits && i < device_count; i++) {
        fits = devices[i].attribute_count <= LIMIT_ATTRIBUTES && devices[i].slots >= 1 &&
               devices[i].slots <= LIMIT_SLOTS;
    }
    return fits;
}

enum agent_status agent_session_offer(struct agent_session *session, int64_t now_ns,
                                      const struct agent_device *devices, size_t device_count,
                                      const struct agent_ask *asks, size_t ask_count)
{
    if (!offer_fits(devices, device_count, ask_count)) {
        return AGENT_BAD;
    }
    struct offered_device *device_copies = calloc(device_count + 1, sizeof *device_copies);
    struct offered_ask *ask_copies = calloc(ask_count + 1, sizeof *ask_copies);
    if (device_copies == NULL || ask_copies == NULL ||
        !copy_devices(device_copies, devices, device_count)) {
        for (size_t i = 0; device_copies != NULL && i < device_count; i++) {
            free(device_copies[i].attributes);
        }
        free(device_copies);
        free(ask_copies);
        return AGENT_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < ask_count; i++) {
        ask_copies[i].terms = asks[i];
    }
    for (size_t i = 0; i < device_count; i++) {
        withheld_copy(session, &device_copies[i]);
    }
    cancel_orders(session, now_ns);
    offers_drop(session);
    session->devices = device_copies;
    session->device_count = device_count;
    session->asks = ask_copies;
    session->ask_count = ask_count;
    session->offer_refusals = 0;
    offers_renew(session, now_ns);
    return AGENT_OK;
}

void agent_session_pause(struct agent_session *session, int64_t now_ns, bool paused)
{
    if (session->paused == paused) {
        return;
    }
    session->paused = paused;
    offers_renew(session, now_ns);
}

bool agent_session_withdrawn(const struct agent_session *session)
{
    if (session_ready(session) && !session->advertised) {
        return false;
    }
    for (size_t i = 0; i < session->ask_count; i++) {
        if (!id128_is_zero(&session->asks[i].order) || !id128_is_zero(&session->asks[i].leaving)) {
            return false;
        }
    }
    return true;
}

bool agent_session_frozen(const struct agent_session *session)
{
    return session->frozen;
}

const char *agent_session_frozen_text(const struct agent_session *session)
{
    return session->frozen ? session->frozen_text : "";
}

bool offers_ask_stands(const struct offered_ask *ask)
{
    return ask->state == ASK_STANDING || ask->state == ASK_BY_HAND;
}

bool agent_session_ask(const struct agent_session *session, size_t index,
                       struct agent_ask_row *ret_row)
{
    if (index >= session->ask_count) {
        return false;
    }
    const struct offered_ask *ask = &session->asks[index];
    *ret_row = (struct agent_ask_row){.terms = ask->terms,
                                      .instrument = "",
                                      .label = "",
                                      .is_standing = offers_ask_stands(ask),
                                      .is_by_hand = ask->state == ASK_BY_HAND,
                                      .is_taken_back = ask->state == ASK_TAKEN_BACK,
                                      .is_withheld = withheld_device(session, &ask->terms.device),
                                      .is_held = withheld_is_held(session, &ask->terms.device),
                                      .refusal = ask->refusal};
    if (ret_row->is_by_hand) {
        ret_row->terms.slots = ask->hand_slots;
        ret_row->terms.price_micro = ask->hand_price_micro;
        ret_row->terms.max_term_ms = ask->hand_max_term_ms;
        ret_row->terms.is_interruptible = ask->hand_is_interruptible;
        ret_row->terms.notice_ms = ask->hand_notice_ms;
        ret_row->terms.minimum_run_ms = ask->hand_minimum_run_ms;
    }
    for (size_t i = 0; i < session->device_count; i++) {
        if (id128_equal(&session->devices[i].facts.device, &ask->terms.device)) {
            ret_row->instrument = session->devices[i].facts.instrument;
            ret_row->label = session->devices[i].facts.label;
        }
    }
    return true;
}

void offers_forget(struct agent_session *session)
{
    forget(session, &session->advertise);
    forget(session, &session->statement);
    for (size_t i = 0; i < session->ask_count; i++) {
        dialogue_forget(session->dialogue, &session->asks[i].order);
        forget(session, &session->asks[i].check);
    }
    session->advertised = false;
    session->frozen = false;
    session->offer_again_ns = INT64_MAX;
    session->state_again_ns = INT64_MAX;
}
