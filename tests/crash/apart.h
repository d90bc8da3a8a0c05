/* tests/crash/apart.h - work in a process of its own, so that whoever stops, stops alone. */
#ifndef BOURSE_TESTS_CRASH_APART_H
#define BOURSE_TESTS_CRASH_APART_H

#include <stddef.h>

enum { APART_SAID_SIZE = 2048 };

/* Exit status of a child that ran `work` (0 when it returned), or 128 and its signal. *ret_said
 * is what it wrote to stderr; what it wrote to stdout is dropped. */
int apart(void (*work)(void *context), void *context, char ret_said[APART_SAID_SIZE]);

#endif
