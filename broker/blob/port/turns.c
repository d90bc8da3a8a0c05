#include "broker/blob/port/turns.h"

#include "base/checked.h"

#include <assert.h>

static struct turns_queue *queue_of(struct turns *turns, uint32_t account)
{
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        struct turns_queue *queue = &turns->queues[i];
        if (queue->is_used && queue->account == account) {
            return queue;
        }
    }
    return NULL;
}

/* Returns a free place, or that of the account which owes least and waits for nothing. Returns NULL
 * when all accounts wait. */
static struct turns_queue *place_for(struct turns *turns)
{
    struct turns_queue *least = NULL;
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        struct turns_queue *queue = &turns->queues[i];
        if (!queue->is_used) {
            return queue;
        }
        if (queue->count == 0 && (least == NULL || queue->steps < least->steps)) {
            least = queue;
        }
    }
    return least;
}

static bool has_room(const struct turns *turns, const struct turns_queue *queue, size_t bytes)
{
    const size_t most = turns->bytes + bytes > TURNS_BYTES ? TURNS_ASSURED_BYTES : TURNS_EACH_BYTES;
    return queue->count == 0 || (queue->count < TURNS_EACH && queue->bytes + bytes <= most);
}

/* All accounts begin anew when none waits: each counts as having had as much as the largest. */
static void forgive_all(struct turns *turns)
{
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        const struct turns_queue *queue = &turns->queues[i];
        if (queue->is_used && queue->steps > turns->reached) {
            turns->reached = queue->steps;
        }
    }
}

bool turns_put(struct turns *turns, struct turn *turn, uint32_t account, size_t bytes,
               int64_t now_ns)
{
    struct turns_queue *queue = queue_of(turns, account);
    if (queue == NULL) {
        queue = place_for(turns);
        if (queue == NULL) {
            return false;
        }
        *queue = (struct turns_queue){.is_used = true, .account = account};
    }
    if (!has_room(turns, queue, bytes)) {
        return false;
    }
    if (turns->count == 0) {
        forgive_all(turns);
    }
    if (queue->count == 0 && queue->steps < turns->reached) {
        queue->steps = turns->reached; /* nothing is saved */
    }
    *turn = (struct turn){.account = account, .bytes = bytes};
    if (queue->first == NULL) {
        queue->first = turn;
    } else {
        queue->last->next = turn;
    }
    queue->last = turn;
    queue->asked_ns = now_ns;
    queue->count++;
    queue->bytes += bytes;
    turns->count++;
    turns->bytes += bytes;
    return true;
}

struct turn *turns_first(struct turns *turns, int64_t now_ns)
{
    const struct turns_queue *least = NULL;
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        const struct turns_queue *queue = &turns->queues[i];
        if (queue->count > 0 && queue->not_before_ns <= now_ns &&
            (least == NULL || queue->steps < least->steps)) {
            least = queue;
        }
    }
    if (least == NULL) {
        return NULL;
    }
    turns->reached = least->steps > turns->reached ? least->steps : turns->reached;
    return least->first;
}

void turns_take(struct turns *turns, struct turn *turn)
{
    struct turns_queue *queue = queue_of(turns, turn->account);
    assert(queue != NULL);
    assert(queue->first == turn);
    queue->first = turn->next;
    queue->last = queue->first == NULL ? NULL : queue->last;
    queue->count--;
    queue->bytes -= turn->bytes;
    turns->count--;
    turns->bytes -= turn->bytes;
}

struct turn *turns_take_any(struct turns *turns)
{
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        struct turn *turn = turns->queues[i].first;
        if (turn != NULL) {
            turns_take(turns, turn);
            return turn;
        }
    }
    return NULL;
}

static void forget_half(struct turns *turns, int64_t now_ns)
{
    const int64_t each_ns = TURNS_LATELY_MS * NS_PER_MS;
    for (int i = 0; i < 64 && now_ns - turns->halved_ns >= each_ns; i++) {
        turns->halved_ns += each_ns;
        for (size_t k = 0; k < TURNS_ACCOUNTS; k++) {
            turns->queues[k].lately /= 2;
        }
    }
    if (now_ns - turns->halved_ns >= each_ns) {
        turns->halved_ns = now_ns; /* nothing is left of it */
    }
}

void turns_charge(struct turns *turns, uint32_t account, uint64_t steps, int64_t now_ns)
{
    struct turns_queue *queue = queue_of(turns, account);
    forget_half(turns, now_ns);
    if (queue != NULL) { /* else others have its place by now, and it began anew */
        queue->steps += steps;
        queue->lately += steps;
    }
}

bool turns_has_cost_most(const struct turns *turns, uint32_t account)
{
    uint64_t own = 0;
    uint64_t others = 0;
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        const struct turns_queue *queue = &turns->queues[i];
        if (queue->is_used && queue->account == account) {
            own = queue->lately;
        } else if (queue->is_used && queue->lately > others) {
            others = queue->lately;
        }
    }
    return own > 2 * others;
}

void turns_put_off(struct turns *turns, uint32_t account, int64_t until_ns)
{
    struct turns_queue *queue = queue_of(turns, account);
    if (queue != NULL) {
        queue->not_before_ns = until_ns;
    }
}

void turns_leave_time(struct turns *turns, uint32_t account, int64_t since_ns, int64_t until_ns)
{
    if (turns_has_cost_most(turns, account) && turns_are_contended(turns, account, since_ns)) {
        turns_put_off(turns, account, until_ns);
    }
}

void turns_pace(struct turns *turns, uint32_t account, int64_t spent_ns, int64_t now_ns)
{
    struct turns_queue *queue = queue_of(turns, account);
    const int64_t saved_ns = TURNS_SAVED_MS * NS_PER_MS;
    if (queue == NULL) {
        return; /* others have its place by now */
    }
    queue->paced_ns = queue->paced_ns > now_ns - saved_ns ? queue->paced_ns : now_ns - saved_ns;
    queue->paced_ns += spent_ns;
    if (queue->paced_ns > queue->not_before_ns) {
        queue->not_before_ns = queue->paced_ns;
    }
}

size_t turns_bytes(const struct turns *turns, uint32_t account)
{
    size_t bytes = 0;
    for (size_t i = 0; i < TURNS_ACCOUNTS; i++) {
        const struct turns_queue *queue = &turns->queues[i];
        bytes += queue->is_used && queue->account == account ? queue->bytes : 0;
    }
    return bytes;
}

bool turns_are_contended(const struct turns *turns, uint32_t account, int64_t since_ns)
{
    bool found = false;
    for (size_t i = 0; i < TURNS_ACCOUNTS && !found; i++) {
        const struct turns_queue *queue = &turns->queues[i];
        found = queue->is_used && queue->account != account &&
                (queue->count > 0 || queue->asked_ns >= since_ns);
    }
    return found;
}
