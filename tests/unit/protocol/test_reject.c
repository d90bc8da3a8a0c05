/* The table of reject codes, and the two documents that repeat it. */
#include "protocol/reject.h"

#include "base/problem.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_BYTES_MAX = 1 << 20 };

/* Every number that is given out; the enum has gaps. */
static bool is_given_out(int code)
{
    return (code >= REJECT_MALFORMED && code <= REJECT_NO_QUORUM) ||
           (code >= REJECT_NOT_FOUND && code <= REJECT_NOTIONAL) || code == REJECT_HOURS ||
           code == REJECT_ACCOUNT || (code >= REJECT_BLOB_HASH && code < REJECT_CODE_COUNT);
}

START_TEST(every_code_has_a_name_an_advice_and_an_exit_status)
{
    for (int code = 1; code < REJECT_CODE_COUNT; code++) {
        const char *name = reject_name((enum reject_code)code);
        const char *advice = reject_advice((enum reject_code)code);
        ck_assert_msg((strcmp(name, "UNKNOWN") != 0) == is_given_out(code), "code %d is %s", code,
                      name);
        ck_assert_uint_gt(strlen(advice), 10);
        ck_assert_int_eq(advice[strlen(advice) - 1], '.');
        int status = reject_exit_status((enum reject_code)code);
        ck_assert_int_ge(status, 2);
        ck_assert_int_le(status, 6);
        for (const char *at = name; *at != '\0'; at++) {
            ck_assert(isupper((unsigned char)*at) || *at == '_');
        }
    }
    ck_assert_int_eq(reject_exit_status(REJECT_NONE), 0);
}
END_TEST

START_TEST(no_two_codes_share_a_name)
{
    for (int a = 1; a < REJECT_CODE_COUNT; a++) {
        for (int b = a + 1; is_given_out(a) && b < REJECT_CODE_COUNT; b++) {
            ck_assert_str_ne(reject_name((enum reject_code)a), reject_name((enum reject_code)b));
        }
    }
}
END_TEST

START_TEST(numbers_outside_the_table_are_unknown)
{
    const int wrong[] = {-1, 18, 19, REJECT_CODE_COUNT, 65535, 1 << 30};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_str_eq(reject_name((enum reject_code)wrong[i]), "UNKNOWN");
        ck_assert_ptr_nonnull(reject_advice((enum reject_code)wrong[i]));
        ck_assert_int_eq(reject_exit_status((enum reject_code)wrong[i]), 4);
    }
}
END_TEST

static char *read_document(const char *name)
{
    char path[512];
    uint8_t *bytes;
    size_t length;
    struct problem problem;
    (void)snprintf(path, sizeof path, "%s/%s", BOURSE_SOURCE_DIR, name);
    ck_assert_msg(file_read(path, DOCUMENT_BYTES_MAX, &bytes, &length, &problem), "%s",
                  problem.text);
    return (char *)bytes;
}

/* The number of a line of a table that starts "| 12 | `NAME` |", or 0 when it is none. */
static int code_of_line(const char *line, char ret_name[64])
{
    int code;
    return sscanf(line, "| %d | `%63[A-Z_]` |", &code, ret_name) == 2 ? code : 0;
}

/* Each of both documents has one line for each code, with its name, in order; and no other such
 * line. */
static void check_document(const char *name)
{
    char *text = read_document(name);
    int expected = 1;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char code_name[64];
        int code = code_of_line(line, code_name);
        if (code == 0) {
            continue;
        }
        while (!is_given_out(expected)) {
            expected++;
        }
        ck_assert_msg(code == expected, "%s: %d follows, %d expected", name, code, expected);
        ck_assert_str_eq(code_name, reject_name((enum reject_code)code));
        expected++;
    }
    ck_assert_int_eq(expected, REJECT_CODE_COUNT);
    free(text);
}

START_TEST(the_specification_lists_the_same_codes)
{
    check_document("docs/protocol.md");
}
END_TEST

START_TEST(the_list_of_errors_says_what_the_program_says)
{
    check_document("docs/errors.md");
    char *text = read_document("docs/errors.md");
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char name[64];
        int code = code_of_line(line, name);
        if (code == 0) {
            continue;
        }
        char end[512];
        (void)snprintf(end, sizeof end, "| %s | %d |", reject_advice((enum reject_code)code),
                       reject_exit_status((enum reject_code)code));
        ck_assert_msg(strstr(line, end) != NULL, "docs/errors.md, code %d: the line should end %s",
                      code, end);
    }
    free(text);
}
END_TEST

SUITE("reject", NULL, NULL, TEST(every_code_has_a_name_an_advice_and_an_exit_status),
      TEST(no_two_codes_share_a_name), TEST(numbers_outside_the_table_are_unknown),
      TEST(the_specification_lists_the_same_codes),
      TEST(the_list_of_errors_says_what_the_program_says))
