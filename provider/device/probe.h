/* provider/device/probe.h measures how fast one core computes and copies, in under a tenth of a
 * second.
 *
 * The code is plain C, so the figures say what an ordinary program gets. The market treats the
 * figures as coarse claims: each is rounded down to two significant digits. They are measured at
 * every start and kept in the agent's folder by CPU model, each with its day. So one busy start
 * does not move the machine to another cell, and a busy first start does not keep it in a wrong
 * one. */
#ifndef BOURSE_PROVIDER_DEVICE_PROBE_H
#define BOURSE_PROVIDER_DEVICE_PROBE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* The program that computes jobs' matrix products measures this speed: float32 products, one
 * thread. */
struct profile_gemm {
    char engine[48]; /* "oneDNN 2.6.3"; "": no matrices are computed here */
    int64_t mflops;
};

struct probe_figure {
    int64_t value;
    int64_t at_s;   /* last time the value was measured; UTC seconds since 1970 */
    int64_t latest; /* the last measurement; lower if the machine was busy */
};

struct profile {
    struct probe_figure mflops;          /* double precision, one core, Mflop/s */
    struct probe_figure bandwidth_bytes; /* memory, one core, bytes/s copied */
    char engine[48];                     /* engine of gemm, as above */
    struct probe_figure gemm_mflops;
};

/* Rounds down to two significant digits: 12345 -> 12000. */
int64_t probe_round(int64_t figure);

/* Returns the figure to keep after `measured` at `now_s`, given the figure kept so far (value 0:
 * none). A measurement that is faster by a tenth or more wins, because other load never makes a
 * machine faster. About the same speed leaves the kept value. A slower one loses, because the
 * machine may have been busy, unless the kept value was last seen more than PROBE_KEPT_S ago. */
enum { PROBE_KEPT_S = 7 * 24 * 3600 };
struct probe_figure probe_settle(const struct probe_figure *kept, int64_t measured, int64_t now_s);
/* Returns true when the last measurement is less than half of the kept value. */
bool probe_doubtful(const struct probe_figure *figure);

/* Writes a day such as "2026-11-22", or "-" when `at_s` is no time. */
enum { PROBE_DAY_SIZE = 16 };
void probe_day(int64_t at_s, char ret_text[PROBE_DAY_SIZE]);

/* Returns what `file` keeps for this model; all fields are 0 when it keeps nothing of use. */
struct profile probe_read(const char *file, const char *model);
/* Measures, settles the result with what `file` keeps for this model, and writes `file` anew. The
 * caller has measured `gemm`; a kept figure of another engine does not count. A file that cannot be
 * written is no failure. */
void probe_profile(const char *file, const char *model, const struct profile_gemm *gemm,
                   int64_t now_s, struct profile *ret_profile);

#endif
