#include "provider/session/gpu_rule.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define NS INT64_C(1000000000)

void gpu_rule_init(struct gpu_rule *rule, const struct gpu_terms *terms, int64_t now_ns)
{
    assert(now_ns >= 0);
    *rule = (struct gpu_rule){.terms = *terms,
                              .cause = GPU_CAUSE_START,
                              .used_ns = now_ns,
                              .seen_ns = now_ns,
                              .order = terms->is_set ? IDLE_HOLD : IDLE_WORK,
                              .order_ns = now_ns,
                              .over_ns = -1};
}

void gpu_rule_change(struct gpu_rule *rule, const struct gpu_terms *terms)
{
    rule->terms = *terms;
    rule->is_hot = rule->is_over = false; /* by the former limits */
    rule->over_ns = -1;
}

static void keep_name(struct gpu_rule *rule, const char *name)
{
    (void)snprintf(rule->name, sizeof rule->name, "%s", name);
}

/* Returns the program of others that counts as a sign, or "". */
static const char *program_of(const struct gpu_terms *terms, const struct gpu_reading *reading)
{
    const bool draws_count = terms->programs == GPU_PROGRAMS_ANY && reading->sees_graphics;
    return terms->programs == GPU_PROGRAMS_RUN                    ? ""
           : reading->sees_compute && reading->compute[0] != '\0' ? reading->compute
           : draws_count                                          ? reading->graphics
                                                                  : "";
}

/* Returns what the owner wants watched and nobody tells, or NULL. */
static const char *blind_for(const struct gpu_terms *terms, const struct gpu_reading *reading)
{
    return terms->programs != GPU_PROGRAMS_RUN && !reading->sees_compute
               ? "which programs compute on it"
           : terms->programs == GPU_PROGRAMS_ANY && !reading->sees_graphics
               ? "which programs draw with it"
           : terms->celsius > 0 && !reading->sees_heat     ? "its temperature"
           : terms->milliwatts > 0 && !reading->sees_power ? "its power"
                                                           : NULL;
}

/* Follows heat and power to their limits, and back to clearly below. A value that is not seen
 * changes nothing. */
static void follow_limits(struct gpu_rule *rule, const struct gpu_reading *reading)
{
    const struct gpu_terms *terms = &rule->terms;
    if (terms->celsius > 0 && reading->sees_heat) {
        const int32_t cooler = terms->celsius - GPU_COOLER_CELSIUS;
        rule->is_hot =
            reading->celsius >= terms->celsius || (rule->is_hot && reading->celsius > cooler);
    }
    if (terms->milliwatts > 0 && reading->sees_power) {
        const int64_t less = terms->milliwatts - terms->milliwatts / GPU_POWER_PART;
        const bool is_at_limit = reading->milliwatts >= terms->milliwatts;
        rule->over_ns = !is_at_limit ? -1 : rule->over_ns < 0 ? rule->seen_ns : rule->over_ns;
        rule->is_over = (is_at_limit && rule->seen_ns - rule->over_ns >= terms->power_for_ns) ||
                        (rule->is_over && reading->milliwatts > less);
    }
}

/* Returns true for a sign, of which the rule then knows the cause. */
static bool find_sign(struct gpu_rule *rule, const struct gpu_reading *reading)
{
    const char *program = program_of(&rule->terms, reading);
    const char *blind = blind_for(&rule->terms, reading);
    follow_limits(rule, reading);
    if (program[0] != '\0') {
        rule->cause = GPU_CAUSE_PROGRAM;
        keep_name(rule, program);
    } else if (rule->is_hot) {
        rule->cause = GPU_CAUSE_HEAT;
        rule->celsius = reading->sees_heat ? reading->celsius : rule->celsius;
    } else if (rule->is_over) {
        rule->cause = GPU_CAUSE_POWER;
        rule->milliwatts = reading->sees_power ? reading->milliwatts : rule->milliwatts;
    } else if (blind != NULL) {
        rule->cause = GPU_CAUSE_BLIND;
        keep_name(rule, blind);
    } else {
        return false;
    }
    return true;
}

static void give(struct gpu_rule *rule, enum idle_order order, int64_t now_ns)
{
    if (order != rule->order) {
        rule->order = order;
        rule->order_ns = now_ns;
    }
}

int64_t gpu_rule_due_ns(const struct gpu_rule *rule)
{
    return rule->order == IDLE_HOLD   ? rule->order_ns + rule->terms.give_back_ns
           : rule->order == IDLE_SAVE ? rule->order_ns + IDLE_SAVE_NS
                                      : INT64_MAX;
}

enum idle_order gpu_rule_wait(struct gpu_rule *rule, int64_t now_ns)
{
    if (now_ns >= gpu_rule_due_ns(rule)) {
        give(rule, rule->order == IDLE_HOLD ? IDLE_SAVE : IDLE_RETURN, now_ns);
    }
    return rule->order;
}

enum idle_order gpu_rule_see(struct gpu_rule *rule, int64_t now_ns,
                             const struct gpu_reading *reading)
{
    assert(now_ns >= rule->seen_ns);
    rule->seen_ns = now_ns;
    rule->is_lost = reading->is_lost;
    if (reading->is_lost) {
        rule->cause = GPU_CAUSE_LOST;
        rule->used_ns = now_ns;
    } else if (rule->terms.is_set && find_sign(rule, reading)) {
        rule->used_ns = now_ns;
    }
    const bool is_idle =
        !rule->is_lost && (!rule->terms.is_set || now_ns - rule->used_ns >= rule->terms.after_ns);
    if (rule->is_lost) {
        give(rule, IDLE_RETURN, now_ns);
    } else if (is_idle) {
        give(rule, IDLE_WORK, now_ns);
    } else if (rule->order == IDLE_WORK) {
        give(rule, IDLE_HOLD, now_ns);
    }
    return gpu_rule_wait(rule, now_ns);
}

enum idle_order gpu_rule_order(const struct gpu_rule *rule)
{
    return rule->order;
}

void gpu_rule_reason(const struct gpu_rule *rule, int64_t now_ns, char ret_text[IDLE_REASON_SIZE])
{
    char ago[48] = "";
    const bool is_present = rule->used_ns == rule->seen_ns;
    const int64_t span_s = (now_ns - rule->used_ns) / NS;
    if (!is_present) {
        (void)snprintf(ago, sizeof ago, " %" PRId64 " s ago", span_s > 0 ? span_s : 0);
    }
    switch (rule->cause) {
    case GPU_CAUSE_START:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "it has been watched for %" PRId64 " s so far",
                       span_s > 0 ? span_s : 0);
        return;
    case GPU_CAUSE_PROGRAM:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "%s %s it%s", rule->name,
                       is_present ? "uses" : "used", ago);
        return;
    case GPU_CAUSE_HEAT:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "it %s at %" PRId32 " C, and the owner's limit is %" PRId32 " C%s",
                       is_present ? "is" : "was", rule->celsius, rule->terms.celsius, ago);
        return;
    case GPU_CAUSE_POWER:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "it %s %" PRId64 " W, and the owner's limit is %" PRId64 " W%s",
                       is_present ? "takes" : "took", rule->milliwatts / 1000,
                       rule->terms.milliwatts / 1000, ago);
        return;
    case GPU_CAUSE_BLIND:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "nothing here %s %s%s",
                       is_present ? "tells" : "told", rule->name, ago);
        return;
    case GPU_CAUSE_LOST:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "the driver %s that it fell off the bus%s",
                       is_present ? "says" : "said", ago);
        return;
    }
}
