#include "tests/sim/hostile.h"

#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MOST = 8192, SESSION_OFFSET = 8 };

static void hears(struct peer *peer, const uint8_t *bytes, size_t length)
{
    struct hostile *hostile = peer->owner;
    struct envelope envelope;
    if (envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK) {
        if (envelope.type == MESSAGE_WELCOME) {
            hostile->session = envelope.session;
        } else if (envelope.type == MESSAGE_REJECT) {
            hostile->refused++;
        } else if (envelope.type == MESSAGE_ACCEPTED) {
            sim_fail("a forged message was accepted");
        }
    }
}

void hostile_start(struct hostile *hostile)
{
    process_begin(&hostile->process);
    hostile->peer.process = &hostile->process;
    hostile->peer.transport = *identity_transport(hostile->identity);
    hostile->peer.deliver = hears;
    hostile->peer.owner = hostile;
    hostile->peer.is_hostile = true;
}

static void say_hello(struct hostile *hostile)
{
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    uint8_t body[128];
    uint8_t message[256];
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "nobody";
    hello.has_role = true;
    hello.role = 1 + (uint32_t)draw(DICE_WORK, 2);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = MESSAGE_HELLO,
                                .sequence = 1,
                                .id = entropy_id(),
                                .body_length = (uint32_t)bourse__v1__hello__pack(&hello, body),
                                .body = body};
    envelope_write(&envelope, message, sizeof message);
    (void)net_send(&hostile->peer, message, envelope_size(&envelope));
}

static void send_nonsense(struct hostile *hostile)
{
    uint8_t bytes[512];
    size_t length = draw(DICE_WORK, sizeof bytes);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)draw(DICE_WORK, 256);
    }
    if (length > 8 && draw(DICE_WORK, 2) == 0) {
        (void)memcpy(bytes, "BRS1\1", 6);
    }
    (void)net_send(&hostile->peer, bytes, length);
}

/* Somebody else's message, under our own session, perhaps damaged. */
static void send_stolen(struct hostile *hostile)
{
    uint8_t bytes[MESSAGE_MOST];
    size_t length = 0;
    const uint8_t *stolen = net_captured(&length);
    if (stolen == NULL || length > sizeof bytes) {
        return;
    }
    memcpy(bytes, stolen, length);
    if (draw(DICE_WORK, 4) != 0) {
        memcpy(bytes + SESSION_OFFSET, &hostile->session, sizeof hostile->session);
    }
    switch (draw(DICE_WORK, 4)) {
    case 0: /* one bit is another */
        flip_bit(DICE_WORK, bytes, length);
        break;
    case 1: /* cut short */
        length = draw(DICE_WORK, length);
        break;
    default:
        break;
    }
    (void)net_send(&hostile->peer, bytes, length);
}

/* A command without a signature, or with one of its own making. */
static void send_unsigned(struct hostile *hostile)
{
    static const uint16_t types[] = {MESSAGE_MINT,           MESSAGE_HALT,       MESSAGE_SUBMIT_JOB,
                                     MESSAGE_ADVERTISE,      MESSAGE_JOB_CANCEL, MESSAGE_ASK_PLACE,
                                     MESSAGE_STATEMENT_HELD, MESSAGE_RESULTS,    MESSAGE_ACCEPTED,
                                     MESSAGE_DISPATCH};
    uint8_t body[64];
    uint8_t message[256];
    size_t length = draw(DICE_WORK, sizeof body);
    for (size_t i = 0; i < length; i++) {
        body[i] = (uint8_t)draw(DICE_WORK, 256);
    }
    const uint16_t type = types[draw(DICE_WORK, sizeof types / sizeof *types)];
    const uint64_t sequence = draw(DICE_WORK, 100);
    const bool is_signed = draw(DICE_WORK, 2) == 0;
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = type,
                                .session = hostile->session,
                                .sequence = sequence,
                                .id = entropy_id(),
                                .created_ms = clock_wall_ns() / SIM_MS,
                                .is_signed = is_signed,
                                .body = body,
                                .body_length = (uint32_t)length};
    if (envelope.is_signed) {
        entropy_bytes(envelope.signature.bytes, sizeof envelope.signature.bytes);
    }
    envelope_write(&envelope, message, sizeof message);
    (void)net_send(&hostile->peer, message, envelope_size(&envelope));
}

void hostile_acts(struct hostile *hostile)
{
    struct process *before = process_enter(&hostile->process);
    fault_happened(FAULT_NONSENSE);
    if (hostile->session == 0 || draw(DICE_WORK, 6) == 0) {
        say_hello(hostile);
    }
    if (draw(DICE_WORK, 2) == 0) {
        send_nonsense(hostile);
    }
    if (draw(DICE_WORK, 2) == 0) {
        send_unsigned(hostile);
    }
    send_stolen(hostile);
    process_leave(before);
}
