/* broker/gateway/verify.h - the signature workers: decode bodies, verify signatures, hash
 * (docs/decisions.md D5).
 *
 * One Ed25519 check costs as much as 1,600 matches, so it happens here, never in apply; the verdict
 * is part of the command, and so is whether what results leave is stored. One worker handles all of
 * an account, in order. */
#ifndef BOURSE_BROKER_GATEWAY_VERIFY_H
#define BOURSE_BROKER_GATEWAY_VERIFY_H

#include "base/id.h"
#include "broker/blob/outputs.h"
#include "broker/core/messages.h"
#include "broker/gateway/budget.h"

#include <stdbool.h>

struct verify_worker;

/* Whether what a result has to leave is stored (broker/blob/outputs.h). */
typedef enum outputs_verdict verify_look(void *context, uint32_t sender,
                                         const Bourse__V1__Result *result);

struct verify_config {
    struct queue *inbound;  /* requests from the gateway */
    struct queue *core;     /* requests that passed */
    struct queue *releases; /* refusals, straight back */
    struct budget *budget;  /* shared with the gateway; NULL: none */
    struct id128 cluster;
    verify_look *look; /* NULL: all is stored */
    void *context;     /* of look */
};

struct verify_worker *
verify_start(const struct verify_config *config); /* the process ends when that fails */
/* Closes `inbound`, lets the rest through, ends the thread. */
void verify_stop(struct verify_worker **self);

/* What a worker does with one message: decodes and verifies. REJECT_NONE, or the refusal and its
 * field. */
enum reject_code verify_request(struct request *request, const struct id128 *cluster,
                                struct codec_error *ret_error);

#endif
