/* provider/command/usage_lines.h prints, for `status`, what jobs use of this machine. */
#ifndef BOURSE_PROVIDER_COMMAND_USAGE_LINES_H
#define BOURSE_PROVIDER_COMMAND_USAGE_LINES_H

#include <jansson.h>

/* Prints what devices hold in their memory, the network's bytes and the energy of attempts, as the
 * agent's status tells them. A line without a figure is left out. */
void usage_lines_print(const json_t *answer);

#endif
