/* broker/answer/disputes.h answers which held results of a job its client may have to judge.
 *
 * The answers are DisputesReply, and the words about disputes in ExplainReply. */
#ifndef BOURSE_BROKER_ANSWER_DISPUTES_H
#define BOURSE_BROKER_ANSWER_DISPUTES_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"

/* Returns the DisputesReply with the disputes of the asker's own job from subtask `from` on; NULL:
 * memory is short. */
struct outgoing *disputes_page(const struct exchange *exchange, const struct request *request,
                               const struct id128 *job, uint32_t from);

/* Counts the job's disputes in the answer. Where there are any, writes them and the answer's text
 * into `text`, which becomes the answer's text. */
void disputes_explain(const struct exchange *exchange, const struct exchange_job_row *job,
                      char *text, size_t capacity, Bourse__V1__ExplainReply *answer);

#endif
