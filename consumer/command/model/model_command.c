#include "consumer/command/model/model_command.h"

#include "base/cleanup.h"
#include "consumer/command/job/offer.h"
#include "consumer/command/job/run_end.h"
#include "consumer/command/plan/job_choice.h"
#include "consumer/command/show.h"
#include "consumer/job/job_build.h"

#include <string.h>

bool model_parts_are_auto(const struct invocation *invocation)
{
    return strcmp(option_text(invocation, "parts", ""), "auto") == 0;
}

int model_command(struct invocation *invocation, model_make *make, model_choose *choose)
{
    int status = 0;
    int64_t ignored = 0;
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    if (!option_money(invocation, "budget", &ignored) ||
        !option_duration_ms(invocation, "wait-at-most", &ignored)) {
        return BOURSE_USAGE;
    }
    const bool chooses = model_parts_are_auto(invocation);
    struct job_file *file = make(invocation);
    if (file == NULL) {
        return BOURSE_USAGE;
    }
    if (chooses && !choose(invocation, file, &status)) {
        job_file_destroy(&file);
        return status;
    }
    /* A model that cannot be read is refused by the next step. */
    if (!chooses && !job_choice_expect(invocation, ".", file, &status)) {
        job_file_destroy(&file);
        return status;
    }
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    if (!job_build(file, ".", NULL, &job, &error)) {
        return complain_with(invocation, &error);
    }
    if (!command_connect(invocation, &status) || !offer_and_place(invocation, job, id, &status)) {
        return status;
    }
    /* The text of a prompt without a folder is for the terminal alone. Its files would meet those
     * of the prompt before. */
    const bool has_folder = option_given(invocation, "output");
    return run_end_wait(invocation, job, id, has_folder || !option_given(invocation, "prompt"));
}
