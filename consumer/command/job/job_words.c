#include "consumer/command/job/job_words.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"

#include <string.h>
#include <strings.h>

/* The meanings of a word count the jobs that the word could name. */
struct meanings {
    size_t prefixes;                      /* jobs whose id begins with the word */
    size_t names, open_names;             /* jobs of that name; those of them that are open */
    const struct bourse_job_row *by_name; /* the newest job of that name */
};

static bool is_hexadecimal(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789abcdefABCDEF")] == '\0';
}

static struct meanings meanings_of(const struct bourse_jobs *jobs, const char *word)
{
    struct meanings meanings = {.prefixes = 0};
    const bool is_prefix = is_hexadecimal(word);
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        if (is_prefix && strncasecmp(row->id, word, strlen(word)) == 0) {
            meanings.prefixes++;
        }
        if (strcmp(row->name, word) == 0) {
            meanings.by_name = meanings.names++ == 0 ? row : meanings.by_name;
            meanings.open_names += row->state == BOURSE_OPEN;
        }
    }
    return meanings;
}

bool job_ids_add(struct job_ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (strcmp(ids->items[i], id) == 0) {
            return true;
        }
    }
    if (ids->count == JOB_WORDS_MAX) {
        return false;
    }
    (void)snprintf(ids->items[ids->count++], BOURSE_ID_SIZE, "%s", id);
    return true;
}

static bool add_named(const struct bourse_jobs *jobs, const struct meanings *meanings,
                      struct job_ids *ids)
{
    if (meanings->open_names == 0) {
        return job_ids_add(ids, meanings->by_name->id);
    }
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        if (row->state == BOURSE_OPEN && strcmp(row->name, meanings->by_name->name) == 0 &&
            !job_ids_add(ids, row->id)) {
            return false;
        }
    }
    return true;
}

static bool too_many(struct invocation *invocation, int *ret_status)
{
    *ret_status = complain(invocation, BOURSE_USAGE, "%s takes at most %d jobs",
                           invocation->command->name, JOB_WORDS_MAX);
    return false;
}

static bool add_word(struct invocation *invocation, const struct bourse_jobs *jobs,
                     const char *word, struct job_ids *ids, int *ret_status)
{
    char id[BOURSE_ID_SIZE];
    const bool is_last = strcmp(word, "last") == 0;
    const struct meanings meanings = meanings_of(jobs, word);
    if (!is_last && meanings.prefixes == 0 && meanings.names > 0) {
        return add_named(jobs, &meanings, ids) || too_many(invocation, ret_status);
    }
    if (!command_resolve_job(invocation, word, id, ret_status)) {
        return false;
    }
    return job_ids_add(ids, id) || too_many(invocation, ret_status);
}

static struct bourse_jobs *list_jobs(struct invocation *invocation, int *ret_status)
{
    struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_all_jobs(invocation->bourse, BOURSE_JOBS_MOST, &jobs, &error)) {
        *ret_status = complain_with(invocation, &error);
    }
    return jobs;
}

bool job_words_of_option(struct invocation *invocation, const char *option,
                         const struct job_strings *more, struct job_ids *ret_ids, int *ret_status)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = list_jobs(invocation, ret_status);
    ret_ids->count = 0;
    for (size_t i = 0; jobs != NULL && i < invocation->given_count; i++) {
        const struct given *given = &invocation->given[i];
        if (strcmp(given->name, option) == 0 &&
            !add_word(invocation, jobs, given->value, ret_ids, ret_status)) {
            return false;
        }
    }
    for (size_t i = 0; jobs != NULL && i < more->count; i++) {
        if (!add_word(invocation, jobs, more->items[i], ret_ids, ret_status)) {
            return false;
        }
    }
    return jobs != NULL;
}

bool job_words_resolve(struct invocation *invocation, struct job_ids *ret_ids, int *ret_status)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = list_jobs(invocation, ret_status);
    ret_ids->count = 0;
    if (jobs == NULL) {
        return false;
    }
    for (int i = 0; i < invocation->word_count; i++) {
        if (!add_word(invocation, jobs, invocation->words[i], ret_ids, ret_status)) {
            return false;
        }
    }
    return true;
}
