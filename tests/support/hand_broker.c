#include "tests/support/hand_broker.h"

#include "base/sha256.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct broker_process broker;
struct broker_client owner;

ProtobufCBinaryData bytes_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

void open_market(void)
{
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&owner, &broker, broker.owner, SESSION_CONSUMER);
}

void close_market(void)
{
    broker_client_close(&owner);
    ck_assert(WIFEXITED(broker_process_stop(&broker, SIGTERM)));
    broker_process_fini(&broker);
}

static struct identity *new_identity(void)
{
    uint8_t seed[32];
    entropy_bytes(seed, sizeof seed);
    struct identity *identity = identity_create(seed);
    ck_assert_ptr_nonnull(identity);
    return identity;
}

void expect_accepted(struct broker_client *client, enum message_type type, const struct id128 *id,
                     const ProtobufCMessage *body)
{
    struct dialogue_event event = broker_client_ask(client, type, id, body);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s: %s", message_name(type), event.text);
}

void member_open(struct member *member, uint32_t roles, enum session_role session)
{
    member->identity = new_identity();
    broker_client_open(&member->client, &broker, member->identity, session);
    if (roles == 0) {
        return;
    }
    struct id128 token = entropy_id();
    struct hash32 hash = sha256_of(token.bytes, sizeof token.bytes);
    Bourse__V1__InviteCreate invite = BOURSE__V1__INVITE_CREATE__INIT;
    invite.token_hash = bytes_of(hash.bytes, 32);
    invite.roles = roles;
    invite.expires_ms = dialogue_log_time_ms(owner.dialogue, clock_monotonic_ns()) + 60000;
    expect_accepted(&owner, MESSAGE_INVITE_CREATE, NULL, &invite.base);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = bytes_of(identity_key(member->identity)->bytes, 32);
    join.token = bytes_of(token.bytes, 16);
    join.name = text_of("newcomer");
    expect_accepted(&member->client, MESSAGE_JOIN, NULL, &join.base);
    broker_client_reopen(&member->client);
}

void member_close(struct member *member)
{
    broker_client_close(&member->client);
    identity_destroy(&member->identity);
}

ProtobufCMessage *read_of(struct broker_client *client, enum message_type type,
                          const ProtobufCMessage *body)
{
    struct dialogue_event event = broker_client_ask(client, type, NULL, body);
    ck_assert_msg(event.type == DIALOGUE_REPLY, "%s: %s", message_name(type), event.text);
    ck_assert_int_eq(event.message_type, message_answer(type));
    return event.body;
}

void expect_refused(struct broker_client *client, enum message_type type,
                    const ProtobufCMessage *body, enum reject_code code)
{
    struct dialogue_event event = broker_client_ask(client, type, NULL, body);
    ck_assert_msg(event.type == DIALOGUE_REJECTED, "%s was answered", message_name(type));
    ck_assert_str_eq(reject_name(event.reject), reject_name(code));
}

void advertise(struct member *provider, uint32_t count, Bourse__V1__Attribute **attributes,
               size_t attribute_count)
{
    static uint8_t ids[LIMIT_DEVICES][16];
    static Bourse__V1__Device devices[LIMIT_DEVICES];
    static Bourse__V1__Device *pointers[LIMIT_DEVICES];
    for (uint32_t i = 0; i < count; i++) {
        memcpy(ids[i], &i, sizeof i);
        ids[i][15] = 1;
        bourse__v1__device__init(&devices[i]);
        devices[i].device = bytes_of(ids[i], 16);
        devices[i].instrument = text_of("cpu.test");
        devices[i].slots = 2;
        devices[i].attributes = attributes;
        devices[i].n_attributes = attribute_count;
        pointers[i] = &devices[i];
    }
    Bourse__V1__Advertise body = BOURSE__V1__ADVERTISE__INIT;
    body.n_devices = count;
    body.devices = pointers;
    expect_accepted(&provider->client, MESSAGE_ADVERTISE, NULL, &body.base);
}

void ask(struct member *provider, uint32_t device, int64_t price_micro, const struct id128 *order)
{
    uint8_t id[16] = {0};
    memcpy(id, &device, sizeof device);
    id[15] = 1;
    Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
    body.device = bytes_of(id, sizeof id);
    body.slots = 2;
    body.price_micro = price_micro;
    expect_accepted(&provider->client, MESSAGE_ASK_PLACE, order, &body.base);
}

void bid(struct broker_client *client, const struct id128 *job)
{
    static const uint8_t manifest[32] = {1};
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    body.name = text_of("job");
    body.manifest = bytes_of(manifest, sizeof manifest);
    body.subtasks = 3;
    body.budget_micro = 1000000;
    body.has_cap_micro = true;
    body.cap_micro = 1000;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 60000;
    body.term_ms = 600000;
    body.verify = text_of("none");
    expect_accepted(client, MESSAGE_SUBMIT_JOB, job, &body.base);
}
