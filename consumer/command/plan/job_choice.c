#include "consumer/command/plan/job_choice.h"

#include "consumer/command/cell.h"
#include "consumer/command/complain.h"
#include "consumer/job/quote/quote_choice.h"
#include "consumer/model/model_parts.h"

#include "base/limit.h"
#include "formats/requirement.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choosing {
    struct invocation *invocation;
    job_file_edit *edit;
    void *context;
    const char *folder; /* of the job file */
    int status;         /* of a failure that was told; BOURSE_OK: none */
};

/* Says which needs were taken: "needs       2 of 3: kind = cpu; ...". */
static void say_choice(const struct invocation *invocation, const struct job_file *file,
                       bool is_had)
{
    char needs[BOURSE_TEXT_SIZE];
    if (invocation->quiet || invocation->json) {
        return;
    }
    if (!requirement_text(&file->needs, needs, sizeof needs)) {
        (void)snprintf(needs, sizeof needs, "a long one");
    }
    (void)fprintf(stderr, "needs       %zu of %zu: %s", file->choice + 1, file->choice_count,
                  cell_plain(needs));
    if (!is_had) {
        (void)fputs("; none of the list can be had now, so the job waits for the first", stderr);
    } else if (file->choice > 0) {
        (void)fprintf(stderr, "; no slot for %s can be had now at this price",
                      file->choice == 1 ? "the first" : "those before");
    }
    (void)fputc('\n', stderr);
}

bool job_choice_expect(struct invocation *invocation, const char *folder, struct job_file *file,
                       int *ret_status)
{
    struct bourse_error error;
    struct parts_work work;
    if (file->expect_ms != JOB_ABSENT || !model_parts_count(file, folder, &work)) {
        return true;
    }
    if (!command_connect(invocation, ret_status)) {
        return false;
    }
    if (!model_parts_expect(invocation->bourse, &work, file, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    return true;
}

static bool choose(void *context, struct job_file *file, struct problem *ret_problem)
{
    struct choosing *choosing = context;
    struct invocation *invocation = choosing->invocation;
    struct bourse_error error;
    int64_t budget_micro = LIMIT_NONE;
    bool is_had = false;
    if (choosing->edit != NULL && !choosing->edit(choosing->context, file, ret_problem)) {
        return false;
    }
    if (file->choice_count == 0) {
        return job_choice_expect(invocation, choosing->folder, file, &choosing->status);
    }
    if (!option_money(invocation, "budget", &budget_micro)) {
        choosing->status = BOURSE_USAGE;
        return false;
    }
    if (limit_is_set(budget_micro)) {
        file->budget_micro = budget_micro;
    }
    if (!command_connect(invocation, &choosing->status)) {
        return false;
    }
    if (!quote_choice_take(invocation->bourse, file, &is_had, &error)) {
        choosing->status = complain_with(invocation, &error);
        return false;
    }
    say_choice(invocation, file, is_had);
    return job_choice_expect(invocation, choosing->folder, file, &choosing->status);
}

bool job_choice_load(struct invocation *invocation, const char *path, job_file_edit *edit,
                     void *context, struct bourse_job **ret_job, int *ret_status)
{
    struct bourse_error error;
    char *copy = strdup(path);
    if (copy == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    struct choosing choosing = {invocation, edit, context, dirname(copy), BOURSE_OK};
    const bool is_loaded = job_build_load(path, choose, &choosing, ret_job, &error);
    free(copy);
    if (is_loaded) {
        return true;
    }
    *ret_status =
        choosing.status != BOURSE_OK ? choosing.status : complain_with(invocation, &error);
    return false;
}

void job_choice_add_json(json_t *plan, const struct job_file *file)
{
    if (file->choice_count > 0) {
        (void)json_object_set_new(plan, "choice", json_integer((json_int_t)file->choice + 1));
    }
}
