/* tests/sim/cluster/programs.h - which program a seat runs: the present one, or that of the release
 * before, which knows other rules. Seeds differ in what the market begins with.
 *
 * The records of the brokers are the world's here: what a leader reads in them may be old, as the
 * production code may read it. A seat that is refused for its rules gets the present program. */
#ifndef BOURSE_TESTS_SIM_CLUSTER_PROGRAMS_H
#define BOURSE_TESTS_SIM_CLUSTER_PROGRAMS_H

#include "broker/rules_known.h"
#include "tests/sim/cluster/seat.h"

/* Draws what the seats begin with. */
void programs_start(void);
/* Every seat that starts from now on runs the present program, also one that runs the other. */
void programs_become_calm(void);
/* Some seat is stopped and started with another program. */
void programs_change(void);
/* The leader reads the records of all seats, as they were up to some seconds ago. */
void programs_compare(void);
/* The seat starts: its record says what its program knows from now on. */
void programs_begin(struct seat *seat);
/* The seat does not know the rules of the log. Returns false when it does know them. */
bool programs_refuse(struct seat *seat);
/* Fails the run when the seat's state is under rules that its program does not know. */
void programs_check(const struct seat *seat);
/* Fails the run when the market is not under the newest rules: all seats have known them. */
void programs_check_end(void);

struct programs_counts {
    uint64_t raised, refused; /* changes of the rules, and programs turned away */
};
struct programs_counts programs_counts(void);

#endif
