/* A sender pays for the look-ups that its results cause, before it may send more. */
#include "broker/gateway/verify.h"

#include "base/checked.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "tests/support/market_wire.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>

enum { PROVIDER = 7, SESSION = 70, STEPS = 1000000, QUEUED = 4 };

static const struct budget_asker sender = {
    .account = PROVIDER, .session = SESSION, .kind = BUDGET_COMMANDS};

static struct market_wire wire;
static struct budget *budget;
static struct queue *inbound, *core, *releases;
static struct verify_worker *worker;
static uint64_t looked; /* look-ups that the next look reports */

static enum outputs_verdict look(void *context, uint32_t account, const Bourse__V1__Result *result,
                                 uint64_t *looks)
{
    ck_assert_ptr_null(context);
    ck_assert_uint_eq(account, PROVIDER);
    ck_assert_ptr_nonnull(result);
    *looks += looked;
    return OUTPUTS_STORED;
}

static void set_up(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    wire = (struct market_wire){.cluster = {{3}}};
    budget = budget_create(STEPS);
    inbound = queue_create(QUEUED);
    core = queue_create(QUEUED);
    releases = queue_create(QUEUED);
    ck_assert(budget != NULL && inbound != NULL && core != NULL && releases != NULL);
    const struct verify_config config = {.inbound = inbound,
                                         .core = core,
                                         .releases = releases,
                                         .budget = budget,
                                         .cluster = wire.cluster,
                                         .look = look};
    worker = verify_start(&config);
}

static void tear_down(void)
{
    queue_close(inbound);
    verify_stop(&worker);
    queue_destroy(&inbound);
    queue_destroy(&core);
    queue_destroy(&releases);
    budget_destroy(&budget);
    market_wire_fini(&wire);
}

/* Sends one signed result through the worker. Returns true when the sender may send more. */
static bool send_one(uint64_t looks)
{
    const struct exchange_result result = {.outcome = 10, .job = {{1}}, .attempt = 1, .lease = 1};
    const struct exchange_command command = {
        .type = EXCHANGE_RESULTS, .account = PROVIDER, .results = {.results = &result, .count = 1}};
    struct entry_command entry;
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->message = market_wire_payload(&wire, &command, false, &entry);
    request->length = entry.payload_length;
    request->kind = REQUEST_MESSAGE;
    request->account = PROVIDER;
    request->session = SESSION;
    request->key = *identity_key(market_wire_sender(&wire, &command));
    ck_assert_int_eq(
        envelope_read(request->message, request->length, LIMIT_MESSAGE_BYTES, &request->envelope),
        ENVELOPE_OK);
    looked = looks;
    ck_assert(queue_push(inbound, &request->link));
    struct queue_link *link = queue_pop(core, 10 * NS_PER_S);
    ck_assert_msg(link != NULL, "the result did not pass");
    request = QUEUE_ELEMENT(link, struct request, link);
    request_destroy(&request);
    return budget_admits(budget, &sender, clock_monotonic_ns());
}

START_TEST(looks_are_charged_to_the_sender)
{
    ck_assert(send_one(0));
    ck_assert(!send_one(STEPS)); /* more than BUDGET_LOOK_STEPS seconds behind */
}
END_TEST

SUITE("verify", set_up, tear_down, TEST(looks_are_charged_to_the_sender))
