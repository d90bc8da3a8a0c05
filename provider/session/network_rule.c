#include "provider/session/network_rule.h"

#include <assert.h>

#define NS INT64_C(1000000000)

/* The days of a year that begins in March follow the pattern 31 30 31 30 31 five months long, so
 * the number of its month is (5 day + 2) / 153. Eras have 400 years. By Howard Hinnant,
 * chrono-Compatible Low-Level Date Algorithms, `civil_from_days`. */
int32_t network_rule_month(int64_t wall_ms)
{
    enum { DAY_MS = 86400000, ERA_DAYS = 146097, TO_MARCH_0000 = 719468 };
    const int64_t days = wall_ms / DAY_MS - (wall_ms % DAY_MS < 0 ? 1 : 0) + (int64_t)TO_MARCH_0000;
    const int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
    const int64_t day_of_era = days - era * ERA_DAYS;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * day_of_year + 2) / 153;
    /* January and February are months 10 and 11, and end a year that began in March. */
    return (int32_t)((era * 400 + year_of_era) * 12 + month_from_march + 2);
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

void network_rule_change(struct network_rule *rule, const struct network_terms *terms)
{
    rule->terms = *terms;
    rule->free_ns = 0;
}
