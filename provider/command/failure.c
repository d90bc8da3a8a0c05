/* provider/command/failure.c prints failures as `bourse` does, for people or, with --json, for
 * programs. */
#include "provider/command/command.h"

#include "base/text.h"
#include "provider/join.h"
#include "runtime/link_explain.h"

#include <jansson.h>

#include <stdio.h>
#include <string.h>

static bool is_json;

void command_fail_in_json(bool json)
{
    is_json = json;
}

enum { FORMAT_VERSION = 1 }; /* as in the errors of the command bourse */

static const char *name_of(int status)
{
    switch (status) {
    case EXIT_USAGE:
        return "USAGE";
    case EXIT_NOBODY:
        return "NOT_FOUND";
    case EXIT_REFUSED:
        return "REFUSED";
    case EXIT_UNREACHABLE:
        return "UNREACHABLE";
    default:
        return "LOCAL";
    }
}

int command_fail(int status, const char *text)
{
    if (!is_json) {
        (void)fflush(stdout);
        fprintf(stderr, "bourse-provider: %s\n", text);
        return status;
    }
    json_t *root = json_pack("{s:{s:s, s:s, s:i}, s:i}", "error", "name", name_of(status), "text",
                             text, "exit", status, "version", FORMAT_VERSION);
    if (root != NULL && json_dumpf(root, stdout, JSON_COMPACT) == 0) {
        (void)fputc('\n', stdout);
    }
    json_decref(root);
    return status;
}

void command_say_silence(const char *endpoint, int left_ms)
{
    fprintf(stderr, "bourse-provider: %s has not answered for %d s; trying for up to %d s more\n",
            endpoint, JOIN_SILENCE_MS / 1000, left_ms / 1000);
    char why[512];
    link_explain(endpoint, why, sizeof why);
    if (why[0] != '\0') {
        char shown[sizeof why];
        text_printable(why, strlen(why), shown, sizeof shown);
        fprintf(stderr, "bourse-provider: %s\n", shown);
    }
}
