#include "tests/support/honest.h"

#include "tests/support/child.h"

#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- honest work, and its pace */

enum { IN_FLIGHT = 16 };

struct asked { /* requests in flight; a free place has an id of zeros */
    struct id128 id;
    int64_t at_ns;
};

static struct asked *find_asked(struct asked asked[IN_FLIGHT], const struct id128 *id)
{
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        if (id128_equal(&asked[i].id, id)) {
            return &asked[i];
        }
    }
    ck_abort_msg("an answer to what was not asked, or more in flight than may be");
    return NULL;
}

static void note_answer(struct asked *asked, struct honest_times *times)
{
    if (times->count < HONEST_TIMES_MOST) {
        times->items_ns[times->count++] = clock_monotonic_ns() - asked->at_ns;
    }
    *asked = (struct asked){.at_ns = 0};
}

unsigned honest_window(struct broker_client *client, const struct arena *arena, int64_t window_ms,
                       int64_t interval_ns, struct honest_times *times)
{
    static const struct id128 nothing;
    struct asked asked[IN_FLIGHT] = {0};
    Bourse__V1__Mint mint = BOURSE__V1__MINT__INIT;
    mint.account = arena_bytes(identity_key(arena->broker.owner)->bytes, 32);
    mint.amount_micro = 1;
    int64_t due_ns = clock_monotonic_ns();
    int64_t end_ns = due_ns + window_ms * NS_PER_MS;
    unsigned accepted = 0;
    while (clock_monotonic_ns() < end_ns || dialogue_pending(client->dialogue) > 0) {
        int64_t now_ns = clock_monotonic_ns();
        while (due_ns <= now_ns && now_ns < end_ns &&
               dialogue_pending(client->dialogue) < IN_FLIGHT) {
            struct asked *place = find_asked(asked, &nothing);
            *place = (struct asked){.id = entropy_id(), .at_ns = due_ns};
            due_ns += interval_ns;
            ck_assert_int_eq(
                dialogue_request(client->dialogue, now_ns, MESSAGE_MINT, &place->id, &mint.base),
                DIALOGUE_OK);
        }
        struct dialogue_event event = {.type = DIALOGUE_NOTHING};
        dialogue_tick(client->dialogue, now_ns, &event);
        const uint8_t *message;
        size_t length;
        while (dialogue_outgoing(client->dialogue, &message, &length)) {
            arena_put(client->link, message, length);
        }
        if (event.type == DIALOGUE_NOTHING &&
            link_receive(client->link, 1, &message, &length) == 1) {
            dialogue_incoming(client->dialogue, clock_monotonic_ns(), message, length, &event);
        }
        if (event.type == DIALOGUE_ACCEPTED) {
            note_answer(find_asked(asked, &event.id), times);
            accepted++;
        }
        ck_assert_msg(event.type != DIALOGUE_REJECTED, "honest work is refused: %s", event.text);
        codec_free(&event.body);
        /* The client comes back as any other would, and sends again what was not answered. The time
         * counts. */
        if (event.type == DIALOGUE_LOST) {
            broker_client_reopen(client);
        }
    }
    return accepted;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

double honest_median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return numbers[count / 2];
}

double honest_p99_ms(struct honest_times *times)
{
    ck_assert_uint_gt(times->count, 0);
    qsort(times->items_ns, times->count, sizeof times->items_ns[0], compare_times);
    return (double)times->items_ns[times->count * 99 / 100] / (double)NS_PER_MS;
}

int64_t honest_interval_ns(struct arena *arena)
{
    static struct honest_times unused;
    double counts[HONEST_WINDOWS];
    for (size_t i = 0; i < HONEST_WINDOWS; i++) {
        unused.count = 0;
        counts[i] =
            honest_window(&arena->owner, arena, HONEST_WINDOW_MS, HONEST_FASTEST_NS, &unused);
    }
    return (int64_t)(4 * HONEST_WINDOW_MS * NS_PER_MS / honest_median(counts, HONEST_WINDOWS));
}

bool honest_is_long(void)
{
    const char *is_long = getenv("BOURSE_LONG");
    return is_long != NULL && strcmp(is_long, "yes") == 0;
}

struct honest_ratios honest_bounds(void)
{
    return honest_is_long() ? (struct honest_ratios){0.9, 2} : (struct honest_ratios){0.33, 10};
}

bool honest_is_within(struct honest_ratios found, struct honest_ratios bounds)
{
    return found.pace >= bounds.pace && found.wait <= bounds.wait;
}

bool honest_holds(honest_measure *measure, void *context, struct honest_ratios *ret_last)
{
    enum { MOST = HONEST_MEASURES / 2 + 1 };
    *ret_last = measure(context);
    int within = honest_is_within(*ret_last, honest_bounds());
    int beyond = !within;
    if (within == 1 && !honest_is_long()) {
        return true;
    }
    while (within < MOST && beyond < MOST) {
        *ret_last = measure(context);
        within += honest_is_within(*ret_last, honest_bounds());
        beyond += !honest_is_within(*ret_last, honest_bounds());
    }
    return within == MOST;
}

/* ---------------------------------------------------------------- attackers */

void attack_pace(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause,
                    NULL); /* an attacker's own clock: it shares its cores with its victim */
}

void attack_begun(const struct attack_context *context)
{
    ck_assert_int_eq(write(context->begun, "!", 1), 1);
}

void attack_read(struct link *link)
{
    const uint8_t *message;
    size_t length;
    while (link_receive(link, 0, &message, &length) == 1) {
    }
}

pid_t attack_start(attack *run, struct attack_context *context)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = child_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const struct sched_param none = {.sched_priority = 0};
        (void)sched_setscheduler(0, context->is_pressing ? SCHED_OTHER : SCHED_IDLE, &none);
        context->begun = ends[1];
        run(context);
        _exit(0);
    }
    (void)close(ends[1]);
    char byte;
    ck_assert_msg(read(ends[0], &byte, 1) == 1, "the attacker did not begin");
    (void)close(ends[0]);
    return pid;
}

void attack_stop(pid_t pid)
{
    int status;
    ck_assert_msg(waitpid(pid, &status, WNOHANG) == 0, "the attacker ended by itself");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}
