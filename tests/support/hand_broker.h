/* tests/support/hand_broker.h runs a real broker, whose members act by single messages.
 *
 * One market per test: open_market and close_market. `owner` is a client of the operator, who is a
 * consumer too. Members join by invitation. */
#ifndef BOURSE_TESTS_HAND_BROKER_H
#define BOURSE_TESTS_HAND_BROKER_H

#include "protocol/message.h"
#include "tests/support/broker_process.h"

extern struct broker_process broker;
extern struct broker_client owner;

ProtobufCBinaryData bytes_of(const void *bytes, size_t length);
char *text_of(const char *text);

void open_market(void);
void close_market(void);

struct member {
    struct identity *identity;
    struct broker_client client;
};
/* Makes a member with these roles; 0: a stranger. */
void member_open(struct member *member, uint32_t roles, enum session_role session);
void member_close(struct member *member);

void expect_accepted(struct broker_client *client, enum message_type type, const struct id128 *id,
                     const ProtobufCMessage *body);
void expect_refused(struct broker_client *client, enum message_type type,
                    const ProtobufCMessage *body, enum reject_code code);
/* Returns the reply to a read, which the caller frees. */
ProtobufCMessage *read_of(struct broker_client *client, enum message_type type,
                          const ProtobufCMessage *body);

/* Advertises `count` devices of two slots, each with the same `attributes` and the instrument
 * cpu.test. */
void advertise(struct member *provider, uint32_t count, Bourse__V1__Attribute **attributes,
               size_t attribute_count);
/* Asks for both slots of one of the devices. */
void ask(struct member *provider, uint32_t device, int64_t price_micro, const struct id128 *order);
/* Submits a job of three subtasks that pays 1000 micro-credits a slot-hour for anything. */
void bid(struct broker_client *client, const struct id128 *job);

#endif
