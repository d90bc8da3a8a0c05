#include "base/random.h"
#include "base/sha256.h"
#include "bench/give_up.h"
#include "bench/planner_reality/parts.h"
#include "planner/cost/history.h"
#include "runtime/clock.h"

#include <pthread.h>

enum { SAMPLED = KINDS * CALIBRATION_POINTS, CARRIED = 128 << 10 };

struct sampler {
    pthread_t thread;
    int core;
    struct scratch *scratch;
    pthread_barrier_t *together;
    const struct calibration *calibration;
    uint32_t rounds;
    uint64_t seed;
    uint8_t *bytes; /* CARRIED, and some */
    struct history histories[SAMPLED], input, output;
};

/* Measures what a task takes beside its work: making what it sends, and hashing what was sent to
 * it. */
static void sample_carried(struct sampler *self, struct hash32 *seed)
{
    int64_t begin_ns = clock_monotonic_ns();
    payload_make(self->bytes, CARRIED, seed);
    int64_t made_ns = clock_monotonic_ns();
    *seed = sha256_of(self->bytes, CARRIED);
    (void)history_add(&self->input, clock_monotonic_ns() - made_ns);
    (void)history_add(&self->output, made_ns - begin_ns);
}

static void *sample(void *context)
{
    struct sampler *self = context;
    struct random dice = random_seeded(self->seed);
    struct hash32 seed = {{0}};
    pin(self->core);
    for (uint32_t round = 0; round <= self->rounds; round++) {
        uint32_t order[SAMPLED] = {0};
        (void)pthread_barrier_wait(self->together); /* so that both are busy to the end */
        for (uint32_t i = 0; i < SAMPLED; i++) {
            uint32_t j = (uint32_t)random_below(&dice, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; i < SAMPLED; i++) {
            enum kind kind = (enum kind)(order[i] / CALIBRATION_POINTS);
            struct piece piece = {kind,
                                  self->calibration->sizes[kind][order[i] % CALIBRATION_POINTS]};
            int64_t begin_ns = clock_monotonic_ns();
            seed = piece_run(self->scratch, piece, &seed);
            int64_t taken_ns = clock_monotonic_ns() - begin_ns;
            if (round > 0) { /* the first warms up */
                (void)history_add(&self->histories[order[i]], taken_ns);
                sample_carried(self, &seed);
            }
        }
    }
    return NULL;
}

void calibration_make(const int *cores, struct scratch *const *scratch, uint32_t rounds,
                      uint64_t seed, struct calibration *ret_calibration)
{
    for (int kind = 0; kind < KINDS; kind++) {
        double least = kind_least((enum kind)kind);
        double ratio = kind_most((enum kind)kind) / least;
        for (int i = 0; i < CALIBRATION_POINTS; i++) {
            ret_calibration->sizes[kind][i] =
                (uint32_t)lround(least * pow(ratio, (double)i / (CALIBRATION_POINTS - 1)));
        }
    }
    struct sampler *samplers = memory(CORES, sizeof *samplers);
    pthread_barrier_t together;
    if (pthread_barrier_init(&together, NULL, CORES) != 0) {
        die("no barrier");
    }
    for (uint32_t c = 0; c < CORES; c++) {
        samplers[c].core = cores[c];
        samplers[c].scratch = scratch[c];
        samplers[c].together = &together;
        samplers[c].calibration = ret_calibration;
        samplers[c].bytes = memory(CARRIED + sizeof(uint64_t), 1);
        samplers[c].rounds = rounds;
        samplers[c].seed = seed + c;
        if (pthread_create(&samplers[c].thread, NULL, sample, &samplers[c]) != 0) {
            die("no thread");
        }
    }
    ret_calibration->outliers = 0;
    for (uint32_t c = 0; c < CORES; c++) {
        (void)pthread_join(samplers[c].thread, NULL);
        for (int i = 0; i < SAMPLED; i++) {
            struct history_summary summary = history_summarise(&samplers[c].histories[i]);
            ret_calibration->seconds[c][i / CALIBRATION_POINTS][i % CALIBRATION_POINTS] =
                (double)summary.median * 1e-9;
            ret_calibration->outliers += summary.outliers;
        }
        ret_calibration->input_s_per_byte[c] =
            (double)history_summarise(&samplers[c].input).median * 1e-9 / CARRIED;
        ret_calibration->output_s_per_byte[c] =
            (double)history_summarise(&samplers[c].output).median * 1e-9 / CARRIED;
        free(samplers[c].bytes);
    }
    (void)pthread_barrier_destroy(&together);
    free(samplers);
}

double calibration_seconds(const struct calibration *calibration, uint32_t core, struct piece piece)
{
    const uint32_t *sizes = calibration->sizes[piece.kind];
    const double *seconds = calibration->seconds[core][piece.kind];
    int i = 1;
    while (i < CALIBRATION_POINTS - 1 && piece.size > sizes[i]) {
        i++;
    }
    double from = piece_units((struct piece){piece.kind, sizes[i - 1]});
    double to = piece_units((struct piece){piece.kind, sizes[i]});
    double part = (piece_units(piece) - from) / (to - from);
    return seconds[i - 1] + part * (seconds[i] - seconds[i - 1]);
}
