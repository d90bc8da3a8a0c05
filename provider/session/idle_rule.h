/* provider/session/idle_rule.h decides whether the devices of this machine may work now, from what
 * the sensors saw and what the owner allows.
 *
 * The machine is in use while a sign of use is seen, and for a while after the last one. A sign is
 * a key, load of other programs, a person logged in, a listed program, the battery, heat, or power
 * above the owner's limit for a while. A thing that the owner wants watched and that no sensor sees
 * is a sign, too: what is not known is never taken for idle.
 *
 *     WORK -> HOLD -> SAVE -> RETURN     a sign of use; each step goes back to WORK
 *
 * HOLD stops the work where it is. SAVE comes when the owner stays: programs that save their state
 * get a few seconds. RETURN gives the remaining work back to the market. Time comes in as an
 * argument; this file reads no clock and no file. */
#ifndef BOURSE_PROVIDER_SESSION_IDLE_RULE_H
#define BOURSE_PROVIDER_SESSION_IDLE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDLE_PROGRAMS_MAX = 32,
    IDLE_PROGRAM_SIZE = 16, /* the kernel keeps 15 bytes of a program's name */
    IDLE_NAME_SIZE = 64,
    IDLE_REASON_SIZE = 256,
};
/* Programs that save their state have this time, as when the agent ends. */
#define IDLE_SAVE_NS INT64_C(5000000000)

/* The owner says here when the machine counts as idle. */
struct idle_terms {
    bool is_set;          /* false: the devices work at any time */
    int64_t after_ns;     /* from the last sign of use until the machine is idle */
    int64_t give_back_ns; /* from the stop of the work until it goes back to the market */
    bool watches_input, watches_sessions, watches_battery;
    /* The battery is no sign while it has so many percent or more; 0: it always is one. */
    int32_t battery_percent;
    int64_t milliwatts;   /* a machine that takes more than this is in use; 0: any */
    int64_t power_for_ns; /* but only when it took more for so long */
    int64_t load_milli;   /* thousandths of a core that other programs may use; -1: any */
    int32_t celsius;      /* a machine that is as hot as this is in use; 0: heat is not looked at */
    char programs[IDLE_PROGRAMS_MAX][IDLE_PROGRAM_SIZE];
    size_t program_count;
};

/* One look of all sensors. A value counts only if its sensor sees anything. */
struct idle_reading {
    bool sees_input, sees_load, sees_sessions, sees_programs, sees_battery, sees_heat, sees_power;
    bool has_input;                  /* since the last reading */
    int64_t load_milli;              /* cores that other programs use, in thousandths */
    char user[IDLE_NAME_SIZE];       /* a person who is logged in here; "": nobody */
    char program[IDLE_PROGRAM_SIZE]; /* a listed program that runs; "": none */
    bool is_on_battery;
    int32_t battery_percent; /* of the emptiest battery; -1: not known */
    int64_t milliwatts;      /* a mean since the look before */
    int32_t celsius;         /* the hottest part of the machine */
};

enum idle_order { IDLE_WORK, IDLE_HOLD, IDLE_SAVE, IDLE_RETURN };

enum idle_cause {
    IDLE_CAUSE_START, /* nothing is known of the time before the agent started */
    IDLE_CAUSE_INPUT,
    IDLE_CAUSE_LOAD,
    IDLE_CAUSE_SESSION,
    IDLE_CAUSE_PROGRAM,
    IDLE_CAUSE_BATTERY,
    IDLE_CAUSE_HEAT,
    IDLE_CAUSE_POWER,
    IDLE_CAUSE_BLIND, /* no sensor sees what the owner wants watched */
};

struct idle_rule {
    struct idle_terms terms;
    enum idle_cause cause; /* the last sign of use */
    int64_t used_ns;       /* time of that sign */
    int64_t seen_ns;       /* time of the last reading */
    int64_t held_ns;       /* time of the order to hold; -1: the devices may work */
    bool is_overridden;    /* the owner wants work until the machine has been idle */
    int64_t over_ns;       /* the power is above the limit since then; -1: it is not */
    int64_t load_milli;    /* what the sign was: its figure, or its name */
    int64_t milliwatts;
    int32_t celsius, battery_percent;
    char name[IDLE_NAME_SIZE];
};

/* The machine counts as in use at the start. `now_ns` is 0 or more. */
void idle_rule_init(struct idle_rule *rule, const struct idle_terms *terms, int64_t now_ns);
/* The owner changed the terms, which hold from the next reading on. */
void idle_rule_change(struct idle_rule *rule, const struct idle_terms *terms);
/* Takes a reading, and returns the order from now on. */
enum idle_order idle_rule_see(struct idle_rule *rule, int64_t now_ns,
                              const struct idle_reading *reading);
/* The owner wants the devices to work although the machine is in use. The wish ends when the
 * machine has been idle, so that the rule holds again. */
void idle_rule_override(struct idle_rule *rule);
/* Returns the order of the last reading. */
enum idle_order idle_rule_order(const struct idle_rule *rule);
/* Returns the time from which the devices may work if no further sign of use is seen. */
int64_t idle_rule_idle_ns(const struct idle_rule *rule);
/* Says what the last sign of use was and when: "somebody used a key, the mouse or a terminal 3 s
 * ago". */
void idle_rule_reason(const struct idle_rule *rule, int64_t now_ns,
                      char ret_text[IDLE_REASON_SIZE]);

#endif
