/* broker/answer/proofs.h answers requests for receipts and for the checkpoint, which anybody can
 * verify offline. The thread that reads the ledger calls these functions. */
#ifndef BOURSE_BROKER_ANSWER_PROOFS_H
#define BOURSE_BROKER_ANSWER_PROOFS_H

#include "base/id.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "ledger/store/sqlite.h"

/* Makes the answer to a request. *ret_outgoing is NULL after LEDGER_STORE_OK when memory is
 * short; after any other status there is no answer. */
typedef enum ledger_store_status proofs_answer(struct ledger_reader *ledger,
                                               const struct id128 *cluster,
                                               const struct request *request,
                                               struct outgoing **ret_outgoing);
proofs_answer proofs_receipt;
/* Answers with one page of receipts of a job, which share their checkpoint. */
proofs_answer proofs_receipts;
proofs_answer proofs_checkpoint;

#endif
