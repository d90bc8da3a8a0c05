#include "tests/sim/cluster/etcd.h"

#include "tests/sim/cluster/store.h"
#include "tests/sim/cluster/watch.h"
#include "tests/sim/fibre.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    ANSWER_MOST = 16 << 20,
    TRIES_MOST = 40,
    BEHIND_AFTER_CRASH = 40,
    CLUSTER_ID = 77,
    HELD_MOST = 64
};
#define TICK_NS (50 * SIM_MS)
#define TRY_NS (100 * SIM_MS)

struct member {
    bool runs;
    uint32_t life;
    int64_t stopped_until_ns;
    int64_t lags_until_ns; /* it executes nothing, and answers reads all the same */
    struct store store;
    size_t executed; /* of the decided transactions */
};

struct decided {
    const uint8_t *bytes; /* for ever: the stores borrow values */
    size_t length;
};

/* Somebody waits for an answer. */
struct call {
    uint64_t fibre;
    struct fibre *waiter;
    bool is_done, is_alone; /* nobody waits any more */
    struct etcd_asked asked;
};

/* A copy of a request is under way, or at a member. */
struct request {
    unsigned broker, member;
    const char *path;
    uint8_t *bytes;
    size_t length;
    struct call *call; /* NULL: nobody waits for the answer */
    unsigned tries;
    bool was_held;
    uint64_t term; /* in which it was handed to the leader */
};

static struct {
    struct etcd_faults faults;
    struct member members[ETCD_MEMBERS];
    int64_t cut_until_ns[ETCD_MEMBERS][ETCD_MEMBERS]; /* from one to another */
    int64_t broker_to_ns[ETCD_BROKERS][ETCD_MEMBERS], broker_from_ns[ETCD_BROKERS][ETCD_MEMBERS];
    int64_t full_until_ns;
    /* The broker is gone until then, and what it sent last is under way. */
    int64_t lost_until_ns[ETCD_BROKERS];
    unsigned leader; /* ETCD_MEMBERS: none */
    uint64_t term;
    int64_t led_ns, patience_ns; /* a majority had a leader then; until another is drawn */
    struct decided *log;
    size_t log_count, log_capacity;
    struct {                     /* requests that are late */
        struct request *request; /* NULL: free */
        uint64_t number;
    } held[HELD_MOST];
    uint64_t held_count; /* so many were */
    struct etcd_counts counts;
    uint8_t *scratch; /* ANSWER_MOST */
} etcd;

static void at_member(void *context, uint64_t a, uint64_t b);

/* ---------------------------------------------------------------- late requests */

static void release(void *context, uint64_t place, uint64_t number)
{
    struct request *request = etcd.held[place].request;
    (void)context;
    if (request != NULL && etcd.held[place].number == number) {
        etcd.held[place].request = NULL;
        at_member(request, 0, 0);
    }
}

static void hold(struct request *request, int64_t time_ns)
{
    size_t place = 0;
    while (place < HELD_MOST && etcd.held[place].request != NULL) {
        place++;
    }
    fault_happened(FAULT_LATE);
    etcd.counts.late++;
    if (place == HELD_MOST) {
        event_in(time_ns, NULL, at_member, request, 0, 0);
        return;
    }
    etcd.held[place].request = request;
    etcd.held[place].number = etcd.held_count++;
    event_in(time_ns, NULL, release, NULL, place, etcd.held[place].number);
}

/* The worst moment for what is late: another broker has just taken the lead. */
static void let_late_arrive(void)
{
    for (size_t i = 0; i < HELD_MOST; i++) {
        if (etcd.held[i].request != NULL && draw(DICE_NETWORK, 2) == 0) {
            event_in(draw_time(DICE_NETWORK, 0, 30 * SIM_MS), NULL, release, NULL, i,
                     etcd.held[i].number);
        }
    }
}

/* ---------------------------------------------------------------- what must hold */

static void see(void *context, const char *key, const uint8_t *value, size_t length, bool was_there)
{
    const struct request *request = context;
    if (!watch_key(request->broker, key, value, length, was_there)) {
        return;
    }
    etcd.counts.takeovers++;
    fault_happened(FAULT_TAKEOVER);
    let_late_arrive();
}

struct etcd_counts etcd_counts(void)
{
    return etcd.counts;
}

/* ---------------------------------------------------------------- members */

static bool is_up(unsigned member)
{
    const struct member *it = &etcd.members[member];
    return it->runs && it->stopped_until_ns <= world.now_ns;
}

static bool hear_each_other(unsigned one, unsigned other)
{
    return is_up(one) && is_up(other) &&
           (one == other || (etcd.cut_until_ns[one][other] <= world.now_ns &&
                             etcd.cut_until_ns[other][one] <= world.now_ns));
}

static bool has_majority(unsigned member)
{
    unsigned heard = 0;
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        heard += hear_each_other(member, i);
    }
    return 2 * heard > ETCD_MEMBERS;
}

/* Returns true when the member gets something decided now. */
static bool can_decide(unsigned member)
{
    return etcd.leader < ETCD_MEMBERS && has_majority(etcd.leader) &&
           hear_each_other(member, etcd.leader);
}

static void execute_up_to(unsigned number, size_t count)
{
    struct member *member = &etcd.members[number];
    while (member->executed < count) {
        const struct decided *next = &etcd.log[member->executed++];
        struct proto_writer out = {.bytes = etcd.scratch, .capacity = ANSWER_MOST};
        store_transact(&member->store, next->bytes, next->length, &out, NULL, NULL);
    }
}

static void catch_up(void *context, uint64_t number, uint64_t count)
{
    (void)context;
    if (is_up((unsigned)number) && etcd.members[number].lags_until_ns <= world.now_ns) {
        execute_up_to((unsigned)number, count);
    }
}

static void tick(void *context, uint64_t a, uint64_t b)
{
    (void)context;
    (void)a;
    (void)b;
    event_in(TICK_NS, NULL, tick, NULL, 0, 0);
    if (etcd.leader < ETCD_MEMBERS && has_majority(etcd.leader)) {
        etcd.led_ns = world.now_ns;
        return;
    }
    if (world.now_ns - etcd.led_ns < etcd.patience_ns) {
        return;
    }
    const unsigned first = (unsigned)draw(DICE_ORDER, ETCD_MEMBERS);
    etcd.patience_ns = draw_time(DICE_ORDER, 500 * SIM_MS, SIM_S);
    etcd.leader = ETCD_MEMBERS;
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        const unsigned candidate = (first + i) % ETCD_MEMBERS;
        if (has_majority(candidate)) {
            etcd.leader = candidate;
            etcd.term++;
            etcd.led_ns = world.now_ns;
            etcd.counts.elections++;
            execute_up_to(candidate, etcd.log_count);
            trace("etcd: member %u leads in term %" PRIu64, candidate, etcd.term);
            return;
        }
    }
}

/* ---------------------------------------------------------------- answers */

static void drop(struct request *request)
{
    sim_free(request); /* its bytes may be those of a value */
}

static void answered(void *context, uint64_t a, uint64_t b)
{
    struct call *call = context;
    (void)a;
    (void)b;
    if (call->is_alone || !fibre_runs(call->fibre)) {
        sim_free(call->asked.answer);
        sim_free(call);
        return;
    }
    call->is_done = true;
    fibre_wake(call->waiter);
}

static int64_t way_ns(void)
{
    return draw_time(DICE_NETWORK, 50 * SIM_US, 2 * SIM_MS);
}

static void answer(struct request *request, enum grpc_outcome outcome,
                   const struct proto_writer *body)
{
    struct call *call = request->call;
    uint8_t head[32] = {0};
    struct proto_writer out = {.bytes = head, .capacity = sizeof head};
    if (call == NULL || etcd.broker_from_ns[request->broker][request->member] > world.now_ns ||
        chance(DICE_NETWORK, etcd.faults.answer_lost)) {
        if (call != NULL) {
            fault_happened(FAULT_LATE);
            etcd.counts.lost++;
        }
        drop(request);
        return;
    }
    const size_t header = proto_begin(&out, 1);
    proto_varint(&out, 1, CLUSTER_ID);
    proto_varint(&out, 2, request->member + 1);
    proto_varint(&out, 3, etcd.members[request->member].store.revision + 1);
    proto_end(&out, header);
    assert(!out.is_full && !body->is_full);
    call->asked.outcome = outcome;
    call->asked.length = out.length + body->length;
    call->asked.answer = sim_alloc(call->asked.length);
    memcpy(call->asked.answer, head, out.length);
    memcpy(call->asked.answer + out.length, body->bytes, body->length);
    event_in(way_ns(), NULL, answered, call, 0, 0);
    drop(request);
}

static void answer_nothing(struct request *request, enum grpc_outcome outcome)
{
    const struct proto_writer none = {.bytes = etcd.scratch, .capacity = ANSWER_MOST};
    answer(request, outcome, &none);
}

/* ---------------------------------------------------------------- requests */

static void try_again(struct request *request)
{
    if (++request->tries > TRIES_MOST || draw(DICE_NETWORK, 8) == 0) {
        drop(request);
        return;
    }
    event_in(draw_time(DICE_NETWORK, TRY_NS / 5, TRY_NS), NULL, at_member, request, 0, 0);
}

/* A request that a lost broker sent last stays on its way, perhaps until another broker leads. */
static bool stays_away(struct request *request)
{
    if (etcd.lost_until_ns[request->broker] <= world.now_ns || request->was_held ||
        draw(DICE_NETWORK, 2) == 0) {
        return false;
    }
    request->was_held = true;
    hold(request, draw_time(DICE_NETWORK, SIM_S, 8 * SIM_S));
    return true;
}

/* A majority has it on its disks. */
static void decide(void *context, uint64_t a, uint64_t b)
{
    struct request *request = context;
    (void)a;
    (void)b;
    if (stays_away(request)) {
        return;
    }
    if (etcd.term != request->term || !can_decide(request->member)) {
        try_again(request); /* whoever leads now may have it, or not */
        return;
    }
    if (strcmp(request->path, "/etcdserverpb.KV/Compact") == 0) {
        answer_nothing(request, GRPC_ANSWERED);
        return;
    }
    if (etcd.log_count == etcd.log_capacity) {
        etcd.log_capacity = etcd.log_capacity == 0 ? 256 : 2 * etcd.log_capacity;
        etcd.log = sim_grow(etcd.log, etcd.log_capacity * sizeof *etcd.log);
    }
    struct member *leader = &etcd.members[etcd.leader];
    struct proto_writer out = {.bytes = etcd.scratch, .capacity = ANSWER_MOST};
    const uint64_t before = leader->store.revision;
    etcd.log[etcd.log_count++] = (struct decided){request->bytes, request->length};
    store_transact(&leader->store, request->bytes, request->length, &out, see, request);
    leader->executed = etcd.log_count;
    etcd.counts.refused += leader->store.revision == before;
    answer(request, GRPC_ANSWERED, &out);
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        if (i != etcd.leader) {
            event_in(draw_time(DICE_ORDER, 0, etcd.faults.behind_most_ns), NULL, catch_up, NULL, i,
                     etcd.log_count);
        }
    }
}

static void propose(struct request *request)
{
    if (etcd.full_until_ns > world.now_ns) {
        answer_nothing(request, GRPC_NO_SPACE);
        return;
    }
    if (!can_decide(request->member)) {
        try_again(request);
        return;
    }
    request->term = etcd.term;
    event_in(draw_time(DICE_ORDER, 100 * SIM_US, etcd.faults.decide_most_ns), NULL, decide, request,
             0, 0);
}

static void read_only(struct request *request)
{
    struct member *member = &etcd.members[request->member];
    struct proto_writer out = {.bytes = etcd.scratch, .capacity = ANSWER_MOST};
    if (chance(DICE_NETWORK, etcd.faults.stale) || member->lags_until_ns > world.now_ns) {
        etcd.counts.stale += member->executed < etcd.log_count;
    } else if (!can_decide(request->member)) {
        try_again(request);
        return;
    } else {
        execute_up_to(request->member, etcd.log_count);
    }
    store_transact(&member->store, request->bytes, request->length, &out, NULL, NULL);
    answer(request, GRPC_ANSWERED, &out);
}

static void tell_status(struct request *request)
{
    struct proto_writer out = {.bytes = etcd.scratch, .capacity = ANSWER_MOST};
    if (strcmp(request->path, "/etcdserverpb.Maintenance/Status") == 0) {
        proto_bytes(&out, 2, "3.6.14", 6);
        proto_varint(&out, 3, 4096);
        proto_varint(&out, 4, etcd.leader + 1);
    }
    answer(request, GRPC_ANSWERED, &out);
}

static void at_member(void *context, uint64_t a, uint64_t b)
{
    struct request *request = context;
    const struct member *member = &etcd.members[request->member];
    (void)a;
    (void)b;
    if (!member->runs) {
        drop(request);
    } else if (member->stopped_until_ns > world.now_ns) {
        event_in(member->stopped_until_ns - world.now_ns, NULL, at_member, request, 0, 0);
    } else if (strncmp(request->path, "/etcdserverpb.Maintenance/", 26) == 0) {
        tell_status(request);
    } else if (strcmp(request->path, "/etcdserverpb.KV/Txn") == 0 &&
               !store_changes(request->bytes, request->length)) {
        read_only(request);
    } else {
        propose(request);
    }
}

static struct request *copy_of(const struct request *request)
{
    struct request *copy = sim_alloc(sizeof *copy);
    *copy = *request;
    copy->call = NULL;
    return copy;
}

static void send(struct request *request)
{
    if (chance(DICE_NETWORK, etcd.faults.repeated)) {
        hold(copy_of(request), draw_time(DICE_NETWORK, 0, etcd.faults.late_most_ns));
    }
    if (chance(DICE_NETWORK, etcd.faults.late)) {
        hold(request, draw_time(DICE_NETWORK, 0, etcd.faults.late_most_ns));
    } else {
        event_in(way_ns(), NULL, at_member, request, 0, 0);
    }
}

static struct etcd_asked wait_for(struct call *call, int64_t timeout_ns)
{
    const int64_t until_ns = world.now_ns + timeout_ns;
    while (!call->is_done && world.now_ns < until_ns) {
        fibre_wait(until_ns - world.now_ns);
    }
    if (!call->is_done) {
        call->is_alone = true;
        return (struct etcd_asked){.outcome = GRPC_LOST};
    }
    const struct etcd_asked asked = call->asked;
    sim_free(call);
    return asked;
}

struct etcd_asked etcd_ask(unsigned broker, unsigned member, const char *path, const uint8_t *bytes,
                           size_t length, int64_t timeout_ns)
{
    assert(broker < ETCD_BROKERS && member < ETCD_MEMBERS);
    if (!etcd.members[member].runs) {
        fibre_wait(way_ns());
        return (struct etcd_asked){.outcome = GRPC_UNSENT}; /* the connection is refused */
    }
    struct call *call = sim_alloc(sizeof *call);
    struct request *request = sim_alloc(sizeof *request);
    call->waiter = fibre_current();
    call->fibre = fibre_name(call->waiter);
    *request = (struct request){.broker = broker, .member = member, .path = path, .length = length};
    request->call = call;
    request->bytes = sim_alloc(length + 1);
    if (length > 0) {
        memcpy(request->bytes, bytes, length);
    }
    if (etcd.broker_to_ns[broker][member] > world.now_ns) {
        drop(request);
    } else {
        send(request);
    }
    return wait_for(call, timeout_ns);
}

/* ---------------------------------------------------------------- faults */

static void come_back(void *context, uint64_t number, uint64_t life)
{
    struct member *member = &etcd.members[number];
    (void)context;
    if (member->runs || member->life != life) {
        return;
    }
    const uint64_t lost = draw(DICE_FAULTS, BEHIND_AFTER_CRASH);
    const size_t kept = member->executed > lost ? member->executed - lost : 0;
    trace("etcd: member %u comes back, %zu transactions behind", (unsigned)number,
          etcd.log_count - kept);
    store_clear(&member->store);
    member->executed = 0;
    execute_up_to((unsigned)number, kept);
    member->runs = true;
    event_in(draw_time(DICE_ORDER, 0, SIM_S), NULL, catch_up, NULL, number, etcd.log_count);
}

void etcd_crash_member(void)
{
    const unsigned number = (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS);
    struct member *member = &etcd.members[number];
    const int64_t most_ns = draw(DICE_FAULTS, 4) == 0 ? 20 * SIM_S : 3 * SIM_S;
    const int64_t away_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, most_ns);
    if (member->runs) {
        fault_happened(FAULT_MEMBER);
        trace("etcd: member %u ends for %.3f s", number, (double)away_ns / (double)SIM_S);
        member->runs = false;
        etcd.leader = etcd.leader == number ? ETCD_MEMBERS : etcd.leader;
        event_in(away_ns, NULL, come_back, NULL, number, ++member->life);
    }
}

void etcd_stop_member(void)
{
    const unsigned number = (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS);
    const int64_t time_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, 5 * SIM_S);
    fault_happened(FAULT_MEMBER);
    trace("etcd: member %u is stopped for %.3f s", number, (double)time_ns / (double)SIM_S);
    etcd.members[number].stopped_until_ns = world.now_ns + time_ns;
}

void etcd_delay_member(void)
{
    const unsigned number = (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS);
    const int64_t time_ns = draw_time(DICE_FAULTS, 500 * SIM_MS, 8 * SIM_S);
    if (number != etcd.leader) {
        fault_happened(FAULT_MEMBER);
        trace("etcd: member %u lags behind for %.3f s", number, (double)time_ns / (double)SIM_S);
        etcd.members[number].lags_until_ns = world.now_ns + time_ns;
    }
}

void etcd_cut_members(void)
{
    const unsigned one = (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS);
    const unsigned other = (one + 1 + (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS - 1)) % ETCD_MEMBERS;
    const bool is_one_way = draw(DICE_FAULTS, 3) == 0;
    const int64_t time_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, 10 * SIM_S);
    fault_happened(FAULT_CUT);
    trace("etcd: member %u does not hear member %u%s for %.3f s", other, one,
          is_one_way ? "" : ", nor the other way", (double)time_ns / (double)SIM_S);
    etcd.cut_until_ns[one][other] = world.now_ns + time_ns;
    if (!is_one_way) {
        etcd.cut_until_ns[other][one] = world.now_ns + time_ns;
    }
}

void etcd_cut_broker(void)
{
    const unsigned broker = (unsigned)draw(DICE_FAULTS, ETCD_BROKERS);
    const unsigned member = (unsigned)draw(DICE_FAULTS, ETCD_MEMBERS + 2);
    const uint64_t ways = 1 + draw(DICE_FAULTS, 3);
    const int64_t most_ns = draw(DICE_FAULTS, 4) == 0 ? 20 * SIM_S : 4 * SIM_S;
    const int64_t until_ns = world.now_ns + draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns);
    fault_happened(FAULT_CUT);
    trace("etcd: broker%u is cut from member %u of %d%s%s until %.3f", broker, member, ETCD_MEMBERS,
          (ways & 1) != 0 ? " there" : "", (ways & 2) != 0 ? " back" : "",
          (double)until_ns / (double)SIM_S);
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        if (member >= ETCD_MEMBERS || i == member) {
            etcd.broker_to_ns[broker][i] =
                (ways & 1) != 0 ? until_ns : etcd.broker_to_ns[broker][i];
            etcd.broker_from_ns[broker][i] =
                (ways & 2) != 0 ? until_ns : etcd.broker_from_ns[broker][i];
        }
    }
}

void etcd_lose_broker(unsigned broker)
{
    etcd.lost_until_ns[broker] = world.now_ns + 100 * SIM_MS;
}

void etcd_fill(void)
{
    const int64_t time_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, 4 * SIM_S);
    fault_happened(FAULT_MEMBER);
    trace("etcd: the quota is reached for %.3f s", (double)time_ns / (double)SIM_S);
    etcd.full_until_ns = world.now_ns + time_ns;
}

void etcd_set_faults(const struct etcd_faults *faults)
{
    etcd.faults = *faults;
}

void etcd_become_calm(void)
{
    etcd.faults = (struct etcd_faults){.decide_most_ns = 5 * SIM_MS, .behind_most_ns = 5 * SIM_MS};
    etcd.full_until_ns = 0;
    memset(etcd.cut_until_ns, 0, sizeof etcd.cut_until_ns);
    memset(etcd.broker_to_ns, 0, sizeof etcd.broker_to_ns);
    memset(etcd.broker_from_ns, 0, sizeof etcd.broker_from_ns);
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        etcd.members[i].stopped_until_ns = 0;
        etcd.members[i].lags_until_ns = 0;
        come_back(NULL, i, etcd.members[i].life);
    }
}

void etcd_start(const struct etcd_faults *faults)
{
    memset(&etcd, 0, sizeof etcd);
    watch_start();
    etcd.faults = *faults;
    etcd.leader = ETCD_MEMBERS;
    etcd.scratch = sim_alloc(ANSWER_MOST);
    for (unsigned i = 0; i < ETCD_MEMBERS; i++) {
        etcd.members[i].runs = true;
    }
    tick(NULL, 0, 0);
}
