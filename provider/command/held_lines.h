/* provider/command/held_lines.h prints, for `status`, what the devices for kernels hold in their
 * memory. */
#ifndef BOURSE_PROVIDER_COMMAND_HELD_LINES_H
#define BOURSE_PROVIDER_COMMAND_HELD_LINES_H

#include <jansson.h>

/* Prints a line for each device of the agent's list `held` that had an input. */
void held_lines_print(const json_t *held);

#endif
