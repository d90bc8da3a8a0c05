#include "provider/work/mender.h"

#include "base/checked.h"
#include "base/list.h"
#include "runtime/condition.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct mended_lease {
    struct list_link link;
    uint64_t lease;
    struct id128 job;
};

struct mender {
    struct mender_config config;
    /* The thread's own; NULL: not open. The mutex guards it against interrupt. */
    struct blob_client *client;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_stopping;
    bool has_thread;
    pthread_t thread;
    struct list_link leases; /* leases whose turn is next come first */
};

/* ---------------------------------------------------------------- the mender's thread */

static void disconnect(struct mender *mender)
{
    pthread_mutex_lock(&mender->mutex);
    blob_client_close(&mender->client);
    pthread_mutex_unlock(&mender->mutex);
}

static struct blob_client *connected(struct mender *mender)
{
    struct problem problem = {""};
    struct blob_client *client = NULL;
    struct blob_port *port = mender->config.port;
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
    if (mender->client != NULL && blob_port_has_moved(port, mender->client)) {
        disconnect(mender);
    }
    blob_port_where(port, endpoint);
    if (mender->client == NULL &&
        blob_client_open(mender->config.zmq, endpoint, &mender->config.server,
                         mender->config.identity, &client, &problem)) {
        blob_client_follow(client, blob_port_where, port);
        pthread_mutex_lock(&mender->mutex);
        mender->client = client;
        pthread_mutex_unlock(&mender->mutex);
        blob_client_measure(client, mender->config.meter, mender->config.meter_context);
    }
    return mender->client;
}

static void send_one(struct mender *mender, const struct id128 *job, const struct hash32 *hash)
{
    struct store_blob blob;
    struct problem problem = {""};
    enum reject_code code = REJECT_NONE;
    if (!store_find(mender->config.store, hash, &blob)) {
        return;
    }
    const struct blob_source source = {.hash = *hash, .size = blob.size, .fd = blob.fd};
    if (blob_client_put(mender->client, &source, 1, job, NULL, NULL, &code, NULL, &problem)) {
        log_info("the broker had lost a file of a job; this agent has sent the file again");
    } else {
        log_debug("a file that the broker lost could not be sent: %s", problem.text);
    }
    store_release(mender->config.store, &blob);
}

/* Returns false when the broker does not answer, or no longer serves the job to us. */
static bool mend_job(struct mender *mender, const struct id128 *job)
{
    struct hash32 lost[BLOB_LOST_MAX];
    struct problem problem = {""};
    size_t count = 0;
    if (connected(mender) == NULL ||
        !blob_client_lost(mender->client, job, lost, BLOB_LOST_MAX, &count, &problem)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        send_one(mender, job, &lost[i]);
    }
    return true;
}

static bool is_among(const struct id128 *jobs, size_t count, const struct id128 *job)
{
    for (size_t i = 0; i < count; i++) {
        if (id128_equal(&jobs[i], job)) {
            return true;
        }
    }
    return false;
}

/* Takes the jobs of this round, each once. Their leases go behind the others. The mutex is held. */
static size_t take_jobs(struct mender *mender, struct id128 jobs[MENDER_JOBS_MAX])
{
    size_t count = 0;
    struct list_link asked;
    list_init(&asked);
    for (struct list_link *link = mender->leases.next;
         link != &mender->leases && count < MENDER_JOBS_MAX;) {
        struct mended_lease *lease = LIST_ELEMENT(link, struct mended_lease, link);
        link = link->next;
        if (!is_among(jobs, count, &lease->job)) {
            jobs[count++] = lease->job;
        }
        list_remove(&lease->link);
        list_append(&asked, &lease->link);
    }
    list_append_all(&mender->leases, &asked);
    return count;
}

/* Waits for the next round, and for a lease. The mutex is held. */
static void wait_for_round(struct mender *mender)
{
    const struct timespec until = condition_deadline(MENDER_PERIOD_MS * NS_PER_MS);
    int timed_out = 0;
    while (!mender->is_stopping && timed_out == 0) {
        timed_out = pthread_cond_timedwait(&mender->changed, &mender->mutex, &until);
    }
    while (!mender->is_stopping && list_empty(&mender->leases)) {
        pthread_cond_wait(&mender->changed, &mender->mutex);
    }
}

static void *run(void *argument)
{
    struct mender *mender = argument;
    process_name_thread("mender");
    pthread_mutex_lock(&mender->mutex);
    while (!mender->is_stopping) {
        struct id128 jobs[MENDER_JOBS_MAX];
        const size_t count = take_jobs(mender, jobs);
        pthread_mutex_unlock(&mender->mutex);
        bool good = true;
        for (size_t i = 0; i < count; i++) {
            good = mend_job(mender, &jobs[i]) && good;
        }
        if (!good || count == 0) { /* opened again next time; an idle agent has none */
            disconnect(mender);
        }
        pthread_mutex_lock(&mender->mutex);
        wait_for_round(mender);
    }
    pthread_mutex_unlock(&mender->mutex);
    return NULL;
}

/* ---------------------------------------------------------------- the main thread */

bool mender_open(const struct mender_config *config, struct mender **ret_mender,
                 struct problem *ret_problem)
{
    struct mender *mender = calloc(1, sizeof *mender);
    if (mender == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    mender->config = *config;
    list_init(&mender->leases);
    pthread_mutex_init(&mender->mutex, NULL);
    condition_init(&mender->changed);
    mender->has_thread = pthread_create(&mender->thread, NULL, run, mender) == 0;
    if (!mender->has_thread) {
        problem_set(ret_problem, "cannot start the thread that sends lost files again");
        mender_close(&mender);
        return false;
    }
    *ret_mender = mender;
    return true;
}

static void stop(struct mender *mender)
{
    pthread_mutex_lock(&mender->mutex);
    mender->is_stopping = true;
    if (mender->client != NULL) {
        blob_client_interrupt(mender->client);
    }
    pthread_cond_signal(&mender->changed);
    pthread_mutex_unlock(&mender->mutex);
    pthread_join(mender->thread, NULL);
}

void mender_close(struct mender **self)
{
    struct mender *mender = *self;
    if (mender == NULL) {
        return;
    }
    if (mender->has_thread) {
        stop(mender);
    }
    blob_client_close(&mender->client);
    while (!list_empty(&mender->leases)) {
        struct mended_lease *lease = LIST_ELEMENT(mender->leases.next, struct mended_lease, link);
        list_remove(&lease->link);
        free(lease);
    }
    pthread_cond_destroy(&mender->changed);
    pthread_mutex_destroy(&mender->mutex);
    free(mender);
    *self = NULL;
}

void mender_begin(struct mender *mender, uint64_t number, const struct id128 *job)
{
    struct mended_lease *lease = calloc(1, sizeof *lease);
    if (lease != NULL) {
        lease->lease = number;
        lease->job = *job;
        pthread_mutex_lock(&mender->mutex);
        list_append(&mender->leases, &lease->link);
        pthread_cond_signal(&mender->changed);
        pthread_mutex_unlock(&mender->mutex);
    }
}

void mender_end(struct mender *mender, uint64_t number)
{
    pthread_mutex_lock(&mender->mutex);
    for (struct list_link *link = mender->leases.next; link != &mender->leases; link = link->next) {
        struct mended_lease *lease = LIST_ELEMENT(link, struct mended_lease, link);
        if (lease->lease == number) {
            list_remove(&lease->link);
            free(lease);
            break;
        }
    }
    pthread_mutex_unlock(&mender->mutex);
}
