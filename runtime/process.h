/* runtime/process.h prepares a program at its start, tells it when to end, and names and ranks its
 * threads. */
#ifndef BOURSE_RUNTIME_PROCESS_H
#define BOURSE_RUNTIME_PROCESS_H

#include "base/problem.h"

#include <signal.h>
#include <stdbool.h>

/* Prepares the process: sodium_init, core dumps off, umask 077, SIGPIPE ignored, freed memory kept
 * (process.c). Returns false with a problem; the program prints it and exits. */
bool process_start(struct problem *ret_problem);
/* Sets the limit of open files to `most`, or as far as this process may go. The limit is never set
 * above `most`, because connections count here, and memory with them. Returns false when the limit
 * is below `least`; the problem has both numbers and the remedy. */
bool process_open_files(unsigned least, unsigned most, struct problem *ret_problem);
/* Blocks SIGINT, SIGTERM and SIGHUP in this and later threads and returns a descriptor (signalfd)
 * that reads them, or -1. Call before any thread exists. */
int process_signals(void);
/* Names this thread for `top -H` and debuggers; at most 15 bytes count. */
void process_name_thread(const char *name);
/* Makes the threads of this process called `name` leave the processors to the others (nice 10), for
 * ever. Returns their number; 0 means that none was changed. */
unsigned process_yield_threads(const char *name);
/* Prints what is wrong with an option that getopt_long refused, and the option that may have been
 * meant. `found` is getopt_long's answer: ':' for a missing value, '?' for the rest. `word` is the
 * refused word. */
struct option;
void process_say_wrong_option(const char *program, int found, const char *word,
                              const struct option *options);
/* Returns the folder of the running executable, for the helpers beside it. Returns false when it
 * cannot be known. */
bool process_folder(char *ret_path, size_t capacity);
/* Finds a helper that people do not start: beside the running executable, as in a build, or in
 * ../libexec/bourse from there, as in an installation. Returns false when it can be read in neither
 * place, or its path does not fit. */
bool process_helper(const char *name, char *ret_path, size_t capacity);

#endif
