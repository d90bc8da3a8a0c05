/* The examples of docs/jobfile.md and of the manual page are jobs that are taken, or are refused in
 * the words shown there; and both name every key and field that the readers know. */
#include "base/cleanup.h"
#include "formats/job.h"
#include "formats/requirement.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_SIZE = 1 << 17, BLOCK_SIZE = 4096 };

static char page[PAGE_SIZE];

static void read_page(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", BOURSE_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    size_t length = fread(page, 1, sizeof page - 1, file);
    (void)fclose(file);
    ck_assert_uint_gt(length, 1000);
    page[length] = '\0';
}

/* The lines between the next line `begin` and the line `end` after it; NULL when there is none. */
static const char *next_block(const char *from, const char *begin, const char *end, char *ret_block)
{
    char opening[64];
    char closing[64];
    (void)snprintf(opening, sizeof opening, "\n%s\n", begin);
    (void)snprintf(closing, sizeof closing, "\n%s\n", end);
    const char *start = strstr(from, opening);
    if (start == NULL) {
        return NULL;
    }
    start += strlen(opening);
    const char *stop = strstr(start, closing);
    ck_assert_ptr_nonnull(stop);
    size_t length = (size_t)(stop + 1 - start);
    ck_assert_uint_lt(length, BLOCK_SIZE);
    memcpy(ret_block, start, length);
    ck_assert_uint_lt(length, BLOCK_SIZE);
    ret_block[length] = '\0';
    return stop;
}

static unsigned take_all(const char *begin, const char *end)
{
    char block[BLOCK_SIZE];
    unsigned count = 0;
    for (const char *at = page; (at = next_block(at, begin, end, block)) != NULL; count++) {
        struct problem problem;
        CLEANUP(job_file_destroy)
        struct job_file *job = job_file_parse(block, strlen(block), "job.yaml", &problem);
        ck_assert_msg(job != NULL, "%s in:\n%s", problem.text, block);
    }
    return count;
}

START_TEST(the_examples_are_taken)
{
    read_page("docs/jobfile.md");
    ck_assert_uint_ge(take_all("```yaml", "```"), 5);
    ck_assert_uint_ge(take_all("```json", "```"), 1);
    read_page("docs/man/bourse-job.5");
    ck_assert_uint_ge(take_all(".Bd -literal -offset indent", ".Ed"), 2);
}
END_TEST

/* The job of the README stands in a script, which writes it with `cat`. */
START_TEST(the_jobs_of_the_other_pages_are_taken)
{
    char block[BLOCK_SIZE];
    char job[BLOCK_SIZE];
    size_t length = 0;
    read_page("docs/consumer.md");
    ck_assert_uint_ge(take_all("```yaml", "```"), 1);
    read_page("README.md");
    ck_assert_ptr_nonnull(next_block(page, "    cat > job.yaml <<END", "    END", block));
    for (const char *line = block; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t size = strcspn(line, "\n") + 1;
        ck_assert_msg(strncmp(line, "    ", 4) == 0, "%s", line);
        memcpy(job + length, line + 4, size - 4);
        length += size - 4;
    }
    struct problem problem;
    CLEANUP(job_file_destroy)
    struct job_file *taken = job_file_parse(job, length, "job.yaml", &problem);
    ck_assert_msg(taken != NULL, "%s", problem.text);
}
END_TEST

START_TEST(the_mistakes_are_refused_in_the_words_shown)
{
    char block[BLOCK_SIZE];
    char message[BLOCK_SIZE];
    unsigned count = 0;
    read_page("docs/jobfile.md");
    for (const char *at = page; (at = next_block(at, "```yaml refused", "```", block)) != NULL;
         count++) {
        struct problem problem = {"taken"};
        ck_assert_ptr_null(job_file_parse(block, strlen(block), "job.yaml", &problem));
        at = next_block(at, "```message", "```", message);
        ck_assert_ptr_nonnull(at);
        message[strlen(message) - 1] = '\0';
        ck_assert_str_eq(problem.text, message);
    }
    ck_assert_uint_ge(count, 5);
}
END_TEST

START_TEST(every_field_and_key_is_described)
{
    static const char *const keys[] = {
        "name",        "budget", "cap",     "needs",       "slots",     "at_most",
        "each",        "array",  "lines",   "files",       "image",     "run",
        "env",         "stdin",  "outputs", "limit",       "term",      "expect",
        "limits",      "verify", "retries", "crash_limit", "good_till", "interruptions",
        "error_limit", "tasks",  "after",   "from",        "order",     "checkpoint"};
    size_t count;
    const struct requirement_field *fields = requirement_fields(&count);
    for (int manual = 0; manual < 2; manual++) {
        char row[64];
        read_page(manual ? "docs/man/bourse-job.5" : "docs/jobfile.md");
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            (void)snprintf(row, sizeof row, manual ? "\n.It Cm %s\n" : "\n| `%s` |", keys[i]);
            ck_assert_msg(strstr(page, row) != NULL, "%s", row);
        }
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(row, sizeof row, manual ? "\n.It Cm %s\n" : "\n| `%s` |",
                           fields[i].name);
            ck_assert_msg(strstr(page, row) != NULL, "%s", row);
        }
    }
}
END_TEST

SUITE("jobfile", NULL, NULL, TEST(the_examples_are_taken),
      TEST(the_jobs_of_the_other_pages_are_taken),
      TEST(the_mistakes_are_refused_in_the_words_shown), TEST(every_field_and_key_is_described))
