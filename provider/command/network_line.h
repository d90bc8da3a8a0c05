/* provider/command/network_line.h prints what jobs use of the network, for `status`. */
#ifndef BOURSE_PROVIDER_COMMAND_NETWORK_LINE_H
#define BOURSE_PROVIDER_COMMAND_NETWORK_LINE_H

#include <jansson.h>

/* Prints `network` of the agent's status; prints nothing for null. */
void network_line_print(const json_t *network);

#endif
