#include "provider/session/network_rule.h"

#include <assert.h>
#include <time.h>

#define NS INT64_C(1000000000)

int32_t network_rule_month(int64_t wall_ms)
{
    const time_t seconds = (time_t)(wall_ms / 1000);
    struct tm day;
    return gmtime_r(&seconds, &day) == NULL ? 0 : (day.tm_year + 1900) * 12 + day.tm_mon;
}

void network_rule_init(struct network_rule *rule, const struct network_terms *terms, int32_t month,
                       int64_t used_bytes)
{
    assert(used_bytes >= 0);
    *rule = (struct network_rule){.terms = *terms, .month = month, .used_bytes = used_bytes};
}

/* Counts the bytes in their month. */
static void count_month(struct network_rule *rule, int64_t wall_ms, int64_t bytes)
{
    const int32_t month = network_rule_month(wall_ms);
    if (month > rule->month) {
        rule->month = month;
        rule->used_bytes = 0;
    }
    rule->used_bytes = bytes > INT64_MAX - rule->used_bytes ? INT64_MAX : rule->used_bytes + bytes;
}

int64_t network_rule_count(struct network_rule *rule, int64_t now_ns, int64_t wall_ms,
                           int64_t bytes)
{
    assert(bytes >= 0);
    count_month(rule, wall_ms, bytes);
    if (rule->terms.rate_bytes == 0) {
        return 0;
    }
    /* The bucket is full when `free_ns` lies a second back. */
    const int64_t full_ns = now_ns - NS;
    const double span_ns = (double)bytes * (double)NS / (double)rule->terms.rate_bytes;
    rule->free_ns = rule->free_ns > full_ns ? rule->free_ns : full_ns;
    rule->free_ns += span_ns < (double)(INT64_MAX / 4) ? (int64_t)span_ns : INT64_MAX / 4;
    return rule->free_ns > now_ns ? rule->free_ns - now_ns : 0;
}

bool network_rule_is_spent(const struct network_rule *rule, int64_t wall_ms)
{
    return rule->terms.month_bytes > 0 && network_rule_month(wall_ms) <= rule->month &&
           rule->used_bytes >= rule->terms.month_bytes;
}
