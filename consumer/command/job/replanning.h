/* consumer/command/job/replanning.h - who follows a job plans it anew when its subtasks take so
 * much more or less than planned that the plan no longer holds (consumer/job/replan.h), and tells:
 * when all is done, what it costs, which limit is in the way, and what to do. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_REPLANNING_H
#define BOURSE_CONSUMER_COMMAND_JOB_REPLANNING_H

#include "consumer/command/output.h"
#include "consumer/job/replan.h"

enum { REPLANS_MOST = 8, REPLAN_TEXT = 512 };

struct replanning {               /* of one job; zero to begin with */
    int64_t foreseen_ms, took_ms; /* of the results that it was last planned by; 0: as submitted */
    int64_t percent; /* its subtasks take so much longer than planned, as far as was looked; 0: they
                        do not */
    uint32_t tries;
    uint32_t looked_at; /* so many results there were when it was found to go as planned; it is
                           looked at anew with half as many more */
    size_t count;
    struct replan made[REPLANS_MOST]; /* those that were told */
};

/* Whether results are more than a fifth off what they were to take by the last plan; no more than
 * REPLANS_MOST times. */
bool replanning_is_due(const struct replanning *replanning, const struct bourse_job_row *row);
/* Whether that is a fifth more or less than what was told last: by the plan, which knows each
 * subtask, where a row knows means. */
bool replanning_is_news(const struct replanning *replanning, int64_t percent);
/* Plans anew by what this row says, which is due. False: there is nothing to tell; what cannot be
 * planned goes on as it is. */
bool replanning_make(struct invocation *invocation, struct replanning *replanning,
                     const struct bourse_job_row *row, char ret_text[REPLAN_TEXT]);
/* What is told of a plan: one line. */
void replanning_text(const struct replan *replan, const struct bourse_job_row *row,
                     char ret_text[REPLAN_TEXT]);
/* A list, one object each. */
json_t *json_replans(const struct replanning *replanning);

#endif
