#include "provider/executors/retrial.h"

#include "provider/executors/kernel.h"
#include "provider/executors/plugin.h"
#include "provider/executors/trial.h"
#include "provider/jail/isolation.h"
#include "runtime/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct retrial {
    struct retrial_config config;
    struct trial_stop stop;
    pthread_t thread;
    bool has_thread; /* only the owner's thread */
    size_t number;   /* set before the thread starts, likewise `offer` */
    const struct offer *offer;
    pthread_mutex_t mutex;
    bool is_done;           /* guarded */
    struct problem problem; /* the thread's until is_done */
};

struct retrial *retrial_create(const struct retrial_config *config)
{
    struct retrial *retrial = calloc(1, sizeof *retrial);
    if (retrial != NULL) {
        retrial->config = *config;
        trial_stop_init(&retrial->stop);
        pthread_mutex_init(&retrial->mutex, NULL);
    }
    return retrial;
}

static void join(struct retrial *retrial)
{
    if (retrial->has_thread) {
        pthread_join(retrial->thread, NULL);
        retrial->has_thread = false;
    }
}

void retrial_destroy(struct retrial **self)
{
    struct retrial *retrial = *self;
    if (retrial != NULL) {
        trial_stop_all(&retrial->stop);
        join(retrial);
        trial_stop_fini(&retrial->stop);
        pthread_mutex_destroy(&retrial->mutex);
        free(retrial);
        *self = NULL;
    }
}

static void try_kernels(struct retrial *retrial, const char *const *visible)
{
    const struct retrial_config *config = &retrial->config;
    const struct kernel_trial trial = {.launcher = config->launcher,
                                       .cgroups = config->cgroups,
                                       .worker_path = config->worker_path,
                                       .kernel_path = config->kernel_path,
                                       .visible = visible,
                                       .stop = &retrial->stop};
    struct kernel_device device = *retrial->offer->kernel_device;
    device.unusable[0] = '\0';
    kernel_measure(&trial, &device);
    problem_set(&retrial->problem, "%s", device.unusable);
}

static void try_plugin(struct retrial *retrial, const char *const *visible)
{
    const struct retrial_config *config = &retrial->config;
    static struct plugin_device device; /* large; one trial runs at a time */
    const struct plugin_trial trial = {.launcher = config->launcher,
                                       .cgroups = config->cgroups,
                                       .worker_path = config->worker_path,
                                       .helper_path = config->plugin_path,
                                       .visible = visible,
                                       .stop = &retrial->stop};
    device = *retrial->offer->plugin;
    plugin_look(&trial, &device);
    problem_set(&retrial->problem, "%s", device.unusable);
}

static void try_cores(struct retrial *retrial)
{
    const struct retrial_config *config = &retrial->config;
    struct isolation isolation;
    isolation_probe(config->launcher, config->worker_path, config->cgroups, &isolation);
    problem_set(&retrial->problem, "%s", isolation.level == 0 ? isolation.refusal : "");
}

static void *run(void *context)
{
    struct retrial *retrial = context;
    const char *visible[CONFIG_VISIBLE_MAX + 1];
    process_name_thread("retrial");
    config_visible(retrial->config.config, visible);
    if (retrial->offer->kernel_device != NULL) {
        try_kernels(retrial, visible);
    } else if (retrial->offer->plugin != NULL) {
        try_plugin(retrial, visible);
    } else {
        try_cores(retrial);
    }
    pthread_mutex_lock(&retrial->mutex);
    retrial->is_done = true;
    pthread_mutex_unlock(&retrial->mutex);
    retrial->config.done(retrial->config.context);
    return NULL;
}

bool retrial_begin(struct retrial *retrial, size_t number, const struct offer *offer)
{
    if (retrial->has_thread) {
        return false;
    }
    retrial->number = number;
    retrial->offer = offer;
    retrial->problem = (struct problem){""};
    retrial->has_thread = pthread_create(&retrial->thread, NULL, run, retrial) == 0;
    return retrial->has_thread;
}

bool retrial_take(struct retrial *retrial, size_t *ret_number, struct problem *ret_problem)
{
    pthread_mutex_lock(&retrial->mutex);
    const bool is_done = retrial->is_done;
    retrial->is_done = false;
    pthread_mutex_unlock(&retrial->mutex);
    if (is_done) {
        join(retrial);
        *ret_number = retrial->number;
        *ret_problem = retrial->problem;
    }
    return is_done;
}
