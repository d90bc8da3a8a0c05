/* provider/probe.h - how fast one core computes and copies, measured in under half a second.
 *
 * Plain C, so that the figures say what an ordinary program gets; they are claims that the market
 * treats as coarse: each is rounded down to two significant digits, and kept in the agent's folder by CPU
 * model, so that a busy moment at one start does not move the machine to another cell. */
#ifndef BOURSE_PROVIDER_PROBE_H
#define BOURSE_PROVIDER_PROBE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* Float32 matrix products of one thread, by the program that computes them for jobs. */
struct profile_gemm {
    char engine[48]; /* "oneDNN 2.6.3"; "": they are not computed here */
    int64_t mflops;
};

struct profile {
    int64_t mflops;          /* double precision, one core, Mflop/s */
    int64_t bandwidth_bytes; /* memory, one core, bytes/s copied */
    struct profile_gemm gemm;
};

void probe_measure(struct profile *ret_profile); /* but `gemm` */
/* Down to two significant digits: 12345 -> 12000. */
int64_t probe_round(int64_t figure);
/* From FILE if it holds this model, else measured and written there. `gemm` was measured by the caller; the
 * figure of the file stands if it is of the same engine. A file that cannot be written is not worth a refusal. */
void probe_profile(const char *file, const char *model, const struct profile_gemm *gemm,
                   struct profile *ret_profile);

#endif
