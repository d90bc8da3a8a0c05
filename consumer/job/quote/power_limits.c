#include "consumer/job/quote/power_limits.h"

#include <stdio.h>
#include <string.h>

/* Returns the place of the instrument, or the count when there is none. */
static size_t place_of(const struct job_power_limits *limits, const char *instrument)
{
    size_t at = 0;
    while (at < limits->count && strcmp(limits->items[at].instrument, instrument) != 0) {
        at++;
    }
    return at;
}

bool power_limits_allow(const struct job_power_limits *limits, const char *instrument,
                        int64_t power_mw)
{
    const size_t at = place_of(limits, instrument);
    return limits->count == 0 ||
           (at < limits->count && power_mw > 0 && power_mw <= limits->items[at].power_mw);
}

bool power_limits_add(struct job_power_limits *limits, const char *instrument, int64_t power_mw)
{
    const size_t at = place_of(limits, instrument);
    if (at == JOB_POWER_LIMITS_MAX) {
        return false;
    }
    struct job_power_limit *limit = &limits->items[at];
    if (at == limits->count) {
        limits->count++;
        limit->power_mw = 0;
        (void)snprintf(limit->instrument, sizeof limit->instrument, "%s", instrument);
    }
    limit->power_mw = power_mw > limit->power_mw ? power_mw : limit->power_mw;
    return true;
}

static bool add_node(struct requirement *needs, const struct requirement_node *node)
{
    if (needs->count == REQUIREMENT_NODES_MAX) {
        return false;
    }
    needs->nodes[needs->count++] = *node;
    return true;
}

static bool add_joint(struct requirement *needs, enum requirement_op op, uint32_t arity)
{
    return add_node(needs, &(struct requirement_node){.op = op, .arity = arity});
}

static bool add_limit(struct requirement *needs, const struct job_power_limit *limit)
{
    struct requirement_node instrument = {.op = REQUIREMENT_EQ,
                                          .attribute = {.name = "instrument", .is_text = true}};
    const struct requirement_node power = {
        .op = REQUIREMENT_LE, .attribute = {.name = "power_mw", .number = limit->power_mw}};
    const size_t length = strlen(limit->instrument);
    if (length >= sizeof instrument.attribute.text) {
        return false; /* no device has such an instrument */
    }
    memcpy(instrument.attribute.text, limit->instrument, length + 1);
    return add_node(needs, &instrument) && add_node(needs, &power) &&
           add_joint(needs, REQUIREMENT_AND, 2);
}

bool power_limits_add_needs(const struct job_power_limits *limits, struct requirement *needs)
{
    const bool is_alone = needs->count == 0;
    bool fits = true;
    for (size_t i = 0; fits && i < limits->count; i++) {
        fits = add_limit(needs, &limits->items[i]);
    }
    if (fits && limits->count > 1) {
        fits = add_joint(needs, REQUIREMENT_OR, (uint32_t)limits->count);
    }
    return fits && (is_alone || limits->count == 0 || add_joint(needs, REQUIREMENT_AND, 2));
}
