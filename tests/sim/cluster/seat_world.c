/* The world around a seat: the calls to members of etcd, locks between fibres, ports, and names of
 * this machine. Each function stands in the place of one of the product's, or of the system's. */
#include "tests/sim/cluster/seat.h"

#include "broker/storage/etcd/grpc_member.h"
#include "runtime/notify.h"
#include "runtime/private_folder.h"
#include "tests/sim/cluster/etcd.h"
#include "tests/sim/fibre.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- calls to etcd */

struct grpc_member {
    unsigned broker, number;
    uint8_t *answer;
    char url[ETCD_URL_SIZE];
};

struct grpc_member *grpc_member_create(const struct etcd_config *config, size_t number)
{
    struct grpc_member *member = calloc(1, sizeof *member);
    assert(member != NULL);
    member->broker = seat_present()->number;
    member->number = (unsigned)number;
    memcpy(member->url, config->members[number], sizeof member->url);
    return member;
}

void grpc_member_destroy(struct grpc_member **self)
{
    if (*self != NULL) {
        free((*self)->answer);
        free(*self);
        *self = NULL;
    }
}

struct grpc_reply grpc_member_call(struct grpc_member *member, const char *path,
                                   const uint8_t *message, size_t length, long timeout_ms)
{
    struct etcd_asked asked =
        etcd_ask(member->broker, member->number, path, message, length, timeout_ms * SIM_MS);
    free(member->answer);
    member->answer = malloc(asked.length + 1); /* lost with its process */
    assert(member->answer != NULL);
    if (asked.length > 0) {
        memcpy(member->answer, asked.answer, asked.length);
    }
    sim_free(asked.answer);
    return (struct grpc_reply){
        .outcome = asked.outcome, .message = member->answer, .length = asked.length};
}

const char *grpc_member_error(const struct grpc_member *member)
{
    (void)member;
    return "no answer in time";
}

const char *grpc_member_url(const struct grpc_member *member)
{
    return member->url;
}

/* ---------------------------------------------------------------- locks between fibres */

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);

/* A fibre waits for one thing at a time. One that is woken for nothing looks again. */
enum { WAITERS_MAX = 64 };
static struct waiter {
    uint64_t fibre;
    struct fibre *waits;
    const void *thing;
} waiters[WAITERS_MAX];

static void wait_for(const void *thing, int64_t until_ns)
{
    struct waiter *place = waiters;
    while (place < waiters + WAITERS_MAX && place->thing != NULL && fibre_runs(place->fibre)) {
        place++;
    }
    assert(place < waiters + WAITERS_MAX);
    *place = (struct waiter){fibre_name(fibre_current()), fibre_current(), thing};
    fibre_wait(until_ns == INT64_MAX ? INT64_MAX : until_ns - world.now_ns);
    place->thing = NULL;
}

static void wake_all(const void *thing)
{
    for (struct waiter *it = waiters; it < waiters + WAITERS_MAX; it++) {
        if (it->thing == thing && fibre_runs(it->fibre)) {
            fibre_wake(it->waits);
        }
    }
}

/* The first bytes of a mutex say whether it is held: an initialised one has zeros there. */
static int *is_held(pthread_mutex_t *mutex)
{
    return (int *)(void *)mutex;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    while (*is_held(mutex) != 0) {
        wait_for(mutex, INT64_MAX);
    }
    *is_held(mutex) = 1;
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    assert(*is_held(mutex) == 1);
    *is_held(mutex) = 0;
    wake_all(mutex);
    return 0;
}

static void wait_outside(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns)
{
    (void)__wrap_pthread_mutex_unlock(mutex);
    wait_for(condition, until_ns);
    (void)__wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    wait_outside(condition, mutex, INT64_MAX);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    const int64_t until_ns = (int64_t)until->tv_sec * SIM_S + until->tv_nsec;
    if (until_ns > world.now_ns) {
        wait_outside(condition, mutex, until_ns);
    }
    return world.now_ns >= until_ns ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    wake_all(condition);
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    wake_all(condition);
    return 0;
}

/* ---------------------------------------------------------------- names, which differ elsewhere */

int __wrap_gethostname(char *ret_name, size_t size);
pid_t __wrap_getpid(void);

int __wrap_gethostname(char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "machine%u", seat_present()->number);
    return 0;
}

pid_t __wrap_getpid(void)
{
    return (pid_t)world.current->life;
}

/* ---------------------------------------------------------------- what a start opens */

bool private_folder(const char *path, bool create, struct problem *ret_problem)
{
    (void)path;
    (void)create;
    (void)ret_problem;
    return true;
}

bool broker_open_ports(struct broker *broker, struct problem *ret_problem)
{
    (void)broker;
    (void)ret_problem;
    seat_present()->is_open = true;
    return true;
}

bool broker_announce(struct broker *broker, struct problem *ret_problem)
{
    (void)broker;
    (void)ret_problem;
    return true;
}

void notify_ready(void)
{
}

void notify_alive(void)
{
}

int64_t notify_alive_every_ns(void)
{
    return 0;
}
