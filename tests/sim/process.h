/* tests/sim/process.h - what the shims ask of the broker whose code runs. */
#ifndef BOURSE_TESTS_SIM_PROCESS_H
#define BOURSE_TESTS_SIM_PROCESS_H

#include <stdbool.h>

struct fibre;

/* The present process has said its last word. */
_Noreturn void process_stops(const char *why, bool is_deposed);
/* A port as zmq_poll sees it. */
bool port_is_readable(const void *port);
void port_waits(void *port, struct fibre *fibre);

#endif
