/* The effects of a step are messages, ledger records and reports of jobs, in the order of the
 * calls. */
#ifndef BOURSE_EXCHANGE_STATE_EFFECTS_H
#define BOURSE_EXCHANGE_STATE_EFFECTS_H

#include "exchange/state/records.h"

struct exchange_effect *effect_emit(struct exchange *exchange, enum exchange_effect_type type,
                                    uint32_t account);
struct ledger_record *effect_emit_ledger(struct exchange *exchange, enum ledger_kind kind);
struct exchange_effect *effect_reject(struct exchange *exchange, uint32_t code, const char *field,
                                      int64_t value,
                                      int64_t limit); /* `field` fits EXCHANGE_FIELD_SIZE */
void effect_report_job(struct exchange *exchange, struct job *job);
void effects_flush_reports(struct exchange *exchange);

#endif
