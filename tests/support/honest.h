/* tests/support/honest.h measures what members can cost others (P24): an honest client works at a
 * steady pace, and attackers beside it.
 *
 * Attackers share the machine with the broker and the honest client, which no real attacker does.
 * So they get the processor time that nobody else wants, and the honest client asks at a quarter
 * of the pace that it reaches alone. */
#ifndef BOURSE_TESTS_HONEST_H
#define BOURSE_TESTS_HONEST_H

#include "base/checked.h"
#include "tests/support/arena.h"

#include <sys/types.h>

enum { HONEST_WINDOW_MS = 300, HONEST_WINDOWS = 7, HONEST_TIMES_MOST = 1 << 17 };
/* The time between two requests while the client tries how fast it is: slower than its rate of
 * 5,000 a second. */
#define HONEST_FASTEST_NS (NS_PER_S / 4000)

/* Times from request to answer. Those over HONEST_TIMES_MOST are not kept. */
struct honest_times {
    int64_t items_ns[HONEST_TIMES_MOST];
    size_t count;
};

/* Sends commands for one window, one every `interval_ns`, with at most 16 in flight. Returns how
 * many were accepted, each durable, of those due. How long each took, from when it was due, is
 * added to `times`. A command that was due and could not be sent in the window is not made up
 * for. */
unsigned honest_window(struct broker_client *client, const struct arena *arena, int64_t window_ms,
                       int64_t interval_ns, struct honest_times *times);
/* Returns the time between two requests at a quarter of the pace that the client reaches alone. */
int64_t honest_interval_ns(struct arena *arena);
double honest_median(double *numbers, size_t count);
/* Returns the time in ms that 99 of 100 do not exceed. */
double honest_p99_ms(struct honest_times *times);

/* Ratios of figures under attack to those without it. */
struct honest_ratios {
    double pace; /* of the commands in a second, to those due */
    /* The time that 99 of 100 requests do not exceed, in the median window: a pause of the disk is
     * not the attack's. */
    double wait;
};
/* Promise P24's bounds are for --long. A build with sanitizers on a loaded machine keeps wider
 * ones. */
struct honest_ratios honest_bounds(void);
bool honest_is_within(struct honest_ratios found, struct honest_ratios bounds);
bool honest_is_long(void);

enum { HONEST_MEASURES = 3 };
typedef struct honest_ratios honest_measure(void *context);
/* Measures until most of HONEST_MEASURES are within the bounds (true), or most are not (false). A
 * machine that does other things spoils one of them; an attack spoils most. The short form, whose
 * bounds are wide, measures once: it asks for most of them only when the first is beyond. */
bool honest_holds(honest_measure *measure, void *context, struct honest_ratios *ret_last);

struct attack_context {
    const struct arena *arena;
    struct hash32 large; /* a blob of 4 MiB of the attacker's */
    const void *what;    /* the attack's own context */
    bool is_pressing;    /* the attack takes processor time from others, as any program does */
    int begun;           /* a descriptor: one byte is written there once the attack is under way */
};
typedef void attack(const struct attack_context *context);

/* Runs the attack in a process of its own, and returns once it has begun. */
pid_t attack_start(attack *run, struct attack_context *context);
void attack_stop(pid_t pid);
/* The attack calls this function when it is under way. */
void attack_begun(const struct attack_context *context);
/* Waits for a millisecond of the attack's own clock. */
void attack_pace(void);
/* Reads what has come. */
void attack_read(struct link *link);

#endif
