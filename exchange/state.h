/* exchange/state.h - the small functions that the exchange's files share, file by file, over its
 * records. Not for use outside exchange/. */
#ifndef BOURSE_EXCHANGE_STATE_H
#define BOURSE_EXCHANGE_STATE_H

#include "exchange/lifecycle.h"
#include "exchange/records.h"
#include "exchange/view/effort.h"
#include "planner/schedule/online.h"

/* ---- what reads took: exchange_steps */
static inline void steps_add(const struct exchange *exchange, uint64_t steps)
{
    *exchange->steps += steps;
}
/* A predicate is looked for among the attributes: so many steps for the whole requirement. */
static inline uint64_t steps_of_needs(const struct requirement *needs)
{
    return 4 + 2 * (uint64_t)needs->count;
}

/* ---- exchange.c */
struct exchange_effect *emit(struct exchange *exchange, enum exchange_effect_type type,
                             uint32_t account);
struct ledger_record *emit_ledger(struct exchange *exchange, enum ledger_kind kind);
struct exchange_effect *reject(struct exchange *exchange, uint32_t code, const char *field,
                               int64_t value, int64_t limit); /* `field` fits EXCHANGE_FIELD_SIZE */
void report_job(struct exchange *exchange, struct job *job);
struct member *member_by_number(const struct exchange *exchange, uint32_t number);
struct member *sender(const struct exchange *exchange); /* of the present command, or NULL */
void *allocate(struct exchange *exchange, size_t size); /* zeroed; NULL sets is_out_of_memory */
uint32_t handle_take(struct exchange *exchange, void *order); /* BOOK_NONE: none left */
void handle_give(struct exchange *exchange, uint32_t handle);
void copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *name);

/* Of an id that stands in the table and in the list of all by age: its account's too. */
void refusal_link(struct exchange *exchange, struct refused_id *refused);

/* Makes these the caps and rules, and a record of the state. */
void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set);

/* ---- timers.c */
void timer_arm(struct exchange *exchange, enum timer_kind kind, const struct id128 *key,
               int64_t at_ns);
void timers_fire(struct exchange *exchange); /* all that are due at now_ns, in order */
/* All deadlines of an open job and its leases. */
void timers_arm_job(struct exchange *exchange, const struct job *job);
void timers_weed(struct exchange *exchange); /* drops what is stale; at the end of a step */
struct id128 timer_key_of_lease(uint64_t lease);

/* ---- members.c */
void apply_genesis(struct exchange *exchange, const struct exchange_genesis *genesis);
void apply_join(struct exchange *exchange, const struct exchange_join *join);
void apply_mint(struct exchange *exchange, const struct exchange_mint *mint);
void apply_invite(struct exchange *exchange, const struct exchange_invite *invite);
void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze);
void apply_halt(struct exchange *exchange, const struct exchange_halt *halt);
/* A record of what the operator did to that account, or to the market. */
void flag(struct exchange *exchange, uint32_t account, const struct key32 *key, const char *what);
void invitations_expire(struct exchange *exchange);
bool member_link_name(struct exchange *exchange, struct member *member); /* false: no memory */
void invitation_link(struct exchange *exchange, struct invitation *invitation);

/* ---- standing.c */
void apply_owner(struct exchange *exchange, const struct exchange_owner *owner);
bool have_one_owner(const struct exchange *exchange, uint32_t a, uint32_t b);
/* A result of the account was refuted; a check has accepted so much of its slot-time; it rejected
 * what stood. */
void account_refuted(struct exchange *exchange, uint32_t account);
void account_proved(struct exchange *exchange, uint32_t account, int64_t slot_ns);
void account_overruled(struct exchange *exchange, uint32_t account);
/* Its asks are closed until then; 0: they never were. */
int64_t account_withdrawn_until_ns(const struct exchange *exchange, uint32_t account);

/* ---- bands.c */
void apply_bands(struct exchange *exchange, const struct exchange_bands *bands);
/* The price itself, if an order may have it; else the bound of the band that it is beyond. */
int64_t price_bound(const struct exchange *exchange, int64_t price_micro);
/* Whatever a bid by value is worth, it gives no more than the band in force; others were looked at
 * when they came. */
bool ask_in_reach(const struct exchange *exchange, const struct part *part, const struct ask *ask);
/* Else the command is refused, by that name. */
bool price_in_band(struct exchange *exchange, const char *field, int64_t price_micro);
/* What a lease of all slots of an ask comes to at its price, for the longest term; for an hour,
 * where it has none. */
int64_t ask_notional(int64_t price_micro, uint32_t slots, int64_t max_term_ns);
/* What a term of all that a part wants at a time comes to at its limit, by value at the highest
 * price; no more than its job's budget, which bounds it. */
int64_t part_notional(const struct exchange *exchange, const struct part *part,
                      int64_t budget_micro);
/* Else the command is refused, by that name. */
bool notional_in_bounds(struct exchange *exchange, const char *field, int64_t notional_micro);

/* ---- kinds.c */
/* References to the cells of the devices, or to the class, for the sender of the present command:
 * one more of each than its devices and open jobs use. False with the refusal, and no trace. What
 * others use does not count, nor what the advertisement replaces. */
bool cells_take(struct exchange *exchange, const struct exchange_advertise *advertise,
                uint32_t *ret_cells);
bool class_take(struct exchange *exchange, const struct requirement *needs, enum rate rate,
                uint32_t *ret_class);
/* One part more of that account with that class, which it holds; false: out of memory. */
bool class_use_add(struct exchange *exchange, uint32_t account, uint32_t class_id);
void cell_give(struct exchange *exchange, uint32_t cell);
/* What the market calls a device of that cell; "" where it says none. */
void cell_instrument(const struct exchange *exchange, uint32_t cell,
                     char ret_text[ATTRIBUTE_TEXT_SIZE]);
/* Of a part of that account. */
void class_give(struct exchange *exchange, uint32_t account, uint32_t class_id);
/* As a snapshot says it: that number, and as yet nobody's. False when that cannot be. Whoever
 * refers to it holds it (book_cell_hold); kinds_settle gives back what restoring held, false when
 * one is nobody's. */
bool cell_restore(struct exchange *exchange, uint32_t cell, const struct attribute *attributes,
                  size_t count);
bool class_restore(struct exchange *exchange, uint32_t class_id, const struct requirement *needs,
                   enum rate rate);
bool kinds_settle(struct exchange *exchange);

/* What leases of the cell's asks are. */
struct exchange_terms cell_terms(const struct exchange *exchange, uint32_t cell);
/* The attributes that say them, TERMS_ATTRIBUTES of them; and whether one is of these. */
void terms_attributes(const struct exchange_terms *terms, struct attribute *ret_attributes);
bool terms_is_attribute(const struct attribute *attribute);
/* A reference to the cell that is like the device's, but has these terms. False with the refusal,
 * and no trace. */
bool cell_take_with_terms(struct exchange *exchange, const struct device *device,
                          const struct exchange_terms *terms, uint32_t *ret_cell);

/* ---- providers.c */
void apply_advertise(struct exchange *exchange, const struct exchange_advertise *advertise);
void apply_ask(struct exchange *exchange, const struct exchange_ask *ask);
void apply_cancel_order(struct exchange *exchange, const struct exchange_cancel_order *cancel);
void apply_statement(struct exchange *exchange, const struct exchange_statement *statement);
void apply_suspect(struct exchange *exchange, uint32_t provider);
void apply_returned(struct exchange *exchange, uint32_t provider);
void apply_goodbye(struct exchange *exchange, uint32_t provider);
enum {
    CANCEL_BY_OWNER = 0,
    CANCEL_DISCONNECT = 1,
    CANCEL_EXPIRED = 2,
    CANCEL_REPLACED = 3,
    CANCEL_FROZEN = 4,
    CANCEL_JOB_ENDED = 5,
    CANCEL_NOT_RESTING = 6 /* what was not filled at once of an order that does not rest */
};
void ask_cancel(struct exchange *exchange, struct ask *ask, uint8_t reason);
void provider_leases_revoke(struct exchange *exchange, struct provider *provider);
void device_slots_changed(struct exchange *exchange, struct device *device);
void device_drop_if_gone(struct exchange *exchange, struct device *device);
/* Its free slots are looked at again; they may have grown where the offer has. */
struct ask *ask_create(struct exchange *exchange,
                       const struct ask *fields); /* does not rest; NULL: no handle or memory */
/* As the book knows it: what is free of its slots, at its price and sequence. */
struct book_order ask_order(const struct exchange *exchange, const struct ask *ask);
void ask_rest(struct exchange *exchange, const struct ask *ask);
uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro); /* likewise */
void ask_placed(struct exchange *exchange,
                struct ask *ask); /* is recorded, told and queued for matching */
void provider_asks_cancel(struct exchange *exchange, struct provider *provider, uint8_t reason);

/* ---- conditions.c */
/* Those that the command says, into an ask without any; else it is refused. */
bool conditions_read(struct exchange *exchange, const struct exchange_ask *given, struct ask *ask);
bool ask_is_for(const struct ask *ask, uint32_t account);
/* Whom it is for, and whether its leases are such as the job bears. */
bool ask_suits(const struct ask *ask, const struct job *job);
void ask_look_at_hours(const struct exchange *exchange,
                       struct ask *ask); /* is it open, and till when */
void ask_turn(struct exchange *exchange,
              struct ask *ask); /* a window or a day of it begins or ends */
/* It has free slots again after so long, at the latest; 0: neither its hours nor its day are
 * against that. */
int64_t ask_opens_in_ns(const struct exchange *exchange, const struct ask *ask);
void ask_arm(struct exchange *exchange, const struct ask *ask);
/* Two orders of which the ask does not suit the bid's job, or asks more than its value may give,
 * never trade: for book_match. */
struct suiting {
    const struct exchange *exchange;
    const struct ask *ask; /* whose bid is looked for; NULL: an ask is, for that part's */
    const struct part *part;
};
bool is_unsuited(void *context, uint32_t handle);

/* ---- daily.c: what a device gives on a day. Each does nothing where no ask has bounded that */
/* From here on, if the ask, which is to stand, has a bound. False: out of memory. */
bool daily_begin(struct exchange *exchange, const struct ask *ask);
/* Of a device that came, or comes back: what it gave is known still. */
void daily_recall(struct exchange *exchange, struct device *device);
/* What a lease may use yet is so much more, or less; and so much of it was settled. */
void daily_promise(struct exchange *exchange, struct device *device, int128 more_ns);
void daily_settle(struct exchange *exchange, const struct lease *lease, int64_t paid_ns);
/* Slot-time that it may still promise today; INT64_MAX: any. */
int64_t daily_left_ns(const struct exchange *exchange, const struct ask *ask);
uint32_t daily_slots(const struct exchange *exchange,
                     const struct ask *ask); /* for its longest term */
bool ask_is_spent(const struct exchange *exchange, const struct ask *ask); /* not for one */
int64_t daily_used_ns(const struct exchange *exchange, const struct device *device); /* today */
void daily_put(struct provider *provider, struct day_use *use); /* after a snapshot */
void daily_destroy(struct provider *provider);

/* ---- donations.c */
/* What is left of donated use after so many days. */
int64_t donated_after(int64_t donated_ns, int64_t days);
int64_t member_donated_ns(const struct exchange *exchange, const struct member *member); /* now */
/* Whose rank is least is first in the donation queue. */
int64_t donation_rank(const struct exchange *exchange, uint32_t account);
/* Of its owner, if it ended now. */
int64_t donation_rank_without(const struct exchange *exchange, struct lease *lease);
/* Each does nothing to a lease at a price, of a device whose days nobody counts: it has begun a
 * term; it was settled for so long; it has ended. */
void donation_promise(struct exchange *exchange, struct lease *lease);
/* What that would come to, if its term ended then. */
int64_t donation_promised_till(const struct exchange *exchange, struct lease *lease,
                               int64_t end_ns);
void donation_settle(struct exchange *exchange, struct lease *lease, int64_t paid_ns);
void donation_ended(struct exchange *exchange, struct lease *lease);

/* ---- jobs.c */
void apply_submit(struct exchange *exchange, const struct exchange_submit *submit);
void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel);
struct subtask *job_subtask(struct exchange *exchange, struct job *job,
                            uint32_t index); /* NULL: out of memory */
void subtask_changed(struct exchange *exchange, struct job *job, uint32_t index);
/* Ends a waiting or running subtask and withdraws what else is out for it. */
void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to);
void job_requeue(struct exchange *exchange, struct job *job, uint32_t index);
/* The one place where a counted subtask changes its state. */
void subtask_becomes(struct exchange *exchange, struct job *job, uint32_t index,
                     enum subtask_state to);
/* Nothing of it waits or runs, or will unless a result of it is refuted. */
bool part_is_over(const struct part *part);
void part_look_if_over(struct exchange *exchange,
                       struct part *part); /* then its idle leases are ended in this step */
/* Retries go first, then subtasks never started, by rank (else the longest expected), then index.
 * Taken off what waits; NO_SUBTASK: none. */
/* The first retry that the provider may make. What its owner has judged is passed over once, and
 * not looked at again while it waits: n retries cost n looks of each owner, however many calls
 * there are. Each call also takes one step for each owner that has judged any of them. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part, uint32_t provider);
uint32_t part_next_fresh(struct exchange *exchange, struct part *part);
struct part *part_of(const struct job *job, uint32_t index);
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason);
void job_expire(struct exchange *exchange, struct job *job); /* its time is up: what runs goes on */
void job_check(struct exchange *exchange, struct job *job);  /* ended? budget gone? wants more? */
void job_settle(struct exchange *exchange, struct job *job);
int64_t job_free_micro(const struct job *job);
void job_forget(struct exchange *exchange, struct job *job);
/* Room for its parts, and for the pages of its subtasks: zeros. False: out of memory. */
bool job_has_parts(struct exchange *exchange, struct job *job, uint32_t count);
bool job_has_pages(struct exchange *exchange, struct job *job);
void job_free(struct job *job); /* its own memory: no leases, in no table */

/* ---- ended.c */
void ended_add(struct exchange *exchange, struct job *job); /* its phase is no longer open */
void ended_remove(struct exchange *exchange, const struct job *job);
struct job *ended_oldest(const struct exchange *exchange); /* NULL: none */
struct job *ended_oldest_of(const struct member *member);

/* ---- bids.c */
void part_init(struct part *part, struct job *job, uint32_t number);
/* The parts of a new job, as the command says them; it is checked. False: out of memory. */
bool parts_create(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Gives each part a class and a handle. False with the refusal, and no trace, when it has none or
 * would trade with its own owner. The bids do not rest: they arrive. */
bool parts_bid(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Limit of the bid of a part of that cap, under that budget of its job: the cap; or what lets the
 * budget buy the time that is planned, within the price band. Of a bid by value, its value. Bids
 * that wait to be filled all at once bid no more than their budget covers for all. */
int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro);
/* What it gives for a slot-hour in that cell. */
int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell);
/* Of a job that waits for all that it asks for: its budget covers no more for all of that, whatever
 * its cap. */
bool part_limit_is_of_budget(const struct part *part);
/* The highest limit at which a term of all that a bid asks for at a time costs no more than there
 * can be of money; without a bound of its own it asks for one lane. */
int64_t limit_most(uint32_t subtasks, uint32_t at_most, uint32_t width, int64_t term_ns);
/* Whether no cap of the job's parts is above that; else it is refused. Everything else is in
 * range. */
bool caps_in_range(struct exchange *exchange, const struct exchange_submit *submit);
/* Lanes that so many subtasks use at a time. */
uint32_t lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width);
/* The order id of its bid: the job's for the first part. */
struct id128 part_bid_id(const struct part *part);
void part_bid_record(struct exchange *exchange, const struct part *part);
/* Its bid as the book knows it: the slots it wants now, at its limit and sequence. */
struct book_order part_order(const struct part *part);
void part_rest(struct exchange *exchange, const struct part *part);
/* The code with which such a bid is refused when it arrives with so much left of its job's budget,
 * or 0; and the price of the ask that it would meet first, or what a term of one subtask there
 * takes of the budget. */
uint32_t part_refusal(const struct exchange *exchange, const struct part *part, int64_t free_micro,
                      int64_t *ret_micro);
/* Of the subtasks that run, how many wait in their lane for another one; of one part, or NULL: of
 * all. */
uint32_t job_queued(const struct job *job, const struct part *part);
/* What was expected of the results that its leases brought so far, and what these took. */
struct job_pace {
    uint64_t timed; /* results, but for checks */
    int64_t foreseen_ns, took_ns;
};
struct job_pace job_pace(const struct job *job);
/* Of each lane the attempt that it runs, as far as is known, into `ret_first`; NULL: none. */
void lease_find_first(const struct lease *lease, const struct attempt **ret_first);
uint32_t job_most_lanes(const struct job *job); /* of one lease */
/* What it wants may be another number now: its bid is queued for matching when it wants some. */
void part_wants(struct exchange *exchange, struct part *part);
void job_wants(struct exchange *exchange, struct job *job); /* all its parts */
/* The same, the best bid first: those of one command that do not rest yet arrive in that order. */
void job_bids_arrive(struct exchange *exchange, struct job *job);
void job_take_bids_away(struct exchange *exchange, struct job *job);
/* Its bid does not rest: what was filled is all that it gets. */
void part_stand_down(struct exchange *exchange, struct part *part);
/* It has no bids that stand: when its leases have ended, so has it. */
bool job_lives_off_leases(const struct job *job);
/* Its bids rest, and wait to be filled all at once. */
bool job_waits_for_all(const struct job *job);
bool bid_waits_for_all(const struct exchange *exchange, uint32_t handle);

/* ---- replace.c */
void apply_replace(struct exchange *exchange, const struct exchange_replace *replace);

/* ---- stragglers.c */
/* The lease took, or ended, what it had. Where nothing of its part waits any more: what is queued
 * in the fullest of the part's lanes is taken back if another would be done with it sooner, and
 * what an idle lane of this lease may start once more is looked for. */
void part_help(struct exchange *exchange, struct lease *lease);
void part_stragglers_due(struct exchange *exchange, struct part *part,
                         int64_t at_ns); /* its timer of that time */
/* What subtasks of the part took so far. */
struct usual {
    int64_t mean_ns; /* over its leases, of what was accepted */
    uint64_t samples;
    struct online_pace pace; /* of those with an expectation of their own */
    int64_t expect_ns;       /* what its job expects of one; 0: nothing */
};
struct usual part_usual(const struct part *part);
/* What a subtask takes on that lease: measured there, else as of the part, else as expected; 0:
 * nobody knows. Of those that are not alike, one as long as those were said to be that are done, so
 * that the lease that was given the longest is not taken for the slowest. */
int64_t lease_takes_ns(const struct lease *lease, const struct usual *usual);
/* The same of that subtask. */
int64_t subtask_takes_ns(const struct lease *lease, uint32_t index, const struct usual *usual);
/* Lanes that have nothing: what is queued behind another is live too, and keeps no lane busy. */
uint32_t lease_idle_lanes(const struct lease *lease);

/* ---- graph.c */
/* Whether it is one, of so many subtasks; else what is wrong, as a refusal says it. */
bool graph_well_formed(const struct exchange_graph *graph, uint32_t subtasks,
                       struct exchange_reject *ret_why);
/* The job's own, of a well-formed one; no subtask is ready yet. NULL: out of memory. */
struct graph *graph_create(struct exchange *exchange, struct job *job,
                           const struct exchange_graph *given);
void graph_destroy(struct graph *graph);
/* Whether its subtasks have expectations of their own, because they are not alike; and that one's:
 * 0: nothing is known of it. */
bool graph_tells_apart(const struct job *job);
int64_t graph_said_ns(const struct job *job, uint32_t index);
/* Its own expectation, else that of its part. */
int64_t graph_expects_ns(const struct job *job, uint32_t index);
/* The longest way from its start to the end of the job, as the job says it; 0: it does not. */
int64_t graph_way_ns(const struct job *job, uint32_t index);
void graph_start(struct job *job); /* none was started */
/* After a snapshot: what follows from the states of the subtasks. */
void graph_restore(struct job *job);
void graph_keep(struct exchange *exchange, const struct job *job, uint32_t index,
                const uint8_t *bytes, uint32_t length); /* what it left; it was not kept before */
bool graph_hands_on(const struct job *job, uint32_t index); /* something undecided waits for it */
/* It was decided: what waits for it becomes ready, or is cancelled with all that waits for that. */
void graph_decided(struct exchange *exchange, struct job *job, uint32_t index,
                   enum subtask_state as);
uint32_t part_pop_ready(struct part *part); /* NO_SUBTASK: none */
/* What a subtask is given, in memory of the effects. */
void graph_give(struct exchange *exchange, const struct job *job, uint32_t index,
                struct exchange_work *work);
void graph_drop(struct exchange *exchange, struct job *job); /* with its records */

/* What it left is not what was accepted after all. */
void graph_forget_given(struct exchange *exchange, const struct job *job, uint32_t index);

/* ---- saved.c */
/* Whether the result names a checkpoint, and another than the one that is kept. */
bool saved_is_new(const struct job *job, uint32_t index, const struct exchange_result *result);
void saved_keep(struct exchange *exchange, const struct attempt *attempt,
                const struct exchange_result *result); /* if it is new */
/* In the place of the one that is kept. False: out of memory. */
bool saved_put(struct exchange *exchange, struct job *job, const struct saved *fields,
               const uint8_t *bytes);
/* What the attempt goes on from, in memory of the effects. */
void saved_give(struct exchange *exchange, struct attempt *attempt, struct exchange_work *work);
/* The attempt's program has failed, or its inputs were not there. True: that may be due to the
 * checkpoint that it was given, and does not count against the subtask. */
bool saved_misled(struct exchange *exchange, const struct attempt *attempt);
bool saved_missing(struct exchange *exchange, const struct attempt *attempt);
void saved_drop(struct exchange *exchange, struct job *job, uint32_t index);
void saved_drop_all(struct exchange *exchange, struct job *job);
void saved_free(struct job *job); /* the memory alone */

/* ---- checks.c */
/* Whether the last part is the checks of all others; else it is refused. */
bool checks_well_formed(struct exchange *exchange, const struct exchange_submit *submit);
/* What a referee has that no provider may say of itself. */
void checks_attribute(struct attribute *ret_attribute);
bool checks_is_attribute(const struct attribute *attribute);
/* `needs`, and that attribute, unless they end with it. False: it has no room for more. */
bool checks_require(const struct requirement *needs, struct requirement *ret_needs);
bool checks_create(struct exchange *exchange, struct job *job); /* false: out of memory */
void checks_destroy(struct job *job);
void checks_restore(struct exchange *exchange, struct job *job); /* after a snapshot */
bool held_link(struct job *job,
               struct held *held); /* false: there is no such subtask, or one held */
bool part_is_checks(const struct part *part);
bool job_checks(const struct job *job,
                uint32_t index); /* whether that subtask's results are held */
/* How much of what waits in the part for a lane that provider may run. The cost does not grow with
 * what waits: of products it is a step for each owner that has judged any of them, and of checks
 * one for each queue. */
uint32_t part_choice(const struct exchange *exchange, const struct part *part, uint32_t provider);
uint32_t checks_next(struct exchange *exchange, struct lease *lease); /* NO_SUBTASK: none for it */
void check_requeue(struct exchange *exchange, struct job *job, uint32_t index);
void check_unqueue(const struct job *job, uint32_t index); /* it runs after all, or is no check */
/* Whether that referee may begin the check; provider_may_run asks. */
bool check_is_for(const struct exchange *exchange, const struct job *job, uint32_t index,
                  uint32_t referee);
/* The seed of that attempt; zeros when it is no check, or there is nothing to check. */
struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt);
/* The subtask that it is about; 0 when it is no check, or there is nothing to check. */
uint32_t check_subject(const struct job *job, uint32_t index);
/* Whether its verdict is one: its owner neither made what it is about nor has accused it. */
bool check_counts(const struct exchange *exchange, const struct lease *lease, uint32_t index);
/* What its result counts as: a verdict on what is no longer held is nobody's fault, one without the
 * right seed the referee's. */
uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result);
void result_hold(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                 const struct exchange_result *result, uint32_t position);
void check_begin(struct exchange *exchange, struct job *job, uint32_t index); /* of what is held */
/* After its result was settled. False: it was neither a verdict nor about inputs that are not
 * there, and ends as any subtask's. */
bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result);
void check_failed(struct exchange *exchange, struct job *job, uint32_t index); /* for good */
/* All that is held is taken unchecked: its job does not wait for the checks. */
void checks_give_up(struct exchange *exchange, struct job *job);

/* It is not accused yet. */
void accusation_put(struct exchange *exchange, struct held *held,
                    const struct accusation *accusation);
void apply_judge(struct exchange *exchange, const struct exchange_judge *judge);
uint32_t job_accused(const struct job *job); /* results held of it that a referee rejects */

/* ---- juries.c: of jobs with checks */
/* That referee has judged what the subtask left. */
void jury_add(struct exchange *exchange, struct job *job, uint32_t index, uint32_t referee);
bool jury_is_full(const struct job *job, uint32_t index);
bool job_has_juries(const struct job *job);
/* Whether an attempt of the subtask may begin, or go on after a loss, on a lease of that provider.
 * Whoever places or sends a subtask asks here. An owner that has judged what a subtask left never
 * makes that subtask; an owner that made or accused a result does not judge that result, and one
 * that was overruled judges nothing more of the job. */
bool provider_may_run(const struct exchange *exchange, const struct job *job, uint32_t index,
                      uint32_t provider);
/* How many subtasks wait in the part that the provider's owner has judged. */
uint32_t part_barred(const struct exchange *exchange, const struct part *part, uint32_t provider);
/* The last retry that is known to be passed over for that provider, with all before it; and the one
 * that was found to be. NO_SUBTASK: none. */
uint32_t retries_passed(const struct exchange *exchange, const struct part *part,
                        uint32_t provider);
void retries_pass(const struct exchange *exchange, const struct part *part, uint32_t provider,
                  uint32_t last);
/* `index` left the part's queue of retries, where it was behind `before`. */
void retry_unlinked(const struct part *part, uint32_t index, uint32_t before);
/* The referee rejected what stood: the job asks its owner no more. */
void job_overrules(struct exchange *exchange, struct job *job, uint32_t referee);
bool job_has_overruled(const struct job *job);
bool job_overruled(const struct exchange *exchange, const struct job *job, uint32_t referee);
/* The subtask waits, or does so no more. One that waits and was judged is looked at later: is
 * anybody left to make it? */
void jury_waits(struct exchange *exchange, struct job *job, uint32_t index);
void jury_waits_no_more(struct exchange *exchange, struct job *job, uint32_t index);
void jury_forget_look(struct exchange *exchange, struct jury *jury);
void juries_due(struct exchange *exchange, struct job *job, int64_t at_ns);
bool juries_await(const struct job *job, int64_t at_ns);
/* After a snapshot: what follows from the records. */
void juries_restore(struct exchange *exchange, struct job *job);
/* Accounts have other owners than before. The cost is a look at each judged subtask. */
void juries_regroup(struct exchange *exchange, struct job *job);
/* Other rules are in force: what waits without a look, as before rules 19, gets one. */
void juries_resume(struct exchange *exchange, struct job *job);
void juries_free(struct job *job);           /* the memory alone */
bool job_lacks_maker(const struct job *job); /* a subtask has failed for that */
/* Whether a device of the provider satisfies the part's requirement and is wide enough. */
bool provider_fits(const struct exchange *exchange, const struct provider *provider,
                   const struct part *part);
void jury_dismiss(struct exchange *exchange, struct job *job, uint32_t index); /* it is decided */
void juries_drop(struct exchange *exchange, struct job *job);                  /* all of them */
/* An empty one, or the one that is there; NULL: out of memory. */
struct jury *jury_put(struct exchange *exchange, struct job *job, uint32_t index);

/* ---- spot.c: leases that another bid may take, and those that are promised */
void spot_destroy(struct spot **self);
void spot_class_gone(struct exchange *exchange, uint32_t class_id);
/* The lease as it stands now may be taken, at another price perhaps, or may not. */
void lease_expose(struct exchange *exchange, struct lease *lease);
void device_expose_leases(struct exchange *exchange, const struct device *device);
void job_expose_leases(struct exchange *exchange, const struct job *job);
int64_t lease_exposed_ns(const struct lease *lease); /* from when on; INT64_MAX: never */
/* Whether that part, if its bid may take leases at all, may have this one, which stands to be
 * taken; whatever either gives for it. */
bool lease_may_be_taken(const struct exchange *exchange, const struct part *part,
                        const struct lease *lease);
/* Those that stand to be taken have handles below that; NULL: none has this one. */
uint32_t spot_bound(const struct exchange *exchange);
const struct lease *spot_lease(const struct exchange *exchange, uint32_t handle);
/* The same in the order in which they are taken, of devices that the requirement accepts:
 * book_walk_asks. */
void spot_walk(const struct exchange *exchange, const struct requirement *needs, enum rate rate,
               book_visit *visit, void *context);
/* Its bid has found nothing to fill from: it may take a lease from another, in this step. */
void part_challenges(struct exchange *exchange, struct part *part);
bool spot_turn(struct exchange *exchange); /* false: nobody challenges anybody */
/* Its former is over: it begins, if its device is there still. */
void lease_begin(struct exchange *exchange, struct lease *lease, struct device *device);
/* ---- whole.c */
/* Fills all that the bids of the job want, or nothing: false. What stands between steps could not
 * when slots came last. */
bool job_fill_whole(struct exchange *exchange, struct job *job);
/* Whether that would come to anything now. */
bool job_can_fill_whole(struct exchange *exchange, struct job *job);

/* ---- fills.c */
/* The highest price with which it would be filled at once if it were replaced; -1: none. A read. */
int64_t ask_fills_at(const struct exchange *exchange, const struct ask *ask);
/* Whether somebody else's bid, who has had less for nothing, would get its slots if this lease at 0
 * ended. */
bool donation_is_due(struct exchange *exchange, struct lease *lease);
/* Whom an ask meets first: the best by price; at 0, who is first in the donation queue. As
 * book_match says. */
bool ask_match(const struct exchange *exchange, const struct book_order *order, book_skip *skip,
               void *context, struct book_match *ret_match);
/* A lease of that ask: at once, or promised in the place of `former`. NULL: memory is short, and
 * nothing was granted. */
struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former);
/* Lanes of `part` that what is left of its job's budget can cover for a term at this price. */
uint32_t part_affordable_lanes(const struct part *part, int64_t price_micro);
/* For its account, not avoided, of terms that the job takes, and there is something for it to do:
 * nobody gets a lease for checks of its own results. */
bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask);
int64_t price_between(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask);
/* Whether a bid that is better than the part's, and not one that waits to be filled all at once,
 * takes the ask. */
bool ask_is_spoken_for(struct exchange *exchange, struct ask *ask, const struct part *part);
void market_run(struct exchange *exchange); /* matches all that wants, refills all that can take */

/* ---- feed.c: each does nothing where no feed is open */
void feed_destroy(struct feed **self);
/* The order under that handle rests, is gone, or has other slots. */
void feed_note(struct exchange *exchange, uint32_t handle);
void feed_cell_gone(struct exchange *exchange, uint32_t cell);
void feed_class_gone(struct exchange *exchange, uint32_t class_id);
void feed_record(struct exchange *exchange); /* one more of the ledger */
void feed_trade(struct exchange *exchange, const struct ledger_record *fill);
void feed_bands(struct exchange *exchange);  /* they are others than before */
void feed_settle(struct exchange *exchange); /* at the end of a step */

/* ---- results.c */
void apply_results(struct exchange *exchange, const struct exchange_results *results);
/* What is settled of a result, and by which check. */
struct settlement {
    uint32_t index, attempt;
    uint8_t outcome, status;
    struct hash32 hash;
    const uint8_t *bytes; /* alive as long as the effects */
    uint32_t length;
    uint64_t batch_index;
    uint32_t position;
    int64_t paid_ns; /* slot-time */
    uint8_t level;
    struct hash32 check;
};
void result_settle(struct exchange *exchange, struct lease *lease,
                   const struct settlement *settlement);
/* Slot-time that a result is paid for: its claim, within what was seen of its lane and not paid
 * yet. */
int64_t result_paid_time(const struct exchange *exchange, struct lease *lease,
                         const struct attempt *attempt, int64_t busy_ns);
/* To the queue again, unless it has had all the tries that any subtask gets. */
void subtask_try_again(struct exchange *exchange, struct job *job, uint32_t index);

/* ---- leases.c */
void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell);
/* A lease whose provider failed it too often in a row ends, and the job avoids that provider for a
 * while; one that is ending ends when nothing is in flight. */
void lease_end_if_failing(struct exchange *exchange, struct lease *lease);
void lease_due(struct exchange *exchange, struct lease *lease,
               int64_t at_ns);                     /* its timer of that time */
int64_t lease_deadline(const struct lease *lease); /* of one that has not ended */
void lease_arm(struct exchange *exchange, const struct lease *lease);
void lease_suspect(struct exchange *exchange, struct lease *lease);
void lease_returned(struct exchange *exchange, struct lease *lease);
void lease_wind_down(struct exchange *exchange, struct lease *lease);
/* One more attempt of a subtask, running or not, in that lane. */
void lease_start(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index);
/* Sets from when on each lane's use is not settled yet: since its first attempt in flight, or
 * now. */
void lease_find_unbilled(const struct exchange *exchange, struct lease *lease);
void attempt_withdraw(struct exchange *exchange, struct attempt *attempt); /* the agent is told */
/* All attempts of a subtask: whatever still comes of them is logged, not paid. */
void attempts_give_up(struct exchange *exchange, struct job *job, uint32_t index);
/* One that has ended keeps the escrow of its results that are held, and nothing else. */
void lease_release_reserve(struct exchange *exchange, struct lease *lease);
void lease_withdraw_all(struct exchange *exchange, struct lease *lease);
void lease_refill(struct exchange *exchange, struct lease *lease);
void lease_refill_later(struct exchange *exchange, struct lease *lease); /* in this step */
void lease_refill_next(struct exchange *exchange, struct lease *lease);  /* before all others */
/* What came back to the job's queue and found no free lane, before what its lanes have queued
 * (P18). */
void part_place_retries(struct exchange *exchange, struct part *part);
struct lease *lease_by_id(const struct exchange *exchange, uint64_t id);
void lease_effect(struct exchange *exchange, const struct lease *lease,
                  enum exchange_effect_type type);
void work_effect(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                 enum exchange_effect_type type);
void job_link_owner(struct exchange *exchange, struct job *job);
void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider, int64_t for_ns);
bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider);
int64_t job_avoids_for_ns(const struct exchange *exchange, const struct job *job,
                          uint32_t provider); /* from now; 0: it does not */
void withdraw_others(struct exchange *exchange, struct job *job, uint32_t index);
struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number); /* NULL: none */
bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
void attempt_drop(struct exchange *exchange, struct attempt *attempt); /* and frees it */
/* Forgets what its agent says it has not: a result cannot come any more. */
void attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
/* The provider's, from its grant on. */
void lease_link_provider(struct exchange *exchange, struct lease *lease);
void lease_forget(struct exchange *exchange, struct lease *lease);
void leases_make_room(struct exchange *exchange);
int64_t escrow_micro(int64_t price_micro, uint32_t slots,
                     int64_t term_ns); /* rounded up; INT64_MAX: too much */

/* ---- reads.c */
/* What keeps a part from this device: of the reasons, from far to near, the one it stops at. */
uint8_t part_reason_at(const struct exchange *exchange, const struct part *part,
                       const struct device *device);
/* Whether it would have its slots if they were free, and its budget covered a term. */
bool part_is_in_reach(const struct exchange *exchange, const struct part *part,
                      const struct device *device);
/* Of the parts of an open job that wait for a lane, the one farthest from it: it explains the
 * whole. */
const struct part *job_tightest_part(const struct exchange *exchange, const struct job *job,
                                     uint8_t *ret_reason);

/* ---- explain.c */
/* A predicate as reports write it: memory >= 1024, kind = "gpu". */
void predicate_text(const struct requirement_node *node, char *ret_text, size_t size);

/* ---- snapshot.c */
void track(struct exchange *exchange, struct tracked *tracked,
           enum record_type type); /* a new entity */
void touch(struct exchange *exchange, struct tracked *tracked);
void untrack(struct exchange *exchange, struct tracked *tracked); /* before it is freed */
/* Whether exchange_save would write these bytes. False, too, when memory is short. */
bool exchange_saves_as(const struct exchange *exchange, const uint8_t *bytes, size_t length);

#endif
