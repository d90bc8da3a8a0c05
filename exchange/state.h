/* This internal header declares the small functions that the exchange's files share over its
 * records, file by file. Only files of exchange/ include this header. */
#ifndef BOURSE_EXCHANGE_STATE_H
#define BOURSE_EXCHANGE_STATE_H

#include "exchange/lifecycle.h"
#include "exchange/records.h"
#include "exchange/view/effort.h"
#include "planner/schedule/online.h"

/* ---- cost of reads: exchange_steps */
static inline void steps_add(const struct exchange *exchange, uint64_t steps)
{
    *exchange->steps += steps;
}
/* Returns the steps of one match: each predicate is looked up among the attributes. */
static inline uint64_t steps_of_needs(const struct requirement *needs)
{
    return 4 + 2 * (uint64_t)needs->count;
}

/* ---- step.c */
struct exchange_effect *emit(struct exchange *exchange, enum exchange_effect_type type,
                             uint32_t account);
struct ledger_record *emit_ledger(struct exchange *exchange, enum ledger_kind kind);
struct exchange_effect *reject(struct exchange *exchange, uint32_t code, const char *field,
                               int64_t value, int64_t limit); /* `field` fits EXCHANGE_FIELD_SIZE */
void report_job(struct exchange *exchange, struct job *job);
struct member *member_by_number(const struct exchange *exchange, uint32_t number);
/* Returns the sender of the present command, or NULL. */
struct member *sender(const struct exchange *exchange);
void *allocate(struct exchange *exchange, size_t size); /* zeroed; NULL sets is_out_of_memory */
uint32_t handle_take(struct exchange *exchange, void *order); /* BOOK_NONE: none left */
void handle_give(struct exchange *exchange, uint32_t handle);
void copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *name);

/* Adds a refused id, already in the table and the age list, to its account's list. */
void refusal_link(struct exchange *exchange, struct refused_id *refused);

/* Sets the caps and rules, and makes them a record of the state. */
void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set);

/* ---- timers.c */
void timer_arm(struct exchange *exchange, enum timer_kind kind, const struct id128 *key,
               int64_t at_ns);
void timers_fire(struct exchange *exchange); /* fires all that are due at now_ns, in order */
/* Arms all deadlines of an open job and its leases. */
void timers_arm_job(struct exchange *exchange, const struct job *job);
void timers_weed(struct exchange *exchange); /* drops stale timers; runs at the end of a step */
struct id128 timer_key_of_lease(uint64_t lease);

/* ---- members.c */
void apply_genesis(struct exchange *exchange, const struct exchange_genesis *genesis);
void apply_join(struct exchange *exchange, const struct exchange_join *join);
void apply_mint(struct exchange *exchange, const struct exchange_mint *mint);
void apply_invite(struct exchange *exchange, const struct exchange_invite *invite);
void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze);
void apply_halt(struct exchange *exchange, const struct exchange_halt *halt);
/* Records in the ledger what the operator did to the account or the market. */
void flag(struct exchange *exchange, uint32_t account, const struct key32 *key, const char *what);
void invitations_expire(struct exchange *exchange);
bool member_link_name(struct exchange *exchange, struct member *member); /* false: no memory */
void invitation_link(struct exchange *exchange, struct invitation *invitation);

/* ---- standing.c */
void apply_owner(struct exchange *exchange, const struct exchange_owner *owner);
bool have_one_owner(const struct exchange *exchange, uint32_t a, uint32_t b);
/* account_refuted counts a refuted result of the account. account_proved counts slot-time that
 * checks accepted. account_overruled counts a verdict of the account against a result that was
 * accepted. */
void account_refuted(struct exchange *exchange, uint32_t account);
void account_proved(struct exchange *exchange, uint32_t account, int64_t slot_ns);
void account_overruled(struct exchange *exchange, uint32_t account);
/* Returns the time until which the account's asks are closed; 0: never closed. */
int64_t account_withdrawn_until_ns(const struct exchange *exchange, uint32_t account);

/* ---- bands.c */
void apply_bands(struct exchange *exchange, const struct exchange_bands *bands);
/* Returns the price itself when an order may have it, else the bound of the band that it breaks. */
int64_t price_bound(const struct exchange *exchange, int64_t price_micro);
/* Returns true when a bid by value may pay the ask's price within the band in force; other bids
 * were checked on arrival. */
bool ask_in_reach(const struct exchange *exchange, const struct part *part, const struct ask *ask);
/* Returns false when the price is outside the band; the command is then refused under `field`. */
bool price_in_band(struct exchange *exchange, const char *field, int64_t price_micro);
/* Returns the cost of a lease of all slots of an ask for its longest term, or for an hour without
 * one. */
int64_t ask_notional(int64_t price_micro, uint32_t slots, int64_t max_term_ns);
/* Returns the cost of one term of all that a part wants at a time, at its limit. A bid by value
 * counts at the highest price. The job's budget bounds the result. */
int64_t part_notional(const struct exchange *exchange, const struct part *part,
                      int64_t budget_micro);
/* Returns false when the cost is above the bound; the command is then refused under `field`. */
bool notional_in_bounds(struct exchange *exchange, const char *field, int64_t notional_micro);

/* ---- kinds.c */
/* The calls take references to the devices' cells, or to the class, for the sender. The caps count
 * the sender's own use alone, after the advertisement. Return false when refused; then nothing has
 * changed. */
bool cells_take(struct exchange *exchange, const struct exchange_advertise *advertise,
                uint32_t *ret_cells);
bool class_take(struct exchange *exchange, const struct requirement *needs, enum rate rate,
                uint32_t *ret_class);
/* Adds one part to the account's use of a class that it holds. Returns false when memory is
 * short. */
bool class_use_add(struct exchange *exchange, uint32_t account, uint32_t class_id);
void cell_give(struct exchange *exchange, uint32_t cell);
/* Gives the instrument of the cell's devices; "" when they name none. */
void cell_instrument(const struct exchange *exchange, uint32_t cell,
                     char ret_text[ATTRIBUTE_TEXT_SIZE]);
/* The part belongs to the account given. */
void class_give(struct exchange *exchange, uint32_t account, uint32_t class_id);
/* The calls create a cell or class under the snapshot's number; records that refer to it hold it
 * (book_cell_hold). They return false when that cannot be. kinds_settle drops the reference that
 * restoring took, and returns false when a cell or class has no other. */
bool cell_restore(struct exchange *exchange, uint32_t cell, const struct attribute *attributes,
                  size_t count);
bool class_restore(struct exchange *exchange, uint32_t class_id, const struct requirement *needs,
                   enum rate rate);
bool kinds_settle(struct exchange *exchange);

/* Returns the terms of leases of the cell's asks. */
struct exchange_terms cell_terms(const struct exchange *exchange, uint32_t cell);
/* The terms are written as TERMS_ATTRIBUTES attributes; terms_is_attribute tells whether one is of
 * them. */
void terms_attributes(const struct exchange_terms *terms, struct attribute *ret_attributes);
bool terms_is_attribute(const struct attribute *attribute);
/* Takes a reference to the device's cell with other terms. Returns false when refused; then nothing
 * has changed. */
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
    CANCEL_NOT_RESTING = 6 /* the unfilled rest of an order that does not rest */
};
void ask_cancel(struct exchange *exchange, struct ask *ask, uint8_t reason);
void provider_leases_revoke(struct exchange *exchange, struct provider *provider);
/* Counts the free slots of the device's ask again, and queues the ask when they grew. */
void device_slots_changed(struct exchange *exchange, struct device *device);
void device_drop_if_gone(struct exchange *exchange, struct device *device);
/* Creates an ask that does not rest yet. Returns NULL when no handle or memory is left. */
struct ask *ask_create(struct exchange *exchange, const struct ask *fields);
/* Returns the ask as the book knows it: its free slots, at its price and sequence. */
struct book_order ask_order(const struct exchange *exchange, const struct ask *ask);
void ask_rest(struct exchange *exchange, const struct ask *ask);
uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro); /* like part_refusal */
/* Records the ask, tells its provider and queues it for matching. */
void ask_placed(struct exchange *exchange, struct ask *ask);
void provider_asks_cancel(struct exchange *exchange, struct provider *provider, uint8_t reason);

/* ---- conditions.c */
/* Reads the command's conditions into an ask without any. Returns false when refused. */
bool conditions_read(struct exchange *exchange, const struct exchange_ask *given, struct ask *ask);
bool ask_is_for(const struct ask *ask, uint32_t account);
/* Returns true when the ask is for the job's owner and the job accepts its kind of lease. */
bool ask_suits(const struct ask *ask, const struct job *job);
/* Sets is_open and turns_ns by the hours, the day and a withdrawal. */
void ask_look_at_hours(const struct exchange *exchange, struct ask *ask);
/* Applies the start or end of a window or a day of the ask. */
void ask_turn(struct exchange *exchange, struct ask *ask);
/* Returns the longest time until the ask has free slots by its hours and day; 0: both allow it
 * now. */
int64_t ask_opens_in_ns(const struct exchange *exchange, const struct ask *ask);
void ask_arm(struct exchange *exchange, const struct ask *ask);
/* is_unsuited tells book_match to pass over an ask that does not suit the job, or is above its
 * reach. */
struct suiting {
    const struct exchange *exchange;
    const struct ask *ask; /* matched with bids; NULL: `part` is matched with asks */
    const struct part *part;
};
bool is_unsuited(void *context, uint32_t handle);

/* ---- daily.c: slot-time of a device per day. The calls do nothing unless an ask has bounded it */
/* Starts counting the device's days if the standing ask bounds them. False: memory is short. */
bool daily_begin(struct exchange *exchange, const struct ask *ask);
/* Finds again the use of a device that came or returned. */
void daily_recall(struct exchange *exchange, struct device *device);
/* daily_promise adds to the time that leases may still use; daily_settle moves paid time to the
 * use. */
void daily_promise(struct exchange *exchange, struct device *device, int128 more_ns);
void daily_settle(struct exchange *exchange, const struct lease *lease, int64_t paid_ns);
/* Returns slot-time that the device may still promise today; INT64_MAX: any. */
int64_t daily_left_ns(const struct exchange *exchange, const struct ask *ask);
/* Returns the slots that today's rest allows for the ask's longest term. */
uint32_t daily_slots(const struct exchange *exchange, const struct ask *ask);
bool ask_is_spent(const struct exchange *exchange, const struct ask *ask); /* no slot is left */
int64_t daily_used_ns(const struct exchange *exchange, const struct device *device); /* today */
void daily_put(struct provider *provider, struct day_use *use); /* after a snapshot */
void daily_destroy(struct provider *provider);

/* ---- donations.c */
/* Returns the rest of donated use after some days of fading. */
int64_t donated_after(int64_t donated_ns, int64_t days);
/* Returns the member's donated use as faded now. */
int64_t member_donated_ns(const struct exchange *exchange, const struct member *member);
/* Returns the account's rank; the least rank is first in the donation queue. */
int64_t donation_rank(const struct exchange *exchange, uint32_t account);
/* Returns the rank of the lease's owner if the lease ended now. */
int64_t donation_rank_without(const struct exchange *exchange, struct lease *lease);
/* The calls count the use of a lease at 0, or of a device with counted days: a term began, time was
 * settled, or the lease ended. */
void donation_promise(struct exchange *exchange, struct lease *lease);
/* Returns the promise of a lease whose term ends at `end_ns`. */
int64_t donation_promised_till(const struct exchange *exchange, struct lease *lease,
                               int64_t end_ns);
void donation_settle(struct exchange *exchange, struct lease *lease, int64_t paid_ns);
void donation_ended(struct exchange *exchange, struct lease *lease);

/* ---- jobs.c */
void apply_submit(struct exchange *exchange, const struct exchange_submit *submit);
void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel);
/* Returns the subtask, with its page; NULL: memory is short. */
struct subtask *job_subtask(struct exchange *exchange, struct job *job, uint32_t index);
void subtask_changed(struct exchange *exchange, struct job *job, uint32_t index);
/* Ends a waiting or running subtask and withdraws its other attempts. */
void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to);
void job_requeue(struct exchange *exchange, struct job *job, uint32_t index);
/* Makes every change of state of a counted subtask. */
void subtask_becomes(struct exchange *exchange, struct job *job, uint32_t index,
                     enum subtask_state to);
/* Returns true when no subtask waits or runs; only a refuted result could change that. */
bool part_is_over(const struct part *part);
/* Queues the end of the part's idle leases in this step when the part is over. */
void part_look_if_over(struct exchange *exchange, struct part *part);
/* Retries go first, then subtasks never started: by rank, else the longest expected, then by index.
 * The calls take the subtask off the queue; NO_SUBTASK: none. */
/* Takes the first retry that the provider may make. An entry that its owner has judged is passed
 * over once, so n retries cost n looks of each owner over all calls. Each call takes one more step
 * for each owner that has judged an entry. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part, uint32_t provider);
uint32_t part_next_fresh(struct exchange *exchange, struct part *part);
struct part *part_of(const struct job *job, uint32_t index);
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason);
/* Ends waiting work at the job's deadline; running work goes on. */
void job_expire(struct exchange *exchange, struct job *job);
/* Looks whether the job has ended, lacks budget or wants more. */
void job_check(struct exchange *exchange, struct job *job);
void job_settle(struct exchange *exchange, struct job *job);
int64_t job_free_micro(const struct job *job);
void job_forget(struct exchange *exchange, struct job *job);
/* Allocate zeroed parts, or pages of subtasks. Return false when memory is short. */
bool job_has_parts(struct exchange *exchange, struct job *job, uint32_t count);
bool job_has_pages(struct exchange *exchange, struct job *job);
void job_free(struct job *job); /* its own memory; it has no leases and is in no table */

/* ---- ended.c */
void ended_add(struct exchange *exchange, struct job *job); /* the job has just ended */
void ended_remove(struct exchange *exchange, const struct job *job);
struct job *ended_oldest(const struct exchange *exchange); /* NULL: none */
struct job *ended_oldest_of(const struct member *member);

/* ---- bids.c */
void part_init(struct part *part, struct job *job, uint32_t number);
/* Creates the parts of a checked submission. Returns false when memory is short. */
bool parts_create(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Gives each part a class and a handle. The bids arrive later. Returns false when refused, for lack
 * of either or a trade with its own owner; then nothing has changed. */
bool parts_bid(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Returns the limit of a part's bid for a cap and a budget: the cap, or at market price what lets
 * the budget buy the planned time within the price band. A bid by value has its value. Bids that
 * wait to be filled all at once stay within what the budget covers for all. */
int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro);
/* Returns the part's limit per slot-hour in the cell. */
int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell);
/* Returns true when the budget of a job that waits for all at once sets the limit, not the cap. */
bool part_limit_is_of_budget(const struct part *part);
/* Returns the limit above which one term of all lanes would cost more than an int64 holds. A part
 * without a bound counts as one lane. */
int64_t limit_most(uint32_t subtasks, uint32_t at_most, uint32_t width, int64_t term_ns);
/* Returns false when a cap of the job's parts is above limit_most; the command is then refused. */
bool caps_in_range(struct exchange *exchange, const struct exchange_submit *submit);
/* Returns the lanes that the subtasks can use at a time. */
uint32_t lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width);
/* Returns the order id of the bid; the first part has the job's. */
struct id128 part_bid_id(const struct part *part);
void part_bid_record(struct exchange *exchange, const struct part *part);
/* Returns the bid as the book knows it: the slots it wants now, at its limit and sequence. */
struct book_order part_order(const struct part *part);
void part_rest(struct exchange *exchange, const struct part *part);
/* Returns the code that refuses the arriving bid under the free budget, or 0. *ret_micro is the
 * price of the ask that it meets first, or the cost of one subtask's term there. */
uint32_t part_refusal(const struct exchange *exchange, const struct part *part, int64_t free_micro,
                      int64_t *ret_micro);
/* Counts running subtasks behind another in their lane, of one part or (NULL) the whole job. */
uint32_t job_queued(const struct job *job, const struct part *part);
/* Expected and measured time of the results that the job's leases have brought. */
struct job_pace {
    uint64_t timed; /* results, except checks */
    int64_t foreseen_ns, took_ns;
};
struct job_pace job_pace(const struct job *job);
/* Fills in the attempt that each lane runs, as far as known; NULL: none. */
void lease_find_first(const struct lease *lease, const struct attempt **ret_first);
uint32_t job_most_lanes(const struct job *job); /* most lanes of one lease */
/* Looks again at the number that the part wants; queues its bid for matching when it wants some. */
void part_wants(struct exchange *exchange, struct part *part);
void job_wants(struct exchange *exchange, struct job *job); /* all its parts */
/* Does the same, best bid first; bids of one command arrive in that order. */
void job_bids_arrive(struct exchange *exchange, struct job *job);
void job_take_bids_away(struct exchange *exchange, struct job *job);
/* Cancels the unfilled rest of a bid that does not rest. */
void part_stand_down(struct exchange *exchange, struct part *part);
/* Returns true for a job without standing bids, which ends with its leases. */
bool job_lives_off_leases(const struct job *job);
/* Returns true when its bids rest and wait to be filled all at once. */
bool job_waits_for_all(const struct job *job);
bool bid_waits_for_all(const struct exchange *exchange, uint32_t handle);

/* ---- replace.c */
void apply_replace(struct exchange *exchange, const struct exchange_replace *replace);

/* ---- stragglers.c */
/* Helps when the lease took or ended work and nothing of its part waits: queued work moves to a
 * lane that finishes it sooner, and an idle lane repeats a straggler. */
void part_help(struct exchange *exchange, struct lease *lease);
/* Handles the part's timer for that time. */
void part_stragglers_due(struct exchange *exchange, struct part *part, int64_t at_ns);
/* Time that subtasks of the part have taken so far. */
struct usual {
    int64_t mean_ns; /* over accepted results of its leases */
    uint64_t samples;
    struct online_pace pace; /* pace of subtasks with an expectation of their own */
    int64_t expect_ns;       /* expected by its job; 0: unknown */
};
struct usual part_usual(const struct part *part);
/* Returns the time of a subtask on the lease: measured there, else over the part, else expected; 0:
 * unknown. Where subtasks differ, it is for one of the mean expectation of those done, so a lease
 * with long subtasks does not seem slow. */
int64_t lease_takes_ns(const struct lease *lease, const struct usual *usual);
/* Returns the same for the subtask `index`. */
int64_t subtask_takes_ns(const struct lease *lease, uint32_t index, const struct usual *usual);
/* Returns the number of lanes without any attempt; queued attempts keep only their own lane
 * busy. */
uint32_t lease_idle_lanes(const struct lease *lease);

/* ---- graph.c */
/* Returns false with the refusal when this is no graph of `subtasks` subtasks. */
bool graph_well_formed(const struct exchange_graph *graph, uint32_t subtasks,
                       struct exchange_reject *ret_why);
/* Copies a well-formed graph; no subtask is ready yet. NULL: memory is short. */
struct graph *graph_create(struct exchange *exchange, struct job *job,
                           const struct exchange_graph *given);
void graph_destroy(struct graph *graph);
/* graph_tells_apart says whether subtasks have expectations of their own. graph_said_ns returns
 * one; 0: unknown. */
bool graph_tells_apart(const struct job *job);
int64_t graph_said_ns(const struct job *job, uint32_t index);
/* Returns the subtask's own expectation, else its part's. */
int64_t graph_expects_ns(const struct job *job, uint32_t index);
/* Returns the longest path from the subtask's start to the job's end, as declared; 0: unknown. */
int64_t graph_way_ns(const struct job *job, uint32_t index);
void graph_start(struct job *job); /* starts a new job */
/* Rebuilds after a snapshot all that follows from the subtasks' states. */
void graph_restore(struct job *job);
void graph_keep(struct exchange *exchange, const struct job *job, uint32_t index,
                const uint8_t *bytes, uint32_t length);     /* keeps the output of a new result */
bool graph_hands_on(const struct job *job, uint32_t index); /* an undecided subtask waits for it */
/* Makes subtasks ready that waited for the decided one, or cancels them and all after them. */
void graph_decided(struct exchange *exchange, struct job *job, uint32_t index,
                   enum subtask_state as);
uint32_t part_pop_ready(struct part *part); /* NO_SUBTASK: none */
/* Fills in a subtask's inputs, in memory of the effects. */
void graph_give(struct exchange *exchange, const struct job *job, uint32_t index,
                struct exchange_work *work);
void graph_drop(struct exchange *exchange, struct job *job); /* drops its records, too */

/* Drops the output of a subtask that is accepted no longer. */
void graph_forget_given(struct exchange *exchange, const struct job *job, uint32_t index);

/* ---- saved.c */
/* Returns true when the result names a checkpoint other than the kept one. */
bool saved_is_new(const struct job *job, uint32_t index, const struct exchange_result *result);
void saved_keep(struct exchange *exchange, const struct attempt *attempt,
                const struct exchange_result *result); /* if it is new */
/* Replaces the kept checkpoint. Returns false when memory is short. */
bool saved_put(struct exchange *exchange, struct job *job, const struct saved *fields,
               const uint8_t *bytes);
/* Fills in the checkpoint that the attempt goes on from, in memory of the effects. */
void saved_give(struct exchange *exchange, struct attempt *attempt, struct exchange_work *work);
/* The program failed (misled), or its inputs were not there (missing). Return true when the
 * checkpoint may be the cause; the failure does not count against the subtask then. */
bool saved_misled(struct exchange *exchange, const struct attempt *attempt);
bool saved_missing(struct exchange *exchange, const struct attempt *attempt);
void saved_drop(struct exchange *exchange, struct job *job, uint32_t index);
void saved_drop_all(struct exchange *exchange, struct job *job);
void saved_free(struct job *job); /* memory alone */

/* ---- checks.c */
/* Returns false when the last part is not the checks of all others; then the command is refused. */
bool checks_well_formed(struct exchange *exchange, const struct exchange_submit *submit);
/* Gives the attribute of referees, which no provider may claim itself. */
void checks_attribute(struct attribute *ret_attribute);
bool checks_is_attribute(const struct attribute *attribute);
/* Adds that attribute unless `needs` ends with it. Returns false without room for it. */
bool checks_require(const struct requirement *needs, struct requirement *ret_needs);
bool checks_create(struct exchange *exchange, struct job *job); /* false: memory is short */
void checks_destroy(struct job *job);
void checks_restore(struct exchange *exchange, struct job *job); /* after a snapshot */
bool held_link(struct job *job, struct held *held); /* false: no such subtask, or it has one */
bool part_is_checks(const struct part *part);
bool job_checks(const struct job *job, uint32_t index); /* its results are held for a check */
/* Returns how many waiting subtasks of the part the provider may run. The cost is a look at each
 * owner that judged any; for checks, a step or two for each queue, and for each lease. */
uint32_t part_choice(const struct exchange *exchange, const struct part *part, uint32_t provider);
uint32_t checks_next(struct exchange *exchange, struct lease *lease); /* NO_SUBTASK: none for it */
void check_requeue(struct exchange *exchange, struct job *job, uint32_t index);
void check_unqueue(const struct job *job, uint32_t index); /* it runs after all, or is no check */
/* Returns true when the referee may begin the check; provider_may_run calls this. */
bool check_is_for(const struct exchange *exchange, const struct job *job, uint32_t index,
                  uint32_t referee);
/* Returns the attempt's seed; zeros for no check, or nothing to check. */
struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt);
/* Returns the subtask that the check judges; 0 for no check, or nothing to check. */
uint32_t check_subject(const struct job *job, uint32_t index);
/* Returns true when the verdict counts: its owner neither made nor accused the result. */
bool check_counts(const struct exchange *exchange, const struct lease *lease, uint32_t index);
/* Returns the outcome that a result counts as. A verdict on a result no longer held is nobody's
 * fault; a wrong seed is the referee's. */
uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result);
void result_hold(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                 const struct exchange_result *result, uint32_t position);
/* Starts the check of the held result of a subtask. */
void check_begin(struct exchange *exchange, struct job *job, uint32_t index);
/* Applies the settled result of a check. Returns false when it was no verdict and no missing input;
 * then it ends like any other subtask. */
bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result);
/* Ends a check that failed for good, and fails its subtask. */
void check_failed(struct exchange *exchange, struct job *job, uint32_t index);
/* Accepts all held results unchecked; the job does not wait for checks. */
void checks_give_up(struct exchange *exchange, struct job *job);

/* Accuses a result that is not accused yet. */
void accusation_put(struct exchange *exchange, struct held *held,
                    const struct accusation *accusation);
void apply_judge(struct exchange *exchange, const struct exchange_judge *judge);
uint32_t job_accused(const struct job *job); /* held results that a referee rejects */

/* ---- juries.c: for jobs with checks */
/* Adds the referee to the judges of the subtask. */
void jury_add(struct exchange *exchange, struct job *job, uint32_t index, uint32_t referee);
bool jury_is_full(const struct job *job, uint32_t index);
bool job_has_juries(const struct job *job);
/* Returns true when an attempt of the subtask may begin, or go on after a loss, on a lease of the
 * provider. All code that places or sends a subtask asks here. An owner that judged a subtask never
 * makes it. An owner that made or accused a result does not judge it; an overruled one judges
 * nothing more of the job. */
bool provider_may_run(const struct exchange *exchange, const struct job *job, uint32_t index,
                      uint32_t provider);
/* Returns how many waiting subtasks of the part the provider's owner has judged. */
uint32_t part_barred(const struct exchange *exchange, const struct part *part, uint32_t provider);
/* retries_passed returns the last retry that the provider is known to pass over, with all before
 * it, or NO_SUBTASK. retries_pass records it. */
uint32_t retries_passed(const struct exchange *exchange, const struct part *part,
                        uint32_t provider);
void retries_pass(const struct exchange *exchange, const struct part *part, uint32_t provider,
                  uint32_t last);
/* `index` left the part's queue of retries, where it followed `before`. */
void retry_unlinked(const struct part *part, uint32_t index, uint32_t before);
/* Overrules a referee that rejected an accepted result; the job asks its owner no more. */
void job_overrules(struct exchange *exchange, struct job *job, uint32_t referee);
bool job_has_overruled(const struct job *job);
bool job_overruled(const struct exchange *exchange, const struct job *job, uint32_t referee);
/* The subtask starts or stops waiting. A judged one gets a later look, which tells if anybody can
 * make it. */
void jury_waits(struct exchange *exchange, struct job *job, uint32_t index);
void jury_waits_no_more(struct exchange *exchange, struct job *job, uint32_t index);
void jury_forget_look(struct exchange *exchange, struct jury *jury);
void juries_due(struct exchange *exchange, struct job *job, int64_t at_ns);
bool juries_await(const struct job *job, int64_t at_ns);
/* Rebuilds after a snapshot all that follows from the records. */
void juries_restore(struct exchange *exchange, struct job *job);
/* Regroups by changed owners. The cost is a look at each judged subtask. */
void juries_regroup(struct exchange *exchange, struct job *job);
/* Gives a look to subtasks that wait without one, as under rules before 19. */
void juries_resume(struct exchange *exchange, struct job *job);
void juries_free(struct job *job);           /* memory alone */
bool job_lacks_maker(const struct job *job); /* a subtask failed because nobody may make it */
/* Returns true when a device of the provider satisfies the part and is wide enough. */
bool provider_fits(const struct exchange *exchange, const struct provider *provider,
                   const struct part *part);
void jury_dismiss(struct exchange *exchange, struct job *job, uint32_t index); /* it is decided */
void juries_drop(struct exchange *exchange, struct job *job);                  /* all of them */
/* Returns the subtask's jury, perhaps a new one; NULL: memory is short. */
struct jury *jury_put(struct exchange *exchange, struct job *job, uint32_t index);

/* ---- spot.c: leases that another bid may take, and promised ones */
void spot_destroy(struct spot **self);
void spot_class_gone(struct exchange *exchange, uint32_t class_id);
/* Exposes the lease anew, at its price as of now, or hides it. */
void lease_expose(struct exchange *exchange, struct lease *lease);
void device_expose_leases(struct exchange *exchange, const struct device *device);
void job_expose_leases(struct exchange *exchange, const struct job *job);
int64_t lease_exposed_ns(const struct lease *lease); /* start of exposure; INT64_MAX: never */
/* Returns true when a part whose bid may take leases may take this exposed one, whatever the
 * prices. */
bool lease_may_be_taken(const struct exchange *exchange, const struct part *part,
                        const struct lease *lease);
/* Exposed leases have handles below the bound; NULL: no lease has this one. */
uint32_t spot_bound(const struct exchange *exchange);
const struct lease *spot_lease(const struct exchange *exchange, uint32_t handle);
/* Visits exposed leases on accepted devices in the order in which bids take them:
 * book_walk_asks. */
void spot_walk(const struct exchange *exchange, const struct requirement *needs, enum rate rate,
               book_visit *visit, void *context);
/* Lets a bid that found nothing to fill from take a lease, in this step. */
void part_challenges(struct exchange *exchange, struct part *part);
bool spot_turn(struct exchange *exchange); /* false: no challenge is left */
/* Begins a promised lease whose former one is over, if its device is still there. */
void lease_begin(struct exchange *exchange, struct lease *lease, struct device *device);
/* ---- whole.c */
/* Fills all that the job's bids want, or returns false. A waiting job could not be filled when
 * slots last came. */
bool job_fill_whole(struct exchange *exchange, struct job *job);
/* Returns true when that would fill them now. */
bool job_can_fill_whole(struct exchange *exchange, struct job *job);

/* ---- fills.c */
/* Returns the highest price at which a replaced ask is filled at once; -1: none. A read. */
int64_t ask_fills_at(const struct exchange *exchange, const struct ask *ask);
/* Returns true when ending this lease at 0 would give its slots to a bid of an account of lower
 * rank. */
bool donation_is_due(struct exchange *exchange, struct lease *lease);
/* Finds the bid that the ask meets first: the best price; at 0, the first of the donation queue. */
bool ask_match(const struct exchange *exchange, const struct book_order *order, book_skip *skip,
               void *context, struct book_match *ret_match);
/* Grants a lease of the ask, at once or promised in the place of `former`. Returns NULL when memory
 * is short; then nothing was granted. */
struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former);
/* Returns the lanes that the free budget covers for a term at this price. */
uint32_t part_affordable_lanes(const struct part *part, int64_t price_micro);
/* Returns true when the ask suits the part: not avoided, terms accepted, and work to do; nobody
 * leases to check its own results. */
bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask);
int64_t price_between(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask);
/* Returns true when another bid, better than the part's and not all-or-none, takes the ask. */
bool ask_is_spoken_for(struct exchange *exchange, struct ask *ask, const struct part *part);
void market_run(struct exchange *exchange); /* matches all that wants, refills all that can take */

/* ---- feed.c: the calls do nothing unless a feed is open */
void feed_destroy(struct feed **self);
/* The order under the handle rests, is gone, or has other slots. */
void feed_note(struct exchange *exchange, uint32_t handle);
void feed_cell_gone(struct exchange *exchange, uint32_t cell);
void feed_class_gone(struct exchange *exchange, uint32_t class_id);
void feed_record(struct exchange *exchange); /* one more of the ledger */
void feed_trade(struct exchange *exchange, const struct ledger_record *fill);
void feed_bands(struct exchange *exchange);  /* the bands changed */
void feed_settle(struct exchange *exchange); /* runs at the end of a step */

/* ---- results.c */
void apply_results(struct exchange *exchange, const struct exchange_results *results);
/* Settlement of a result, and the check behind it. */
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
/* Returns the slot-time to pay: the claim, within the unpaid time seen of its lane. */
int64_t result_paid_time(const struct exchange *exchange, struct lease *lease,
                         const struct attempt *attempt, int64_t busy_ns);
/* Queues the subtask again, unless it has had all its attempts. */
void subtask_try_again(struct exchange *exchange, struct job *job, uint32_t index);

/* ---- leases.c */
void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell);
/* Ends a lease after too many failures in a row, and lets the job avoid the provider for a while. A
 * lease that is ending ends when nothing is in flight. */
void lease_end_if_failing(struct exchange *exchange, struct lease *lease);
void lease_due(struct exchange *exchange, struct lease *lease,
               int64_t at_ns);                     /* its timer of that time */
int64_t lease_deadline(const struct lease *lease); /* the lease has not ended */
void lease_arm(struct exchange *exchange, const struct lease *lease);
void lease_suspect(struct exchange *exchange, struct lease *lease);
void lease_returned(struct exchange *exchange, struct lease *lease);
void lease_wind_down(struct exchange *exchange, struct lease *lease);
/* Starts one more attempt of a subtask, running or not, in the lane. */
void lease_start(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index);
/* Sets the start of each lane's unsettled use: its first attempt in flight, or now. */
void lease_find_unbilled(const struct exchange *exchange, struct lease *lease);
void attempt_withdraw(struct exchange *exchange, struct attempt *attempt); /* tells the agent */
/* Gives up all attempts of a subtask; late results are logged, not paid. */
void attempts_give_up(struct exchange *exchange, struct job *job, uint32_t index);
/* Releases the reserve of an ended lease, except for its held results. */
void lease_release_reserve(struct exchange *exchange, struct lease *lease);
void lease_withdraw_all(struct exchange *exchange, struct lease *lease);
void lease_refill(struct exchange *exchange, struct lease *lease);
void lease_refill_later(struct exchange *exchange, struct lease *lease); /* refills in this step */
void lease_refill_next(struct exchange *exchange, struct lease *lease);  /* before all others */
/* Places retries that found no free lane before queued work (P18). */
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
                          uint32_t provider); /* time from now; 0: it does not */
void withdraw_others(struct exchange *exchange, struct job *job, uint32_t index);
struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number); /* NULL: none */
bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
void attempt_drop(struct exchange *exchange, struct attempt *attempt); /* frees it */
/* Forgets an attempt that its agent does not have; no result can come. */
void attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
/* Links a granted lease to its provider. */
void lease_link_provider(struct exchange *exchange, struct lease *lease);
void lease_forget(struct exchange *exchange, struct lease *lease);
void leases_make_room(struct exchange *exchange);
/* Returns the cost of the slots for a term, rounded up; INT64_MAX: too much. */
int64_t escrow_micro(int64_t price_micro, uint32_t slots, int64_t term_ns);

/* ---- reads.c */
/* Returns the reason that keeps the part from the device: the first obstacle, from far to near. */
uint8_t part_reason_at(const struct exchange *exchange, const struct part *part,
                       const struct device *device);
/* Returns true when only busy slots keep the part off: its budget covers a term. */
bool part_is_in_reach(const struct exchange *exchange, const struct part *part,
                      const struct device *device);
/* Returns the waiting part of an open job that is furthest from a lane; it explains the whole
 * job. */
const struct part *job_tightest_part(const struct exchange *exchange, const struct job *job,
                                     uint8_t *ret_reason);

/* ---- explain.c */
/* Writes a predicate as reports do: memory >= 1024, kind = "gpu". */
void predicate_text(const struct requirement_node *node, char *ret_text, size_t size);

/* ---- snapshot.c */
/* Makes a new entity a record. */
void track(struct exchange *exchange, struct tracked *tracked, enum record_type type);
void touch(struct exchange *exchange, struct tracked *tracked);
void untrack(struct exchange *exchange, struct tracked *tracked); /* before it is freed */
/* Returns true when exchange_save would write these bytes; false also when memory is short. */
bool exchange_saves_as(const struct exchange *exchange, const uint8_t *bytes, size_t length);

#endif
