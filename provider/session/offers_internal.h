/* provider/session/offers_internal.h declares what offers.c does at an answer of the broker, for
 * offers_answers.c and withheld.c. No other file includes it. */
#ifndef BOURSE_PROVIDER_SESSION_OFFERS_INTERNAL_H
#define BOURSE_PROVIDER_SESSION_OFFERS_INTERNAL_H

#include "provider/session/agent_session_internal.h"

/* Offers again after a wait, which doubles with each refusal in a row. */
void offers_later(struct agent_session *session, int64_t now_ns);
/* Sends the Statement again after such a wait. */
void offers_state_later(struct agent_session *session, int64_t now_ns);
/* Makes the ask absent, and cancels its order in the book, if there is one. */
void offers_cancel_order(struct agent_session *session, int64_t now_ns, struct offered_ask *ask);
/* Places the asks that are absent, once the devices are advertised. */
void offers_place_absent(struct agent_session *session, int64_t now_ns);
/* Lists the accounts that may use an offer. Returns how many there are. */
size_t offers_name_accounts(const struct agent_conditions *of, const char *ret_to[AGENT_TO_MOST]);

#endif
