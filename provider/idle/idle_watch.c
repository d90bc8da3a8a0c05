#include "provider/idle/idle_watch.h"

#include "base/text.h"
#include "provider/idle/input_sensor.h"
#include "provider/idle/login_sensor.h"
#include "provider/idle/power_sensor.h"
#include "provider/idle/process_sensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT_SIZE = 512 };

struct idle_watch {
    struct idle_rule rule;
    char root[ROOT_SIZE];
    struct input_sensor input;
    struct process_sensor processes;
    struct power_meter meter;
    struct idle_reading last; /* what is looked at less often stays between its looks */
    bool has_work;            /* work of others is there */
    int64_t due_ns;
    int64_t processes_due_ns, power_due_ns;
};

struct idle_watch *idle_watch_create(const struct idle_terms *terms, const char *root, pid_t self,
                                     int64_t now_ns)
{
    struct idle_watch *watch = calloc(1, sizeof *watch);
    if (watch != NULL) {
        (void)snprintf(watch->root, sizeof watch->root, "%s", root);
        idle_rule_init(&watch->rule, terms, now_ns);
        input_sensor_init(&watch->input, watch->root);
        process_sensor_init(&watch->processes, watch->root, self);
        watch->due_ns = watch->processes_due_ns = watch->power_due_ns = now_ns;
        watch->has_work = true;
    }
    return watch;
}

void idle_watch_destroy(struct idle_watch **self)
{
    struct idle_watch *watch = *self;
    if (watch != NULL) {
        process_sensor_fini(&watch->processes);
        free(watch);
        *self = NULL;
    }
}

static bool is_working(const struct idle_watch *watch)
{
    return watch->has_work && idle_rule_order(&watch->rule) == IDLE_WORK;
}

static int64_t processes_pause_ns(const struct idle_watch *watch)
{
    return is_working(watch) ? IDLE_PROCESSES_NS : IDLE_PROCESSES_REST_NS;
}

void idle_watch_change(struct idle_watch *watch, const struct idle_terms *terms, int64_t now_ns)
{
    idle_rule_change(&watch->rule, terms);
    watch->due_ns = watch->processes_due_ns = watch->power_due_ns = now_ns;
}

static void look(struct idle_watch *watch, int64_t now_ns)
{
    const struct idle_terms *terms = &watch->rule.terms;
    struct idle_reading reading = watch->last;
    reading.has_input = false;
    reading.user[0] = '\0';
    if (terms->watches_input) {
        reading.sees_input = input_sensor_look(&watch->input, &reading.has_input);
    }
    if ((terms->load_milli >= 0 || terms->program_count > 0) && now_ns >= watch->processes_due_ns) {
        process_sensor_look(&watch->processes, now_ns, terms, watch->has_work, &reading);
        watch->processes_due_ns = now_ns + processes_pause_ns(watch);
    }
    if (terms->watches_sessions) {
        reading.sees_sessions = login_sensor_look(watch->root, reading.user, sizeof reading.user);
    }
    const bool is_power_due = now_ns >= watch->power_due_ns;
    if (terms->watches_battery && is_power_due) {
        reading.sees_battery = power_sensor_battery(watch->root, &reading.is_on_battery);
        reading.battery_percent =
            terms->battery_percent > 0 ? power_sensor_charge(watch->root) : -1;
    }
    if (terms->milliwatts > 0 && is_power_due) {
        reading.sees_power =
            power_sensor_power(&watch->meter, watch->root, now_ns, &reading.milliwatts);
    }
    if (terms->celsius > 0 && is_power_due) {
        reading.sees_heat = power_sensor_heat(watch->root, &reading.celsius);
    }
    watch->power_due_ns = is_power_due ? now_ns + IDLE_POWER_NS : watch->power_due_ns;
    watch->last = reading;
}

static int64_t pause_ns(const struct idle_watch *watch, enum idle_order order)
{
    const struct idle_terms *terms = &watch->rule.terms;
    if (!watch->has_work) {
        return IDLE_REST_NS;
    }
    if (!terms->watches_input && !terms->watches_sessions) {
        return order == IDLE_WORK ? IDLE_PROCESSES_NS : IDLE_REST_NS;
    }
    return order == IDLE_WORK ? IDLE_LOOK_NS : 2 * IDLE_LOOK_NS;
}

enum idle_order idle_watch_look(struct idle_watch *watch, int64_t now_ns)
{
    if (now_ns < watch->due_ns) {
        return idle_rule_order(&watch->rule);
    }
    look(watch, now_ns);
    const enum idle_order order = idle_rule_see(&watch->rule, now_ns, &watch->last);
    watch->due_ns = now_ns + pause_ns(watch, order);
    /* The work goes on as soon as the machine counts as idle. */
    const int64_t idle_ns = idle_rule_idle_ns(&watch->rule);
    if (order != IDLE_WORK && idle_ns > now_ns && idle_ns < watch->due_ns) {
        watch->due_ns = idle_ns;
    }
    return order;
}

void idle_watch_has_work(struct idle_watch *watch, int64_t now_ns, bool has_work)
{
    if (has_work && !watch->has_work) {
        watch->due_ns = now_ns;
    }
    watch->has_work = has_work;
}

int64_t idle_watch_due_ns(const struct idle_watch *watch)
{
    return watch->due_ns;
}

void idle_watch_override(struct idle_watch *watch)
{
    idle_rule_override(&watch->rule);
}

bool idle_watch_is_overridden(const struct idle_watch *watch)
{
    return watch->rule.is_overridden;
}

void idle_watch_reason(const struct idle_watch *watch, int64_t now_ns,
                       char ret_text[IDLE_REASON_SIZE])
{
    idle_rule_reason(&watch->rule, now_ns, ret_text);
}

struct missing {
    const char *what, *lift;
};

/* Returns the first thing that is to be watched and that no sensor sees; `what` is NULL without
 * one. */
static struct missing first_missing(const struct idle_terms *terms,
                                    const struct idle_reading *reading)
{
    if (terms->watches_input && !reading->sees_input) {
        return (struct missing){"no terminal, USB keyboard or interrupt of a keyboard",
                                "`input: false`"};
    }
    if (terms->load_milli >= 0 && !reading->sees_load) {
        return (struct missing){"no /proc/stat with the load of the processors", "`load: any`"};
    }
    if (terms->watches_sessions && !reading->sees_sessions) {
        return (struct missing){"no /run/systemd/sessions with those who are logged in",
                                "`sessions: false`"};
    }
    if (terms->program_count > 0 && !reading->sees_programs) {
        return (struct missing){
            "no process of another user (a service of systemd needs ProtectProc=default)",
            "`programs: []`"};
    }
    if (terms->watches_battery && !reading->sees_battery) {
        return (struct missing){"no /sys/class/power_supply", "`battery: run`"};
    }
    if (terms->celsius > 0 && !reading->sees_heat) {
        return (struct missing){"no thermal zone", "`temperature: any`"};
    }
    if (terms->milliwatts > 0 && !reading->sees_power) {
        return (struct missing){
            "no counter of energy below /sys/class/powercap (often only root may read it)",
            "`power: any`"};
    }
    return (struct missing){NULL, NULL};
}

static void say_missing(const struct missing *missing, char *ret_text, size_t capacity)
{
    (void)snprintf(ret_text, capacity,
                   "%s can be read here, so the machine always counts as in use; %s below `idle:` "
                   "lifts this",
                   missing->what, missing->lift);
}

void idle_watch_sees(const struct idle_watch *watch, char ret_text[IDLE_SEES_SIZE])
{
    const struct idle_terms *terms = &watch->rule.terms;
    const struct missing missing = first_missing(terms, &watch->last);
    if (missing.what != NULL) {
        say_missing(&missing, ret_text, IDLE_SEES_SIZE);
        return;
    }
    const struct input_sensor *input = &watch->input;
    char keys[256] = "";
    if (terms->watches_input) {
        (void)snprintf(keys, sizeof keys,
                       "input at %u terminal%s, %u USB keyboard%s or mice and %u built-in one%s",
                       input->terminals, text_plural(input->terminals), input->usb,
                       text_plural(input->usb), input->lines, text_plural(input->lines));
        if (input->unseen[0] != '\0') {
            const size_t length = strlen(keys);
            (void)snprintf(keys + length, sizeof keys - length, ", but not at \"%s\" (Bluetooth)",
                           input->unseen);
        }
    }
    const char *const others[] = {
        terms->load_milli >= 0 ? "load" : NULL,       terms->watches_sessions ? "logins" : NULL,
        terms->program_count > 0 ? "programs" : NULL, terms->watches_battery ? "battery" : NULL,
        terms->celsius > 0 ? "temperature" : NULL,    terms->milliwatts > 0 ? "power" : NULL};
    size_t length = (size_t)snprintf(ret_text, IDLE_SEES_SIZE, "%s", keys);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && length < IDLE_SEES_SIZE; i++) {
        if (others[i] != NULL) {
            length += (size_t)snprintf(ret_text + length, IDLE_SEES_SIZE - length, "%s%s",
                                       length > 0 ? "; " : "", others[i]);
        }
    }
    if (length == 0) {
        (void)snprintf(ret_text, IDLE_SEES_SIZE, "nothing");
    }
}

json_t *idle_watch_json(const struct idle_watch *watch, int64_t now_ns)
{
    static const char *const words[] = {
        [IDLE_WORK] = "work", [IDLE_HOLD] = "hold", [IDLE_SAVE] = "save", [IDLE_RETURN] = "return"};
    char reason[IDLE_REASON_SIZE];
    char sees[IDLE_SEES_SIZE];
    const int64_t left_ns = idle_rule_idle_ns(&watch->rule) - now_ns;
    idle_watch_reason(watch, now_ns, reason);
    idle_watch_sees(watch, sees);
    return json_pack("{s:s, s:s, s:I, s:I, s:b, s:s}", "order",
                     words[idle_rule_order(&watch->rule)], "reason", reason, "after_ms",
                     (json_int_t)(watch->rule.terms.after_ns / 1000000), "idle_in_ms",
                     (json_int_t)(left_ns > 0 ? left_ns / 1000000 : 0), "resumed",
                     (int)watch->rule.is_overridden, "sees", sees);
}

bool idle_watch_check(const struct idle_terms *terms, const char *root, struct problem *ret_problem)
{
    struct idle_watch *watch = idle_watch_create(terms, root, 0, 0);
    if (watch == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    look(watch, 0);
    const struct missing missing = first_missing(terms, &watch->last);
    if (missing.what != NULL) {
        char text[IDLE_SEES_SIZE];
        say_missing(&missing, text, sizeof text);
        problem_set(ret_problem, "idle: %s", text);
    }
    idle_watch_destroy(&watch);
    return missing.what == NULL;
}
