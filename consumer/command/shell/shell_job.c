#include "consumer/command/shell/shell_job.h"

#include "consumer/command/complain.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/shell/local_terminal.h"
#include "consumer/job/job_build.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT_MS (60 * INT64_C(60000))

/* Gives the program the variable TERM of the user's terminal. */
static bool add_kind(struct job_file *file)
{
    const char *kind = getenv("TERM");
    for (size_t i = 0; i < file->env_count; i++) {
        if (strcmp(file->env[i].name, "TERM") == 0) {
            return true;
        }
    }
    const bool is_plain = kind != NULL && kind[0] != '\0' &&
                          strspn(kind, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789+-._") == strlen(kind);
    return job_file_add_variable(file, "TERM", is_plain ? kind : "dumb");
}

struct job_file *shell_job(struct invocation *invocation, bool is_person)
{
    static char host_shell[] = "sh";
    static char image_shell[] = "/bin/sh";
    static char *words[1];
    const bool has_image = option_given(invocation, "image");
    const bool is_default = invocation->word_count == 0;
    if (invocation->json) {
        (void)complain(invocation, BOURSE_USAGE,
                       "shell prints what its program prints, and no JSON; leave out --json");
        return NULL;
    }
    if (is_default) {
        words[0] = has_image ? image_shell : host_shell;
        invocation->words = words;
        invocation->word_count = 1;
    }
    CLEANUP(job_file_destroy) struct job_file *file = job_from_arguments(invocation);
    if (file == NULL) {
        return NULL;
    }
    if (is_default && has_image) { /* the image's entrypoint is for other programs */
        file->has_entrypoint = true;
    }
    if (!option_given(invocation, "limit")) {
        file->limit_ms = LIMIT_DEFAULT_MS;
    }
    file->term_ms = file->limit_ms + JOB_TERM_MS_LEAST; /* the limit counts from the start */
    file->expect_ms = file->limit_ms;                   /* so that the quote is of the whole time */
    file->retries = 0;
    file->crash_limit = 0;
    file->interruptions = 0; /* a person is not interrupted for a higher bid */
    local_terminal_size(&file->terminal.columns, &file->terminal.rows);
    file->terminal.is_plain = !is_person;
    if (!add_kind(file)) {
        (void)complain(invocation, BOURSE_USAGE, "--env: too many variables; the shell needs TERM");
        return NULL;
    }
    struct job_file *made = file;
    file = NULL;
    return made;
}
