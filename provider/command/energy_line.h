/* provider/command/energy_line.h prints the energy of attempts for `bourse-provider status`. */
#ifndef BOURSE_PROVIDER_COMMAND_ENERGY_LINE_H
#define BOURSE_PROVIDER_COMMAND_ENERGY_LINE_H

#include <jansson.h>

/* Prints a line when attempts since the start have an energy. */
void energy_line_print(const json_t *energy);

#endif
