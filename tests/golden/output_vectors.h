/* tests/golden/output_vectors.h makes vectors of live output, of terminals and of an output that
 * may be executed, and of a journal without a quorum, for golden_wire.c. */
#ifndef BOURSE_TESTS_GOLDEN_OUTPUT_VECTORS_H
#define BOURSE_TESTS_GOLDEN_OUTPUT_VECTORS_H

#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/reject.h"

/* Gives `put` the messages of both ends of a terminal. */
static inline void terminal_vectors(void (*put)(void *context, enum message_type type,
                                                const ProtobufCMessage *body),
                                    void *context)
{
    uint8_t job[16] = {0xa0, 1, 2, 3};
    Bourse__V1__TerminalSend send = BOURSE__V1__TERMINAL_SEND__INIT;
    send.has_job = true;
    send.job = (ProtobufCBinaryData){.len = sizeof job, .data = job};
    send.offset = 70;
    send.has_bytes = true;
    send.bytes = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)(uintptr_t) "ls\r"};
    send.has_columns = send.has_rows = true;
    send.columns = 120;
    send.rows = 40;
    put(context, MESSAGE_TERMINAL_SEND, &send.base);
    Bourse__V1__TerminalSend last = BOURSE__V1__TERMINAL_SEND__INIT;
    last.has_lease = last.has_attempt = last.has_end = last.end = true;
    last.lease = 42;
    last.attempt = 1;
    last.offset = 4096;
    put(context, MESSAGE_TERMINAL_SEND, &last.base);
    Bourse__V1__TerminalTaken taken = BOURSE__V1__TERMINAL_TAKEN__INIT;
    taken.through = 73;
    taken.taken = 70;
    taken.has_attempt = true;
    taken.attempt = 1;
    put(context, MESSAGE_TERMINAL_TAKEN, &taken.base);
    Bourse__V1__TerminalReceive receive = BOURSE__V1__TERMINAL_RECEIVE__INIT;
    receive.has_lease = receive.has_attempt = true;
    receive.lease = 42;
    receive.attempt = 1;
    receive.taken = 70;
    receive.wait_ms = LIMIT_WAIT_MS;
    put(context, MESSAGE_TERMINAL_RECEIVE, &receive.base);
    Bourse__V1__TerminalBytes bytes = BOURSE__V1__TERMINAL_BYTES__INIT;
    bytes.offset = 70;
    bytes.has_bytes = true;
    bytes.bytes = send.bytes;
    bytes.has_columns = bytes.has_rows = true;
    bytes.columns = 120;
    bytes.rows = 40;
    bytes.has_gone = bytes.gone = true;
    put(context, MESSAGE_TERMINAL_BYTES, &bytes.base);
}

/* Gives `put` a Dispatch that hands on two files, of which the first may be executed. */
static inline void executable_vector(void (*put)(void *context, enum message_type type,
                                                 const ProtobufCMessage *body),
                                     void *context)
{
    uint8_t hash[32] = {0xb0, 1, 2, 3};
    Bourse__V1__Output tool = BOURSE__V1__OUTPUT__INIT;
    tool.name = (char *)(uintptr_t) "tool";
    tool.hash = (ProtobufCBinaryData){.len = sizeof hash, .data = hash};
    tool.size = 16;
    Bourse__V1__Output data = tool;
    data.name = (char *)(uintptr_t) "data";
    tool.has_executable = tool.executable = true;
    Bourse__V1__Output *outputs[] = {&tool, &data};
    Bourse__V1__Given left = BOURSE__V1__GIVEN__INIT;
    left.index = 4;
    left.n_outputs = 2;
    left.outputs = outputs;
    Bourse__V1__Given *given[] = {&left};
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    work.index = 5;
    work.attempt = 1;
    work.n_given = 1;
    work.given = given;
    Bourse__V1__Work *works[] = {&work};
    Bourse__V1__Dispatch dispatch = BOURSE__V1__DISPATCH__INIT;
    dispatch.lease = 3;
    dispatch.n_work = 1;
    dispatch.work = works;
    put(context, MESSAGE_DISPATCH, &dispatch.base);
}

/* Gives `put` what an agent says of its devices. */
static inline void figures_vectors(void (*put)(void *context, enum message_type type,
                                               const ProtobufCMessage *body),
                                   void *context)
{
    uint8_t first[16] = {0xd0, 1};
    uint8_t second[16] = {0xd0, 2};
    Bourse__V1__DeviceFigures known = BOURSE__V1__DEVICE_FIGURES__INIT;
    Bourse__V1__DeviceFigures unknown = BOURSE__V1__DEVICE_FIGURES__INIT;
    Bourse__V1__DeviceFigures *devices[] = {&known, &unknown};
    known.device = (ProtobufCBinaryData){.len = sizeof first, .data = first};
    known.age_ms = 3000;
    known.has_memory_used = known.has_memory_total = known.has_busy_percent = true;
    known.has_power_mw = known.has_power_limit_mw = known.has_celsius = true;
    known.memory_used = 1 << 20;
    known.memory_total = 16 << 20;
    known.busy_percent = 12;
    known.power_mw = 61000;
    known.power_limit_mw = 350000;
    known.celsius = 44;
    unknown.device = (ProtobufCBinaryData){.len = sizeof second, .data = second};
    Bourse__V1__FiguresPost post = BOURSE__V1__FIGURES_POST__INIT;
    put(context, MESSAGE_FIGURES_POST, &post.base);
    post.n_devices = 2;
    post.devices = devices;
    put(context, MESSAGE_FIGURES_POST, &post.base);
    Bourse__V1__FiguresTaken taken = BOURSE__V1__FIGURES_TAKEN__INIT;
    put(context, MESSAGE_FIGURES_TAKEN, &taken.base);
}

/* Gives `put` a challenge, and the two ends of its answer. */
static inline void challenge_vectors(void (*put)(void *context, enum message_type type,
                                                 const ProtobufCMessage *body),
                                     void *context)
{
    uint8_t device[16] = {0xd1, 2, 3};
    uint8_t seed[32] = {0x5e, 4, 5};
    uint8_t digests[16] = {6, 7, 8};
    Bourse__V1__ChallengeReady ready = BOURSE__V1__CHALLENGE_READY__INIT;
    put(context, MESSAGE_CHALLENGE_READY, &ready.base);
    Bourse__V1__Challenge challenge = BOURSE__V1__CHALLENGE__INIT;
    challenge.device = (ProtobufCBinaryData){.len = sizeof device, .data = device};
    challenge.seed = (ProtobufCBinaryData){.len = sizeof seed, .data = seed};
    challenge.side = 2048;
    challenge.rounds = 3;
    put(context, MESSAGE_CHALLENGE, &challenge.base);
    ready.has_device = ready.has_seed = ready.has_digests = 1;
    ready.device = challenge.device;
    ready.seed = challenge.seed;
    ready.digests = (ProtobufCBinaryData){.len = sizeof digests, .data = digests};
    put(context, MESSAGE_CHALLENGE_READY, &ready.base);
}

/* Gives `put` what a journal without a quorum adds to a session. */
static inline void outage_vectors(void (*put)(void *context, enum message_type type,
                                              const ProtobufCMessage *body),
                                  void *context)
{
    uint8_t cluster[16] = {0xe0, 1};
    uint8_t log_key[32] = {0xe1, 2};
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = 1;
    hello.program = (char *)(uintptr_t) "golden 1";
    hello.has_waits = hello.waits = 1;
    put(context, MESSAGE_HELLO, &hello.base);
    Bourse__V1__Welcome welcome = BOURSE__V1__WELCOME__INIT;
    welcome.version = 1;
    welcome.cluster = (ProtobufCBinaryData){.len = sizeof cluster, .data = cluster};
    welcome.session = 7;
    welcome.heartbeat_ms = 1000;
    welcome.log_time_ms = 1700000000000;
    welcome.log_index = 42;
    welcome.log_origin = (char *)(uintptr_t) "bourse.example/log";
    welcome.log_key = (ProtobufCBinaryData){.len = sizeof log_key, .data = log_key};
    welcome.max_message_bytes = LIMIT_MESSAGE_BYTES;
    welcome.has_stale_ms = 1;
    welcome.stale_ms = 12345;
    put(context, MESSAGE_WELCOME, &welcome.base);
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_NO_QUORUM;
    reject.text = (char *)(uintptr_t) "https://10.0.0.2:2379 does not answer";
    reject.field = (char *)(uintptr_t) "journal";
    reject.has_value = reject.has_limit = 1;
    reject.value = 12345;
    put(context, MESSAGE_REJECT, &reject.base);
}

/* Gives `put` the messages that carry live output from an agent to a follower, and those of
 * terminals. */
static inline void output_vectors(void (*put)(void *context, enum message_type type,
                                              const ProtobufCMessage *body),
                                  void *context)
{
    Bourse__V1__OutputPiece out = BOURSE__V1__OUTPUT_PIECE__INIT;
    Bourse__V1__OutputPiece error = BOURSE__V1__OUTPUT_PIECE__INIT;
    Bourse__V1__OutputPiece *pieces[] = {&out, &error};
    out.lease = error.lease = 42;
    out.index = error.index = 3;
    out.attempt = 1;
    out.stream = OUTPUT_STREAM_OUT;
    out.offset = 4096;
    out.bytes = (ProtobufCBinaryData){.len = 6, .data = (uint8_t *)(uintptr_t) "line\n\xff"};
    error.attempt = 2;
    error.stream = OUTPUT_STREAM_ERROR;
    error.bytes = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)(uintptr_t) "\n"};
    Bourse__V1__OutputPost post = BOURSE__V1__OUTPUT_POST__INIT;
    put(context, MESSAGE_OUTPUT_POST, &post.base);
    post.n_pieces = 2;
    post.pieces = pieces;
    put(context, MESSAGE_OUTPUT_POST, &post.base);
    Bourse__V1__OutputLease first = BOURSE__V1__OUTPUT_LEASE__INIT;
    Bourse__V1__OutputLease second = BOURSE__V1__OUTPUT_LEASE__INIT;
    Bourse__V1__OutputLease *leases[] = {&first, &second};
    first.lease = 42;
    second.lease = 1000;
    Bourse__V1__OutputWanted wanted = BOURSE__V1__OUTPUT_WANTED__INIT;
    wanted.n_leases = 2;
    wanted.leases = leases;
    put(context, MESSAGE_OUTPUT_WANTED, &wanted.base);
    uint8_t job[16] = {0xa0, 1, 2, 3};
    Bourse__V1__OutputRequest request = BOURSE__V1__OUTPUT_REQUEST__INIT;
    request.job = (ProtobufCBinaryData){.len = sizeof job, .data = job};
    request.has_feed = request.has_after = request.has_wait_ms = 1;
    request.feed = 0x0102030405060708;
    request.after = 70;
    request.wait_ms = LIMIT_WAIT_MS;
    put(context, MESSAGE_OUTPUT_REQUEST, &request.base);
    out.lease = error.lease = 0;
    Bourse__V1__OutputReply reply = BOURSE__V1__OUTPUT_REPLY__INIT;
    reply.feed = request.feed;
    reply.through = 72;
    reply.n_pieces = 2;
    reply.pieces = pieces;
    reply.has_more = reply.more = 1;
    put(context, MESSAGE_OUTPUT_REPLY, &reply.base);
    challenge_vectors(put, context);
    terminal_vectors(put, context);
    figures_vectors(put, context);
    executable_vector(put, context);
    outage_vectors(put, context);
}

#endif
