#include "consumer/job/quote/quote_choice.h"

#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_build.h"
#include "consumer/job/quote/quote_part.h"

#include <stdlib.h>

static void quote_free(struct bourse_quote **self)
{
    free(*self);
}

/* Quotes one subtask with the needs that the file has now. */
static bool can_be_had(struct bourse *bourse, struct bourse_job *job, bool *ret_can,
                       struct bourse_error *error)
{
    CLEANUP(quote_free) struct bourse_quote *quote = calloc(1, sizeof *quote);
    if (quote == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (!job_build_part(job, error) || !quote_part_at(bourse, job, 0, job->file->cap_micro,
                                                      job->file->budget_micro, quote, error)) {
        return false;
    }
    *ret_can =
        quote->slots_now > 0 && !(quote->has_explanation && quote->explanation.starts_at_micro < 0);
    return true;
}

bool quote_choice_take(struct bourse *bourse, struct job_file *file, bool *ret_is_had,
                       struct bourse_error *error)
{
    struct bourse_job *job = job_build_begin(NULL);
    if (job == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    job->file = file; /* lent */
    job->subtasks = 1;
    bool is_told = true;
    bool can = false;
    for (size_t i = 0; is_told && !can && i < file->choice_count; i++) {
        job_file_choose(file, i);
        is_told = can_be_had(bourse, job, &can, error);
    }
    if (!can) {
        job_file_choose(file, 0);
    }
    *ret_is_had = can;
    job->file = NULL;
    bourse_job_destroy(&job);
    return is_told;
}
