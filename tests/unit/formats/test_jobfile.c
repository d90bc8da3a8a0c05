/* The examples of docs/jobfile.md and of the manual page are jobs that are taken, or are refused in
 * the words shown there; and both name every key and field that the readers know. */
#include "base/cleanup.h"
#include "formats/job.h"
#include "formats/requirement.h"
#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes every example of the page as a job file. Returns how many there are. */
static unsigned take_all(const char *name, const char *opening, const char *closing)
{
    char example[PAGE_EXAMPLE_SIZE];
    char *page = page_read(name);
    unsigned count = 0;
    for (const char *at = page; (at = page_example(at, opening, closing, example)) != NULL;
         count++) {
        struct problem problem;
        CLEANUP(job_file_destroy)
        struct job_file *job = job_file_parse(example, strlen(example), "job.yaml", &problem);
        ck_assert_msg(job != NULL, "%s in:\n%s", problem.text, example);
    }
    free(page);
    return count;
}

START_TEST(the_examples_are_taken)
{
    ck_assert_uint_ge(take_all("docs/jobfile.md", "```yaml", "```"), 5);
    ck_assert_uint_ge(take_all("docs/jobfile.md", "```json", "```"), 1);
    ck_assert_uint_ge(take_all("docs/man/bourse-job.5", ".Bd -literal -offset indent", ".Ed"), 2);
}
END_TEST

/* The job of the README stands in a script, which writes it with `cat`. */
START_TEST(the_jobs_of_the_other_pages_are_taken)
{
    ck_assert_uint_ge(take_all("docs/consumer.md", "```yaml", "```"), 1);
    ck_assert_uint_eq(take_all("README.md", "cat > job.yaml <<END", "END"), 1);
}
END_TEST

START_TEST(the_mistakes_are_refused_in_the_words_shown)
{
    char example[PAGE_EXAMPLE_SIZE];
    char message[PAGE_EXAMPLE_SIZE];
    char *page = page_read("docs/jobfile.md");
    unsigned count = 0;
    for (const char *at = page; (at = page_example(at, "```yaml refused", "```", example)) != NULL;
         count++) {
        struct problem problem = {"taken"};
        ck_assert_ptr_null(job_file_parse(example, strlen(example), "job.yaml", &problem));
        at = page_example(at, "```message", "```", message);
        ck_assert_ptr_nonnull(at);
        message[strlen(message) - 1] = '\0';
        ck_assert_str_eq(problem.text, message);
    }
    free(page);
    ck_assert_uint_ge(count, 5);
}
END_TEST

START_TEST(every_field_and_key_is_described)
{
    static const char *const keys[] = {
        "name",        "budget",     "cap",           "needs",       "slots",  "at_most", "each",
        "array",       "lines",      "files",         "image",       "run",    "env",     "stdin",
        "outputs",     "limit",      "term",          "expect",      "limits", "verify",  "retries",
        "crash_limit", "good_till",  "interruptions", "error_limit", "tasks",  "after",   "from",
        "order",       "checkpoint", "model",         "inputs",      "split",  "parts",   "stages"};
    size_t count;
    const struct requirement_field *fields = requirement_fields(&count);
    for (int manual = 0; manual < 2; manual++) {
        char row[64];
        char *page = page_read(manual ? "docs/man/bourse-job.5" : "docs/jobfile.md");
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            (void)snprintf(row, sizeof row, manual ? "\n.It Cm %s\n" : "\n| `%s` |", keys[i]);
            ck_assert_msg(strstr(page, row) != NULL, "%s", row);
        }
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(row, sizeof row, manual ? "\n.It Cm %s\n" : "\n| `%s` |",
                           fields[i].name);
            ck_assert_msg(strstr(page, row) != NULL, "%s", row);
        }
        free(page);
    }
}
END_TEST

SUITE("jobfile", NULL, NULL, TEST(the_examples_are_taken),
      TEST(the_jobs_of_the_other_pages_are_taken),
      TEST(the_mistakes_are_refused_in_the_words_shown), TEST(every_field_and_key_is_described))
