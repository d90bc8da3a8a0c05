/* Each command of a message or of the broker has one function, which applies it or refuses it. */
#ifndef BOURSE_EXCHANGE_COMMAND_APPLY_H
#define BOURSE_EXCHANGE_COMMAND_APPLY_H

#include "exchange/state/records.h"

void apply_advertise(struct exchange *exchange, const struct exchange_advertise *advertise);
void apply_ask(struct exchange *exchange, const struct exchange_ask *ask);
void apply_cancel_order(struct exchange *exchange, const struct exchange_cancel_order *cancel);
void apply_judge(struct exchange *exchange, const struct exchange_judge *judge);
void apply_genesis(struct exchange *exchange, const struct exchange_genesis *genesis);
void apply_invite(struct exchange *exchange, const struct exchange_invite *invite);
void apply_join(struct exchange *exchange, const struct exchange_join *join);
void apply_mint(struct exchange *exchange, const struct exchange_mint *mint);
void apply_bands(struct exchange *exchange, const struct exchange_bands *bands);
void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze);
void apply_halt(struct exchange *exchange, const struct exchange_halt *halt);
void apply_owner(struct exchange *exchange, const struct exchange_owner *owner);
/* A secret that does not match the commitment changes nothing. */
void apply_epoch(struct exchange *exchange, const struct exchange_epoch *epoch);
/* The terms of standing leases went on while the broker was down. */
void apply_outage(struct exchange *exchange, int64_t outage_ns);
void apply_suspect(struct exchange *exchange, uint32_t provider);
void apply_returned(struct exchange *exchange, uint32_t provider);
void apply_goodbye(struct exchange *exchange, uint32_t provider);
void apply_replace(struct exchange *exchange, const struct exchange_replace *replace);
void apply_results(struct exchange *exchange, const struct exchange_results *results);
void apply_statement(struct exchange *exchange, const struct exchange_statement *statement);
void apply_submit(struct exchange *exchange, const struct exchange_submit *submit);
void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel);

#endif
