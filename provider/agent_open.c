/* This file opens the parts of the agent before its loop, and closes them after it. The threads of
 * these parts report here what the loop then takes up. The file also hands challenges of the broker
 * to the thread that computes them. */
#include "base/array.h"
#include "base/text.h"
#include "provider/agent.h"
#include "provider/agent_internal.h"
#include "provider/owner.h"
#include "provider/session/agent_session.h"
#include "provider/work/lanes.h"
#include "provider/work/mender.h"
#include "provider/work/transfer.h"
#include "provider/work/unaccepted.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/link.h"
#include "runtime/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

/* ---------------------------------------------------------------- reports of other threads */

static void wake(struct reports *reports)
{
    uint64_t one = 1;
    ssize_t written = write(reports->event, &one, sizeof one);
    (void)written; /* a full counter wakes as well */
}

void agent_report_left(void *context, const struct agent_work *work)
{
    struct reports *reports = &((struct agent *)context)->reports;
    pthread_mutex_lock(&reports->mutex);
    struct agent_work *left =
        array_with_room(reports->left, reports->left_count, &reports->left_capacity, sizeof *left);
    if (left != NULL) {
        left[reports->left_count++] = *work;
        reports->left = left;
    } /* without memory the outcome, soon after, frees the lane */
    pthread_mutex_unlock(&reports->mutex);
    wake(reports);
}

void agent_report_terminal(void *context, const struct agent_work *work, int master)
{
    struct reports *reports = &((struct agent *)context)->reports;
    pthread_mutex_lock(&reports->mutex);
    struct agent_terminal *terminals =
        array_with_room(reports->terminals, reports->terminal_count, &reports->terminal_capacity,
                        sizeof *terminals);
    if (terminals != NULL) {
        terminals[reports->terminal_count++] =
            (struct agent_terminal){.work = *work, .master = master};
        reports->terminals = terminals;
    } else {
        (void)close(master); /* the program gets SIGHUP */
    }
    pthread_mutex_unlock(&reports->mutex);
    wake(reports);
}

void agent_report_done(void *context, struct list_link *outcomes)
{
    struct reports *reports = &((struct agent *)context)->reports;
    pthread_mutex_lock(&reports->mutex);
    bool is_first = list_empty(&reports->done);
    list_append_all(&reports->done, outcomes);
    pthread_mutex_unlock(&reports->mutex);
    if (is_first) { /* otherwise the loop is woken already */
        wake(reports);
    }
}

void agent_report_ran(void *context, struct list_link *outcomes)
{
    transfer_submit(((struct agent *)context)->transfer, outcomes);
}

/* ---------------------------------------------------------------- opening */

bool agent_open_session(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    struct contact addresses[CONTACTS_MAX];
    struct agent_session_config config = {
        .identity = setup->identity,
        .program = "bourse-provider " BOURSE_VERSION,
        .cluster = setup->market->cluster,
        .addresses = addresses,
        .address_count = market_addresses(setup->market, addresses),
        .can_store_again = true,
        .answers_challenges =
            setup->tensor_path != NULL || setup->kernel_path != NULL || setup->plugin_path != NULL,
    };
    entropy_bytes(config.dice.bytes, sizeof config.dice.bytes);
    agent->session = agent_session_create(&config);
    if (agent->session == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    struct agent_device devices[1 + CONFIG_DEVICES_MAX];
    struct agent_ask asks[1 + CONFIG_DEVICES_MAX];
    size_t count = setup->offers->count;
    for (size_t i = 0; i < count; i++) {
        devices[i] = setup->offers->items[i].device;
        asks[i] = setup->offers->items[i].ask;
    }
    if (agent_session_offer(agent->session, clock_monotonic_ns(), devices, count, asks, count) !=
        AGENT_OK) {
        problem_set(problem, "the offer of %zu devices does not fit a message of %d bytes", count,
                    (int)LIMIT_MESSAGE_BYTES);
        return false;
    }
    return link_open(agent->zmq, setup->market->control, &setup->market->server, setup->identity,
                     LIMIT_MESSAGE_BYTES, &agent->link, problem) &&
           (config.address_count == 1 || link_watch(agent->link, problem));
}

bool agent_open_blobs(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    char cache[CONFIG_PATH_SIZE + 16];
    char images[CONFIG_PATH_SIZE + 16];
    (void)snprintf(cache, sizeof cache, "%s/cache", setup->config->folder);
    (void)snprintf(images, sizeof images, "%s/images", setup->config->folder);
    const struct network_terms *limits = &setup->config->network;
    if ((limits->rate_bytes > 0 || limits->month_bytes > 0) &&
        !network_open(setup->config->folder, limits, &agent->network, problem)) {
        return false;
    }
    struct transfer_config transfer = {
        .zmq = agent->zmq,
        .port = &agent->blob_port,
        .server = setup->market->server,
        .identity = setup->identity,
        .meter = agent->network == NULL ? NULL : network_meter,
        .meter_context = agent->network,
        .done = agent_report_done,
        .context = agent,
    };
    if (!transfer_open(&transfer, &agent->transfer, problem)) {
        return false;
    }
    struct store_config store = {
        .folder = cache,
        .cap_bytes = setup->config->cache_bytes,
        .threads = TRANSFER_FETCHERS,
        .fetch = transfer_fetch,
        .lend = transfer_lend,
        .context = agent->transfer,
    };
    struct images_config unpacked = {
        .folder = images,
        .cap_bytes = setup->config->cache_bytes,
        .limits = {.entries = setup->config->image_files, .bytes = setup->config->image_bytes},
        .launcher = setup->launcher,
        .worker_path = setup->worker_path,
        .cgroups = setup->cgroups,
    };
    if (!store_open(&store, &agent->store, problem)) {
        return false;
    }
    const struct mender_config mender = {
        .zmq = agent->zmq,
        .port = &agent->blob_port,
        .server = setup->market->server,
        .identity = setup->identity,
        .store = agent->store,
        .meter = agent->network == NULL ? NULL : network_meter,
        .meter_context = agent->network,
    };
    return images_open(&unpacked, &agent->images, problem) &&
           mender_open(&mender, &agent->mender, problem);
}

bool agent_open_lanes(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    agent->gauges = energy_gauge_create();
    struct lanes_config lanes = {
        .launcher = setup->launcher,
        .cgroups = setup->cgroups,
        .worker_path = setup->worker_path,
        .tensor_path = setup->tensor_path,
        .kernel_path = setup->kernel_path,
        .plugin_path = setup->plugin_path,
        .config = setup->config,
        .offers = setup->offers,
        .machine = setup->machine,
        .cpu_enforced = setup->isolation->cpu_enforced,
        .store = agent->store,
        .images = agent->images,
        .counters = {.meter = setup->meter, .gauges = agent->gauges, .tally = &agent->tally},
        .left = agent_report_left,
        .done = agent_report_ran,
        .terminal = agent_report_terminal,
        .context = agent,
    };
    agent->lanes = lanes_create(&lanes);
    /* A broker behind a socket of this machine is reached without a network. */
    const bool is_local = strncmp(setup->market->control, "ipc:", 4) == 0;
    agent->live = live_output_create(is_local ? NULL : agent->network);
    agent->terminals = terminals_create();
    agent->absence = link_absence_create();
    const bool good = agent->gauges != NULL && agent->lanes != NULL && agent->live != NULL &&
                      agent->terminals != NULL && agent->absence != NULL;
    if (!good) {
        problem_set(problem, "out of memory");
    }
    return good;
}

/* The other thread calls this function. */
static void report_done(void *context)
{
    const struct agent *agent = context;
    const uint64_t one = 1;
    const ssize_t written = write(agent->reports.event, &one, sizeof one);
    (void)written; /* a full counter wakes as well */
}

bool agent_open_challenger(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    const struct challenger_config config = {.launcher = setup->launcher,
                                             .cgroups = setup->cgroups,
                                             .worker_path = setup->worker_path,
                                             .tensor_path = setup->tensor_path,
                                             .kernel_path = setup->kernel_path,
                                             .plugin_path = setup->plugin_path,
                                             .config = setup->config,
                                             .done = report_done,
                                             .context = agent};
    if (setup->tensor_path == NULL && setup->kernel_path == NULL && setup->plugin_path == NULL) {
        return true; /* no device claims a speed that is challenged */
    }
    agent->challenger = challenger_create(&config);
    if (agent->challenger == NULL) {
        problem_set(problem, "out of memory");
    }
    return agent->challenger != NULL;
}

bool agent_open_retrial(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    const struct retrial_config config = {.launcher = setup->launcher,
                                          .cgroups = setup->cgroups,
                                          .worker_path = setup->worker_path,
                                          .kernel_path = setup->kernel_path,
                                          .plugin_path = setup->plugin_path,
                                          .config = setup->config,
                                          .done = report_done,
                                          .context = agent};
    agent->retrial = retrial_create(&config);
    if (agent->retrial == NULL) {
        problem_set(problem, "out of memory");
    }
    return agent->retrial != NULL;
}

bool agent_open_owner(struct agent *agent, struct problem *problem)
{
    if (!owner_open(agent->setup->config->folder, &agent->owner, problem)) {
        return false;
    }
    owner_begin(agent->owner, agent->session, clock_monotonic_ns());
    return true;
}

static void leave(struct agent *agent)
{
    if (agent->session != NULL && agent->link != NULL) {
        agent_session_goodbye(agent->session, clock_monotonic_ns(), "the agent ends");
        agent_carry_out(agent, clock_monotonic_ns());
    }
}

/* Dropping a tile that stayed in its jail takes 0.15 ms a MiB. */
void agent_drop_outcomes(struct list_link *outcomes)
{
    while (!list_empty(outcomes)) {
        struct outcome *outcome = LIST_ELEMENT(outcomes->next, struct outcome, link);
        list_remove(&outcome->link);
        outcome_destroy(&outcome);
    }
}

void agent_close_all(struct agent *agent)
{
    leave(agent);
    if (agent->network != NULL) {
        network_stop(agent->network);
    }
    if (agent->transfer != NULL) {
        transfer_stop(agent->transfer);
    }
    mender_close(&agent->mender);
    if (agent->store != NULL) {
        store_stop(agent->store);
    }
    challenger_destroy(&agent->challenger);
    retrial_destroy(&agent->retrial);
    lanes_destroy(&agent->lanes);
    idle_watch_destroy(&agent->idle);
    gpu_watch_destroy(&agent->gpus);
    energy_gauge_destroy(&agent->gauges);
    live_output_destroy(&agent->live);
    terminals_destroy(&agent->terminals);
    link_absence_destroy(&agent->absence);
    store_close(&agent->store);
    images_close(&agent->images);
    transfer_close(&agent->transfer);
    network_close(&agent->network);
    if (agent->owner != NULL) { /* only the process is left to end */
        owner_ends(agent->owner, agent->session, clock_monotonic_ns());
        owner_close(&agent->owner);
    }
    link_close(&agent->link);
    agent_session_destroy(&agent->session);
    agent_drop_outcomes(&agent->reports.done);
    agent_drop_outcomes(&agent->done);
    agent_drop_outcomes(&agent->settled);
    unaccepted_fini(&agent->unaccepted);
    free(agent->reports.left);
    for (size_t i = 0; i < agent->reports.terminal_count; i++) {
        (void)close(agent->reports.terminals[i].master);
    }
    free(agent->reports.terminals);
    if (agent->reports.event >= 0) {
        close(agent->reports.event);
    }
    pthread_mutex_destroy(&agent->reports.mutex);
    blob_port_fini(&agent->blob_port);
    if (agent->zmq != NULL) {
        zmq_ctx_term(agent->zmq);
    }
}

void agent_follow_blobs(struct agent *agent)
{
    const struct contact *address = agent_session_address(agent->session);
    if (address->blobs[0] != '\0') {
        blob_port_set(&agent->blob_port, address->blobs);
    }
}

void agent_say_offer(const struct agent *agent)
{
    struct agent_device_row row;
    if (owner_offers_nothing(agent->owner, agent->session)) {
        log_info(PAUSED_SAID ": `bourse-provider resume` ends it");
        return;
    }
    for (size_t i = 0; agent_session_device(agent->session, i, &row); i++) {
        const struct agent_device *device = &agent->setup->offers->items[i].device;
        if (row.is_withheld) {
            log_info("connected; the device \"%s\" is %s", row.label,
                     row.is_held ? "withheld: `bourse-provider status` says why" : "paused");
        } else {
            log_info("connected; offering %u slot%s of %s", device->slots,
                     text_plural(device->slots), device->instrument);
        }
    }
}

/* ---------------------------------------------------------------- challenges */

/* The agent answers for processor cores, and for attached devices that compute matrices, while they
 * are on offer and idle. */
static bool can_answer(const struct agent *agent, const struct id128 *device,
                       const struct offer *offer)
{
    struct agent_device_row row;
    size_t index = 0;
    return agent->challenger != NULL && offer != NULL && offer->simulates == NULL &&
           offer->model_device == NULL &&
           (offer->plugin == NULL || offer->plugin->description.multiplies) &&
           (offer->kernel_device == NULL || offer->kernel_device->gemm_mflops > 0) &&
           agent_session_find_id(agent->session, device, &index, &row) && row.is_standing &&
           row.running == 0;
}

void agent_challenge(struct agent *agent, int64_t now_ns, const struct agent_challenge *challenge)
{
    const struct offer *offer = policy_offer_of(agent->setup->offers, &challenge->device);
    if (!can_answer(agent, &challenge->device, offer) ||
        !challenger_begin(agent->challenger, challenge, offer)) {
        (void)agent_session_challenged(agent->session, now_ns, challenge, NULL, 0);
    }
}

void agent_challenge_take(struct agent *agent, int64_t now_ns)
{
    struct agent_challenge challenge;
    const uint8_t *digests = NULL;
    size_t length = 0;
    if (agent->challenger != NULL &&
        challenger_take(agent->challenger, &challenge, &digests, &length)) {
        (void)agent_session_challenged(agent->session, now_ns, &challenge, digests, length);
    }
}

void agent_warn_of_silence(struct agent *agent, const struct agent_parting *parting)
{
    char text[LIMIT_ENDPOINT_BYTES + 64];
    (void)snprintf(text, sizeof text, "the broker at %s is silent; trying again",
                   agent_session_address(agent->session)->control);
    agent_warn(agent, parting->is_of_several ? parting->text : text);
}
