#include "broker/standby.h"

#include "broker/answer/reader.h"
#include "broker/answer/standby_reads.h"
#include "broker/core/release.h"
#include "broker/fatal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One thread decodes the reads of all members; they have no signatures. */
enum { REQUESTS = 4096, RELEASES = 16384, READS = 256, NAMES = 4096 };

struct standby {
    pthread_mutex_t state;
    struct following_note following;
    struct queue *worker_in, *reads_in, *reader_in, *names, *releases;
    struct budget *budget;
    struct reader_thread *reader;
    struct standby_reads *reads;
    struct verify_worker *worker;
    struct gateway *gateway;
};

static struct directory *directory_now(const struct broker *broker)
{
    struct directory *directory = directory_of(broker->exchange);
    if (directory == NULL) {
        fatal("the broker cannot follow: out of memory");
    }
    return directory;
}

static void start_reader(struct standby *standby, struct broker *broker)
{
    struct reader_config reader = {.cluster = broker->store.genesis.cluster,
                                   .directory = directory_now(broker),
                                   .inbound = standby->reader_in,
                                   .names = standby->names,
                                   .releases = standby->releases,
                                   .durable = &broker->store.durable,
                                   .applied = &broker->store.applied,
                                   .synced = &broker->store.synced,
                                   .budget = standby->budget};
    (void)snprintf(reader.database, sizeof reader.database, "%s", broker->database);
    (void)snprintf(reader.history, sizeof reader.history, "%s", broker->history);
    (void)snprintf(reader.blobs, sizeof reader.blobs, "%s", broker->blobs_folder);
    standby->reader = reader_start(&reader);
}

static void start_gateway(struct standby *standby, struct broker *broker)
{
    const struct genesis *genesis = &broker->store.genesis;
    struct gateway_config gateway = {.router = broker->control,
                                     .directory = directory_now(broker),
                                     .workers = {standby->worker_in},
                                     .worker_count = 1,
                                     .releases = standby->releases,
                                     .heartbeat_ms = broker->config.heartbeat_ms,
                                     .rate = broker->config.rate,
                                     .rate_anonymous = broker->config.rate_anonymous,
                                     .budget = standby->budget,
                                     .cluster = genesis->cluster,
                                     .log_key = genesis->log_key,
                                     .reserve = &broker->reserve,
                                     .refusals = broker->store.refusals,
                                     .following = &standby->following};
    memcpy(gateway.origin, genesis->origin, sizeof gateway.origin);
    standby->gateway = gateway_start(&gateway);
}

struct standby *standby_start(struct broker *broker)
{
    struct standby *standby = calloc(1, sizeof *standby);
    if (standby == NULL) {
        fatal("the broker cannot follow: out of memory");
    }
    pthread_mutex_init(&standby->state, NULL);
    following_note_init(&standby->following);
    following_note_state(&standby->following, exchange_index(broker->exchange),
                         exchange_log_time_ns(broker->exchange));
    standby->worker_in = queue_create(REQUESTS);
    standby->reads_in = queue_create(REQUESTS);
    standby->reader_in = queue_create(READS);
    standby->names = queue_create(NAMES);
    standby->releases = queue_create(RELEASES);
    standby->budget = budget_create(broker->config.steps);
    if (standby->worker_in == NULL || standby->reads_in == NULL || standby->reader_in == NULL ||
        standby->names == NULL || standby->releases == NULL || standby->budget == NULL) {
        fatal("the broker cannot follow: no memory or no file descriptor is left");
    }
    start_reader(standby, broker);
    const struct standby_reads_config reads = {.exchange = broker->exchange,
                                               .state = &standby->state,
                                               .inbound = standby->reads_in,
                                               .reader = standby->reader_in,
                                               .releases = standby->releases,
                                               .budget = standby->budget,
                                               .refusals = broker->store.refusals,
                                               .following = &standby->following};
    standby->reads = standby_reads_start(&reads);
    const struct verify_config worker = {.inbound = standby->worker_in,
                                         .core = standby->reads_in,
                                         .releases = standby->releases,
                                         .budget = standby->budget,
                                         .cluster = broker->store.genesis.cluster};
    standby->worker = verify_start(&worker);
    start_gateway(standby, broker);
    return standby;
}

pthread_mutex_t *standby_state(struct standby *standby)
{
    return &standby->state;
}

struct following_note *standby_following(struct standby *standby)
{
    return &standby->following;
}

/* ---- what entries bring */

/* Accounts go to the directories. Everything else is the leader's to send. */
static void take_account(void *context, struct outgoing *outgoing)
{
    struct standby *standby = context;
    struct outgoing *copy = outgoing_account(&outgoing->opened);
    if (copy == NULL) {
        fatal("out of memory");
    }
    if (!queue_push(standby->names, &copy->link)) {
        outgoing_destroy(&copy);
    }
    if (!queue_push(standby->releases, &outgoing->link)) {
        outgoing_destroy(&outgoing);
    }
}

void standby_applied(struct standby *standby, const struct exchange_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct exchange_effects one = {.items = &effects->items[i], .count = 1};
        if (one.items->type == EFFECT_ACCOUNT && !release_effects(&one, take_account, standby)) {
            fatal("out of memory");
        }
    }
    queue_wake(standby->reads_in); /* whoever follows the market hears of it */
}

/* ---- the end */

static void drop_requests(struct queue **queue)
{
    request_drain(*queue);
    queue_destroy(queue);
}

static void drop_outgoing(struct queue **queue)
{
    outgoing_drain(*queue);
    queue_destroy(queue);
}

/* The threads stop in the order in which a read flows. */
void standby_stop(struct standby **self)
{
    struct standby *standby = *self;
    if (standby == NULL) {
        return;
    }
    verify_stop(&standby->worker);
    standby_reads_stop(&standby->reads);
    reader_stop(&standby->reader);
    gateway_stop(&standby->gateway);
    drop_requests(&standby->worker_in);
    drop_requests(&standby->reads_in);
    drop_requests(&standby->reader_in);
    drop_outgoing(&standby->names);
    drop_outgoing(&standby->releases);
    budget_destroy(&standby->budget);
    following_note_fini(&standby->following);
    pthread_mutex_destroy(&standby->state);
    free(standby);
    *self = NULL;
}
