/* Checks decide whether a result counts. A subtask's result is held: nothing is paid, and no
 * subtask that waits for it starts, before its check comes to a verdict. The check is a subtask of
 * the job's last part, with attempts, retries and pay of its own.
 *
 *     subtask k    WAITING -> RUNNING -> CHECKING ------- accept -> ACCEPTED, its result is paid
 *         ^                     |   reject, by two -> refuted: not paid, redone
 *         +---------------------+   no verdict, or no bytes, twice: paid, and redone
 *     check n + k  WAITING, for k -> WAITING, for a lane -> RUNNING -> ACCEPTED, or WAITING again
 *
 * A referee that rejects a result accuses it. The check then goes to a referee of another owner,
 * and the job's client may judge as well. A second reject refutes the result; an accept lets it
 * stand, and the job asks the first referee no more. Nobody judges results of its own owner, so
 * checks wait in queues by maker and accuser. */
#include "exchange/state.h"
#include "exchange/work/held.h"

#include "base/cursor.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

bool part_is_checks(const struct part *part)
{
    return part->job->is_checked && part->number + 1 == part->job->part_count;
}

bool job_checks(const struct job *job, uint32_t index)
{
    return job->checks != NULL && index < held_first_check(job);
}

/* Returns the held result that the check judges; NULL for no check, or nothing to check now. */
static struct held *held_of_check(const struct job *job, uint32_t index)
{
    bool is_check = job->checks != NULL && index >= held_first_check(job);
    return is_check ? job->checks->held[index - held_first_check(job)] : NULL;
}

/* ---------------------------------------------------------------- what is a job with checks */

/* Referees are real machines, so nobody can judge what a simulation makes. */
static bool asks_simulated(struct exchange *exchange, const struct exchange_submit *submit)
{
    bool first = requirement_asks_simulated(submit->needs);
    bool asks = first;
    for (size_t i = 0; !asks && i < submit->part_count; i++) {
        asks = requirement_asks_simulated(submit->parts[i].needs);
    }
    if (asks) {
        reject(exchange, XREJECT_VERIFY, first ? "needs" : "parts.needs", 0, 0);
    }
    return asks;
}

bool checks_well_formed(struct exchange *exchange, const struct exchange_submit *submit)
{
    if (asks_simulated(exchange, submit)) {
        return false;
    }
    const struct exchange_graph *graph = submit->graph;
    const size_t parts = submit->part_count;
    const uint32_t checks = parts == 0 ? 0 : submit->parts[parts - 1].subtasks;
    const uint32_t first = submit->subtasks - checks;
    if (checks != first) {
        reject(exchange, XREJECT_VERIFY, "verify", checks, first);
        return false;
    }
    if (graph == NULL || graph->after_count_count == 0) {
        reject(exchange, XREJECT_VERIFY, "graph", 0, checks);
        return false;
    }
    for (uint32_t i = 0; i < checks; i++) {
        if (graph->after_count[first + i] != 1) {
            reject(exchange, XREJECT_VERIFY, "graph.after_count", graph->after_count[first + i], 1);
            return false;
        }
    }
    const uint32_t *after = &graph->after[graph->after_length - checks];
    for (uint32_t i = 0; i < checks; i++) {
        if (after[i] != i) {
            reject(exchange, XREJECT_VERIFY, "graph.after", after[i], i);
            return false;
        }
    }
    return true;
}

static const char attribute_name[] = "referee";

void checks_attribute(struct attribute *ret_attribute)
{
    memset(ret_attribute, 0, sizeof *ret_attribute);
    memcpy(ret_attribute->name, attribute_name, sizeof attribute_name);
    ret_attribute->number = 1;
}

bool checks_is_attribute(const struct attribute *attribute)
{
    return strcmp(attribute->name, attribute_name) == 0;
}

static bool is_demand(const struct requirement_node *node)
{
    struct attribute referee;
    checks_attribute(&referee);
    return node->op == REQUIREMENT_EQ && checks_is_attribute(&node->attribute) &&
           !node->attribute.is_text && node->attribute.number == referee.number;
}

/* checks_require leaves the demand alone, or as the last of a conjunction. */
static bool has_demand(const struct requirement *needs)
{
    const struct requirement_node *nodes = needs->nodes;
    return (needs->count == 1 && is_demand(&nodes[0])) ||
           (needs->count > 2 && nodes[needs->count - 1].op == REQUIREMENT_AND &&
            is_demand(&nodes[needs->count - 2]));
}

bool checks_require(const struct requirement *needs, struct requirement *ret_needs)
{
    const bool has_more = needs->count > 0;
    if (has_demand(needs)) {
        *ret_needs = *needs;
        return true;
    }
    if (needs->count + 1 + has_more > REQUIREMENT_NODES_MAX) {
        return false;
    }
    *ret_needs = *needs;
    struct requirement_node *node = &ret_needs->nodes[ret_needs->count++];
    *node = (struct requirement_node){.op = REQUIREMENT_EQ};
    checks_attribute(&node->attribute);
    if (has_more) {
        ret_needs->nodes[ret_needs->count++] =
            (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    }
    return true;
}

/* ---------------------------------------------------------------- life */

bool checks_create(struct exchange *exchange, struct job *job)
{
    struct checks *checks = allocate(exchange, sizeof *checks);
    job->checks = checks;
    if (checks == NULL) {
        return false;
    }
    list_init(&checks->queues);
    list_init(&checks->all_juries);
    list_init(&checks->looks);
    list_init(&checks->accusations);
    checks->bars = allocate(exchange, job->part_count * sizeof *checks->bars);
    for (uint32_t i = 0; checks->bars != NULL && i < job->part_count; i++) {
        list_init(&checks->bars[i]);
    }
    checks->held = allocate(exchange, held_first_check(job) * sizeof(struct held *));
    checks->juries = allocate(exchange, held_first_check(job) * sizeof(struct jury *));
    return checks->held != NULL && checks->juries != NULL && checks->bars != NULL;
}

void checks_destroy(struct job *job)
{
    struct checks *checks = job->checks;
    if (checks == NULL) {
        return;
    }
    for (uint32_t i = 0; checks->held != NULL && i < held_first_check(job); i++) {
        free(checks->held[i]);
    }
    while (!list_empty(&checks->queues)) {
        struct check_queue *queue = LIST_ELEMENT(checks->queues.next, struct check_queue, all);
        list_remove(&queue->all);
        free(queue);
    }
    juries_free(job);
    free(checks->held);
    free(checks);
    job->checks = NULL;
}

/* ---------------------------------------------------------------- checks that wait for a lane */

static bool came_before(const struct held *a, const struct held *b)
{
    return a->batch_index != b->batch_index ? a->batch_index < b->batch_index
                                            : a->position < b->position;
}

static struct held *first_of(const struct check_queue *queue)
{
    return LIST_ELEMENT(queue->waiting.next, struct held, waiting);
}

static struct check_queue *queue_of(struct exchange *exchange, struct checks *checks,
                                    const struct held *held)
{
    const uint32_t maker = held->lease->provider;
    const uint32_t accuser = held_accuser(held);
    for (struct list_link *at = checks->queues.next; at != &checks->queues; at = at->next) {
        struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        if (queue->maker == maker && queue->shy_of == held->shy_of && queue->accuser == accuser) {
            return queue;
        }
    }
    struct check_queue *queue = allocate(exchange, sizeof *queue);
    if (queue != NULL) {
        queue->maker = maker;
        queue->shy_of = held->shy_of;
        queue->accuser = accuser;
        list_init(&queue->waiting);
        list_append(&checks->queues, &queue->all);
    }
    return queue;
}

/* A new check goes last; a repeated one goes near the front. */
static void enqueue(struct exchange *exchange, const struct job *job, struct held *held)
{
    assert(held->queue == NULL);
    struct check_queue *queue = queue_of(exchange, job->checks, held);
    if (queue == NULL) {
        return;
    }
    struct list_link *before = &queue->waiting;
    if (queue->count > 0 &&
        came_before(held, LIST_ELEMENT(queue->waiting.previous, struct held, waiting))) {
        before = queue->waiting.next;
        while (came_before(LIST_ELEMENT(before, struct held, waiting), held)) {
            before = before->next;
        }
    }
    list_insert_before(before, &held->waiting);
    queue->count++;
    held->queue = queue;
}

static void dequeue(struct held *held)
{
    if (held->queue != NULL) {
        list_remove(&held->waiting);
        held->queue->count--;
        held->queue = NULL;
    }
}

void check_requeue(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct held *held = held_of_check(job, index);
    if (held != NULL && held->queue == NULL) {
        enqueue(exchange, job, held);
    }
}

void check_unqueue(const struct job *job, uint32_t index)
{
    struct held *held = held_of_check(job, index);
    if (held != NULL) {
        dequeue(held);
    }
}

static bool may_judge(const struct exchange *exchange, const struct job *job,
                      const struct check_queue *queue, uint32_t referee)
{
    return !held_is_party(exchange, queue->maker, queue->accuser, referee) &&
           !job_overruled(exchange, job, referee);
}

bool check_is_for(const struct exchange *exchange, const struct job *job, uint32_t index,
                  uint32_t referee)
{
    const struct held *held = held_of_check(job, index);
    return held != NULL &&
           !held_is_party(exchange, held->lease->provider, held_accuser(held), referee) &&
           !job_overruled(exchange, job, referee);
}

/* Returns true when a referee other than the one without a verdict may take it. */
static bool has_other_referee(const struct exchange *exchange, const struct part *part,
                              const struct check_queue *queue)
{
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, 1);
        if (lease->part == part && lease->state == LEASE_ACTIVE &&
            lease->provider != queue->shy_of && may_judge(exchange, job, queue, lease->provider)) {
            return true;
        }
    }
    return false;
}

static bool may_take(const struct exchange *exchange, const struct part *part,
                     const struct check_queue *queue, uint32_t provider)
{
    return queue->count > 0 && may_judge(exchange, part->job, queue, provider) &&
           (queue->shy_of != provider || !has_other_referee(exchange, part, queue));
}

uint32_t part_choice(const struct exchange *exchange, const struct part *part, uint32_t provider)
{
    const struct checks *checks = part_is_checks(part) ? part->job->checks : NULL;
    if (checks == NULL) {
        /* Work that a closing job gave up waits no more, but is still counted as barred. */
        const uint32_t barred = part_barred(exchange, part, provider);
        return part->waiting > barred ? part->waiting - barred : 0;
    }
    uint32_t count = 0;
    for (const struct list_link *at = checks->queues.next; at != &checks->queues; at = at->next) {
        const struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        steps_add(exchange, 2);
        count += may_take(exchange, part, queue, provider) ? queue->count : 0;
    }
    return count;
}

uint32_t checks_next(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    struct check_queue *best = NULL;
    for (struct list_link *at = job->checks->queues.next; at != &job->checks->queues;
         at = at->next) {
        struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        if (!may_take(exchange, lease->part, queue, lease->provider)) {
            continue;
        }
        bool is_shy = queue->shy_of == lease->provider;
        bool best_is_shy = best != NULL && best->shy_of == lease->provider;
        if (best == NULL || (best_is_shy && !is_shy) ||
            (best_is_shy == is_shy && came_before(first_of(queue), first_of(best)))) {
            best = queue;
        }
    }
    if (best == NULL) {
        return NO_SUBTASK;
    }
    struct held *held = first_of(best);
    dequeue(held);
    uint32_t index = held_first_check(job) + held->index;
    return job_subtask(exchange, job, index) == NULL ? NO_SUBTASK : index;
}

/* ---------------------------------------------------------------- from a snapshot */

bool held_link(struct job *job, struct held *held)
{
    if (!job_checks(job, held->index) || job->checks->held[held->index] != NULL) {
        return false;
    }
    job->checks->held[held->index] = held;
    held->lease->held_count++;
    held->lease->held_ns += held->paid_ns;
    return true;
}

static int compare_held(const void *left, const void *right)
{
    const struct held *const *a = left;
    const struct held *const *b = right;
    return came_before(*b, *a) - came_before(*a, *b);
}

void checks_restore(struct exchange *exchange, struct job *job)
{
    const uint32_t first = held_first_check(job);
    struct held **waiting = allocate(exchange, first * sizeof(struct held *));
    size_t count = 0;
    for (uint32_t i = 0; waiting != NULL && i < first; i++) {
        struct held *held = job->checks->held[i];
        const struct subtask *check = held == NULL ? NULL : job_subtask(exchange, job, first + i);
        if (check != NULL && check->state == SUBTASK_WAITING) {
            waiting[count++] = held;
        }
    }
    if (count > 0) {
        qsort(waiting, count, sizeof(struct held *), compare_held);
    }
    for (size_t i = 0; i < count; i++) {
        enqueue(exchange, job, waiting[i]);
    }
    free(waiting);
}

/* ---------------------------------------------------------------- the seed */

struct hash32 exchange_check_seed(const struct hash32 *dice, const struct hash32 *result,
                                  uint32_t index, uint32_t attempt)
{
    static const char domain[] = "bourse/check/v1"; /* includes the NUL */
    uint8_t bytes[sizeof domain + sizeof *dice + sizeof *result + 8];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, domain, sizeof domain);
    writer_bytes(&out, dice->bytes, sizeof dice->bytes);
    writer_bytes(&out, result->bytes, sizeof result->bytes);
    writer_u32(&out, index);
    writer_u32(&out, attempt);
    assert(!out.failed && out.position == sizeof bytes);
    return sha256_of(bytes, sizeof bytes);
}

struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt)
{
    static const struct hash32 none;
    const struct held *held = held_of_check(job, index);
    return held == NULL ? none : exchange_check_seed(&held->dice, &held->hash, index, attempt);
}

uint32_t check_subject(const struct job *job, uint32_t index)
{
    const struct held *held = held_of_check(job, index);
    return held == NULL ? 0 : held->index;
}

bool check_counts(const struct exchange *exchange, const struct lease *lease, uint32_t index)
{
    const struct held *held = held_of_check(lease->job, index);
    return held != NULL &&
           !held_is_party(exchange, held->lease->provider, held_accuser(held), lease->provider);
}

uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result)
{
    if (held_of_check(job, attempt->key.index) == NULL) {
        return XOUTCOME_CANCELLED;
    }
    const struct hash32 seed = check_seed(job, attempt->key.index, attempt->key.attempt);
    bool is_verdict = result->verdict >= XVERDICT_ACCEPT && result->verdict <= XVERDICT_UNSURE;
    return is_verdict && hash32_equal(&seed, &result->seed) ? XOUTCOME_OK : XOUTCOME_REFUSED;
}

/* ---------------------------------------------------------------- holding a result */

static void hold_record(struct exchange *exchange, const struct held *held,
                        const struct exchange_result *result)
{
    const struct lease *lease = held->lease;
    struct ledger_record *record = emit_ledger(exchange, LEDGER_HELD);
    record->job = lease->job->id;
    record->index = held->index;
    record->attempt = held->attempt;
    record->lease = lease->id;
    record->provider = member_by_number(exchange, lease->provider)->key;
    record->owner = member_by_number(exchange, lease->job->owner)->key;
    record->device = lease->device_id;
    record->hash = held->hash;
    record->debit = lease->job->owner;
    record->credit = lease->provider;
    record->price_micro = lease->price_micro;
    record->result = result->bytes;
    record->result_length = result->length;
    record->position = held->position;
    record->batch_index = held->batch_index;
}

void result_hold(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                 const struct exchange_result *result, uint32_t position)
{
    struct held *held = allocate(exchange, sizeof *held + result->length);
    if (held == NULL) {
        return;
    }
    held->lease = lease;
    held->index = attempt->key.index;
    held->attempt = attempt->key.attempt;
    held->batch_index = exchange->index;
    held->position = position;
    held->paid_ns = result_paid_time(exchange, lease, attempt, result->busy_ns);
    held->hash = result->hash;
    held->dice = exchange->command->results.dice;
    held->shy_of = EXCHANGE_NO_ACCOUNT;
    held->length = result->length;
    if (result->length > 0) {
        memcpy(held->bytes, result->bytes, result->length);
    }
    bool is_linked = held_link(lease->job, held);
    assert(is_linked); /* its subtask was running: nothing is held of it */
    (void)is_linked;
    track(exchange, &held->tracked, RECORD_HELD);
    hold_record(exchange, held, result);
}

void check_begin(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct held *held = job->checks->held[index];
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (held == NULL || job_subtask(exchange, job, held_first_check(job) + index) == NULL) {
        return; /* memory is short */
    }
    subtask_becomes(exchange, job, index, SUBTASK_CHECKING);
    subtask_changed(exchange, job, index);
    part_look_if_over(exchange, part_of(job, index));
    if (subtask->attempts > 1) {
        withdraw_others(exchange, job, index);
    }
    struct part *checks = &job->parts[job->part_count - 1];
    checks->waiting++;
    enqueue(exchange, job, held);
    if (list_empty(&checks->spread)) {
        list_append(&exchange->spreads, &checks->spread);
    }
}

/* ---------------------------------------------------------------- and letting it go */

/* Copies to memory of the effects. Returns NULL for no bytes, or when memory is short. */
static const uint8_t *keep_bytes(struct exchange *exchange, const struct held *held)
{
    struct exchange_block *block =
        held->length == 0 ? NULL : allocate(exchange, sizeof *block + held->length);
    if (block == NULL) {
        return NULL;
    }
    block->next = exchange->effects->blocks;
    exchange->effects->blocks = block;
    memcpy(block + 1, held->bytes, held->length);
    return (const uint8_t *)(block + 1);
}

/* A check's Result or the client's word decides about a result. */
struct decision {
    uint8_t level; /* enum check_level */
    struct hash32 check;
    bool is_missing; /* its bytes are missing, which is not its maker's fault */
};

static struct decision decision_of(const struct exchange_result *check, uint8_t outcome)
{
    return (struct decision){.level = CHECK_CHEAP,
                             .check = check->hash,
                             .is_missing = outcome == XOUTCOME_INPUT_MISSING};
}

void accusation_put(struct exchange *exchange, struct held *held,
                    const struct accusation *accusation)
{
    held->accusation = *accusation;
    held->accusation.held = held;
    list_append(&held->lease->job->checks->accusations, &held->of_accused);
    track(exchange, &held->accusation.tracked, RECORD_ACCUSATION);
    held->lease->job->checks->accused++;
}

static void drop_accusation(struct exchange *exchange, struct held *held)
{
    if (held->accusation.tracked.type != 0) {
        untrack(exchange, &held->accusation.tracked);
        list_remove(&held->of_accused);
        held->accusation.tracked.type = 0;
        held->lease->job->checks->accused--;
    }
}

/* `decision` NULL: none was made. */
static void settle_held(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                        const struct decision *decision)
{
    static const struct decision none;
    struct held *held = job->checks->held[index];
    struct lease *lease = held->lease;
    const struct settlement settlement = {
        .index = held->index,
        .attempt = held->attempt,
        .outcome = XOUTCOME_OK,
        .status = status,
        .hash = held->hash,
        .bytes = keep_bytes(exchange, held),
        .length = held->length,
        .batch_index = held->batch_index,
        .position = held->position,
        .paid_ns = status == XATTEMPT_REFUTED ? 0 : held->paid_ns,
        .level = decision == NULL ? none.level : decision->level,
        .check = decision == NULL ? none.check : decision->check,
    };
    dequeue(held);
    job->checks->held[index] = NULL;
    lease->held_count--;
    lease->held_ns -= held->paid_ns;
    lease->accepted += status == XATTEMPT_ACCEPTED;
    drop_accusation(exchange, held);
    untrack(exchange, &held->tracked);
    free(held);
    result_settle(exchange, lease, &settlement);
    if (lease->state == LEASE_ENDED) {
        lease_release_reserve(exchange, lease);
    }
    touch(exchange, &lease->tracked);
    if (status == XATTEMPT_REFUTED) {
        account_refuted(exchange, lease->provider);
    } else if (status == XATTEMPT_ACCEPTED && decision != NULL) {
        account_proved(exchange, lease->provider, settlement.paid_ns);
    }
}

/* The check waits for its subtask again; running attempts of it are about a result that is gone. */
static void block_check(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct part *checks = &job->parts[job->part_count - 1];
    struct subtask *check = job_subtask(exchange, job, index);
    attempts_give_up(exchange, job, index);
    if (check->state == SUBTASK_RUNNING) {
        subtask_becomes(exchange, job, index, SUBTASK_WAITING);
    }
    checks->waiting--; /* the check waits for no lane */
    subtask_changed(exchange, job, index);
}

/* A provider with a bad result gets no more work of this job for a while. Its running work may end,
 * and is judged in the same way. */
static void step_aside(struct exchange *exchange, struct job *job, uint32_t provider,
                       int64_t for_ns)
{
    job_avoid(exchange, job, provider, for_ns);
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->provider == provider) {
            lease_wind_down(exchange, lease);
        }
    }
}

/* The result does not count: subtask and check run again, unless that happened too often. Another
 * provider goes first if there is one, unless the maker is beyond doubt. */
static void redo(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                 const struct decision *decision)
{
    const uint32_t provider = job->checks->held[index]->lease->provider;
    struct subtask *subtask = job_subtask(exchange, job, index);
    const struct subtask *checked_by = job_subtask(exchange, job, held_first_check(job) + index);
    settle_held(exchange, job, index, status, decision);
    block_check(exchange, job, held_first_check(job) + index);
    graph_forget_given(exchange, job, index);
    subtask->crashes++;
    if (subtask->crashes > job->crash_limit || subtask->attempts >= ATTEMPTS_MOST ||
        checked_by->attempts >= ATTEMPTS_MOST || jury_is_full(job, index)) {
        job->unjudged += status == XATTEMPT_FAILED_PAID;
        subtask_decide(exchange, job, index, SUBTASK_FAILED);
    } else {
        job_requeue(exchange, job, index);
    }
    if (!decision->is_missing) {
        step_aside(exchange, job, provider, status == XATTEMPT_REFUTED ? REFUTED_NS : AVOID_NS);
    }
}

/* This referee gave no verdict; another may. */
static void check_again(struct exchange *exchange, struct job *job, struct held *held,
                        uint32_t referee)
{
    bool is_waiting = held->queue != NULL;
    dequeue(held);
    held->shy_of = referee;
    touch(exchange, &held->tracked);
    if (is_waiting) {
        enqueue(exchange, job, held);
    }
    subtask_try_again(exchange, job, held_first_check(job) + held->index);
}

/* Accepting the result overrules its accuser. */
static void accept(struct exchange *exchange, struct job *job, uint32_t index,
                   const struct decision *decision)
{
    const uint32_t accuser = held_accuser(job->checks->held[index]);
    if (accuser != EXCHANGE_NO_ACCOUNT) {
        job_overrules(exchange, job, accuser);
    }
    subtask_decide(exchange, job, held_first_check(job) + index, SUBTASK_ACCEPTED);
    settle_held(exchange, job, index, XATTEMPT_ACCEPTED, decision);
    subtask_decide(exchange, job, index, SUBTASK_ACCEPTED);
}

/* The first reject accuses; the second, of another owner, refutes. */
static void accuse(struct exchange *exchange, struct job *job, struct held *held,
                   const struct lease *lease, const struct attempt *attempt,
                   const struct decision *decision)
{
    jury_add(exchange, job, held->index, lease->provider);
    if (held_accuser(held) != EXCHANGE_NO_ACCOUNT) {
        redo(exchange, job, held->index, XATTEMPT_REFUTED, decision);
        return;
    }
    const bool is_waiting = held->queue != NULL;
    dequeue(held);
    const struct accusation accusation = {
        .referee = lease->provider, .attempt = attempt->key.attempt, .check = decision->check};
    accusation_put(exchange, held, &accusation);
    if (is_waiting) {
        enqueue(exchange, job, held);
    }
    subtask_try_again(exchange, job, held_first_check(job) + held->index);
}

/* Nobody is accused: the referee is unsure, or the bytes are missing. They were stored when the
 * result came, so the store lost them. */
static void doubt(struct exchange *exchange, struct job *job, struct held *held,
                  const struct lease *lease, const struct decision *decision)
{
    jury_add(exchange, job, held->index, lease->provider);
    if (++held->unsure < CHECKS_UNSURE) {
        check_again(exchange, job, held, lease->provider);
    } else {
        redo(exchange, job, held->index, XATTEMPT_FAILED_PAID, decision);
    }
}

bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result)
{
    struct job *job = lease->job;
    struct held *held = held_of_check(job, attempt->key.index);
    if (held == NULL || (outcome != XOUTCOME_OK && outcome != XOUTCOME_INPUT_MISSING)) {
        return false;
    }
    if (outcome == XOUTCOME_INPUT_MISSING && (result->lacks_factor || !result->is_missing)) {
        return false; /* The product is not blamed; the check is tried again like any subtask. */
    }
    const struct decision decision = decision_of(result, outcome);
    /* The check began before its owner was a party. */
    if (!check_counts(exchange, lease, attempt->key.index)) {
        check_again(exchange, job, held, held->shy_of);
        return true;
    }
    if (decision.is_missing) {
        doubt(exchange, job, held, lease, &decision);
        return true;
    }
    lease->failures_in_row = 0;
    if (result->verdict == XVERDICT_ACCEPT) {
        lease->accepted++;
        accept(exchange, job, held->index, &decision);
    } else if (result->verdict == XVERDICT_REJECT) {
        accuse(exchange, job, held, lease, attempt, &decision);
    } else {
        doubt(exchange, job, held, lease, &decision);
    }
    return true;
}

/* Nobody proved the result wrong, and nobody will look at it again. */
void check_failed(struct exchange *exchange, struct job *job, uint32_t index)
{
    const struct held *held = held_of_check(job, index);
    if (held != NULL) {
        const uint32_t checked = held->index;
        settle_held(exchange, job, checked, XATTEMPT_FAILED_PAID, NULL);
        job->unjudged++;
        subtask_decide(exchange, job, checked, SUBTASK_FAILED);
    }
}

void checks_give_up(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; job->checks != NULL && i < held_first_check(job); i++) {
        if (job->checks->held[i] != NULL) {
            settle_held(exchange, job, i, XATTEMPT_ACCEPTED, NULL);
            subtask_decide(exchange, job, i, SUBTASK_ACCEPTED);
        }
    }
}

/* ---------------------------------------------------------------- the client's own word */

/* Returns the held result with those numbers; NULL: the command is refused. */
static struct held *held_to_judge(struct exchange *exchange, const struct job *job,
                                  const struct exchange_judge *judge)
{
    struct held *held = job_checks(job, judge->index) ? job->checks->held[judge->index] : NULL;
    if (held == NULL || held->attempt != judge->attempt ||
        !hash32_equal(&held->hash, &judge->result)) {
        reject(exchange, XREJECT_STATE, "index", judge->index, 0);
        return NULL;
    }
    const struct hash32 seed = held_seed(job, held);
    if (!hash32_equal(&seed, &judge->seed)) {
        reject(exchange, XREJECT_VERIFY, "seed", judge->attempt, held->accusation.attempt);
        return NULL;
    }
    if (judge->verdict < XVERDICT_ACCEPT || judge->verdict > XVERDICT_UNSURE) {
        reject(exchange, XREJECT_VERIFY, "verdict", judge->verdict, XVERDICT_UNSURE);
        return NULL;
    }
    return held;
}

/* The client's reject refutes only a result that a referee of another owner has accused, because
 * the payer alone must not decide about pay. */
static uint8_t status_by_client(const struct exchange *exchange, const struct job *job,
                                const struct held *held, uint8_t verdict)
{
    const uint32_t accuser = held_accuser(held);
    const bool is_second =
        accuser != EXCHANGE_NO_ACCOUNT && !have_one_owner(exchange, accuser, job->owner);
    return verdict == XVERDICT_ACCEPT                ? XATTEMPT_ACCEPTED
           : verdict == XVERDICT_REJECT && is_second ? XATTEMPT_REFUTED
                                                     : XATTEMPT_FAILED_PAID;
}

void apply_judge(struct exchange *exchange, const struct exchange_judge *judge)
{
    struct job *job = table_find(&exchange->jobs, &judge->job);
    if (job == NULL || job->owner != exchange->command->account) {
        reject(exchange, XREJECT_NOT_FOUND, "job", 0, 0);
        return;
    }
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        reject(exchange, XREJECT_STATE, "job", job->phase, JOB_PHASE_OPEN);
        return;
    }
    const struct held *held = held_to_judge(exchange, job, judge);
    if (held == NULL) {
        return;
    }
    const struct decision decision = {.level = CHECK_CLIENT, .check = exchange->command->body};
    const uint8_t status = status_by_client(exchange, job, held, judge->verdict);
    if (status == XATTEMPT_ACCEPTED) {
        const uint32_t check = held_first_check(job) + judge->index;
        if (job_subtask(exchange, job, check)->attempts == 1) {
            withdraw_others(exchange, job, check);
        }
        accept(exchange, job, judge->index, &decision);
    } else {
        redo(exchange, job, judge->index, status, &decision);
    }
    job_check(exchange, job);
    report_job(exchange, job);
}

/* ---------------------------------------------------------------- reads */

uint32_t job_accused(const struct job *job)
{
    return job->checks == NULL ? 0 : job->checks->accused;
}

bool exchange_each_held(const struct exchange *exchange, exchange_on_held *visit, void *context)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (uint32_t i = 0; job->checks != NULL && i < held_first_check(job); i++) {
            const struct held *held = job->checks->held[i];
            if (held != NULL &&
                !visit(context, held->lease->provider, &job->id, held->bytes, held->length)) {
                return false;
            }
        }
    }
    return true;
}
