#include "broker/backup_text.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void format_time(int64_t time_ns, char ret_text[32])
{
    time_t seconds = (time_t)(time_ns / NS_PER_S);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(ret_text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        (void)snprintf(ret_text, 32, "?");
    }
}

void backup_text_print(const struct backup_told *told, const char *done,
                       const struct backup_report *report)
{
    char time[32];
    int64_t age_s = (clock_wall_ns() - report->log_time_ns) / NS_PER_S;
    format_time(report->log_time_ns, time);
    if (told->is_json) {
        (void)printf("{\"version\":1,\"%s\":\"ok\",\"entry\":%" PRIu64 ",\"index\":%" PRIu64
                     ",\"log_time_ms\":%" PRId64 ",\"age_s\":%" PRId64 ",\"tree_size\":%" PRIu64
                     ",\"blobs\":%s,\"keys\":%s",
                     told->command, report->entry, report->command, report->log_time_ns / NS_PER_MS,
                     age_s, report->tree_size, report->has_blobs ? "true" : "false",
                     report->has_keys ? "true" : "false");
        if (report->is_checked) {
            (void)printf(",\"blobs_damaged\":%" PRIu64, report->blobs_damaged);
        }
        if (told->has_head) {
            (void)printf(",\"acts_lost\":%" PRIu64, report->acts_lost);
        }
        (void)printf("}\n");
        return;
    }
    (void)printf("%s %s: entry %" PRIu64 ", command %" PRIu64 " of %s log time, at most %" PRId64
                 " seconds old, tree of %" PRIu64 "; %s blobs, %s keys\n",
                 done, told->folder, report->entry, report->command, time, age_s, report->tree_size,
                 report->has_blobs ? "with" : "without", report->has_keys ? "with" : "without");
}

void backup_text_next(const struct backup_told *told, const struct backup_report *report)
{
    if (!report->has_keys) {
        log_info("put %s, %s and %s into %s: without them nobody can connect, and neither receipts "
                 "nor the "
                 "audit log be signed",
                 MARKET_BROKER_KEY, MARKET_LOG_KEY, MARKET_AUDIT_KEY, told->folder);
    }
    if (!report->has_blobs) {
        log_info("there are no blobs: jobs that wait cannot be run, outputs cannot be fetched");
    }
    if (report->blobs_damaged > 0) {
        log_warning("%" PRIu64
                    " blobs, named above, were left out: jobs that need them cannot be run, "
                    "and these outputs not be fetched",
                    report->blobs_damaged);
    }
    if (report->acts_lost > 0) {
        log_warning("the audit log of this backup ends %" PRIu64
                    " records before HEAD: these starts, "
                    "stops and counted refusals after the last command are lost, and the next "
                    "start says so in the log",
                    report->acts_lost);
    }
    if (!told->has_head) {
        log_warning(
            "nothing shows that this backup is the newest state. Whatever was accepted after "
            "command %" PRIu64 " is lost: if the lost folder's HEAD or a newer checkpoint can "
            "be found, restore again with --head or --checkpoint. If not: bourse-broker run "
            "--dir %s --adopt-journal, once",
            report->command, told->folder);
    }
}
