/* The program `bourse-audit DIR [--json]` prints the verdict of audit/audit.h. With --acts it
 * prints the audit log.
 *
 * The exit status is 0 when nothing was found, 1 for a finding, and 2 for wrong usage. It is 3 when
 * the journal is missing or unreadable. */
#include "audit/audit.h"

#include "base/text.h"
#include "protocol/codec.h"
#include "protocol/reject.h"

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_FINDING = 1, EXIT_USAGE = 2, EXIT_UNREADABLE = 3 };

static const char usage[] =
    "usage: bourse-audit [--json] DIR\n"
    "       bourse-audit --acts [--since NUMBER] [--json] DIR\n"
    "       bourse-audit help | version\n"
    "\n"
    "Derives every balance, hash and fill of the market in DIR again from its journal. A broker\n"
    "may be running on DIR. A folder with the name of a command is written as ./help.\n"
    "\n"
    "  --acts          prints the audit log of privileged and refused acts, and checks its chain\n"
    "                  against HEAD\n"
    "  --since NUMBER  with --acts: the first record to print (1)\n"
    "  --json          prints one JSON value on standard output\n"
    "\n"
    "Exit status: 0 nothing found, 1 a finding, 2 usage, 3 the journal is missing or unreadable.\n"
    "\n"
    "examples:\n"
    "  bourse-audit /var/lib/bourse/market\n"
    "  bourse-audit --acts --since 100 /var/lib/bourse/market\n";

/* Errors have one form: who, a stable word for programs, what is wrong, and what to do next. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    va_list arguments;
    (void)fputs("bourse-audit: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
}

static void print_credits(const char *name, int64_t micro)
{
    printf("  %-10s %" PRId64 ".%06" PRId64 " credits\n", name, micro / 1000000, micro % 1000000);
}

static void print_counted(uint64_t count, const char *one, const char *many, const char *after)
{
    printf("%" PRIu64 " %s%s", count, count == 1 ? one : many, after);
}

/* Each mark in HEAD has a copy. A damaged copy hides nothing, so the damage is no finding. The
 * broker gives the same warning at its start. */
static void warn_of_head(const struct audit_report *report)
{
    if (report->head_damaged > 0 && report->verdict != AUDIT_UNREADABLE) {
        fprintf(stderr,
                "bourse-audit: warning: HEAD: %" PRIu32
                " of its copies of a mark %s damaged. The audit "
                "used the newest copy that is whole. Check the disk, unless the power was cut\n",
                report->head_damaged, report->head_damaged == 1 ? "is" : "are");
    }
}

/* The broker gives the same warnings at its start, and goes on. */
static void warn_of_folder(const struct audit_report *report)
{
    if (report->snapshots_doubtful > 0 && report->verdict != AUDIT_UNREADABLE) {
        fprintf(stderr,
                "bourse-audit: warning: %s is damaged. Its name says command %" PRIu64
                ", but the journal ends at command %" PRIu64
                ". If the file is of this market, later entries are lost. Compare ledger.db with "
                "the newest backup and the newest checkpoint\n",
                report->doubtful, report->doubtful_command, report->commands);
    }
    if (report->history_damaged && report->verdict != AUDIT_UNREADABLE) {
        fputs("bourse-audit: warning: history.db is damaged, or a killed broker was writing it. So "
              "nobody "
              "can tell from it whether the ledger has lost results. Compare ledger.db with the "
              "newest backup and checkpoint\n",
              stderr);
    }
    if (report->key_missing[0] != '\0' && report->verdict == AUDIT_OK) {
        fprintf(
            stderr,
            "bourse-audit: warning: %s is missing: put this file into the folder before a broker "
            "starts on the folder\n",
            report->key_missing);
    }
}

static void print_text(const struct audit_report *report)
{
    if (report->verdict == AUDIT_UNREADABLE) {
        complain("%s; nothing was judged: mend that and run the audit again", report->what);
        return;
    }
    if (report->verdict == AUDIT_FINDING) {
        const bool has_both = report->expected[0] != '\0' || report->found[0] != '\0';
        printf("audit: WRONG: table %s, entry %" PRIu64
               ": %s%s%s%s%s; keep a copy of the folder, and "
               "compare ledger.db with the newest backup and the newest checkpoint\n",
               report->table, report->entry, report->what, has_both ? "; expected " : "",
               report->expected, has_both ? ", found " : "", report->found);
        return;
    }
    printf("audit: ok: %s\n", report->origin);
    fputs("  journal    ", stdout);
    print_counted(report->journal_entries, "entry", "entries", ", ");
    print_counted(report->commands, "command", "commands", ", ");
    print_counted(report->signatures, "signature", "signatures", " verified, ");
    printf("rules %" PRIu32 ", HEAD %s\n", report->rules, report->head);
    if (report->tail_entries > 0) {
        fputs("  tail       ", stdout);
        print_counted(report->tail_entries, "entry", "entries",
                      " behind the tables, chained; the audit covers them once they are applied\n");
    }
    fputs("  ledger     ", stdout);
    print_counted(report->records, "record", "records", ", ");
    print_counted(report->leaves, "leaf", "leaves", "; ");
    printf("the checkpoint signs %" PRIu64 ", root %s\n", report->tree_size, report->root);
    fputs("  market     ", stdout);
    print_counted(report->accounts, "account", "accounts", ", ");
    print_counted(report->jobs, "job", "jobs", ", ");
    print_counted(report->fills, "fill", "fills", ", ");
    print_counted(report->results, "result", "results", ", ");
    printf("%" PRIu64 " accepted\n", report->accepted);
    fputs("  checks     ", stdout);
    print_counted(report->checked, "result", "results", " decided by a referee; ");
    print_counted(report->epochs, "epoch", "epochs", ", dice of ");
    print_counted(report->dice, "batch", "batches", " recomputed\n");
    print_credits("minted", report->minted_micro);
    print_credits("charged", report->charged_micro);
    print_credits("fees", report->fees_micro);
    print_credits("held", report->held_micro);
    fputs("  audit log  ", stdout);
    print_counted(report->acts, "record", "records", "\n");
}

static json_t *verdict_of(const struct audit_report *report)
{
    static const char *const verdicts[] = {"ok", "finding", "unreadable"};
    json_t *json = json_pack("{s:i, s:s}", "version", 1, "audit", verdicts[report->verdict]);
    if (report->verdict == AUDIT_UNREADABLE) {
        /* The `json` is NULL when memory is short; then dump() fails. */
        (void)json_object_set_new(json, "what", json_string(report->what));
        return json;
    }
    (void)json_object_set_new(json, "head_damaged", json_integer(report->head_damaged));
    (void)json_object_set_new(json, "snapshots_doubtful", json_integer(report->snapshots_doubtful));
    (void)json_object_set_new(json, "history_damaged", json_boolean(report->history_damaged));
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
                  "s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                  "origin", report->origin, "head", report->head, "journal_entries",
                  (json_int_t)report->journal_entries, "commands", (json_int_t)report->commands,
                  "signatures", (json_int_t)report->signatures, "records",
                  (json_int_t)report->records, "leaves", (json_int_t)report->leaves, "tree_size",
                  (json_int_t)report->tree_size, "root", report->root, "accounts",
                  (json_int_t)report->accounts, "jobs", (json_int_t)report->jobs, "fills",
                  (json_int_t)report->fills, "results", (json_int_t)report->results, "accepted",
                  (json_int_t)report->accepted, "minted_micro", (json_int_t)report->minted_micro,
                  "charged_micro", (json_int_t)report->charged_micro, "fees_micro",
                  (json_int_t)report->fees_micro, "held_micro", (json_int_t)report->held_micro,
                  "acts", (json_int_t)report->acts, "checked", (json_int_t)report->checked,
                  "epochs", (json_int_t)report->epochs, "dice", (json_int_t)report->dice, "rules",
                  (json_int_t)report->rules, "tail_entries", (json_int_t)report->tail_entries));
    return json;
}

static bool dump(json_t *json)
{
    bool printed =
        json != NULL && json_dumpf(json, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(json);
    return printed;
}

/* ---------------------------------------------------------------- the audit log */

static const char *code_of(const struct audit_act *act)
{
    return act->code == 0 ? "" : reject_name((enum reject_code)act->code);
}

static const char *type_of(const struct audit_act *act)
{
    return act->type == 0 ? "" : message_name((enum message_type)act->type);
}

/* Writes the wall clock's time, such as "2026-11-21T10:58:01Z". */
static void time_text(int64_t wall_ms, char ret_text[32])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(ret_text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        ret_text[0] = '\0';
    }
}

static bool list_act(void *context, const struct audit_act *act)
{
    char target[65];
    char name[sizeof act->name];
    char text[sizeof act->text];
    char time[32];
    text_hex(act->target.bytes, sizeof act->target.bytes, target);
    text_printable(act->name, strlen(act->name), name, sizeof name);
    text_printable(act->text, strlen(act->text), text, sizeof text);
    time_text(act->wall_ms, time);
    json_t *row = json_pack(
        "{s:I, s:s, s:I, s:I, s:s, s:s, s:I, s:s, s:I, s:I, s:s, s:s, s:I, s:s}", "number",
        (json_int_t)act->number, "time", time, "log_time_ns", (json_int_t)act->log_time_ns,
        "wall_ms", (json_int_t)act->wall_ms, "kind", audit_act_name(act->kind), "name", name,
        "log_index", (json_int_t)act->log_index, "target",
        act->target.bytes[0] == 0 && memcmp(act->target.bytes, act->target.bytes + 1, 31) == 0
            ? ""
            : target,
        "amount_micro", (json_int_t)act->amount_micro, "state", (json_int_t)act->state, "code",
        code_of(act), "type", type_of(act), "count", (json_int_t)act->count, "text", text);
    if (row != NULL && act->account != UINT32_MAX) {
        /* The row has no account when memory is short. */
        (void)json_object_set_new(row, "account", json_integer(act->account));
    }
    return json_array_append_new(context, row) == 0;
}

static bool show_act(void *context, const struct audit_act *act)
{
    (void)context;
    char name[sizeof act->name];
    char text[sizeof act->text];
    char time[32];
    char target[17] = "";
    text_printable(act->name, strlen(act->name), name, sizeof name);
    text_printable(act->text, strlen(act->text), text, sizeof text);
    time_text(act->wall_ms, time);
    if (act->kind == AUDIT_ACT_JOIN || act->kind == AUDIT_ACT_MINT ||
        act->kind == AUDIT_ACT_FREEZE) {
        text_hex(act->target.bytes, 8, target);
    }
    (void)printf("%6" PRIu64 "  %s  %-13s", act->number, time, audit_act_name(act->kind));
    if (act->account != UINT32_MAX) {
        (void)printf("  %" PRIu32 " %s", act->account, name);
    }
    if (act->code != 0) {
        (void)printf("  %" PRIu64 " x %s %s", act->count, code_of(act), type_of(act));
    }
    if (act->amount_micro != 0) {
        (void)printf("  %" PRId64 ".%06" PRId64 " credits", act->amount_micro / 1000000,
                     act->amount_micro % 1000000);
    }
    if (target[0] != '\0') {
        (void)printf("  key %s", target);
    }
    if ((act->kind == AUDIT_ACT_FREEZE || act->kind == AUDIT_ACT_HALT) && act->state == 0) {
        (void)printf("  undone");
    }
    (void)printf("%s%s\n", text[0] == '\0' ? "" : "  ", text);
    return true;
}

static bool print_acts(const char *folder, uint64_t since, bool as_json,
                       struct audit_report *ret_report)
{
    json_t *rows = as_json ? json_array() : NULL;
    audit_acts_run(folder, since, as_json ? list_act : show_act, rows, ret_report);
    if (!as_json) {
        if (ret_report->verdict == AUDIT_OK) {
            (void)printf("audit log ok: %" PRIu64 " record%s, HEAD %s\n", ret_report->acts,
                         text_plural(ret_report->acts), ret_report->head);
        } else {
            print_text(ret_report);
        }
        return true;
    }
    json_t *value = verdict_of(ret_report);
    (void)json_object_set_new(value, "records", rows); /* dump() fails when `value` is NULL */
    return dump(value);
}

/* ---------------------------------------------------------------- main */

__attribute__((format(printf, 1, 2))) static int usage_error(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    complain("%s; `bourse-audit --help` says more", text);
    return EXIT_USAGE;
}

/* Answers the words and options that need no folder. */
static bool is_answered(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        fputs(usage, stdout);
        return true;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        fputs("bourse-audit " BOURSE_VERSION "\n", stdout);
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    bool as_json = false;
    bool acts = false;
    unsigned long long since = 1;
    const char *folder = NULL;
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--acts") == 0) {
            acts = true;
        } else if (strcmp(argv[i], "--since") == 0 && i + 1 < argc) {
            since = strtoull(argv[++i], &end, 10);
            if (end == argv[i] || *end != '\0' || since == 0) {
                return usage_error("--since %.80s: give the number of a record of the audit log: "
                                   "1, 2, 3 ...",
                                   argv[i]);
            }
        } else if (is_answered(argv[i])) {
            return EXIT_SUCCESS;
        } else if (strcmp(argv[i], "--since") == 0) {
            return usage_error("--since lacks the number of a record");
        } else if (argv[i][0] == '-') {
            return usage_error("there is no option '%.80s'", argv[i]);
        } else if (folder != NULL) {
            return usage_error("%.80s is a second folder; name one", argv[i]);
        } else {
            folder = argv[i];
        }
    }
    if (folder == NULL) {
        return usage_error("name the folder of a market");
    }
    if (since != 1 && !acts) {
        return usage_error("--since goes with --acts");
    }
    struct audit_report report;
    if (sodium_init() < 0) {
        complain("libsodium cannot be initialised; install it again");
        return EXIT_UNREADABLE;
    }
    bool printed = true;
    if (acts) {
        printed = print_acts(folder, since, as_json, &report);
    } else {
        audit_run(folder, &report);
        if (as_json) {
            printed = dump(verdict_of(&report));
        } else {
            print_text(&report);
        }
    }
    warn_of_head(&report);
    warn_of_folder(&report);
    if (!printed) {
        complain("the verdict cannot be written to standard output; look at its disk");
        return EXIT_UNREADABLE;
    }
    return report.verdict == AUDIT_OK        ? EXIT_SUCCESS
           : report.verdict == AUDIT_FINDING ? EXIT_FINDING
                                             : EXIT_UNREADABLE;
}
