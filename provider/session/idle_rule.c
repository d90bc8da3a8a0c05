#include "provider/session/idle_rule.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS INT64_C(1000000000)

void idle_rule_init(struct idle_rule *rule, const struct idle_terms *terms, int64_t now_ns)
{
    assert(now_ns >= 0);
    *rule = (struct idle_rule){.terms = *terms,
                               .cause = IDLE_CAUSE_START,
                               .used_ns = now_ns,
                               .seen_ns = now_ns,
                               .held_ns = now_ns,
                               .over_ns = -1};
}

void idle_rule_change(struct idle_rule *rule, const struct idle_terms *terms)
{
    rule->terms = *terms;
    rule->over_ns = -1; /* by the former limit */
}

/* Returns what the owner wants watched and no sensor sees, or NULL. */
static const char *blind_for(const struct idle_terms *terms, const struct idle_reading *reading)
{
    return terms->watches_input && !reading->sees_input          ? "keys, the mouse and terminals"
           : terms->load_milli >= 0 && !reading->sees_load       ? "the load of other programs"
           : terms->watches_sessions && !reading->sees_sessions  ? "who is logged in"
           : terms->program_count > 0 && !reading->sees_programs ? "which programs run"
           : terms->watches_battery && !reading->sees_battery    ? "the battery"
           : terms->celsius > 0 && !reading->sees_heat           ? "the temperature"
           : terms->milliwatts > 0 && !reading->sees_power       ? "the power"
                                                                 : NULL;
}

static void keep_name(struct idle_rule *rule, const char *name)
{
    (void)snprintf(rule->name, sizeof rule->name, "%s", name);
}

/* Returns true when the machine runs on its battery, and the battery is as low as counts. */
static bool is_low(const struct idle_terms *terms, const struct idle_reading *reading)
{
    return terms->watches_battery && reading->sees_battery && reading->is_on_battery &&
           (terms->battery_percent == 0 || reading->battery_percent < terms->battery_percent);
}

/* Returns true when the machine has taken more than the limit for long enough. */
static bool follow_power(struct idle_rule *rule, const struct idle_reading *reading)
{
    const struct idle_terms *terms = &rule->terms;
    if (terms->milliwatts == 0 || !reading->sees_power ||
        reading->milliwatts <= terms->milliwatts) {
        rule->over_ns = -1;
        return false;
    }
    rule->over_ns = rule->over_ns < 0 ? rule->seen_ns : rule->over_ns;
    return rule->seen_ns - rule->over_ns >= terms->power_for_ns;
}

/* Returns true for a sign of use, of which the rule then knows the cause. */
static bool find_sign(struct idle_rule *rule, const struct idle_reading *reading)
{
    const struct idle_terms *terms = &rule->terms;
    const char *blind = blind_for(terms, reading);
    const bool takes_much = follow_power(rule, reading);
    if (terms->program_count > 0 && reading->sees_programs && reading->program[0] != '\0') {
        rule->cause = IDLE_CAUSE_PROGRAM;
        keep_name(rule, reading->program);
    } else if (terms->watches_input && reading->sees_input && reading->has_input) {
        rule->cause = IDLE_CAUSE_INPUT;
    } else if (terms->watches_sessions && reading->sees_sessions && reading->user[0] != '\0') {
        rule->cause = IDLE_CAUSE_SESSION;
        keep_name(rule, reading->user);
    } else if (terms->load_milli >= 0 && reading->sees_load &&
               reading->load_milli > terms->load_milli) {
        rule->cause = IDLE_CAUSE_LOAD;
        rule->load_milli = reading->load_milli;
    } else if (is_low(terms, reading)) {
        rule->cause = IDLE_CAUSE_BATTERY;
        rule->battery_percent = reading->battery_percent;
    } else if (terms->celsius > 0 && reading->sees_heat && reading->celsius >= terms->celsius) {
        rule->cause = IDLE_CAUSE_HEAT;
        rule->celsius = reading->celsius;
    } else if (takes_much) {
        rule->cause = IDLE_CAUSE_POWER;
        rule->milliwatts = reading->milliwatts;
    } else if (blind != NULL) {
        rule->cause = IDLE_CAUSE_BLIND;
        keep_name(rule, blind);
    } else {
        return false;
    }
    return true;
}

enum idle_order idle_rule_see(struct idle_rule *rule, int64_t now_ns,
                              const struct idle_reading *reading)
{
    assert(now_ns >= rule->seen_ns);
    rule->seen_ns = now_ns;
    if (find_sign(rule, reading)) {
        rule->used_ns = now_ns;
    }
    const bool is_idle = now_ns - rule->used_ns >= rule->terms.after_ns;
    rule->is_overridden = rule->is_overridden && !is_idle;
    if (is_idle || rule->is_overridden) {
        rule->held_ns = -1;
    } else if (rule->held_ns < 0) {
        rule->held_ns = now_ns;
    }
    return idle_rule_order(rule);
}

void idle_rule_override(struct idle_rule *rule)
{
    rule->is_overridden = rule->held_ns >= 0;
    rule->held_ns = -1;
}

enum idle_order idle_rule_order(const struct idle_rule *rule)
{
    if (rule->held_ns < 0) {
        return IDLE_WORK;
    }
    const int64_t held_ns = rule->seen_ns - rule->held_ns;
    return held_ns < rule->terms.give_back_ns                  ? IDLE_HOLD
           : held_ns - rule->terms.give_back_ns < IDLE_SAVE_NS ? IDLE_SAVE
                                                               : IDLE_RETURN;
}

int64_t idle_rule_idle_ns(const struct idle_rule *rule)
{
    return rule->used_ns + rule->terms.after_ns;
}

/* Writes a time as 40 s, 12 min or 3 h, rounded down. */
static void write_span(int64_t ns, char *ret_text, size_t capacity)
{
    const int64_t seconds = ns < 0 ? 0 : ns / NS;
    (void)snprintf(ret_text, capacity, "%" PRId64 " %s",
                   seconds < 120    ? seconds
                   : seconds < 7200 ? seconds / 60
                                    : seconds / 3600,
                   seconds < 120    ? "s"
                   : seconds < 7200 ? "min"
                                    : "h");
}

void idle_rule_reason(const struct idle_rule *rule, int64_t now_ns, char ret_text[IDLE_REASON_SIZE])
{
    char span[32];
    char ago[48] = "";
    const bool is_present = rule->used_ns == rule->seen_ns;
    write_span(now_ns - rule->used_ns, span, sizeof span);
    if (!is_present) {
        (void)snprintf(ago, sizeof ago, " %s ago", span);
    }
    switch (rule->cause) {
    case IDLE_CAUSE_START:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "the machine has been watched for %s so far",
                       span);
        return;
    case IDLE_CAUSE_INPUT:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "somebody used a key, the mouse or a terminal %s ago", span);
        return;
    case IDLE_CAUSE_LOAD:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "other programs %s %" PRId64 ".%" PRId64 " cores%s",
                       is_present ? "use" : "used", rule->load_milli / 1000,
                       rule->load_milli % 1000 / 100, ago);
        return;
    case IDLE_CAUSE_SESSION:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "%s %s logged in at this machine%s", rule->name,
                       is_present ? "is" : "was", ago);
        return;
    case IDLE_CAUSE_PROGRAM:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "the program %s %s%s", rule->name,
                       is_present ? "runs" : "ran", ago);
        return;
    case IDLE_CAUSE_BATTERY:
        if (rule->terms.battery_percent > 0 && rule->battery_percent >= 0) {
            (void)snprintf(ret_text, IDLE_REASON_SIZE,
                           "the machine %s on its battery, which %s %" PRId32
                           " %%, and the owner's limit is %" PRId32 " %%%s",
                           is_present ? "runs" : "ran", is_present ? "has" : "had",
                           rule->battery_percent, rule->terms.battery_percent, ago);
            return;
        }
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "the machine %s on its battery%s",
                       is_present ? "runs" : "ran", ago);
        return;
    case IDLE_CAUSE_POWER:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "the processors %s %" PRId64 ".%" PRId64
                       " W, and the owner's limit is %" PRId64 " W%s",
                       is_present ? "take" : "took", rule->milliwatts / 1000,
                       rule->milliwatts % 1000 / 100, rule->terms.milliwatts / 1000, ago);
        return;
    case IDLE_CAUSE_HEAT:
        (void)snprintf(ret_text, IDLE_REASON_SIZE,
                       "the machine %s at %" PRId32 " degrees Celsius%s", is_present ? "is" : "was",
                       rule->celsius, ago);
        return;
    case IDLE_CAUSE_BLIND:
        (void)snprintf(ret_text, IDLE_REASON_SIZE, "nothing here %s of %s%s",
                       is_present ? "tells" : "told", rule->name, ago);
        return;
    }
}
