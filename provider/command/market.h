/* provider/command/market.h connects the owner's commands why and earnings with the market, under
 * the agent's key. They share these functions. */
#ifndef BOURSE_PROVIDER_COMMAND_MARKET_H
#define BOURSE_PROVIDER_COMMAND_MARKET_H

#include "consumer/client/bourse.h"
#include "formats/units.h"
#include "provider/command/command.h"

#include <jansson.h>

/* Connects to the market. On failure prints the problem, sets *ret_status to the exit status, and
 * returns NULL. */
struct bourse *market_open(const struct command *command, int *ret_status);
/* Prints the error and returns its exit status. */
int market_fail(const struct bourse_error *error);
/* Prints the value with the version of its form, and takes the value over. */
void market_print_json(json_t *value);
/* Returns `ret_text`, which has the credits as text. */
const char *market_money(int64_t micro, char ret_text[UNITS_TEXT_SIZE]);
/* Returns a copy without control characters, valid until the next call. */
const char *market_printable(const char *text);

#endif
