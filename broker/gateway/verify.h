/* The signature workers decode bodies, verify signatures and hash (docs/decisions.md D5).
 *
 * One Ed25519 check costs as much as 1,600 matches, so it happens here and never in apply. The
 * verdict is part of the command, and so is whether outputs of results are stored. One worker
 * handles all messages of an account, in order. */
#ifndef BOURSE_BROKER_GATEWAY_VERIFY_H
#define BOURSE_BROKER_GATEWAY_VERIFY_H

#include "base/id.h"
#include "broker/blob/outputs.h"
#include "broker/core/request.h"
#include "broker/gateway/budget.h"
#include "protocol/reject.h"

#include <stdbool.h>

struct verify_worker;

/* Returns whether the outputs that a result names are stored, and adds to *looks the look-ups that
 * the sender is charged for (broker/blob/outputs.h). */
typedef enum outputs_verdict verify_look(void *context, uint32_t sender,
                                         const Bourse__V1__Result *result, uint64_t *looks);

struct verify_config {
    struct queue *inbound;  /* requests from the gateway */
    struct queue *core;     /* requests that passed */
    struct queue *releases; /* refusals, which skip the core */
    struct budget *budget;  /* shared with the gateway; NULL: none */
    struct id128 cluster;
    verify_look *look; /* NULL: all outputs count as stored */
    void *context;     /* passed to `look` */
};

/* Starts the thread. The process ends when memory or threads are short. */
struct verify_worker *verify_start(const struct verify_config *config);
/* Closes `inbound`, handles the rest, and ends the thread. */
void verify_stop(struct verify_worker **self);

/* Decodes and verifies one message. Returns REJECT_NONE, or the refusal with its field in
 * *ret_error. */
enum reject_code verify_request(struct request *request, const struct id128 *cluster,
                                struct codec_error *ret_error);

#endif
