/* The test plays days of a donor's machine on a virtual clock. The owner comes and goes, and
 * programs use the processors. A folder has the files of that machine, which the agent's own
 * sensors read. The agent's session talks to a broker that the test plays, and that always has
 * work.
 *
 * What counts is what a job gets: the time in which its work is begun, and its programs do not
 * stand still. A model that knows every sign of use says when this time may be, and when it must
 * be. */
#include "base/random.h"
#include "provider/agent_internal.h"
#include "provider/idle/process_sensor.h"
#include "provider/work/lanes_internal.h"
#include "tests/support/agent_play.h"
#include "tests/support/machine_files.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DAYS = 1,
    DAY_S = 24 * 3600,
    LANE = 0,
    JAIL = 4000000,
    LEASE_MS = 1440000,
    TICKS_A_SECOND = 100
};
#define MS NS_PER_MS
#define FOREVER INT64_MAX

enum visit { AWAY, TYPES, MOVES_THE_MOUSE, SITS, PLAYS, COMPILES, TRAVELS, VISITS };

/* The time that passes at most until a sensor sees a sign, and until it sees that the sign is gone:
 * the pause between two of its looks. The load is a mean over 5 s, and the owner's compiler takes
 * three cores. */
static const struct {
    int64_t seen_ns, gone_ns;
} delays[VISITS] = {
    [TYPES] = {IDLE_LOOK_NS, 0},
    [MOVES_THE_MOUSE] = {IDLE_LOOK_NS, 0},
    [SITS] = {IDLE_LOOK_NS, 0},
    [PLAYS] = {IDLE_PROCESSES_NS + IDLE_LOOK_NS, IDLE_PROCESSES_REST_NS},
    [COMPILES] = {PROCESS_SENSOR_WINDOW_NS / 6 + IDLE_PROCESSES_NS + IDLE_LOOK_NS,
                  PROCESS_SENSOR_WINDOW_NS + IDLE_PROCESSES_REST_NS},
    [TRAVELS] = {IDLE_POWER_NS + IDLE_LOOK_NS, IDLE_POWER_NS},
};
/* After the end of a sign and the owner's time, the work goes on within this time. */
#define GOES_ON_NS (IDLE_REST_NS + 100 * MS)
/* The time without a sign counts from the last look that saw one, and not from its end. */
#define EARLY_NS IDLE_REST_NS
#define SHORTEST_NS (10 * NS_PER_S)
#define COMPILER_CORES 3

/* The files that change with time stay open. */
enum file { FILE_STAT, FILE_NEWEST, FILE_JAIL, FILE_MOUSE, FILE_MAINS, FILES };

struct day {
    struct random random;
    struct agent agent;
    struct agent_setup setup;
    struct config config;
    struct play play;
    int files[FILES];
    long newest; /* the process that was made last */
    /* The owner does one thing at a time, for seconds or hours. */
    enum visit visit;
    int64_t until_ns, next_key_ns;
    long keys;
    int64_t others_ns, ours_ns; /* what the processors did */
    /* The broker's side. */
    uint64_t lease;
    bool has_lease;
    uint32_t index;
    /* The work in the jail. */
    bool is_running, is_told, is_cancelled;
    struct agent_work work;
    int64_t left_ns;
    /* The model: whether a sign is there, when the last one ended, and from when on no work may
     * run before the machine has been idle; FOREVER: it may. */
    bool has_sign;
    int64_t sign_end_ns, known_ns, must_stop_ns; /* known_ns: the sensor knows the end by then */
    int64_t donated_ns, idle_ns, gap_ns;
};

/* ---------------------------------------------------------------- the machine */

static void open_file(struct day *day, enum file which, const char *name)
{
    char file[512];
    put(name, "%s", "");
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    day->files[which] = open(file, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(day->files[which], 0);
}

/* Overwrites a file that stays open. Its text always has the same length. */
__attribute__((format(printf, 3, 4))) static void set(const struct day *day, enum file which,
                                                      const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ck_assert_int_eq(pwrite(day->files[which], text, (size_t)length, 0), length);
}

static void set_clock(const struct day *day)
{
    const int64_t tick_ns = NS_PER_S / TICKS_A_SECOND;
    set(day, FILE_STAT, "cpu  %20" PRId64 " 0 0 0 0 0 0 0 0 0\n",
        (day->others_ns + day->ours_ns) / tick_ns);
    set(day, FILE_JAIL, "%d (bwrap) S %d 1 1 0 -1 4194560 1 2 3 4 %20" PRId64 " 0 0 0\n", JAIL,
        (int)getpid(), day->ours_ns / tick_ns);
}

static void set_newest(struct day *day)
{
    day->newest++;
    set(day, FILE_NEWEST, "0.00 0.00 0.00 1/100 %10ld\n", day->newest);
}

static void build_machine(struct day *day)
{
    char name[64];
    ck_assert_int_eq(sysconf(_SC_CLK_TCK), TICKS_A_SECOND);
    put("dev/tty1", "%s", "");
    put("sys/bus/usb/devices/1-2:1.0/bInterfaceClass", "%s\n", "03");
    put("sys/bus/usb/devices/1-2:1.0/bInterfaceProtocol", "%s\n", "02");
    put("sys/class/power_supply/AC/type", "%s\n", "Mains");
    put("run/systemd/sessions/.keep", "%s", "");
    put("proc/1/stat", "%s", "1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 0 0 0 0\n");
    (void)snprintf(name, sizeof name, "proc/%d/stat", (int)getpid());
    put(name, "%d (bourse-provider) S 1 1 1 0 -1 4194560 1 2 3 4 0 0 0 0\n", (int)getpid());
    (void)snprintf(name, sizeof name, "proc/%d/stat", JAIL);
    open_file(day, FILE_JAIL, name);
    open_file(day, FILE_STAT, "proc/stat");
    open_file(day, FILE_NEWEST, "proc/loadavg");
    open_file(day, FILE_MOUSE, "sys/bus/usb/devices/1-2/urbnum");
    open_file(day, FILE_MAINS, "sys/class/power_supply/AC/online");
    set(day, FILE_MOUSE, "%12d\n", 0);
    set(day, FILE_MAINS, "%s\n", "1");
    set_newest(day);
    set_clock(day);
}

/* ---------------------------------------------------------------- the owner */

static void press_key(struct day *day)
{
    day->keys++;
    if (day->visit == MOVES_THE_MOUSE) {
        set(day, FILE_MOUSE, "%12ld\n", day->keys);
    } else {
        type_at("dev/tty1", day->keys);
    }
}

static bool types(const struct day *day)
{
    return day->visit == TYPES || day->visit == MOVES_THE_MOUSE;
}

/* The model notes that a sign begins. */
static void begin_sign(struct day *day)
{
    const int64_t stop_ns = day->play.now_ns + delays[day->visit].seen_ns;
    day->has_sign = true;
    day->must_stop_ns = day->must_stop_ns < stop_ns ? day->must_stop_ns : stop_ns;
}

/* The model notes that the sign ends, if there is one. */
static void end_sign(struct day *day)
{
    if (day->has_sign) {
        const int64_t known_ns = day->play.now_ns + delays[day->visit].gone_ns;
        day->has_sign = false;
        day->sign_end_ns = day->play.now_ns;
        day->known_ns = known_ns > day->known_ns ? known_ns : day->known_ns;
    }
}

static void end_visit(struct day *day)
{
    switch (day->visit) {
    case SITS:
        drop("run/systemd/sessions/3");
        break;
    case PLAYS:
        drop("proc/77/stat");
        break;
    case TRAVELS:
        set(day, FILE_MAINS, "%s\n", "1");
        break;
    case COMPILES: /* its load is in the mean for a while */
    case AWAY:
    case TYPES:
    case MOVES_THE_MOUSE:
    case VISITS:
        break;
    }
    end_sign(day);
}

static void begin_visit(struct day *day)
{
    static const uint64_t longest_s[VISITS] = {3600, 1200, 1200, 600, 1800, 900, 600};
    const bool was_away = day->visit == AWAY;
    end_visit(day);
    day->visit = was_away ? (enum visit)(1 + random_below(&day->random, VISITS - 1)) : AWAY;
    day->until_ns = day->play.now_ns + SHORTEST_NS +
                    MS * (int64_t)random_below(&day->random, 1000 * longest_s[day->visit]);
    day->next_key_ns = types(day) ? day->play.now_ns : FOREVER;
    switch (day->visit) {
    case SITS:
        put("run/systemd/sessions/3", "%s", "USER=alice\nACTIVE=1\nSEAT=seat0\nCLASS=user\n");
        break;
    case PLAYS:
        put("proc/77/stat", "%s", "77 (steam) S 1 1 1 0 -1 4194560 1 2 3 4 0 0 0 0\n");
        set_newest(day);
        break;
    case TRAVELS:
        set(day, FILE_MAINS, "%s\n", "0");
        break;
    case COMPILES:
    case AWAY:
    case TYPES:
    case MOVES_THE_MOUSE:
    case VISITS:
        break;
    }
    if (day->visit != AWAY && !types(day)) {
        begin_sign(day);
    }
}

static void turn_owner(struct day *day)
{
    if (day->play.now_ns >= day->until_ns) {
        begin_visit(day);
    }
    if (day->play.now_ns >= day->next_key_ns) {
        press_key(day);
        begin_sign(day);
        end_sign(day);
        day->next_key_ns += MS * (1 + (int64_t)random_below(&day->random, 30000));
    }
}

/* ---------------------------------------------------------------- the broker and the jail */

static void answer_heartbeat(struct play *play)
{
    static const struct id128 none;
    Bourse__V1__Heartbeat body = BOURSE__V1__HEARTBEAT__INIT;
    say(play, MESSAGE_HEARTBEAT, &none, &body.base);
}

/* Ends the lease when its work was given back, and else sends more. */
static void take_results(struct day *day, const struct seen *seen)
{
    const struct seen results = *seen;
    accept(&day->play, &results);
    if (day->has_lease && day->is_cancelled) {
        end_lease(&day->play, day->lease, LEASE_END_RETURNED);
        day->has_lease = false;
    } else if (day->has_lease) {
        dispatch(&day->play, day->lease, ++day->index, LANE);
    }
}

/* Answers the agent, and lets work whenever an ask stands. Returns true when the agent said
 * something. */
static bool hear_agent(struct day *day)
{
    struct play *play = &day->play;
    listen(play);
    const bool has_heard = play->seen_count > 0;
    for (size_t i = 0; i < play->seen_count; i++) {
        const struct seen *seen = &play->seen[i];
        switch (seen->type) {
        case MESSAGE_HEARTBEAT:
            answer_heartbeat(play);
            break;
        case MESSAGE_ADVERTISE:
        case MESSAGE_ASK_PLACE:
        case MESSAGE_ORDER_CANCEL:
        case MESSAGE_STATEMENT_HELD:
            accept(play, seen);
            break;
        case MESSAGE_RESULTS:
            take_results(day, seen);
            break;
        default:
            break;
        }
    }
    forget_seen(play);
    if (!day->has_lease && agent_session_counts(play->session).asks_standing > 0) {
        day->has_lease = true;
        grant(play, ++day->lease, 4, LEASE_MS);
        dispatch(play, day->lease, ++day->index, LANE);
    }
    return has_heard;
}

static void finish_work(struct day *day, enum result_outcome outcome)
{
    day->is_running = false;
    ck_assert_int_eq(finish(&day->play, day->work.lease, day->work.index, outcome), AGENT_OK);
}

/* Does what the session asks for, as the lanes do. Returns true when there was something. */
static bool act_for(struct day *day)
{
    struct agent_action action;
    bool has_acted = false;
    while (agent_session_action(day->play.session, &action)) {
        has_acted = true;
        switch (action.type) {
        case AGENT_START:
            ck_assert(!day->is_running);
            day->is_running = true;
            day->is_told = day->is_cancelled = false;
            day->work = action.work;
            day->left_ns = NS_PER_S * (1 + (int64_t)random_below(&day->random, 900));
            break;
        case AGENT_CANCEL:
            ck_assert(day->is_running);
            day->is_cancelled = true;
            finish_work(day, OUTCOME_CANCELLED);
            break;
        case AGENT_LEASE_END:
            day->has_lease = day->has_lease && action.work.lease != day->lease;
            break;
        default:
            break;
        }
        agent_session_drop_action(&action);
    }
    return has_acted;
}

/* ---------------------------------------------------------------- time */

/* Returns true when the job's program computes. */
static bool computes(const struct day *day)
{
    return day->is_running && !atomic_load(&day->agent.lanes->is_frozen);
}

/* Lets time pass for the processors and the program, and compares with the model. */
static void pass(struct day *day, int64_t next_ns)
{
    const int64_t now_ns = day->play.now_ns;
    const int64_t span_ns = next_ns - now_ns;
    const int64_t after_ns = day->config.idle.after_ns;
    const int64_t free_ns = day->known_ns + after_ns;
    const int64_t from_ns = free_ns > now_ns ? free_ns : now_ns;
    const int64_t idle_ns = !day->has_sign && next_ns > from_ns ? next_ns - from_ns : 0;
    if (!day->has_sign && now_ns + EARLY_NS >= day->sign_end_ns + after_ns) {
        day->must_stop_ns = FOREVER;
    }
    day->others_ns += day->visit == COMPILES ? COMPILER_CORES * span_ns : span_ns / 4;
    if (computes(day)) {
        day->ours_ns += span_ns;
        day->left_ns -= span_ns;
        day->donated_ns += span_ns;
        ck_assert_msg(next_ns <= day->must_stop_ns,
                      "work %" PRId64 " ms too long after a sign of use of kind %d",
                      (next_ns - day->must_stop_ns) / MS, (int)day->visit);
    }
    day->gap_ns = computes(day) || idle_ns == 0 ? 0 : day->gap_ns + idle_ns;
    ck_assert_msg(day->gap_ns <= GOES_ON_NS, "no work for %" PRId64 " ms of idle time",
                  day->gap_ns / MS);
    day->idle_ns += idle_ns;
    day->play.now_ns = next_ns;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void turn(struct day *day)
{
    struct play *play = &day->play;
    int64_t next_ns = agent_session_next_deadline_ns(play->session);
    next_ns = sooner(next_ns, agent_idle_due_ns(&day->agent));
    next_ns = sooner(next_ns, sooner(day->until_ns, day->next_key_ns));
    if (computes(day)) {
        next_ns = sooner(next_ns, play->now_ns + day->left_ns);
    }
    pass(day, next_ns > play->now_ns ? next_ns : play->now_ns);
    turn_owner(day);
    set_clock(day);
    if (day->is_running && day->left_ns <= 0) {
        finish_work(day, OUTCOME_OK);
    }
    agent_session_tick(play->session, play->now_ns);
    agent_idle_turn(&day->agent, play->now_ns);
    for (bool goes_on = true; goes_on;) {
        const bool has_acted = act_for(day);
        goes_on = hear_agent(day) || has_acted;
    }
}

static void open_agent(struct day *day)
{
    static struct offers no_offers;
    struct idle_terms *terms = &day->config.idle;
    *terms =
        (struct idle_terms){.is_set = true,
                            .after_ns = NS_PER_S * (int64_t)(10 + random_below(&day->random, 600)),
                            .give_back_ns = NS_PER_S * (int64_t)random_below(&day->random, 1200),
                            .watches_input = true,
                            .watches_sessions = true,
                            .watches_battery = true,
                            .load_milli = 500,
                            .programs = {"steam"},
                            .program_count = 1};
    (void)snprintf(day->config.idle_root, sizeof day->config.idle_root, "%s", folder);
    day->setup = (struct agent_setup){.config = &day->config, .offers = &no_offers};
    const struct lanes_config lanes = {.config = &day->config, .offers = &no_offers};
    play_start(&day->play);
    day->agent = (struct agent){.setup = &day->setup, .session = day->play.session};
    day->agent.lanes = lanes_create(&lanes);
    ck_assert_ptr_nonnull(day->agent.lanes);
    ck_assert_msg(owner_open(folder, &day->agent.owner, &problem), "%s", problem.text);
    owner_begin(day->agent.owner, day->play.session, day->play.now_ns);
    ck_assert_msg(agent_open_idle(&day->agent, day->play.now_ns, &problem), "%s", problem.text);
}

static void close_agent(struct day *day)
{
    idle_watch_destroy(&day->agent.idle);
    owner_close(&day->agent.owner);
    lanes_destroy(&day->agent.lanes);
    play_end(&day->play);
    for (enum file which = 0; which < FILES; which++) {
        (void)close(day->files[which]);
    }
}

START_TEST(a_donors_day)
{
    static struct day day;
    day.random = random_seeded(property_seed(20261201) + (uint64_t)_i);
    day.next_key_ns = FOREVER;
    build_machine(&day);
    open_agent(&day);
    const int64_t began_ns = day.play.now_ns;
    day.sign_end_ns = day.known_ns = day.must_stop_ns =
        began_ns; /* the start of the agent is a sign */
    welcome(&day.play, &cluster);
    while (day.play.now_ns < began_ns + DAY_S * NS_PER_S) {
        turn(&day);
    }
    ck_assert_msg(day.donated_ns > DAY_S * NS_PER_S / 100,
                  "a day without work proves nothing: %" PRId64 " s", day.donated_ns / NS_PER_S);
    ck_assert_msg(day.donated_ns >= day.idle_ns / 100 * 99,
                  "of %" PRId64 " s of idle time, %" PRId64 " s are used", day.idle_ns / NS_PER_S,
                  day.donated_ns / NS_PER_S);
    printf("day %d: idle for %" PRId64 " s after the owner's time; donated %" PRId64
           " s in %" PRIu64 " leases\n",
           _i, day.idle_ns / NS_PER_S, day.donated_ns / NS_PER_S, day.lease);
    close_agent(&day);
}
END_TEST

SUITE("idle times", setup, teardown, LOOP(a_donors_day, 0, DAYS))
