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
/* Prints the option that an unknown word may have meant, if one is near. getopt_long reports the
 * unknown word itself. */
struct option;
void process_say_nearest_option(const char *word, const struct option *options);
/* Returns the folder of the running executable, for the helpers beside it. Returns false when it
 * cannot be known. */
bool process_folder(char *ret_path, size_t capacity);

#endif
