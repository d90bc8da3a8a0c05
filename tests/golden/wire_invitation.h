/* tests/golden/wire_invitation.h writes an invitation to one broker, and one to two brokers. */
#ifndef BOURSE_TESTS_GOLDEN_WIRE_INVITATION_H
#define BOURSE_TESTS_GOLDEN_WIRE_INVITATION_H

#include "runtime/invitation.h"
#include "tests/golden/wire_vector.h"

/* Writes the vectors. Returns false when one of them cannot be written, or is read otherwise. */
static inline bool wire_invitation(struct text *text, const struct cast *cast)
{
    struct invitation invitation = {.expires_ms = 1800000000000};
    (void)snprintf(invitation.market.control, sizeof invitation.market.control,
                   "tcp://192.0.2.1:7001");
    (void)snprintf(invitation.market.blobs, sizeof invitation.market.blobs, "tcp://192.0.2.1:7002");
    (void)snprintf(invitation.market.origin, sizeof invitation.market.origin, "bourse.example/log");
    invitation.market.server = *identity_transport(cast->provider);
    invitation.market.log_key = *identity_key(cast->provider);
    invitation.market.cluster = cast->cluster;
    memcpy(invitation.token.bytes, cast->token, 16);
    char word[1024];
    struct invitation again;
    if (!invitation_write(&invitation, word, sizeof word) || !invitation_read(word, &again, NULL)) {
        return false;
    }
    put(text, "[invitation]\nserver key: transport key of the provider above\nlog key: account key "
              "of the provider\n");
    put(text, "control: \"%s\"\nblobs: \"%s\"\norigin: \"%s\"\nexpires_ms: %lld\n",
        again.market.control, again.market.blobs, again.market.origin, again.expires_ms);
    put_hex(text, "cluster", again.market.cluster.bytes, 16);
    put_hex(text, "token", again.token.bytes, 16);
    put(text, "text: %s\n", word);

    invitation.market.other_count = 1;
    (void)snprintf(invitation.market.others[0].control, sizeof invitation.market.others[0].control,
                   "tcp://b.exchange.example:7001");
    (void)snprintf(invitation.market.others[0].blobs, sizeof invitation.market.others[0].blobs,
                   "tcp://b.exchange.example:7002");
    if (!invitation_write(&invitation, word, sizeof word) || !invitation_read(word, &again, NULL)) {
        return false;
    }
    put(text, "other control: \"%s\"\nother blobs: \"%s\"\ntext of both brokers: %s\n",
        again.market.others[0].control, again.market.others[0].blobs, word);
    return true;
}

#endif
