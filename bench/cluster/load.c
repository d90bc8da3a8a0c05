/* This file is the client of bench/cluster.c: one dialogue, with many requests in flight. */
#include "bench/cluster/parts.h"

#include "base/checked.h"
#include "protocol/dialogue.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/keyfile.h"
#include "runtime/link.h"
#include "runtime/market.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    PENDING_MAX = 8192,
    PENDING_BYTES = 64 << 20,
    COMMANDS_MAX = 8 << 20, /* a load sends no more; a byte and a time are kept for each */
    AT_ONCE = 256,
    WAIT_MS = 20,
};
#define DRAIN_NS (120 * NS_PER_S)

struct load {
    void *zmq;
    struct identity *identity;
    struct market market;
    struct link *link;
    struct dialogue *dialogue;
    int64_t reconnect_ns; /* INT64_MAX: connected, or trying */
    uint64_t nonce;       /* the first half of all ids */
    uint8_t *states;
    int64_t *sent_ns;
    uint64_t sent, acknowledged, refused, greeted;
    int64_t first_ns, newest_took_ns; /* first_ns: since the newest greeting */
};

/* ---------------------------------------------------------------- events */

static void lost(struct load *load, const struct dialogue_event *event)
{
    load->reconnect_ns = clock_monotonic_ns() + event->wait_ns;
}

/* Returns true with the number of one of our commands. */
static bool number_of(const struct load *load, const struct id128 *id, uint64_t *ret_number)
{
    uint64_t nonce;
    memcpy(&nonce, id->bytes, sizeof nonce);
    memcpy(ret_number, id->bytes + sizeof nonce, sizeof *ret_number);
    return nonce == load->nonce && *ret_number < load->sent;
}

static void answered(struct load *load, const struct dialogue_event *event)
{
    uint64_t number;
    if (!number_of(load, &event->id, &number) || load->states[number] != COMMAND_SENT) {
        return;
    }
    if (event->type == DIALOGUE_REJECTED) {
        load->states[number] = COMMAND_REFUSED;
        load->refused++;
        return;
    }
    load->states[number] = COMMAND_ACKNOWLEDGED;
    load->acknowledged++;
    const int64_t now_ns = clock_monotonic_ns();
    load->first_ns = load->first_ns == 0 ? now_ns : load->first_ns;
    load->newest_took_ns = now_ns - load->sent_ns[number];
}

static void take(struct load *load, struct dialogue_event *event)
{
    switch (event->type) {
    case DIALOGUE_READY:
        load->greeted++;
        load->first_ns = 0;
        break;
    case DIALOGUE_ACCEPTED:
    case DIALOGUE_REJECTED:
        answered(load, event);
        break;
    case DIALOGUE_LOST:
    case DIALOGUE_BROKEN:
        lost(load, event);
        break;
    case DIALOGUE_REPLY:
    case DIALOGUE_PUSH:
        codec_free(&event->body);
        break;
    case DIALOGUE_NOTHING:
        break;
    }
}

/* ---------------------------------------------------------------- the wire */

static void reconnect(struct load *load, int64_t now_ns)
{
    struct problem problem = {""};
    struct dialogue_event event;
    load->reconnect_ns = INT64_MAX;
    const bool is_open =
        link_reopen_at(load->link, dialogue_address(load->dialogue)->control, &problem);
    dialogue_connected(load->dialogue, now_ns, entropy_u64());
    if (!is_open) {
        dialogue_unreachable(load->dialogue, &event);
        take(load, &event);
    }
}

static bool send_command(struct load *load)
{
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    struct id128 id;
    const uint64_t number = load->sent;
    const int64_t now_ns = clock_monotonic_ns();
    memcpy(id.bytes, &load->nonce, sizeof load->nonce);
    memcpy(id.bytes + sizeof load->nonce, &number, sizeof number);
    body.account = (ProtobufCBinaryData){
        .data = (uint8_t *)(uintptr_t)identity_key(load->identity)->bytes, .len = 32};
    body.amount_micro = (int64_t)number + 1;
    if (dialogue_request(load->dialogue, now_ns, MESSAGE_MINT, &id, &body.base) != DIALOGUE_OK) {
        return false;
    }
    load->states[number] = COMMAND_SENT;
    load->sent_ns[number] = now_ns;
    load->sent++;
    return true;
}

static void say(struct load *load)
{
    const uint8_t *message;
    size_t length;
    while (load->reconnect_ns == INT64_MAX &&
           dialogue_outgoing(load->dialogue, &message, &length)) {
        if (!link_send(load->link, message, length)) {
            dialogue_unsent(load->dialogue);
            return;
        }
    }
}

static void hear(struct load *load)
{
    struct dialogue_event event;
    const uint8_t *message;
    size_t length;
    for (int i = 0; i < AT_ONCE && load->reconnect_ns == INT64_MAX; i++) {
        if (link_receive(load->link, i == 0 ? WAIT_MS : 0, &message, &length) == 1) {
            dialogue_incoming(load->dialogue, clock_monotonic_ns(), message, length, &event);
            take(load, &event);
            continue;
        }
        if (link_has_ended(load->link)) {
            dialogue_unreachable(load->dialogue, &event);
            take(load, &event);
        }
        return;
    }
}

/* Silence is judged after all that came was heard: the caller may have been away. */
static void turn(struct load *load)
{
    struct dialogue_event event;
    if (clock_monotonic_ns() >= load->reconnect_ns) {
        reconnect(load, clock_monotonic_ns());
    }
    say(load);
    if (load->reconnect_ns == INT64_MAX) {
        hear(load);
    } else {
        (void)link_has_ended(load->link); /* the former socket tells of its vain tries */
        program_pause();
    }
    if (clock_monotonic_ns() >= dialogue_next_deadline_ns(load->dialogue)) {
        dialogue_tick(load->dialogue, clock_monotonic_ns(), &event);
        take(load, &event);
    }
}

static uint64_t in_flight(const struct load *load)
{
    return load->sent - load->acknowledged - load->refused;
}

/* ---------------------------------------------------------------- the interface */

void load_run(struct load *load, uint32_t most_in_flight, uint64_t most, int64_t until_ns)
{
    const uint64_t last = load->sent + most;
    while (load->sent < last && load->sent < COMMANDS_MAX && clock_monotonic_ns() < until_ns) {
        while (load->sent < last && load->sent < COMMANDS_MAX && in_flight(load) < most_in_flight &&
               send_command(load)) {
        }
        turn(load);
    }
}

bool load_drain(struct load *load)
{
    const int64_t deadline_ns = clock_monotonic_ns() + DRAIN_NS;
    while (in_flight(load) > 0 && clock_monotonic_ns() < deadline_ns) {
        turn(load);
    }
    return in_flight(load) == 0;
}

struct load *load_open(const struct brokers *brokers, struct problem *ret_problem)
{
    struct load *load = calloc(1, sizeof *load);
    struct contact addresses[CONTACTS_MAX];
    problem_set(ret_problem, "out of memory");
    if (load == NULL) {
        return NULL;
    }
    load->zmq = zmq_ctx_new();
    load->states = calloc(COMMANDS_MAX, 1);
    load->sent_ns = calloc(COMMANDS_MAX, sizeof *load->sent_ns);
    load->reconnect_ns = INT64_MAX;
    load->nonce = entropy_u64();
    bool good = load->zmq != NULL && load->states != NULL && load->sent_ns != NULL &&
                market_read(brokers->market.file, &load->market, ret_problem) &&
                keyfile_load(brokers->market.key, &load->identity, ret_problem) &&
                link_open(load->zmq, load->market.control, &load->market.server, load->identity,
                          LIMIT_MESSAGE_BYTES, &load->link, ret_problem) &&
                link_watch(load->link, ret_problem);
    if (good) {
        load->dialogue = dialogue_create(
            &(struct dialogue_config){.identity = load->identity,
                                      .role = SESSION_CONSUMER,
                                      .program = "bench-cluster",
                                      .pending_max = PENDING_MAX,
                                      .pending_bytes_max = PENDING_BYTES,
                                      .addresses = addresses,
                                      .address_count = market_addresses(&load->market, addresses)});
        good = load->dialogue != NULL;
    }
    if (!good) {
        load_close(&load);
        return NULL;
    }
    dialogue_connected(load->dialogue, clock_monotonic_ns(), entropy_u64());
    return load;
}

void load_close(struct load **self)
{
    struct load *load = *self;
    if (load != NULL) {
        dialogue_destroy(&load->dialogue);
        link_close(&load->link);
        identity_destroy(&load->identity);
        free(load->states);
        free(load->sent_ns);
        if (load->zmq != NULL) {
            (void)zmq_ctx_term(load->zmq);
        }
        free(load);
        *self = NULL;
    }
}

uint64_t load_sent(const struct load *load)
{
    return load->sent;
}

uint64_t load_acknowledged(const struct load *load)
{
    return load->acknowledged;
}

uint64_t load_refused(const struct load *load)
{
    return load->refused;
}

uint64_t load_greeted(const struct load *load)
{
    return load->greeted;
}

int64_t load_first_ns(const struct load *load)
{
    return load->first_ns;
}

int64_t load_newest_took_ns(const struct load *load)
{
    return load->newest_took_ns;
}

enum command_state load_state(const struct load *load, uint64_t number)
{
    return (enum command_state)load->states[number];
}
