/* The effects of a step are messages, ledger records and reports of jobs, in the order of the
 * calls. */
#ifndef BOURSE_EXCHANGE_STATE_EFFECTS_H
#define BOURSE_EXCHANGE_STATE_EFFECTS_H

#include "exchange/state/records.h"

/* Appends an effect to those of the step. The memory is the exchange's, until the next effect. */
struct exchange_effect *effect_emit(struct exchange *exchange, enum exchange_effect_type type,
                                    uint32_t account);
/* Appends a ledger record, with index and time of the command filled in. */
struct ledger_record *effect_emit_ledger(struct exchange *exchange, enum ledger_kind kind);
/* Refuses the command under that field, whose name fits EXCHANGE_FIELD_SIZE. The caller has changed
 * nothing. */
struct exchange_effect *effect_reject(struct exchange *exchange, uint32_t code, const char *field,
                                      int64_t value, int64_t limit);
/* Copies a reason for an effect, which outlives the state of this step. Returns NULL for NULL. */
const char *effect_copy_reason(struct exchange *exchange, const char *reason);
/* Queues one report of the job for the end of the step. */
void effect_report_job(struct exchange *exchange, struct job *job);
/* Appends the queued reports; runs at the end of a step. */
void effects_flush_reports(struct exchange *exchange);

#endif
