#include "tests/sim/fibre.h"

#include <assert.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { FIBRES_MAX = 64, STACK_BYTES = 512 << 10 };

/* A fibre is begun by its context, and then changed to by a jump. swapcontext would ask the kernel
 * for the signal mask each time, which was a tenth of the time of a seed. */
struct fibre {
    ucontext_t context;
    jmp_buf place; /* where it goes on */
    bool has_begun;
    char *stack; /* kept for the next fibre in this place */
    struct process *process;
    uint32_t life;
    bool is_used, is_waiting, is_over;
    uint64_t born;  /* how many there were before */
    uint64_t waits; /* counts them: a wake or timeout of an earlier wait is void */
    void *(*run)(void *);
    void *argument;
    void *fake_stack;
};

static struct fibre fibres[FIBRES_MAX];
static struct fibre *running;
static uint64_t births;
static jmp_buf scheduler;
static const void *scheduler_stack;
static size_t scheduler_size;

/* The address sanitizer must hear of every change of stacks. */
static void announce(void **ret_fake, const void *stack, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(ret_fake, stack, size);
#else
    (void)ret_fake;
    (void)stack;
    (void)size;
#endif
}

static void arrived(void *fake, const void **ret_stack, size_t *ret_size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, ret_stack, ret_size);
#else
    (void)fake;
    (void)ret_stack;
    (void)ret_size;
#endif
}

static void to_scheduler(struct fibre *fibre, bool for_good)
{
    announce(for_good ? NULL : &fibre->fake_stack, scheduler_stack, scheduler_size);
    if (_setjmp(fibre->place) == 0) {
        _longjmp(scheduler, 1);
    }
    arrived(fibre->fake_stack, &scheduler_stack, &scheduler_size);
}

static void body(void)
{
    struct fibre *fibre = running;
    arrived(NULL, &scheduler_stack, &scheduler_size);
    (void)fibre->run(fibre->argument);
    fibre->is_over = true;
    to_scheduler(fibre, true);
    abort();
}

static void change_to(struct fibre *fibre)
{
    if (fibre->has_begun) {
        _longjmp(fibre->place, 1);
    }
    fibre->has_begun = true;
    (void)setcontext(&fibre->context);
    abort();
}

static void resume(void *context, uint64_t wait, uint64_t unused)
{
    struct fibre *fibre = context;
    (void)unused;
    if (!fibre->is_used || !fibre->is_waiting || fibre->waits != wait) {
        return;
    }
    fibre->is_waiting = false;
    assert(running == NULL);
    running = fibre;
    void *fake = NULL;
    announce(&fake, fibre->stack, STACK_BYTES);
    if (_setjmp(scheduler) == 0) {
        change_to(fibre);
    }
    arrived(fake, NULL, NULL);
    running = NULL;
    if (fibre->is_over) {
        fibre->is_used = false;
    }
}

/* A function of its own: getcontext returns twice as far as the compiler knows, which then warns of
 * every variable of its caller that changes. */
static void make_context(struct fibre *fibre)
{
    (void)getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = fibre->stack;
    fibre->context.uc_stack.ss_size = STACK_BYTES;
    fibre->context.uc_link = NULL;
    makecontext(&fibre->context, body, 0);
}

struct fibre *fibre_create(void *(*run)(void *), void *argument)
{
    struct fibre *fibre = fibres;
    while (fibre < fibres + FIBRES_MAX && fibre->is_used) {
        fibre++;
    }
    assert(fibre < fibres + FIBRES_MAX);
    char *stack = fibre->stack != NULL ? fibre->stack : sim_alloc(STACK_BYTES);
    uint64_t waits = fibre->waits + 1;
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(stack, STACK_BYTES); /* of a fibre that was abandoned */
#endif
    memset(fibre, 0, sizeof *fibre);
    fibre->stack = stack;
    fibre->process = world.current;
    fibre->is_used = true;
    fibre->is_waiting = true;
    fibre->born = births++;
    fibre->waits = waits;
    fibre->run = run;
    fibre->argument = argument;
    make_context(fibre);
    event_in(draw_time(DICE_ORDER, 0, 10 * SIM_US), world.current, resume, fibre, waits, 0);
    return fibre;
}

uint64_t fibre_name(const struct fibre *fibre)
{
    return fibre->born * FIBRES_MAX + (uint64_t)(fibre - fibres);
}

bool fibre_runs(uint64_t name)
{
    const struct fibre *fibre = &fibres[name % FIBRES_MAX];
    return fibre->is_used && fibre->born == name / FIBRES_MAX;
}

struct fibre *fibre_current(void)
{
    return running;
}

void fibre_wait(int64_t timeout_ns)
{
    struct fibre *fibre = running;
    assert(fibre != NULL);
    fibre->is_waiting = true;
    fibre->waits++;
    if (timeout_ns != INT64_MAX) {
        event_in(timeout_ns > 0 ? timeout_ns : 0, fibre->process, resume, fibre, fibre->waits, 0);
    }
    to_scheduler(fibre, false);
}

void fibre_wake(struct fibre *fibre)
{
    if (fibre != NULL && fibre->is_waiting) {
        event_in(draw_time(DICE_ORDER, 0, 20 * SIM_US), fibre->process, resume, fibre, fibre->waits,
                 0);
    }
}

void fibre_abandon(void)
{
    assert(running != NULL);
    to_scheduler(running, true);
    abort();
}

void fibres_end(const struct process *process)
{
    for (size_t i = 0; i < FIBRES_MAX; i++) {
        if (fibres[i].process == process) {
            fibres[i].is_used = false;
        }
    }
}
