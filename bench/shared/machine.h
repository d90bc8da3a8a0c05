/* bench/shared/machine.h prints where a benchmark ran, as members of a JSON object. */
#ifndef BOURSE_BENCH_SHARED_MACHINE_H
#define BOURSE_BENCH_SHARED_MACHINE_H

/* Prints "machine":{...}: processor, how many there are, kernel, and the load of the last minute,
 * which says whether others used the machine. */
void machine_print(void);
/* Prints "versions":{...}: of bourse, libzmq and SQLite. */
void machine_print_versions(void);

#endif
