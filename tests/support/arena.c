#include "tests/support/arena.h"

#include "audit/audit.h"
#include "base/sha256.h"
#include "broker/storage/replay.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

ProtobufCBinaryData arena_bytes(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

struct identity *arena_identity(void)
{
    uint8_t seed[32];
    entropy_bytes(seed, sizeof seed);
    struct identity *identity = identity_create(seed);
    ck_assert_ptr_nonnull(identity);
    return identity;
}

void arena_join(struct arena *arena, struct broker_client *client, const struct identity *identity,
                const char *name, uint32_t roles)
{
    struct id128 token = entropy_id();
    struct hash32 hash = sha256_of(token.bytes, sizeof token.bytes);
    broker_client_open(client, &arena->broker, identity, SESSION_CONSUMER);
    Bourse__V1__InviteCreate invite = BOURSE__V1__INVITE_CREATE__INIT;
    invite.token_hash = arena_bytes(hash.bytes, 32);
    invite.roles = roles;
    invite.credits_micro = 1000000;
    invite.expires_ms = dialogue_log_time_ms(arena->owner.dialogue, clock_monotonic_ns()) + 60000;
    struct dialogue_event event =
        broker_client_ask(&arena->owner, MESSAGE_INVITE_CREATE, NULL, &invite.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = arena_bytes(identity_key(identity)->bytes, 32);
    join.token = arena_bytes(token.bytes, 16);
    join.name = (char *)(uintptr_t)name;
    event = broker_client_ask(client, MESSAGE_JOIN, NULL, &join.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
}

void arena_open(struct arena *arena, const char *extra)
{
    broker_process_init(&arena->broker, extra);
    broker_process_start(&arena->broker);
    broker_client_open(&arena->owner, &arena->broker, arena->broker.owner, SESSION_CONSUMER);
    broker_client_open(&arena->loud, &arena->broker, arena->broker.owner, SESSION_CONSUMER);
    arena->enemy_key = arena_identity();
    arena_join(arena, &arena->enemy, arena->enemy_key, "enemy", ROLE_CONSUMER);
}

struct arena_state arena_state_of(struct arena *arena)
{
    struct arena_state state;
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct dialogue_event event =
        broker_client_ask(&arena->owner, MESSAGE_BALANCE_REQUEST, NULL, &balance.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    state.available_micro = ((Bourse__V1__BalanceReply *)(void *)event.body)->available_micro;
    codec_free(&event.body);
    Bourse__V1__CheckpointRequest checkpoint = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    event = broker_client_ask(&arena->owner, MESSAGE_CHECKPOINT_REQUEST, NULL, &checkpoint.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    state.tree_size = ((Bourse__V1__CheckpointReply *)(void *)event.body)->tree_size;
    codec_free(&event.body);
    return state;
}

void arena_check_unchanged(struct arena *arena, struct arena_state before)
{
    struct arena_state after = arena_state_of(arena);
    ck_assert_int_eq(after.available_micro, before.available_micro);
    ck_assert_uint_eq(after.tree_size, before.tree_size);
}

static bool count_refusal(void *context, const struct audit_act *act)
{
    struct arena *arena = context;
    ck_assert_uint_lt(act->code, REJECT_CODE_COUNT);
    arena->refused[act->code] += act->count;
    return true;
}

void arena_close(struct arena *arena)
{
    (void)arena_state_of(arena);
    broker_client_close(&arena->enemy);
    broker_client_close(&arena->loud);
    broker_client_close(&arena->owner);
    int status = broker_process_stop(&arena->broker, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
    const char *verify[] = {"bourse-broker", "replay", "--verify", arena->broker.folder, NULL};
    char output[1024];
    ck_assert_msg(broker_process_run(verify, output, sizeof output) == 0, "%s", output);
    struct audit_report report;
    memset(arena->refused, 0, sizeof arena->refused);
    audit_acts_run(arena->broker.folder, 1, count_refusal, arena, &report);
    ck_assert_msg(report.verdict == AUDIT_OK, "%s", report.what);
    broker_process_fini(&arena->broker);
    identity_destroy(&arena->enemy_key);
}

long arena_resident_kib(const struct arena *arena)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)arena->broker.pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

struct link *arena_connect(void *context, const char *endpoint, const struct arena *arena,
                           const struct identity *identity, size_t max_bytes)
{
    struct link *link;
    struct problem problem;
    ck_assert_msg(link_open(context, endpoint, &arena->broker.market.server, identity, max_bytes,
                            &link, &problem),
                  "%s", problem.text);
    return link;
}

int arena_connect_raw(const char *endpoint)
{
    int descriptor;
    if (strncmp(endpoint, "ipc://", 6) == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", endpoint + 6);
        descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
        return descriptor;
    }
    const char *port = strrchr(endpoint, ':');
    ck_assert_ptr_nonnull(port);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

void arena_put(struct link *link, const void *bytes, size_t length)
{
    zmq_pollitem_t item = {.socket = link_socket(link), .events = ZMQ_POLLOUT};
    ck_assert_int_eq(zmq_poll(&item, 1, ARENA_WAIT_MS), 1);
    ck_assert(link_send(link, bytes, length));
}

/* Reads what has come. Returns true when one of the messages says Accepted. */
bool arena_drain(struct link *link, int wait_ms)
{
    bool accepted = false;
    const uint8_t *message;
    size_t length;
    while (link_receive(link, wait_ms, &message, &length) == 1) {
        struct envelope envelope;
        if (envelope_read(message, length, LIMIT_BLOB_MESSAGE_BYTES, &envelope) == ENVELOPE_OK) {
            accepted = accepted || envelope.type == MESSAGE_ACCEPTED;
        }
        wait_ms = 0;
    }
    return accepted;
}

size_t arena_write(const struct envelope *envelope, uint8_t *ret_bytes, size_t capacity)
{
    ck_assert_uint_le(envelope_size(envelope), capacity);
    envelope_write(envelope, ret_bytes, capacity);
    return envelope_size(envelope);
}

struct hash32 arena_hash(const struct arena *arena)
{
    struct replay_summary summary;
    struct problem problem;
    ck_assert_msg(replay_check(arena->broker.folder, &summary, &problem) == REPLAY_OK, "%s",
                  problem.text);
    return summary.state;
}

/* ---------------------------------------------------------------- one message by hand */

struct said arena_saying(const struct arena *arena, uint16_t type)
{
    return (struct said){.type = type,
                         .version = ENVELOPE_VERSION,
                         .id = entropy_id(),
                         .signer = arena->broker.owner,
                         .cluster = &arena->broker.market.cluster};
}

size_t arena_write_said(const struct said *said, const struct broker_client *client,
                        uint8_t *ret_bytes, size_t capacity)
{
    struct envelope envelope = {
        .version = said->version,
        .type = said->type,
        .session = dialogue_welcome(client->dialogue)->session,
        .sequence = 1000,
        .id = said->id,
        .created_ms = dialogue_log_time_ms(client->dialogue, clock_monotonic_ns()) + said->made_ms,
        .body = said->body,
        .body_length = (uint32_t)said->length};
    if (said->is_signed) {
        ck_assert(identity_sign_envelope(said->signer, said->cluster, &envelope));
    }
    return arena_write(&envelope, ret_bytes, capacity);
}

enum reject_code arena_reject_code(const struct envelope *reject)
{
    ProtobufCMessage *body = NULL;
    struct codec_error error;
    ck_assert_int_eq(codec_decode(MESSAGE_REJECT, reject->body, reject->body_length, &body, &error),
                     CODEC_OK);
    enum reject_code code = (enum reject_code)((Bourse__V1__Reject *)(void *)body)->code;
    codec_free(&body);
    return code;
}
