#include "broker/blob/port/blob_access.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct lease {
    uint64_t lease;
    uint32_t provider;
    struct blob_access_job *job;
    int64_t ended_ns;     /* 0: stands */
    struct hash32 *given; /* a set by open addressing, at most half full; zeros are free */
    size_t given_count, given_capacity;
};

struct blob_access {
    struct lease *leases;
    size_t lease_count, lease_capacity;
    struct blob_access_job **jobs;
    size_t job_count, job_capacity;
};

struct blob_access *blob_access_create(void)
{
    return calloc(1, sizeof(struct blob_access));
}

static void job_destroy(struct blob_access_job *job)
{
    free(job->hashes);
    free(job);
}

void blob_access_destroy(struct blob_access **self)
{
    struct blob_access *access = *self;
    if (access != NULL) {
        for (size_t i = 0; i < access->job_count; i++) {
            job_destroy(access->jobs[i]);
        }
        for (size_t i = 0; i < access->lease_count; i++) {
            free(access->leases[i].given);
        }
        free(access->jobs);
        free(access->leases);
        free(access);
        *self = NULL;
    }
}

static struct blob_access_job *find_job(struct blob_access *access, const struct id128 *job)
{
    for (size_t i = 0; i < access->job_count; i++) {
        if (id128_equal(&access->jobs[i]->job, job)) {
            return access->jobs[i];
        }
    }
    return NULL;
}

static struct blob_access_job *add_job(struct blob_access *access, const struct id128 *job,
                                       uint32_t owner, const struct hash32 *manifest)
{
    struct blob_access_job **jobs = array_with_room(
        access->jobs, access->job_count, &access->job_capacity, sizeof(struct blob_access_job *));
    access->jobs = jobs != NULL ? jobs : access->jobs;
    struct blob_access_job *added = jobs != NULL ? calloc(1, sizeof *added) : NULL;
    if (added != NULL) {
        *added = (struct blob_access_job){.job = *job, .owner = owner, .manifest = *manifest};
        access->jobs[access->job_count++] = added;
    }
    return added;
}

bool blob_access_add(struct blob_access *access, uint64_t lease, uint32_t provider,
                     const struct id128 *job, uint32_t owner, const struct hash32 *manifest)
{
    for (size_t i = 0; i < access->lease_count; i++) {
        if (access->leases[i].lease == lease) {
            return true;
        }
    }
    struct lease *leases = array_with_room(access->leases, access->lease_count,
                                           &access->lease_capacity, sizeof *leases);
    if (leases == NULL) {
        return false;
    }
    access->leases = leases;
    struct blob_access_job *served = find_job(access, job);
    served = served == NULL ? add_job(access, job, owner, manifest) : served;
    if (served == NULL) {
        return false;
    }
    served->leases++;
    access->leases[access->lease_count++] =
        (struct lease){.lease = lease, .provider = provider, .job = served};
    return true;
}

void blob_access_end(struct blob_access *access, uint64_t lease, int64_t now_ns)
{
    for (size_t i = 0; i < access->lease_count; i++) {
        if (access->leases[i].lease == lease && access->leases[i].ended_ns == 0) {
            access->leases[i].ended_ns = now_ns;
        }
    }
}

/* ---------------------------------------------------------------- what was given */

/* A hash is as good as random, so its first bytes choose its place. */
static size_t place_of(const struct hash32 *set, size_t capacity, const struct hash32 *hash)
{
    size_t at;
    memcpy(&at, hash->bytes, sizeof at);
    at &= capacity - 1;
    while (!hash32_is_zero(&set[at]) && !hash32_equal(&set[at], hash)) {
        at = (at + 1) & (capacity - 1);
    }
    return at;
}

static bool grow_given(struct lease *lease)
{
    size_t capacity = lease->given_capacity == 0 ? 16 : 2 * lease->given_capacity;
    struct hash32 *larger = calloc(capacity, sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    for (size_t i = 0; i < lease->given_capacity; i++) {
        if (!hash32_is_zero(&lease->given[i])) {
            larger[place_of(larger, capacity, &lease->given[i])] = lease->given[i];
        }
    }
    free(lease->given);
    lease->given = larger;
    lease->given_capacity = capacity;
    return true;
}

static bool give(struct lease *lease, const struct hash32 *hash)
{
    if (2 * (lease->given_count + 1) > lease->given_capacity && !grow_given(lease)) {
        return false;
    }
    struct hash32 *place = &lease->given[place_of(lease->given, lease->given_capacity, hash)];
    lease->given_count += hash32_is_zero(place);
    *place = *hash;
    return true;
}

bool blob_access_give(struct blob_access *access, uint64_t lease, const struct hash32 *hashes,
                      size_t count)
{
    for (size_t i = access->lease_count; i-- > 0;) { /* the newest are last */
        if (access->leases[i].lease != lease) {
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            if (!give(&access->leases[i], &hashes[k])) {
                return false;
            }
        }
        return true;
    }
    return true;
}

static bool is_over(const struct lease *lease, int64_t now_ns)
{
    return lease->ended_ns != 0 && now_ns - lease->ended_ns > BLOB_ACCESS_GRACE_NS;
}

void blob_access_expire(struct blob_access *access, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < access->lease_count; i++) {
        if (is_over(&access->leases[i], now_ns)) {
            access->leases[i].job->leases--;
            free(access->leases[i].given);
        } else {
            access->leases[kept++] = access->leases[i];
        }
    }
    access->lease_count = kept;
    kept = 0;
    for (size_t i = 0; i < access->job_count; i++) {
        if (access->jobs[i]->leases == 0) {
            job_destroy(access->jobs[i]);
        } else {
            access->jobs[kept++] = access->jobs[i];
        }
    }
    access->job_count = kept;
}

struct blob_access_job *blob_access_find(struct blob_access *access, uint32_t provider,
                                         const struct id128 *job, int64_t now_ns)
{
    for (size_t i = 0; i < access->lease_count; i++) {
        const struct lease *lease = &access->leases[i];
        if (lease->provider == provider && !is_over(lease, now_ns) &&
            id128_equal(&lease->job->job, job)) {
            return lease->job;
        }
    }
    return NULL;
}

bool blob_access_gave(const struct blob_access *access, uint32_t provider,
                      const struct blob_access_job *job, const struct hash32 *hash)
{
    for (size_t i = 0; i < access->lease_count; i++) {
        const struct lease *lease = &access->leases[i];
        if (lease->job == job && lease->provider == provider && lease->given_count > 0 &&
            hash32_equal(&lease->given[place_of(lease->given, lease->given_capacity, hash)],
                         hash)) {
            return true;
        }
    }
    return false;
}

static int compare_hashes(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct hash32));
}

void blob_access_job_set_hashes(struct blob_access_job *job, struct hash32 *hashes, size_t count)
{
    free(job->hashes);
    if (count > 0) {
        qsort(hashes, count, sizeof *hashes, compare_hashes);
    }
    job->hashes = hashes;
    job->hash_count = count;
    job->is_read = true;
}

bool blob_access_job_names(const struct blob_access_job *job, const struct hash32 *hash)
{
    if (hash32_equal(&job->manifest, hash)) {
        return true;
    }
    return job->hash_count > 0 &&
           bsearch(hash, job->hashes, job->hash_count, sizeof *hash, compare_hashes) != NULL;
}
