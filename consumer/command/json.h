/* consumer/command/json.h prints one JSON value for programs, and makes the values that several
 * commands print. */
#ifndef BOURSE_CONSUMER_COMMAND_JSON_H
#define BOURSE_CONSUMER_COMMAND_JSON_H

#include "consumer/command/command.h"

/* Takes `value` over, adds "version":1, prints it as one line, and returns `status`. */
int json_print(json_t *value, int status);
json_t *json_job(const struct bourse_job_row *row);
/* Adds the forecast of an open job with a deadline, when there is one. */
void json_set_forecast(json_t *value, const struct bourse_job_row *row);
/* Sets `drifts` in the job's pace to the result of the comparison with the plan. */
void json_set_drifts(json_t *job, bool drifts);
json_t *json_explanation(const struct bourse_explanation *explanation);
/* Returns how many devices were found as they claim, and how many not. */
json_t *json_challenged(const struct bourse_challenged *counts);
json_t *json_isolation(const struct bourse_isolation *counts);
/* Returns the level of one attempt's jail; null for -1. */
json_t *json_isolation_level(int level);
json_t *json_quote(const struct bourse_quote *quote);
/* `subtask` in the outcome is what commands take: a task's name, or a number. `tasks` may be
 * NULL. */
/* Adds an energy that is not below 0, and its source unless that is NULL. */
void json_add_energy(json_t *object, int64_t energy_uj, const char *source);
json_t *json_outcome(const struct bourse_outcome *outcome, const struct bourse_tasks *tasks);
json_t *json_standing(const struct bourse_standing *standing);
json_t *json_bands(struct bourse_bands bands);
/* Adds the rate of a limit by value to an object; adds nothing for a limit per slot-hour. */
void json_add_rate(json_t *object, const char *rate);

#endif
