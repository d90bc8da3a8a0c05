#include "broker/cluster/status_page.h"

#include "base/checked.h"
#include "base/text.h"
#include "broker/storage/etcd/replicated.h"

#include <inttypes.h>
#include <string.h>

/* ---- what the records say */

static int leader_of(const struct status_page *page)
{
    for (size_t i = 0; i < page->brokers->count; i++) {
        if (page->brokers->brokers[i].is_readable &&
            status_page_role(page, i) == STATUS_PAGE_LEADS) {
            return (int)i;
        }
    }
    return -1;
}

/* The leader's key on etcd says who leads; a record says it some seconds later. */
enum status_page_role status_page_role(const struct status_page *page, size_t i)
{
    const struct etcd_member *member = &page->brokers->brokers[i].member;
    if (!page->brokers->brokers[i].is_alive) {
        return member->runs ? STATUS_PAGE_SILENT : STATUS_PAGE_STOPPED;
    }
    return page->etcd->has_journal && strcmp(member->broker, page->etcd->leader.broker) == 0
               ? STATUS_PAGE_LEADS
               : STATUS_PAGE_FOLLOWS;
}

uint64_t status_page_behind(const struct status_page *page, size_t i)
{
    const struct etcd_member *member = &page->brokers->brokers[i].member;
    const bool is_current = page->brokers->brokers[i].is_alive && member->lag_ms == 0;
    return is_current || page->etcd->last <= member->index ? 0 : page->etcd->last - member->index;
}

enum status_page_state status_page_state(const struct status_page *page, size_t i)
{
    const struct etcd_member *member = &page->brokers->brokers[i].member;
    const int number = leader_of(page);
    if (number < 0 || member->state_command == 0) {
        return STATUS_PAGE_UNKNOWN;
    }
    const struct etcd_member *leader = &page->brokers->brokers[number].member;
    if (leader->state_command != member->state_command) {
        return STATUS_PAGE_UNKNOWN;
    }
    return hash32_equal(&leader->state, &member->state) ? STATUS_PAGE_AGREES : STATUS_PAGE_DIFFERS;
}

static int64_t seen_before_ms(const struct status_page *page, size_t i)
{
    const int64_t ago_ms = page->now_ms - page->brokers->brokers[i].member.seen_ms;
    return ago_ms > 0 ? ago_ms : 0; /* clocks of two machines differ */
}

static int64_t own_stale_ms(const struct status_page *page)
{
    const int64_t behind_ns =
        page->etcd->last > page->own->last ? page->etcd->last_log_ns - page->own->log_ns : 0;
    return behind_ns > 0 ? behind_ns / NS_PER_MS : 0;
}

static uint64_t own_lag(const struct status_page *page)
{
    return page->etcd->last > page->own->last ? page->etcd->last - page->own->last : 0;
}

static const char *role_text(enum status_page_role role)
{
    switch (role) {
    case STATUS_PAGE_LEADS:
        return "leads";
    case STATUS_PAGE_FOLLOWS:
        return "follows";
    case STATUS_PAGE_STOPPED:
        return "stopped";
    case STATUS_PAGE_SILENT:
        return "silent";
    }
    return "";
}

/* Returns the rules in force by the record of the broker that leads; 0: not known. */
static uint32_t rules_of(const struct status_page *page)
{
    const int number = leader_of(page);
    return number < 0 ? 0 : page->brokers->brokers[number].member.rules;
}

/* Returns the newest rules that a broker knows. */
static uint32_t newest_rules(const struct status_page *page)
{
    uint32_t newest = 0;
    for (size_t i = 0; i < page->brokers->count; i++) {
        const struct etcd_member *member = &page->brokers->brokers[i].member;
        newest = member->rules_last > newest ? member->rules_last : newest;
    }
    return newest; /* a record that is not readable has 0 */
}

static bool knows_rules(const struct etcd_member *member, uint32_t rules)
{
    return member->rules_first <= rules && rules <= member->rules_last;
}

/* ---- text */

static void write_member(FILE *out, const struct etcd_inquiry_member *member)
{
    if (!member->answers) {
        (void)fprintf(out, "member    %s does not answer\n", member->url);
        return;
    }
    (void)fprintf(out, "member    %s etcd %s, %" PRIu64 " KiB of which %" PRIu64 " are live",
                  member->url, member->version, member->database_bytes >> 10,
                  member->live_bytes >> 10);
    if (member->quota_bytes > 0) {
        (void)fprintf(out, ", %" PRIu64 " %% of its quota",
                      member->database_bytes * 100 / member->quota_bytes);
    }
    if (member->behind > 0) {
        (void)fprintf(out, ", %" PRIu64 " behind", member->behind);
    }
    (void)fputs(member->leads ? ", leads\n" : "\n", out);
}

void status_page_etcd(FILE *out, const struct etcd_inquiry *found)
{
    for (size_t i = 0; i < found->member_count; i++) {
        write_member(out, &found->members[i]);
    }
    if (found->no_space) {
        (void)fputs(
            "alarm     NOSPACE: etcd has reached its quota and takes no entry. Compact, "
            "defragment each member,\n          then disarm the alarm: docs/operator.md, When "
            "etcd does not answer\n",
            out);
    }
    if (found->is_corrupt) {
        (void)fputs("alarm     CORRUPT: the data of a member is damaged. Replace that member, then "
                    "disarm the alarm\n",
                    out);
    }
}

static void write_state(FILE *out, const struct status_page *page, size_t i)
{
    const uint64_t command = page->brokers->brokers[i].member.state_command;
    switch (status_page_state(page, i)) {
    case STATUS_PAGE_AGREES:
        (void)fprintf(out, ", state agrees at command %" PRIu64, command);
        break;
    case STATUS_PAGE_DIFFERS:
        (void)fprintf(out, ", STATE DIFFERS at command %" PRIu64, command);
        break;
    case STATUS_PAGE_UNKNOWN:
        if (command > 0) {
            (void)fprintf(out, ", state of command %" PRIu64, command);
        }
        break;
    }
}

static void write_broker(FILE *out, const struct status_page *page, size_t i)
{
    const struct etcd_member *member = &page->brokers->brokers[i].member;
    if (!page->brokers->brokers[i].is_readable) {
        (void)fprintf(out, "broker    %s: another release wrote its record\n", member->id);
        return;
    }
    const enum status_page_role role = status_page_role(page, i);
    (void)fprintf(out, "broker    %u %s, %s, entry %" PRIu64 ", %" PRIu64 " behind", member->rank,
                  role_text(role), member->control, member->index, status_page_behind(page, i));
    if (role == STATUS_PAGE_FOLLOWS && member->lag_ms != 0) {
        (void)fprintf(out, member->lag_ms < 0 ? ", not up to date since its start" : ", for %.1f s",
                      (double)member->lag_ms / 1000);
    }
    (void)fprintf(out, ", seen %" PRId64 " s ago", seen_before_ms(page, i) / 1000);
    write_state(out, page, i);
    (void)fprintf(out, ", knows rules %" PRIu32 " to %" PRIu32 ", release %s%s\n",
                  member->rules_first, member->rules_last, member->version,
                  strcmp(member->id, page->own_id) == 0 ? ", this folder" : "");
}

static void write_journal(FILE *out, const struct status_page *page)
{
    const struct etcd_inquiry *found = page->etcd;
    const bool is_resigned = replicated_is_resigned(&found->leader);
    (void)fprintf(out, "leader    %s%s%s\n", is_resigned ? "nobody; the last was " : "",
                  found->leader.broker[0] == '\0' ? "nobody yet" : found->leader.broker,
                  is_resigned ? ", which stopped" : "");
    (void)fprintf(out, "%s   %s\n", is_resigned ? "next   " : "address",
                  found->leader.address[0] == '\0' ? "-" : found->leader.address);
    (void)fprintf(out, "epoch     %" PRIu64 "\n", found->leader.epoch);
    (void)fprintf(out, "index     %" PRIu64 " on etcd, which keeps entries after %" PRIu64 "\n",
                  found->last, found->base);
    if (page->is_own_old) {
        (void)fputs("own       this folder is of a journal that has ended: make it anew with "
                    "cluster join\n",
                    out);
        return;
    }
    (void)fprintf(out, "own       %" PRIu64 " here: %" PRIu64 " behind, %" PRId64 " ms stale\n",
                  page->own->last, own_lag(page), own_stale_ms(page));
}

/* The next rules come once every broker knows them, so the line names those that do not. A record
 * that is not readable has no rank. */
static void write_rules(FILE *out, const struct status_page *page)
{
    const uint32_t rules = rules_of(page);
    const char *separator = " when these brokers know them: ";
    if (rules == 0) {
        return;
    }
    (void)fprintf(out, "rules     %" PRIu32 " in force", rules);
    if (rules < newest_rules(page)) {
        (void)fprintf(out, ", %" PRIu32, rules + 1);
        for (size_t i = 0; i < page->brokers->count; i++) {
            const struct etcd_member *member = &page->brokers->brokers[i].member;
            if (!page->brokers->brokers[i].is_readable) {
                (void)fprintf(out, "%s%s", separator, member->id);
                separator = ", ";
            } else if (!knows_rules(member, rules + 1)) {
                (void)fprintf(out, "%s%u", separator, member->rank);
                separator = ", ";
            }
        }
        (void)fputs(separator[0] == ',' ? "" : " within seconds", out);
    }
    (void)fputc('\n', out);
}

void status_page_text(FILE *out, const struct status_page *page)
{
    if (page->etcd->has_journal) {
        write_journal(out, page);
        write_rules(out, page);
    } else {
        (void)fputs("leader    none: this etcd has no journal of the market\n", out);
    }
    for (size_t i = 0; i < page->brokers->count; i++) {
        write_broker(out, page, i);
    }
    status_page_etcd(out, page->etcd);
}

/* ---- JSON */

static const char *truth(bool is_true)
{
    return is_true ? "true" : "false";
}

static const char *state_json(enum status_page_state state)
{
    return state == STATUS_PAGE_UNKNOWN ? "null" : truth(state == STATUS_PAGE_AGREES);
}

static void write_broker_json(FILE *out, const struct status_page *page, size_t i)
{
    const struct etcd_member *member = &page->brokers->brokers[i].member;
    char state[2 * sizeof member->state.bytes + 1];
    text_hex(member->state.bytes, sizeof member->state.bytes, state);
    if (!page->brokers->brokers[i].is_readable) {
        (void)fprintf(out, "{\"id\":\"%s\",\"is_readable\":false,\"is_alive\":%s}", member->id,
                      truth(page->brokers->brokers[i].is_alive));
        return;
    }
    (void)fprintf(out,
                  "{\"id\":\"%s\",\"is_readable\":true,\"is_alive\":%s,\"rank\":%u,"
                  "\"role\":\"%s\",\"control\":\"%s\",\"blobs\":\"%s\",\"index\":%" PRIu64
                  ",\"behind\":%" PRIu64 ",\"lag_ms\":%" PRId64 ",\"seen_ms\":%" PRId64
                  ",\"state_command\":%" PRIu64 ",\"state\":\"%s\",\"state_agrees\":%s,"
                  "\"rules\":[%" PRIu32 ",%" PRIu32 "],\"release\":\"%s\",\"is_own\":%s}",
                  member->id, truth(page->brokers->brokers[i].is_alive), member->rank,
                  role_text(status_page_role(page, i)), member->control, member->blobs,
                  member->index, status_page_behind(page, i), member->lag_ms,
                  seen_before_ms(page, i), member->state_command, state,
                  state_json(status_page_state(page, i)), member->rules_first, member->rules_last,
                  member->version, truth(strcmp(member->id, page->own_id) == 0));
}

static void write_member_json(FILE *out, const struct etcd_inquiry_member *member)
{
    (void)fprintf(out,
                  "{\"url\":\"%s\",\"answers\":%s,\"version\":\"%s\",\"database_bytes\":%" PRIu64
                  ",\"live_bytes\":%" PRIu64 ",\"quota_bytes\":%" PRIu64 ",\"behind\":%" PRIu64
                  ",\"leads\":%s}",
                  folder_copy_plain(member->url), truth(member->answers),
                  folder_copy_plain(member->version), member->database_bytes, member->live_bytes,
                  member->quota_bytes, member->behind, truth(member->leads));
}

void status_page_json(FILE *out, const struct status_page *page)
{
    const struct etcd_inquiry *found = page->etcd;
    (void)fprintf(
        out,
        "{\"version\":1,\"has_journal\":%s,\"leader\":\"%s\",\"address\":\"%s\","
        "\"is_resigned\":%s,\"epoch\":%" PRIu64 ",\"base\":%" PRIu64 ",\"index\":%" PRIu64
        ",\"own_index\":%" PRIu64 ",\"own_is_old\":%s,\"lag\":%" PRIu64 ",\"stale_ms\":%" PRId64
        ",\"rules_in_force\":%" PRIu32 ",\"no_space\":%s,\"is_corrupt\":%s,\"brokers\":[",
        truth(found->has_journal), folder_copy_plain(found->leader.broker),
        folder_copy_plain(found->leader.address), truth(replicated_is_resigned(&found->leader)),
        found->leader.epoch, found->base, found->last, page->own->last, truth(page->is_own_old),
        own_lag(page), own_stale_ms(page), rules_of(page), truth(found->no_space),
        truth(found->is_corrupt));
    for (size_t i = 0; i < page->brokers->count; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        write_broker_json(out, page, i);
    }
    (void)fputs("],\"members\":[", out);
    for (size_t i = 0; i < found->member_count; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        write_member_json(out, &found->members[i]);
    }
    (void)fputs("]}\n", out);
}

/* ---- Prometheus */

static void write_figure(FILE *out, const char *name, const char *help, double value)
{
    (void)fprintf(out, "# HELP bourse_cluster_%s %s\n# TYPE bourse_cluster_%s gauge\n", name, help,
                  name);
    (void)fprintf(out, "bourse_cluster_%s %.17g\n", name, value);
}

static void write_title(FILE *out, const char *name, const char *help)
{
    (void)fprintf(out, "# HELP bourse_%s %s\n# TYPE bourse_%s gauge\n", name, help, name);
}

/* A figure of one broker. A negative one is unknown, and left out. */
typedef double broker_figure(const struct status_page *page, size_t i);

static double is_alive(const struct status_page *page, size_t i)
{
    return page->brokers->brokers[i].is_alive ? 1 : 0;
}

static double leads(const struct status_page *page, size_t i)
{
    return status_page_role(page, i) == STATUS_PAGE_LEADS ? 1 : 0;
}

static double index_of(const struct status_page *page, size_t i)
{
    return (double)page->brokers->brokers[i].member.index;
}

static double behind(const struct status_page *page, size_t i)
{
    return (double)status_page_behind(page, i);
}

static double lag_s(const struct status_page *page, size_t i)
{
    const int64_t lag_ms = page->brokers->brokers[i].member.lag_ms;
    return lag_ms < 0 ? -1 : (double)lag_ms / 1000;
}

static double seen_s(const struct status_page *page, size_t i)
{
    return (double)seen_before_ms(page, i) / 1000;
}

static double state_agrees(const struct status_page *page, size_t i)
{
    const enum status_page_state state = status_page_state(page, i);
    return state == STATUS_PAGE_UNKNOWN ? -1 : state == STATUS_PAGE_AGREES ? 1 : 0;
}

static double rules(const struct status_page *page, size_t i)
{
    return page->brokers->brokers[i].member.rules_last;
}

static void write_brokers(FILE *out, const struct status_page *page)
{
    static const struct {
        const char *name, *help;
        broker_figure *figure;
    } figures[] = {
        {"broker_alive", "1: its lease on etcd has not ended", is_alive},
        {"broker_leads", "1: it leads", leads},
        {"broker_index", "Newest entry on its disk", index_of},
        {"broker_behind_entries", "Entries that it lacks", behind},
        {"broker_lag_seconds", "Since it was at the end of the journal", lag_s},
        {"broker_seen_seconds", "Since its newest record", seen_s},
        {"broker_state_agrees", "1: the leader's state hash, 0: another", state_agrees},
        {"broker_rules", "Newest rules that it knows", rules},
    };
    for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
        write_title(out, figures[k].name, figures[k].help);
        for (size_t i = 0; i < page->brokers->count; i++) {
            const struct etcd_member *member = &page->brokers->brokers[i].member;
            const double value =
                page->brokers->brokers[i].is_readable ? figures[k].figure(page, i) : -1;
            if (value >= 0) {
                (void)fprintf(out, "bourse_%s{id=\"%s\",rank=\"%u\",address=\"%s\"} %.17g\n",
                              figures[k].name, member->id, member->rank, member->control, value);
            }
        }
    }
}

/* The size is of use also where the quota is unknown. */
static void write_etcd_figures(FILE *out, const struct etcd_inquiry *found)
{
    static const struct {
        const char *name, *help;
    } figures[] = {{"etcd_answers", "1: the member answers"},
                   {"etcd_database_bytes", "Size of the member's database"},
                   {"etcd_live_bytes", "What of that is live"},
                   {"etcd_free_bytes", "What is left of the quota, where the member says it"}};
    for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++) {
        write_title(out, figures[k].name, figures[k].help);
        for (size_t i = 0; i < found->member_count; i++) {
            const struct etcd_inquiry_member *member = &found->members[i];
            const uint64_t values[] = {member->answers ? 1 : 0, member->database_bytes,
                                       member->live_bytes,
                                       member->quota_bytes > member->database_bytes
                                           ? member->quota_bytes - member->database_bytes
                                           : 0};
            const bool is_known = k == 0 || (member->answers && (k < 3 || member->quota_bytes > 0));
            if (is_known) {
                (void)fprintf(out, "bourse_%s{url=\"%s\"} %" PRIu64 "\n", figures[k].name,
                              folder_copy_plain(member->url), values[k]);
            }
        }
    }
}

void status_page_metrics(FILE *out, const struct status_page *page)
{
    const struct etcd_inquiry *found = page->etcd;
    const bool has_leader =
        found->has_journal && found->leader.epoch > 0 && !replicated_is_resigned(&found->leader);
    write_figure(out, "up", "1: etcd has the journal", found->has_journal ? 1 : 0);
    if (found->has_journal) {
        write_figure(out, "has_leader", "1: a broker leads", has_leader ? 1 : 0);
        write_figure(out, "epoch", "Epoch of the leader", (double)found->leader.epoch);
        write_figure(out, "index", "Newest entry on etcd", (double)found->last);
        write_figure(out, "base", "Entry before the first one on etcd", (double)found->base);
        write_figure(out, "rules", "Rules in force; 0: not known", rules_of(page));
        write_brokers(out, page);
    }
    write_figure(out, "alarm", "1: etcd has an alarm",
                 found->no_space || found->is_corrupt ? 1 : 0);
    write_etcd_figures(out, found);
}
