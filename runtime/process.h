/* runtime/process.h - what every program does once at its start, and how it hears that it should
 * end; and how its threads are called and ranked. */
#ifndef BOURSE_RUNTIME_PROCESS_H
#define BOURSE_RUNTIME_PROCESS_H

#include "base/problem.h"

#include <signal.h>
#include <stdbool.h>

/* sodium_init, core dumps off, umask 077, SIGPIPE ignored, freed memory kept (process.c). False:
 * say the problem and exit. */
bool process_start(struct problem *ret_problem);
/* Sets the limit of open files to `most`, or as far as this process may go: never above, because
 * connections count here, and memory with them. False when that is below `least`, with both numbers
 * and what to do. */
bool process_open_files(unsigned least, unsigned most, struct problem *ret_problem);
/* Blocks SIGINT, SIGTERM and SIGHUP in this and later threads and returns a descriptor (signalfd)
 * that reads them, or -1. Call before any thread exists. */
int process_signals(void);
/* How this thread is called in `top -H` and in debuggers; at most 15 bytes count. */
void process_name_thread(const char *name);
/* The threads of this process that are called `name` leave the processors to the others (nice 10),
 * for ever. Returns how many there are: 0 says that it was not done. */
unsigned process_yield_threads(const char *name);
/* For what getopt_long does not know (it says so itself): prints the option that may have been
 * meant, if one is near. */
struct option;
void process_say_nearest_option(const char *word, const struct option *options);
/* Folder of the running executable, for the helpers beside it. False when it cannot be known. */
bool process_folder(char *ret_path, size_t capacity);

#endif
