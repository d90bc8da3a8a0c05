/* Every config of docs/provider.md and of the manual page is one that the agent reads. */
#include "provider/config.h"

#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads the text as a provider.yaml in a folder of its own. */
static void check_config(const char *text)
{
    static struct config config;
    struct problem problem = {""};
    char folder[] = "/tmp/bourse-page-XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/provider.yaml", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
    const bool is_read = config_read(folder, NULL, &config, &problem);
    (void)unlink(path);
    (void)rmdir(folder);
    ck_assert_msg(is_read, "%s in:\n%s", problem.text, text);
}

static unsigned check_all(const char *name, const char *opening, const char *closing)
{
    char example[PAGE_EXAMPLE_SIZE];
    char *page = page_read(name);
    unsigned count = 0;
    for (const char *at = page; (at = page_example(at, opening, closing, example)) != NULL;
         count++) {
        check_config(example);
    }
    free(page);
    return count;
}

START_TEST(the_configs_of_the_page_are_read)
{
    ck_assert_uint_eq(check_all("docs/provider.md", "```yaml", "```"), 14);
}
END_TEST

START_TEST(the_config_of_the_manual_page_is_read)
{
    ck_assert_uint_eq(
        check_all("docs/man/bourse-provider.8", "cat > attic/provider.yaml <<END", "END"), 1);
}
END_TEST

SUITE("provider pages", NULL, NULL, TEST(the_configs_of_the_page_are_read),
      TEST(the_config_of_the_manual_page_is_read))
