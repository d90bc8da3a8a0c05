/* docs/protocol.md against the code: the table of messages line by line, and every limit by its
 * name. */
#include "protocol/codec.h"
#include "protocol/codec_check.h"
#include "protocol/limits.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOCUMENT_BYTES_MAX = 1 << 20,
    EVERY_ROLE =
        ROLE_CONSUMER | ROLE_PROVIDER | ROLE_AUDITOR | ROLE_REPLICA | ROLE_RISK | ROLE_OPERATOR
};

static char *read_source(const char *name)
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

static void sender_text(unsigned roles, char ret_text[64])
{
    static const struct {
        unsigned role;
        const char *name;
    } names[] = {{ROLE_CONSUMER, "consumer"},
                 {ROLE_PROVIDER, "provider"},
                 {ROLE_RISK, "risk"},
                 {ROLE_OPERATOR, "operator"},
                 {ROLE_ANYONE, "anyone"}};
    if (roles == EVERY_ROLE) {
        strcpy(ret_text, "member");
        return;
    }
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((roles & names[i].role) != 0) {
            strcat(ret_text, ret_text[0] == '\0' ? "" : ", ");
            strcat(ret_text, names[i].name);
        }
    }
    if (roles == 0) {
        strcpy(ret_text, "broker");
    }
}

START_TEST(the_table_of_messages_is_the_codes)
{
    char *text = read_source("docs/protocol.md");
    for (int type = 0; type < MESSAGE_TYPE_END; type++) {
        const struct message_row *row = codec_row((enum message_type)type);
        if (row == NULL) {
            continue;
        }
        char sender[64];
        char line[256];
        sender_text(row->roles, sender);
        const char *answer = row->answer == 0 ? "" : message_name(row->answer);
        (void)snprintf(line, sizeof line, "\n| %d | %s | `%s` | %s | %s | %s | %u |", type,
                       row->name, row->shape->descriptor->short_name, sender,
                       row->is_signed ? "yes" : "", answer, (unsigned)row->body_cap);
        ck_assert_msg(strstr(text, line) != NULL, "docs/protocol.md lacks the line%s", line);
    }
    free(text);
}
END_TEST

START_TEST(every_limit_stands_in_the_table_of_limits)
{
    char *text = read_source("docs/protocol.md");
    char *limits = read_source("protocol/limits.h");
    unsigned count = 0;
    for (const char *at = strstr(limits, "LIMIT_"); at != NULL; at = strstr(at + 1, "LIMIT_")) {
        size_t length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        bool is_definition =
            strncmp(at + length, " =", 2) == 0 || strncmp(at - 8, "#define ", 8) == 0;
        if (!is_definition) {
            continue;
        }
        char cell[128];
        (void)snprintf(cell, sizeof cell, "| `%.*s` |", (int)length, at);
        ck_assert_msg(strstr(text, cell) != NULL, "docs/protocol.md lacks %s", cell);
        count++;
    }
    ck_assert_uint_gt(count, 40);
    free(limits);
    free(text);
}
END_TEST

SUITE("protocol_document", NULL, NULL, TEST(the_table_of_messages_is_the_codes),
      TEST(every_limit_stands_in_the_table_of_limits))
