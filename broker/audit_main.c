/* bourse-audit FOLDER [--json]: the verdict of broker/audit.h as a program.
 *
 * Exit codes: 0 nothing found, 1 a finding, 2 usage, 3 no such market or it cannot be read. */
#include "broker/audit.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FINDING = 1, EXIT_USAGE = 2, EXIT_UNREADABLE = 3 };

static const char usage[] =
    "usage: bourse-audit [--json] FOLDER\n"
    "Re-derives every balance, hash and fill of the market in FOLDER from its journal.\n";

static void print_credits(const char *name, int64_t micro)
{
    printf("  %-10s %" PRId64 ".%06" PRId64 " credits\n", name, micro / 1000000, micro % 1000000);
}

static void print_text(const struct audit_report *report)
{
    if (report->verdict == AUDIT_UNREADABLE) {
        fprintf(stderr, "audit: %s\n", report->what);
        return;
    }
    if (report->verdict == AUDIT_FINDING) {
        printf("audit: WRONG: table %s, entry %" PRIu64 ": %s\n", report->table, report->entry,
               report->what);
        if (report->expected[0] != '\0' || report->found[0] != '\0') {
            printf("  expected %s\n  found    %s\n", report->expected, report->found);
        }
        return;
    }
    printf("audit: ok: %s\n", report->origin);
    printf("  journal    %" PRIu64 " entries, %" PRIu64 " commands, %" PRIu64
           " signatures verified, HEAD %s\n",
           report->journal_entries, report->commands, report->signatures, report->head);
    printf("  ledger     %" PRIu64 " records, %" PRIu64 " leaves; the checkpoint signs %" PRIu64
           ", root %s\n",
           report->records, report->leaves, report->tree_size, report->root);
    printf("  market     %" PRIu64 " accounts, %" PRIu64 " jobs, %" PRIu64 " fills, %" PRIu64
           " results, %" PRIu64 " accepted\n",
           report->accounts, report->jobs, report->fills, report->results, report->accepted);
    print_credits("minted", report->minted_micro);
    print_credits("charged", report->charged_micro);
    print_credits("fees", report->fees_micro);
    print_credits("held", report->held_micro);
}

static json_t *verdict_of(const struct audit_report *report)
{
    static const char *const verdicts[] = {"ok", "finding", "unreadable"};
    json_t *json = json_pack("{s:i, s:s}", "version", 1, "audit", verdicts[report->verdict]);
    if (report->verdict == AUDIT_UNREADABLE) {
        (void)json_object_set_new(json, "what",
                                  json_string(report->what)); /* a NULL json shows at the dump */
        return json;
    }
    if (report->verdict == AUDIT_FINDING) {
        (void)json_object_update_new(
            json, json_pack("{s:s, s:I, s:s, s:s, s:s}", "table", report->table, "entry",
                            (json_int_t)report->entry, "what", report->what, "expected",
                            report->expected, "found", report->found));
        return json;
    }
    (void)json_object_update_new(
        json,
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, "
                  "s:I, s:I, s:I}",
                  "origin", report->origin, "head", report->head, "journal_entries",
                  (json_int_t)report->journal_entries, "commands", (json_int_t)report->commands,
                  "signatures", (json_int_t)report->signatures, "records",
                  (json_int_t)report->records, "leaves", (json_int_t)report->leaves, "tree_size",
                  (json_int_t)report->tree_size, "root", report->root, "accounts",
                  (json_int_t)report->accounts, "jobs", (json_int_t)report->jobs, "fills",
                  (json_int_t)report->fills, "results", (json_int_t)report->results, "accepted",
                  (json_int_t)report->accepted, "minted_micro", (json_int_t)report->minted_micro,
                  "charged_micro", (json_int_t)report->charged_micro, "fees_micro",
                  (json_int_t)report->fees_micro, "held_micro", (json_int_t)report->held_micro));
    return json;
}

static bool print_json(const struct audit_report *report)
{
    json_t *json = verdict_of(report);
    bool printed =
        json != NULL && json_dumpf(json, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(json);
    return printed;
}

int main(int argc, char **argv)
{
    bool as_json = false;
    const char *folder = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        } else if (argv[i][0] == '-' || folder != NULL) {
            fputs(usage, stderr);
            return EXIT_USAGE;
        } else {
            folder = argv[i];
        }
    }
    if (folder == NULL) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    struct audit_report report;
    if (sodium_init() < 0) {
        fputs("audit: libsodium does not start\n", stderr);
        return EXIT_UNREADABLE;
    }
    audit_run(folder, &report);
    if (as_json && !print_json(&report)) {
        fputs("audit: the verdict cannot be written\n", stderr);
        return EXIT_UNREADABLE;
    }
    if (!as_json) {
        print_text(&report);
    }
    return report.verdict == AUDIT_OK        ? EXIT_SUCCESS
           : report.verdict == AUDIT_FINDING ? EXIT_FINDING
                                             : EXIT_UNREADABLE;
}
