#include "broker/blob/standing_leases.h"

#include "broker/core/translate.h"
#include "protocol/codec.h"
#include "runtime/clock.h"

#include <stdlib.h>

struct lease_tables {
    struct blob_access *access;
    struct outputs *outputs;
};

/* Fills the table with present leases; later grants and ends keep the table right. */
static bool seed_access(const struct exchange *exchange, struct blob_access *access)
{
    enum { LEASES_MAX = 4096 };
    /* Caps may be lower than the number of present jobs. */
    const uint32_t jobs_max = exchange_job_count(exchange) + 1;
    struct exchange_job_row *jobs = calloc(jobs_max, sizeof *jobs);
    struct exchange_lease_row *leases = calloc(LEASES_MAX, sizeof *leases);
    bool good = jobs != NULL && leases != NULL;
    for (uint32_t owner = 0; good && owner < exchange_account_count(exchange); owner++) {
        size_t job_count = exchange_jobs(exchange, owner, jobs, jobs_max);
        for (size_t i = 0; good && i < job_count; i++) {
            size_t lease_count = exchange_leases(exchange, &jobs[i].job, leases, LEASES_MAX);
            for (size_t k = 0; good && k < lease_count; k++) {
                if (exchange_provider_serves(exchange, leases[k].provider, &jobs[i].job)) {
                    good = blob_access_add(access, leases[k].lease, leases[k].provider,
                                           &jobs[i].job, owner, &jobs[i].manifest);
                }
                if (good && leases[k].has_ended) { /* in its grace, which begins anew */
                    blob_access_end(access, leases[k].lease, clock_monotonic_ns());
                }
            }
        }
    }
    free(jobs);
    free(leases);
    return good;
}

/* Tells the blob port and the check of results what a subtask was given. */
static bool give_files(const struct lease_tables *tables, uint64_t lease, uint32_t index,
                       Bourse__V1__Output *const *files, size_t count)
{
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        const struct hash32 hash = codec_hash(files[i]->hash);
        good = blob_access_give(tables->access, lease, &hash, 1) &&
               outputs_give(tables->outputs, lease, index, &hash, 1);
    }
    return good;
}

static bool give_again(void *context, uint64_t lease, uint32_t index,
                       const struct exchange_given *given)
{
    Bourse__V1__Given *wire = translate_given(given);
    const bool good =
        wire != NULL && give_files(context, lease, index, wire->outputs, wire->n_outputs);
    bourse__v1__given__free_unpacked(wire, NULL);
    return good;
}

static bool restore_again(void *context, uint64_t lease, uint32_t index,
                          const struct exchange_given *saved)
{
    Bourse__V1__Saved *wire = translate_saved(saved);
    const bool good = wire != NULL && give_files(context, lease, index, wire->files, wire->n_files);
    bourse__v1__saved__free_unpacked(wire, NULL);
    return good;
}

static bool serve_again(void *context, const struct exchange_standing_lease *lease)
{
    return outputs_serve(context, &(struct outputs_lease){.lease = lease->lease,
                                                          .holder = {lease->provider, lease->job},
                                                          .owner = lease->owner,
                                                          .manifest = lease->manifest});
}

bool standing_leases_restore(const struct exchange *exchange, struct blob_access *access,
                             struct outputs *outputs)
{
    struct lease_tables tables = {.access = access, .outputs = outputs};
    return seed_access(exchange, access) && exchange_each_lease(exchange, serve_again, outputs) &&
           exchange_each_given(exchange, give_again, &tables) &&
           exchange_each_saved(exchange, restore_again, &tables);
}
