/* consumer/command/job/replanning.h plans a followed job anew when its subtasks no longer keep to
 * the plan (consumer/job/replan.h). The user then learns the new end, the cost, the limit in the
 * way, and the next step. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_REPLANNING_H
#define BOURSE_CONSUMER_COMMAND_JOB_REPLANNING_H

#include "consumer/command/command.h"
#include "consumer/job/replan.h"

enum { REPLANS_MOST = 8, REPLAN_TEXT = 640 };

struct replanning { /* state of one job; zero to begin with */
    /* Sums over the results that the last plan knew; 0: the plan of the submission. */
    int64_t foreseen_ms, took_ms;
    /* Percent that subtasks take longer than planned, at the last look; 0: as planned. */
    int64_t percent;
    uint32_t tries;
    /* Number of results when the job was found to keep to its plan. The next look comes with half
     * as many more. */
    uint32_t looked_at;
    size_t count;
    struct replan made[REPLANS_MOST]; /* replans that the user was told */
};

/* Returns true when the results are more than a fifth off the last plan. Returns true at most
 * REPLANS_MOST times. */
bool replanning_is_due(const struct replanning *replanning, const struct bourse_job_row *row);
/* Returns true when `percent` is a fifth off what the user was told last. `percent` comes from the
 * plan, which knows each subtask; a row knows only means. */
bool replanning_is_news(const struct replanning *replanning, int64_t percent);
/* Plans the job anew by this row, when a plan is due, and writes the text for the user. Returns
 * false when there is no news; a job that cannot be planned goes on unchanged. */
bool replanning_make(struct invocation *invocation, struct replanning *replanning,
                     const struct bourse_job_row *row, char ret_text[REPLAN_TEXT]);
/* Writes one line about a plan. */
void replanning_text(const struct replan *replan, const struct bourse_job_row *row,
                     char ret_text[REPLAN_TEXT]);
/* Returns a list with one object for each plan. */
json_t *replanning_json(const struct replanning *replanning);

#endif
