/* tests/support/signed_request.h makes a message of a client the request that the core gets, signed
 * by an identity of the test. One program includes it once; setup and teardown are its fixture. */
#ifndef BOURSE_TESTS_SUPPORT_SIGNED_REQUEST_H
#define BOURSE_TESTS_SUPPORT_SIGNED_REQUEST_H

#include "broker/core/request.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>

static const struct id128 cluster = {{1, 2, 3}};
static struct identity *identity;
static struct request *request;

static inline void setup(void)
{
    const uint8_t seed[32] = {5};
    ck_assert_int_ge(sodium_init(), 0);
    identity = identity_create(seed);
    request = request_create();
    ck_assert(identity != NULL && request != NULL);
    request->kind = REQUEST_MESSAGE;
    request->key = *identity_key(identity);
    request->transport = *identity_transport(identity);
}

static inline void teardown(void)
{
    identity_destroy(&identity);
    request_destroy(&request);
}

static inline ProtobufCBinaryData bytes_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* Makes the body the request's message, signed by our identity for its cluster. */
static inline void fill(enum message_type type, const ProtobufCMessage *body)
{
    size_t length = 0;
    uint8_t *packed = codec_encode(body, &length);
    ck_assert_ptr_nonnull(packed);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = 3,
                                .id = {{7}},
                                .created_ms = 99,
                                .body = packed,
                                .body_length = (uint32_t)length};
    ck_assert(identity_sign_envelope(identity, &cluster, &envelope));
    request->length = envelope_size(&envelope);
    request->message = malloc(request->length);
    ck_assert_ptr_nonnull(request->message);
    envelope_write(&envelope, request->message, request->length);
    free(packed);
    ck_assert_int_eq(
        envelope_read(request->message, request->length, LIMIT_MESSAGE_BYTES, &request->envelope),
        ENVELOPE_OK);
}

static inline Bourse__V1__SubmitJob submit_body(const char *verify)
{
    static const uint8_t manifest[32] = {1};
    static Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = (char *)(uintptr_t) "n";
    body.manifest = bytes_of(manifest, sizeof manifest);
    body.subtasks = 3;
    body.budget_micro = 5;
    body.needs = &needs;
    body.slots = 1;
    body.at_most = 2;
    body.limit_ms = 1500;
    body.term_ms = 60000;
    body.verify = (char *)(uintptr_t)verify;
    return body;
}

#endif
