#include "provider/work/network.h"

#include "base/checked.h"
#include "provider/config.h"
#include "runtime/clock.h"
#include "runtime/files.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4096 };
#define STEP_NS (50 * NS_PER_MS)

struct network {
    char path[CONFIG_PATH_SIZE + 16];
    atomic_bool stopping;
    pthread_mutex_t mutex; /* guards `rule` */
    struct network_rule rule;
    int64_t written_bytes; /* what the file says; the main thread only, like the next two */
    int32_t written_month;
    int64_t write_again_ns;
};

static int64_t wall_ms(void)
{
    return clock_wall_ns() / NS_PER_MS;
}

/* Reads the file. A file that is not there counts nothing. */
static bool read_count(const char *path, int32_t *ret_month, int64_t *ret_bytes,
                       struct problem *problem)
{
    uint8_t *text = NULL;
    size_t length = 0;
    *ret_month = 0;
    *ret_bytes = 0;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(path, FILE_BYTES_MAX, &text, &length, problem)) {
        return false;
    }
    json_t *root = json_loadb((const char *)text, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *month = json_object_get(root, "month");
    const json_t *bytes = json_object_get(root, "bytes");
    const bool good = json_is_integer(month) && json_is_integer(bytes) &&
                      json_integer_value(month) >= 0 && json_integer_value(month) <= INT32_MAX &&
                      json_integer_value(bytes) >= 0;
    if (good) {
        *ret_month = (int32_t)json_integer_value(month);
        *ret_bytes = json_integer_value(bytes);
    } else {
        problem_set(problem, "%s is no count of a month; remove the file to begin the count anew",
                    path);
    }
    json_decref(root);
    free(text);
    return good;
}

bool network_open(const char *folder, const struct network_terms *terms,
                  struct network **ret_network, struct problem *ret_problem)
{
    struct network *network = calloc(1, sizeof *network);
    int32_t month = 0;
    int64_t bytes = 0;
    if (network == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    (void)snprintf(network->path, sizeof network->path, "%s/network", folder);
    if (!read_count(network->path, &month, &bytes, ret_problem)) {
        free(network);
        return false;
    }
    network_rule_init(&network->rule, terms, month, bytes);
    network->written_month = month;
    network->written_bytes = bytes;
    pthread_mutex_init(&network->mutex, NULL);
    *ret_network = network;
    return true;
}

static struct network_rule copy_of(struct network *network)
{
    pthread_mutex_lock(&network->mutex);
    const struct network_rule rule = network->rule;
    pthread_mutex_unlock(&network->mutex);
    return rule;
}

static bool write_count(struct network *network, struct problem *problem)
{
    char text[128];
    const struct network_rule rule = copy_of(network);
    if (rule.used_bytes == network->written_bytes && rule.month == network->written_month) {
        return true;
    }
    const int length = snprintf(text, sizeof text, "{\"month\":%d,\"bytes\":%lld}\n",
                                (int)rule.month, (long long)rule.used_bytes);
    if (!file_write(network->path, (const uint8_t *)text, (size_t)length, 0600, problem)) {
        return false;
    }
    network->written_bytes = rule.used_bytes;
    network->written_month = rule.month;
    return true;
}

void network_close(struct network **self)
{
    struct network *network = *self;
    struct problem problem;
    if (network != NULL) {
        (void)write_count(network, &problem); /* a loss of at most a second */
        pthread_mutex_destroy(&network->mutex);
        free(network);
        *self = NULL;
    }
}

void network_change(struct network *network, const struct network_terms *terms)
{
    pthread_mutex_lock(&network->mutex);
    network_rule_change(&network->rule, terms);
    pthread_mutex_unlock(&network->mutex);
}

void network_stop(struct network *network)
{
    atomic_store(&network->stopping, true);
}

/* Sleeps in steps, so that a stop takes effect soon. */
static void wait_until(const struct network *network, int64_t until_ns)
{
    for (int64_t now_ns = clock_monotonic_ns();
         now_ns < until_ns && !atomic_load(&network->stopping); now_ns = clock_monotonic_ns()) {
        const int64_t left_ns = until_ns - now_ns;
        struct timespec step = {.tv_nsec = (long)(left_ns < STEP_NS ? left_ns : STEP_NS)};
        (void)nanosleep(&step, NULL); /* an early return is fine */
    }
}

/* Returns how long the next bytes have to wait. */
static int64_t count(struct network *network, int64_t now_ns, uint64_t bytes)
{
    pthread_mutex_lock(&network->mutex);
    const int64_t wait_ns = network_rule_count(&network->rule, now_ns, wall_ms(),
                                               bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
    pthread_mutex_unlock(&network->mutex);
    return wait_ns;
}

void network_meter(void *context, uint64_t bytes)
{
    const int64_t now_ns = clock_monotonic_ns();
    wait_until(context, now_ns + count(context, now_ns, bytes));
}

void network_note(struct network *network, uint64_t bytes)
{
    (void)count(network, clock_monotonic_ns(), bytes); /* the files that come next wait for them */
}

bool network_turn(struct network *network, int64_t now_ns, struct problem *ret_problem)
{
    if (now_ns < network->write_again_ns) {
        return true;
    }
    network->write_again_ns = now_ns + NS_PER_S;
    return write_count(network, ret_problem);
}

bool network_is_spent(struct network *network)
{
    const struct network_rule rule = copy_of(network);
    return network_rule_is_spent(&rule, wall_ms());
}

static json_t *limit_json(int64_t limit)
{
    return limit == 0 ? json_null() : json_integer(limit);
}

json_t *network_json(struct network *network)
{
    const struct network_rule rule = copy_of(network);
    const bool is_now = rule.month >= network_rule_month(wall_ms());
    return json_pack("{s:o, s:o, s:I, s:b}", "rate", limit_json(rule.terms.rate_bytes), "month",
                     limit_json(rule.terms.month_bytes), "used_bytes",
                     (json_int_t)(is_now ? rule.used_bytes : 0), "spent",
                     (int)network_rule_is_spent(&rule, wall_ms()));
}
