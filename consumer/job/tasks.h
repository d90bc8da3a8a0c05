/* consumer/job/tasks.h reads back the manifest of a job on the market. The header is not
 * installed. */
#ifndef BOURSE_CONSUMER_JOB_TASKS_H
#define BOURSE_CONSUMER_JOB_TASKS_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true when all subtasks but the checks are tasks or none is, and each waits only for
 * earlier ones. */
bool tasks_well_formed(const Bourse__V1__Manifest *manifest);
/* Returns the name of a subtask, or NULL. */
const char *tasks_name(const Bourse__V1__Manifest *manifest, uint32_t index);
/* Writes "task split" or "subtask 7", the name by which the user knows the subtask. `manifest` may
 * be NULL; the number is then the index. */
enum { TASKS_LABEL_SIZE = 192 };
void tasks_label(const Bourse__V1__Manifest *manifest, uint32_t index,
                 char ret_text[TASKS_LABEL_SIZE]);
/* Writes the same for a job of which only the id is known. The broker is asked for the manifest. */
struct bourse;
void tasks_label_of(struct bourse *client, const char *id, uint32_t index,
                    char ret_text[TASKS_LABEL_SIZE]);

#endif
