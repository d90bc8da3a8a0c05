/* provider/device/probe.h - how fast one core computes and copies, measured in under a tenth of a
 * second.
 *
 * Plain C, so that the figures say what an ordinary program gets; they are claims that the market
 * treats as coarse: each is rounded down to two significant digits. They are measured at every
 * start, and kept in the agent's folder by CPU model with the day they are of, so that a busy
 * moment at one start does not move the machine to another cell, nor one at the first start keep it
 * in a wrong one. */
#ifndef BOURSE_PROVIDER_DEVICE_PROBE_H
#define BOURSE_PROVIDER_DEVICE_PROBE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* Float32 matrix products of one thread, by the program that computes them for jobs. */
struct profile_gemm {
    char engine[48]; /* "oneDNN 2.6.3"; "": they are not computed here */
    int64_t mflops;
};

struct probe_figure {
    int64_t value;
    int64_t at_s;   /* when it was last measured so; UTC, since 1970 */
    int64_t latest; /* what was measured last: lower, where a machine was busy */
};

struct profile {
    struct probe_figure mflops;          /* double precision, one core, Mflop/s */
    struct probe_figure bandwidth_bytes; /* memory, one core, bytes/s copied */
    char engine[48];                     /* of gemm, as above */
    struct probe_figure gemm_mflops;
};

/* Down to two significant digits: 12345 -> 12000. */
int64_t probe_round(int64_t figure);

/* What stands after `measured` at `now_s` where `kept` stood (value 0: nothing): what was measured,
 * if it is faster by a tenth or more, for no company makes a machine faster; what was kept, if it
 * is about the same or slower, because a machine may be busy; but not when it was seen last more
 * than PROBE_KEPT_S ago. */
enum { PROBE_KEPT_S = 7 * 24 * 3600 };
struct probe_figure probe_settle(const struct probe_figure *kept, int64_t measured, int64_t now_s);
/* Whether what was measured last is less than half of what stands. */
bool probe_doubtful(const struct probe_figure *figure);

/* "2026-11-22"; "-" for what is no time. */
enum { PROBE_DAY_SIZE = 16 };
void probe_day(int64_t at_s, char ret_text[PROBE_DAY_SIZE]);

/* What `file` keeps of this model; all 0 where nothing of use is. */
struct profile probe_read(const char *file, const char *model);
/* Measures, and settles with what FILE keeps of this model, which is written anew. `gemm` was
 * measured by the caller; what is kept of another engine does not count. A file that cannot be
 * written is not worth a refusal. */
void probe_profile(const char *file, const char *model, const struct profile_gemm *gemm,
                   int64_t now_s, struct profile *ret_profile);

#endif
