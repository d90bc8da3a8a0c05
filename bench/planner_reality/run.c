#include "base/sha256.h"
#include "bench/give_up.h"
#include "bench/planner_reality/parts.h"
#include "runtime/clock.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { BEGIN_NS = 5000000 }; /* until all threads wait for it */

/* A worker is what one core has to do, and who waits there. */
struct worker {
    struct run *run;
    struct scratch *scratch;
    struct wire *out; /* to the other core */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t arrival;
    bool *is_there; /* by graph->in */
    uint32_t index;
    int core;
};

static double seconds_since(const struct run *run, int64_t when_ns)
{
    return (double)(when_ns - run->begin_ns) * 1e-9;
}

static bool crosses(const struct run *run, uint32_t from, uint32_t to)
{
    return run->plan.processor[from] != run->plan.processor[to];
}

struct run *run_create(const struct plan *plan)
{
    const struct workload *graph = plan->graph;
    struct run *run = memory(1, sizeof *run);
    size_t tasks = graph->task_count;
    size_t edges = (size_t)graph->edge_count + 1;
    *run = (struct run){.plan = *plan,
                        .start = memory(tasks, sizeof(double)),
                        .finish = memory(tasks, sizeof(double)),
                        .place = memory(tasks, sizeof(uint32_t)),
                        .output = memory(tasks, sizeof(struct hash32)),
                        .payload = memory(tasks, sizeof(uint8_t *)),
                        .transfers = memory(edges, sizeof(struct transfer)),
                        .inbox = memory(edges, sizeof(uint8_t *)),
                        .in_of_out = memory(edges, sizeof(uint32_t))};
    for (uint32_t t = 0; t < tasks; t++) {
        size_t most = 0;
        for (uint32_t i = graph->out_first[t]; i < graph->out_first[t + 1]; i++) {
            size_t bytes = (size_t)graph->out[i].bytes;
            uint32_t to = graph->out[i].task;
            uint32_t in = graph->in_first[to];
            while (graph->in[in].task != t) {
                in++;
            }
            run->in_of_out[i] = in;
            most = bytes > most ? bytes : most;
            if (crosses(run, t, to)) {
                run->inbox[in] = memory(bytes + 1, 1);
            }
        }
        run->payload[t] = memory(most + sizeof(uint64_t), 1);
        memset(run->payload[t], 1, most + sizeof(uint64_t));
    }
    return run;
}

void run_destroy(struct run **self)
{
    struct run *run = *self;
    for (uint32_t t = 0; t < run->plan.graph->task_count; t++) {
        free(run->payload[t]);
    }
    for (uint32_t i = 0; i < run->plan.graph->edge_count; i++) {
        free(run->inbox[i]);
    }
    free(run->start);
    free(run->finish);
    free(run->place);
    free(run->output);
    free(run->payload);
    free(run->transfers);
    free(run->inbox);
    free(run->in_of_out);
    free(run);
    *self = NULL;
}

static void carry_out(struct worker *self, uint32_t task)
{
    struct run *run = self->run;
    const struct workload *graph = run->plan.graph;
    struct sha256 hash;
    size_t most = 0;
    sha256_start(&hash);
    sha256_add(&hash, &task, sizeof task);
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        uint32_t from = graph->in[i].task;
        sha256_add(&hash, run->inbox[i] != NULL ? run->inbox[i] : run->payload[from],
                   (size_t)graph->in[i].bytes);
    }
    struct hash32 seed = sha256_end(&hash);
    for (uint32_t i = 0; i < run->plan.work[task].count; i++) {
        seed = piece_run(self->scratch, run->plan.work[task].pieces[i], &seed);
    }
    run->output[task] = seed;
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        most = graph->out[i].bytes > (double)most ? (size_t)graph->out[i].bytes : most;
    }
    payload_make(run->payload[task], most, &seed);
}

static void arrive(void *context, const struct transfer *transfer)
{
    struct worker *to = context;
    (void)pthread_mutex_lock(&to->mutex);
    to->is_there[transfer->number] = true;
    (void)pthread_cond_signal(&to->arrival);
    (void)pthread_mutex_unlock(&to->mutex);
}

/* Waits for inputs of the other core. An input of this core is there, as its task ran earlier. */
static void await_inputs(struct worker *self, uint32_t task)
{
    const struct workload *graph = self->run->plan.graph;
    (void)pthread_mutex_lock(&self->mutex);
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        while (crosses(self->run, graph->in[i].task, task) && !self->is_there[i]) {
            (void)pthread_cond_wait(&self->arrival, &self->mutex);
        }
    }
    (void)pthread_mutex_unlock(&self->mutex);
}

static void send_outputs(struct worker *self, uint32_t task, int64_t now_ns)
{
    struct run *run = self->run;
    const struct workload *graph = run->plan.graph;
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        uint32_t in = run->in_of_out[i];
        if (crosses(run, task, graph->out[i].task)) {
            run->transfers[in] = (struct transfer){.from = run->payload[task],
                                                   .to = run->inbox[in],
                                                   .number = in,
                                                   .bytes = (uint32_t)graph->out[i].bytes,
                                                   .ready_ns = now_ns};
            wire_send(self->out, &run->transfers[in]);
        }
    }
}

static void *work(void *context)
{
    struct worker *self = context;
    struct run *run = self->run;
    const struct workload *graph = run->plan.graph;
    const struct timespec begin = {.tv_sec = run->begin_ns / 1000000000,
                                   .tv_nsec = run->begin_ns % 1000000000};
    uint32_t done = 0;
    pin(self->core);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL) != 0) {
    }
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = run->plan.sequence[i];
        if (run->plan.processor[task] == self->index) {
            await_inputs(self, task);
            run->start[task] = seconds_since(run, clock_monotonic_ns());
            carry_out(self, task);
            int64_t now_ns = clock_monotonic_ns();
            run->finish[task] = seconds_since(run, now_ns);
            run->place[task] = done++;
            send_outputs(self, task, now_ns);
        }
    }
    return NULL;
}

static void forget(struct run *run)
{
    const struct workload *graph = run->plan.graph;
    memset(run->output, 0, graph->task_count * sizeof *run->output);
    memset(run->transfers, 0, graph->edge_count * sizeof *run->transfers);
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        if (run->inbox[i] != NULL) {
            memset(run->inbox[i], 0, (size_t)graph->in[i].bytes);
        }
    }
}

void run_once(struct run *run, const int *cores, struct scratch *const *scratch,
              struct wire_speed speed)
{
    uint32_t edges = run->plan.graph->edge_count;
    struct worker workers[CORES];
    forget(run);
    for (uint32_t c = 0; c < CORES; c++) {
        workers[c] = (struct worker){.run = run,
                                     .scratch = scratch[c],
                                     .index = c,
                                     .core = cores[c],
                                     .is_there = memory((size_t)edges + 1, sizeof(bool))};
        if (pthread_mutex_init(&workers[c].mutex, NULL) != 0 ||
            pthread_cond_init(&workers[c].arrival, NULL) != 0) {
            die("no lock");
        }
    }
    for (uint32_t c = 0; c < CORES; c++) {
        workers[c].out =
            wire_create(speed, &cores[c], &cores[1 - c], edges, arrive, &workers[1 - c]);
    }
    run->begin_ns = clock_monotonic_ns() + BEGIN_NS;
    for (uint32_t c = 0; c < CORES; c++) {
        if (pthread_create(&workers[c].thread, NULL, work, &workers[c]) != 0) {
            die("no thread");
        }
    }
    for (uint32_t c = 0; c < CORES; c++) {
        (void)pthread_join(workers[c].thread, NULL);
    }
    run->makespan = 0;
    for (uint32_t t = 0; t < run->plan.graph->task_count; t++) {
        run->makespan = fmax(run->makespan, run->finish[t]);
    }
    for (uint32_t c = 0; c < CORES; c++) {
        wire_destroy(&workers[c].out);
    }
    for (uint32_t c = 0; c < CORES; c++) {
        (void)pthread_cond_destroy(&workers[c].arrival);
        (void)pthread_mutex_destroy(&workers[c].mutex);
        free(workers[c].is_there);
    }
}

/* Checks the tasks of one core: their places in the sequence, one at a time, after their inputs. */
static bool core_kept(const struct run *run, uint32_t core)
{
    const struct workload *graph = run->plan.graph;
    double free_from = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = run->plan.sequence[i];
        if (run->plan.processor[task] != core) {
            continue;
        }
        if (run->place[task] != place++ || run->start[task] < free_from ||
            run->finish[task] < run->start[task]) {
            return false;
        }
        for (uint32_t in = graph->in_first[task]; in < graph->in_first[task + 1]; in++) {
            double there = crosses(run, graph->in[in].task, task)
                               ? seconds_since(run, run->transfers[in].end_ns)
                               : run->finish[graph->in[in].task];
            if (run->start[task] < there) {
                return false;
            }
        }
        free_from = run->finish[task];
    }
    return true;
}

/* Checks the link that leaves one core, in the order in which transfers were given to it. */
static bool wire_kept(const struct run *run, uint32_t core, struct wire_speed speed)
{
    const struct workload *graph = run->plan.graph;
    double free_from = 0;
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = run->plan.sequence[i];
        for (uint32_t out = graph->out_first[task];
             run->plan.processor[task] == core && out < graph->out_first[task + 1]; out++) {
            const struct transfer *transfer = &run->transfers[run->in_of_out[out]];
            if (!crosses(run, task, graph->out[out].task)) {
                continue;
            }
            double begin = seconds_since(run, transfer->begin_ns);
            double least = speed.latency_s + transfer->bytes / speed.bytes_per_s;
            double end = seconds_since(run, transfer->end_ns);
            if (transfer->bytes != graph->out[out].bytes || begin < run->finish[task] - 1e-9 ||
                begin < free_from - 1e-7 || end < begin + least - 1e-7) {
                return false; /* the link counts in nanoseconds */
            }
            free_from = begin + least;
        }
    }
    return true;
}

bool run_kept(const struct run *run, struct wire_speed speed)
{
    bool kept = true;
    for (uint32_t core = 0; core < CORES && kept; core++) {
        kept = core_kept(run, core) && wire_kept(run, core, speed);
    }
    return kept;
}

struct hash32 run_output(const struct run *run)
{
    return sha256_of(run->output, run->plan.graph->task_count * sizeof *run->output);
}
