/* consumer/command/plan/work_refusal.h says why work cannot be planned, with the place of the value
 * that was given. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_WORK_REFUSAL_H
#define BOURSE_CONSUMER_COMMAND_PLAN_WORK_REFUSAL_H

#include "consumer/command/plan/work.h"

/* Prints `text` after the path of the file, if there is one. The error's stable name is `prefix`
 * and `name` together (docs/errors.md). Returns the exit status, as work_no_memory does. */
int work_refuse(const struct work *work, enum bourse_status status, const char *prefix,
                const char *name, const char *text);
int work_no_memory(const struct work *work);

enum { WORK_SAID_SIZE = 160 };
/* Writes where a value was given and returns the text: "--figure", or "plan.yaml:7: figures".
 * Line 0 is the command line. */
const char *work_said_at(const struct work *work, unsigned line, const char *option,
                         const char *key, char ret_text[WORK_SAID_SIZE]);

#endif
