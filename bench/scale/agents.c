/* This file runs many agents in one process and one thread. It waits with epoll for the descriptors
 * of their sockets: zmq_poll would look at thousands of sockets at each turn. */
#include "bench/scale/parts.h"

#include "base/checked.h"
#include "protocol/envelope.h"
#include "protocol/message.h"
#include "provider/session/agent_session.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/keyfile.h"
#include "runtime/link.h"
#include "runtime/market.h"
#include "runtime/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

enum {
    EVENTS = 256,
    LOOK_MS = 5,        /* between two looks at the times that are due */
    STARTING_MOST = 64, /* agents that wait for their first Welcome */
    SOCKETS_MOST = 3 * SCALE_AGENTS_MAX,
    FILES_MOST = 4 * SCALE_AGENTS_MAX + 256,
    PRICE_MICRO = 100000,
    MEMORY_MIB = 64,
    DISK_MIB = 16,
    ATTRIBUTES = 7,
};

struct one_agent {
    struct identity *identity;
    struct link *link;
    struct agent_session *session;
    int64_t reconnect_ns; /* INT64_MAX: connected, or trying */
    int descriptor;       /* in the epoll, -1: none */
    bool has_to_hear;     /* its socket may have messages that no event tells of */
    uint64_t welcomes;    /* before the broker's last restart */
};

/* A work in a lane. */
struct busy_lane {
    int64_t until_ns, began_ns;
    uint32_t agent;
    struct agent_work work;
};

struct crowd {
    struct agents_shared *shared;
    char folder[SCALE_PATH_SIZE];
    struct market market;
    void *zmq;
    int epoll;
    struct one_agent agents[SCALE_AGENTS_MAX];
    uint32_t count;
    struct busy_lane *lanes; /* a heap: the one that ends first is on top */
    size_t lanes_count, lanes_capacity;
    unsigned restarts;
    unsigned welcomed; /* agents that had a Welcome at some time */
};

static _Noreturn void give_up(struct crowd *crowd, const char *what)
{
    (void)snprintf(crowd->shared->failure, sizeof crowd->shared->failure, "%s", what);
    atomic_store(&crowd->shared->has_failed, true);
    _exit(1);
}

/* ---------------------------------------------------------------- work */

static void swap(struct busy_lane *a, struct busy_lane *b)
{
    const struct busy_lane lane = *a;
    *a = *b;
    *b = lane;
}

static void sift_up(struct busy_lane *lanes, size_t at)
{
    for (; at > 0 && lanes[at].until_ns < lanes[(at - 1) / 2].until_ns; at = (at - 1) / 2) {
        swap(&lanes[at], &lanes[(at - 1) / 2]);
    }
}

static void sift_down(struct busy_lane *lanes, size_t count)
{
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            least = lanes[child].until_ns < lanes[least].until_ns ? child : least;
        }
        if (least == at) {
            return;
        }
        swap(&lanes[at], &lanes[least]);
        at = least;
    }
}

/* Subtasks take from half to one and a half of the time set, so that agents which began together do
 * not go on in step. The place in the job decides, not chance. */
static int64_t work_time_ns(const struct crowd *crowd, const struct agent_work *work)
{
    enum { PARTS = 1024, SPREAD = 2654435769U % PARTS };
    const int64_t mean_ns = atomic_load(&crowd->shared->work_ns);
    return mean_ns / 2 + mean_ns / PARTS * (int64_t)((uint64_t)work->index * SPREAD % PARTS);
}

static void begin_work(struct crowd *crowd, uint32_t number, const struct agent_work *work)
{
    if (crowd->lanes_count == crowd->lanes_capacity) {
        give_up(crowd, "more work runs than there are lanes");
    }
    const int64_t now_ns = clock_monotonic_ns();
    crowd->lanes[crowd->lanes_count] =
        (struct busy_lane){.until_ns = now_ns + work_time_ns(crowd, work),
                           .began_ns = now_ns,
                           .agent = number,
                           .work = *work};
    sift_up(crowd->lanes, crowd->lanes_count++);
}

static void finish_work(struct crowd *crowd, const struct busy_lane *lane, int64_t now_ns)
{
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = OUTCOME_OK;
    facts.busy_ns = now_ns - lane->began_ns;
    facts.started_ms = clock_wall_ns() / NS_PER_MS;
    facts.has_exit_code = true;
    (void)agent_session_finished(crowd->agents[lane->agent].session, now_ns, &lane->work, &facts);
    (void)atomic_fetch_add(&crowd->shared->finished, 1);
    crowd->agents[lane->agent].has_to_hear = true;
}

/* ---------------------------------------------------------------- the wire */

static void count_message(struct crowd *crowd, const uint8_t *message, size_t length, bool is_sent)
{
    struct envelope envelope;
    (void)atomic_fetch_add(&crowd->shared->messages, 1);
    if (envelope_read(message, length, LIMIT_MESSAGE_BYTES, &envelope) != ENVELOPE_OK) {
        return;
    }
    if (envelope.type == MESSAGE_HEARTBEAT) {
        (void)atomic_fetch_add(&crowd->shared->heartbeats, 1);
    } else if (is_sent && envelope.type == MESSAGE_RESULTS) {
        (void)atomic_fetch_add(&crowd->shared->result_messages, 1);
    }
}

static void watch_socket(struct crowd *crowd, uint32_t number)
{
    struct one_agent *agent = &crowd->agents[number];
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = number};
    size_t size = sizeof agent->descriptor;
    if (zmq_getsockopt(link_socket(agent->link), ZMQ_FD, &agent->descriptor, &size) != 0 ||
        epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, agent->descriptor, &event) != 0) {
        give_up(crowd, "a connection cannot be waited for");
    }
    agent->has_to_hear = true;
}

/* A new socket has another descriptor; the old one leaves the epoll when it is closed. */
static void reconnect(struct crowd *crowd, uint32_t number, int64_t now_ns)
{
    struct one_agent *agent = &crowd->agents[number];
    struct problem problem = {""};
    agent->reconnect_ns = INT64_MAX;
    if (!link_reopen(agent->link, &problem)) {
        give_up(crowd, problem.text);
    }
    watch_socket(crowd, number);
    agent_session_connected(agent->session, now_ns, entropy_u64());
}

static void act(struct crowd *crowd, uint32_t number, const struct agent_action *action)
{
    struct one_agent *agent = &crowd->agents[number];
    switch (action->type) {
    case AGENT_START:
        begin_work(crowd, number, &action->work);
        break;
    case AGENT_RECONNECT:
        agent->reconnect_ns = clock_monotonic_ns() + action->parting.wait_ns;
        (void)atomic_fetch_add(&crowd->shared->reconnects, 1);
        break;
    case AGENT_CANCEL: /* its work ends by itself */
    case AGENT_LEASE_BEGIN:
    case AGENT_LEASE_END:
    case AGENT_PREPARE:
    case AGENT_NOTICE:
    case AGENT_STORE:
    case AGENT_SETTLED:
    case AGENT_READY:
    case AGENT_NOTE:
    case AGENT_CHALLENGE: /* the session claims no speed, so none comes */
    case AGENT_TERMINAL:
        break;
    }
}

static bool hear(struct crowd *crowd, struct one_agent *agent)
{
    const uint8_t *message;
    size_t length;
    bool heard = false;
    while (agent->reconnect_ns == INT64_MAX &&
           link_receive(agent->link, 0, &message, &length) == 1) {
        count_message(crowd, message, length, false);
        agent_session_incoming(agent->session, clock_monotonic_ns(), message, length);
        heard = true;
    }
    return heard;
}

static bool say(struct crowd *crowd, struct one_agent *agent)
{
    const uint8_t *message;
    size_t length;
    bool said = false;
    while (agent->reconnect_ns == INT64_MAX &&
           agent_session_outgoing(agent->session, &message, &length)) {
        if (!link_send(agent->link, message, length)) {
            agent_session_unsent(agent->session);
            break; /* not connected, or full: the socket tells when to try again */
        }
        count_message(crowd, message, length, true);
        said = true;
    }
    return said;
}

/* A send may use up the event that tells of messages, so the agent hears again after it. */
static void turn(struct crowd *crowd, uint32_t number)
{
    struct one_agent *agent = &crowd->agents[number];
    struct agent_action action;
    agent->has_to_hear = false;
    do {
        (void)hear(crowd, agent);
        while (agent_session_action(agent->session, &action)) {
            act(crowd, number, &action);
            agent_session_drop_action(&action);
        }
    } while (say(crowd, agent));
    if (agent_session_out_of_memory(agent->session)) {
        give_up(crowd, "out of memory");
    }
}

/* ---------------------------------------------------------------- agents */

static void put(struct attribute *attribute, const char *name, const char *text, int64_t number)
{
    *attribute = (struct attribute){.is_text = text != NULL, .number = number};
    (void)snprintf(attribute->name, sizeof attribute->name, "%s", name);
    (void)snprintf(attribute->text, sizeof attribute->text, "%s", text != NULL ? text : "");
}

static bool offer(struct one_agent *agent, uint32_t number)
{
    struct attribute attributes[ATTRIBUTES];
    struct agent_device device = {.instrument = "cpu.bench", .label = "", .slots = 1};
    put(&attributes[0], "kind", "cpu", 0);
    put(&attributes[1], "executor", "noop", 0);
    put(&attributes[2], "cores", NULL, 1);
    put(&attributes[3], "memory", NULL, (int64_t)MEMORY_MIB << 20);
    put(&attributes[4], "disk", NULL, (int64_t)DISK_MIB << 20);
    put(&attributes[5], "simulated", NULL, 0);
    put(&attributes[6], "isolation", NULL, 1);
    device.attributes = attributes;
    device.attribute_count = ATTRIBUTES;
    memcpy(device.device.bytes, &number, sizeof number);
    device.device.bytes[15] = 1; /* no id is zero */
    const struct agent_ask ask = {.device = device.device, .slots = 1, .price_micro = PRICE_MICRO};
    return agent_session_offer(agent->session, clock_monotonic_ns(), &device, 1, &ask, 1) ==
           AGENT_OK;
}

static void start_agent(struct crowd *crowd, uint32_t number)
{
    struct one_agent *agent = &crowd->agents[number];
    struct problem problem = {""};
    char key[SCALE_PATH_SIZE * 2];
    market_agent_key(crowd->folder, number, key);
    *agent = (struct one_agent){.reconnect_ns = INT64_MAX, .descriptor = -1};
    if (!keyfile_load(key, &agent->identity, &problem) ||
        !link_open(crowd->zmq, crowd->market.control, &crowd->market.server, agent->identity,
                   LIMIT_MESSAGE_BYTES, &agent->link, &problem)) {
        give_up(crowd, problem.text);
    }
    struct agent_session_config config = {.identity = agent->identity,
                                          .program = "bench-scale",
                                          .cluster = crowd->market.cluster,
                                          .can_store_again = true};
    entropy_bytes(config.dice.bytes, sizeof config.dice.bytes);
    agent->session = agent_session_create(&config);
    if (agent->session == NULL || !offer(agent, number)) {
        give_up(crowd, "out of memory");
    }
    watch_socket(crowd, number);
    agent_session_connected(agent->session, clock_monotonic_ns(), entropy_u64());
}

static void read_market(struct crowd *crowd)
{
    char file[SCALE_PATH_SIZE * 2];
    struct problem problem = {""};
    (void)snprintf(file, sizeof file, "%s/broker/" MARKET_FILE, crowd->folder);
    if (!market_read(file, &crowd->market, &problem)) {
        give_up(crowd, problem.text);
    }
}

/* Does what is due by the clock, for all agents. */
static void look(struct crowd *crowd, int64_t now_ns)
{
    unsigned ready = 0;
    unsigned standing = 0;
    unsigned welcomed = 0;
    const unsigned wanted = atomic_load(&crowd->shared->wanted);
    const unsigned restarts = atomic_load(&crowd->shared->restarts);
    const bool is_restart = restarts != crowd->restarts;
    while (crowd->count < wanted && crowd->count < crowd->welcomed + STARTING_MOST) {
        if (crowd->count == 0) {
            read_market(crowd);
        }
        start_agent(crowd, crowd->count++);
    }
    for (uint32_t i = 0; i < crowd->count; i++) {
        struct one_agent *agent = &crowd->agents[i];
        if (now_ns >= agent->reconnect_ns) {
            reconnect(crowd, i, now_ns);
        }
        if (now_ns >= agent_session_next_deadline_ns(agent->session)) {
            agent_session_tick(agent->session, now_ns);
            agent->has_to_hear = true;
        }
        if (agent->has_to_hear) {
            turn(crowd, i);
        }
        const struct agent_counts counts = agent_session_counts(agent->session);
        welcomed += counts.welcomes > 0;
        agent->welcomes = is_restart ? counts.welcomes : agent->welcomes;
        ready += counts.ready && counts.welcomes > agent->welcomes;
        standing += counts.asks_standing > 0 && counts.welcomes > agent->welcomes;
    }
    crowd->restarts = restarts;
    crowd->welcomed = welcomed;
    atomic_store(&crowd->shared->ready, ready);
    atomic_store(&crowd->shared->standing, standing);
}

static void end_lanes(struct crowd *crowd, int64_t now_ns)
{
    for (size_t left = crowd->lanes_count; left > 0; left--) {
        const struct busy_lane lane = crowd->lanes[0];
        if (lane.until_ns > now_ns) {
            return;
        }
        crowd->lanes[0] = crowd->lanes[--crowd->lanes_count];
        sift_down(crowd->lanes, crowd->lanes_count);
        finish_work(crowd, &lane, now_ns);
        turn(crowd, lane.agent);
    }
}

static int wait_ms(const struct crowd *crowd, int64_t now_ns, int64_t look_ns)
{
    int64_t until_ns = look_ns;
    if (crowd->lanes_count > 0 && crowd->lanes[0].until_ns < until_ns) {
        until_ns = crowd->lanes[0].until_ns;
    }
    return until_ns <= now_ns ? 0 : (int)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static void run(struct crowd *crowd)
{
    struct epoll_event events[EVENTS];
    int64_t look_ns = 0;
    while (!atomic_load(&crowd->shared->has_to_end)) {
        int64_t now_ns = clock_monotonic_ns();
        end_lanes(crowd, now_ns);
        if (now_ns >= look_ns) {
            look(crowd, now_ns);
            look_ns = now_ns + LOOK_MS * NS_PER_MS;
        }
        const int count =
            epoll_wait(crowd->epoll, events, EVENTS, wait_ms(crowd, clock_monotonic_ns(), look_ns));
        for (int i = 0; i < count; i++) {
            turn(crowd, events[i].data.u32);
        }
    }
}

pid_t agents_start(const char *folder, struct agents_shared **ret_shared,
                   struct problem *ret_problem)
{
    struct agents_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        problem_set(ret_problem, "out of memory");
        return -1;
    }
    *ret_shared = shared;
    const pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    process_name_thread("agents");
    struct problem problem = {""};
    struct crowd *crowd = calloc(1, sizeof *crowd);
    struct busy_lane *lanes = calloc((size_t)2 * SCALE_AGENTS_MAX, sizeof *lanes);
    if (crowd == NULL || lanes == NULL) {
        _exit(1);
    }
    crowd->shared = shared;
    crowd->lanes = lanes;
    crowd->lanes_capacity = (size_t)2 * SCALE_AGENTS_MAX;
    (void)snprintf(crowd->folder, sizeof crowd->folder, "%s", folder);
    crowd->zmq = zmq_ctx_new();
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (crowd->zmq == NULL || crowd->epoll < 0 ||
        zmq_ctx_set(crowd->zmq, ZMQ_MAX_SOCKETS, SOCKETS_MOST) != 0 ||
        !process_open_files(1024, FILES_MOST, &problem)) {
        give_up(crowd, "the agents' process cannot start");
    }
    run(crowd);
    _exit(0);
}
