/* This file runs the brokers of bench/cluster.c. */
#include "bench/cluster/parts.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/market.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINES_BYTES = 7000, COMMAND_BYTES = 1024, PORT_TRIES = 100 };
#define AWAIT_NS (600 * NS_PER_S)
#define STOP_NS (60 * NS_PER_S)
#define QUOTA_BYTES (UINT64_C(4) << 30)

/* ---------------------------------------------------------------- config */

static bool bind_to(unsigned port, int *ret_socket, unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof address;
    *ret_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = *ret_socket >= 0 &&
                      bind(*ret_socket, (struct sockaddr *)&address, sizeof address) == 0 &&
                      getsockname(*ret_socket, (struct sockaddr *)&address, &length) == 0;
    *ret_port = ntohs(address.sin_port);
    return good;
}

/* Finds two ports, one after the other. */
static bool find_ports(unsigned *ret_port)
{
    bool good = false;
    for (int i = 0; i < PORT_TRIES && !good; i++) {
        int first;
        int second = -1;
        unsigned next;
        good = bind_to(0, &first, ret_port) && bind_to(*ret_port + 1, &second, &next);
        (void)close(first);
        (void)close(second);
    }
    return good;
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t capacity,
                                                      const char *format, ...)
{
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, capacity - length, format, arguments);
    va_end(arguments);
}

/* Writes the lines of one broker's config. The budget of work of a session is raised: one session
 * brings all the load here. */
static void write_lines(const struct brokers *brokers, uint32_t number, char ret_lines[LINES_BYTES])
{
    const unsigned port = brokers->places[number].port;
    const struct etcd_config *etcd = &brokers->etcd.config;
    ret_lines[0] = '\0';
    add(ret_lines, LINES_BYTES,
        "listen: tcp://127.0.0.1:%u\nblob_listen: tcp://127.0.0.1:%u\n"
        "limits: {rate: 1000000, steps: 1000000000, ids_per_account: 16777216}\n",
        port, port + 1);
    if (!brokers->is_cluster) {
        return;
    }
    add(ret_lines, LINES_BYTES,
        "cluster: {rank: %u, address: 'tcp://127.0.0.1:%u'}\njournal:\n  etcd: [", number, port);
    for (size_t i = 0; i < etcd->member_count; i++) {
        add(ret_lines, LINES_BYTES, "%s%s", i == 0 ? "" : ", ", etcd->members[i]);
    }
    add(ret_lines, LINES_BYTES, "]\n  ca: %s\n  certificate: %s\n  key: %s\naddresses:\n", etcd->ca,
        etcd->certificate, etcd->key);
    for (uint32_t i = 0; i < BROKERS_MAX; i++) {
        const unsigned other = brokers->places[i].port;
        add(ret_lines, LINES_BYTES,
            "  - {control: tcp://127.0.0.1:%u, blobs: tcp://127.0.0.1:%u}\n", other, other + 1);
    }
}

/* ---------------------------------------------------------------- commands of bourse-broker */

static const char *backup_of(const struct brokers *brokers)
{
    static char path[SCALE_PATH_SIZE * 2];
    (void)snprintf(path, sizeof path, "%s/backup", brokers->market.folder);
    return path;
}

/* Runs `bourse-broker WORDS` and waits for its end. */
static bool command(const struct brokers *brokers, const char *const *words, size_t count,
                    struct problem *problem)
{
    enum { WORDS_MAX = 8 };
    char program[PROGRAM_PATH_SIZE];
    char log[SCALE_PATH_SIZE * 2];
    const char *all[WORDS_MAX] = {program};
    int status = 0;
    (void)snprintf(program, sizeof program, "%s/bourse-broker", brokers->market.programs);
    (void)snprintf(log, sizeof log, "%s/commands.log", brokers->market.folder);
    memcpy(all + 1, words, count * sizeof *words);
    pid_t pid = program_start(all, log);
    while (!program_has_ended(&pid, &status)) {
        program_pause();
    }
    if (status != 0) {
        problem_set(problem, "bourse-broker %s failed", words[0]);
    }
    return status == 0;
}

/* Reads `bourse-broker cluster status`. */
static bool read_status(const struct brokers *brokers, uint32_t number, char *ret_text,
                        size_t capacity)
{
    char line[COMMAND_BYTES];
    (void)snprintf(line, sizeof line, "'%s/bourse-broker' cluster status '%s' --json 2>/dev/null",
                   brokers->market.programs, brokers->places[number].folder);
    FILE *said = popen(line, "r");
    const bool got = said != NULL && fgets(ret_text, (int)capacity, said) != NULL;
    return said != NULL && pclose(said) == 0 && got;
}

int brokers_leader(const struct brokers *brokers)
{
    char text[8192];
    for (uint32_t i = 0; i < brokers->count; i++) {
        if (!read_status(brokers, i, text, sizeof text)) {
            continue;
        }
        for (uint32_t k = 0; k < brokers->count; k++) {
            char address[96];
            (void)snprintf(address, sizeof address, "\"address\":\"tcp://127.0.0.1:%u\"",
                           brokers->places[k].port);
            if (strstr(text, address) != NULL) {
                return (int)k;
            }
        }
    }
    return -1;
}

bool brokers_await(const struct brokers *brokers, uint32_t number, struct problem *ret_problem)
{
    char text[8192];
    const int64_t deadline_ns = clock_monotonic_ns() + AWAIT_NS;
    while (!read_status(brokers, number, text, sizeof text) || strstr(text, "\"lag\":0,") == NULL) {
        if (clock_monotonic_ns() > deadline_ns) {
            problem_set(ret_problem, "broker %u does not catch up", number);
            return false;
        }
        program_pause();
    }
    return true;
}

/* ---------------------------------------------------------------- start */

bool brokers_restart(struct brokers *brokers, uint32_t number, struct problem *ret_problem)
{
    char path[PROGRAM_PATH_SIZE];
    char log[PROGRAM_PATH_SIZE];
    struct broker_place *place = &brokers->places[number];
    (void)snprintf(path, sizeof path, "%s/bourse-broker", brokers->market.programs);
    (void)snprintf(log, sizeof log, "%s.log", place->folder);
    const char *words[] = {path, "run", "--dir", place->folder, NULL};
    place->pid = program_start(words, log);
    if (place->pid <= 0) {
        problem_set(ret_problem, "broker %u does not start: %s", number, strerror(errno));
    }
    return place->pid > 0;
}

static bool join_one(struct brokers *brokers, uint32_t number, struct problem *problem)
{
    char lines[LINES_BYTES];
    struct broker_place *place = &brokers->places[number];
    (void)snprintf(place->folder, sizeof place->folder, "%.80s/broker-%u", brokers->market.folder,
                   number);
    const char *words[] = {"cluster", "join", backup_of(brokers), place->folder};
    write_lines(brokers, number, lines);
    brokers->count = number + 1;
    return command(brokers, words, sizeof words / sizeof *words, problem) &&
           market_write_config(&brokers->market, place->folder, lines, problem) &&
           brokers_restart(brokers, number, problem);
}

bool brokers_back_up(const struct brokers *brokers, struct problem *ret_problem)
{
    const char *words[] = {"backup", brokers->places[0].folder, backup_of(brokers), "--with-keys"};
    program_folder_remove(backup_of(brokers));
    return command(brokers, words, sizeof words / sizeof *words, ret_problem);
}

static bool start_etcd(struct brokers *brokers, const char *source, struct problem *problem)
{
    char folder[SCALE_PATH_SIZE * 2];
    (void)snprintf(folder, sizeof folder, "%s/etcd", brokers->market.folder);
    if (mkdir(folder, 0700) != 0 ||
        !etcd_cluster_start(&brokers->etcd, source, folder, QUOTA_BYTES)) {
        problem_set(problem, "three members of etcd do not start; --source names the sources");
        return false;
    }
    return true;
}

bool brokers_start(struct brokers *brokers, bool is_cluster, const char *source,
                   struct problem *ret_problem)
{
    char lines[LINES_BYTES];
    struct scale_market *market = &brokers->market;
    brokers->is_cluster = is_cluster;
    brokers->count = 1;
    for (uint32_t i = 0; i < BROKERS_MAX; i++) {
        if (!find_ports(&brokers->places[i].port)) {
            problem_set(ret_problem, "there are no free ports");
            return false;
        }
    }
    if (!market_prepare(market, ret_problem) ||
        (is_cluster && !start_etcd(brokers, source, ret_problem))) {
        return false;
    }
    struct broker_place *first = &brokers->places[0];
    (void)snprintf(first->folder, sizeof first->folder, "%s", market->broker_folder);
    write_lines(brokers, 0, lines);
    if (!market_write_config(market, first->folder, lines, ret_problem) ||
        !market_start(market, ret_problem)) {
        return false;
    }
    first->pid = market->broker;
    market->broker = 0;
    if (!is_cluster) {
        return true;
    }
    return brokers_back_up(brokers, ret_problem) && join_one(brokers, 1, ret_problem) &&
           join_one(brokers, 2, ret_problem) && brokers_await(brokers, 1, ret_problem) &&
           brokers_await(brokers, 2, ret_problem);
}

bool brokers_join(struct brokers *brokers, double *ret_seconds, struct problem *ret_problem)
{
    const int64_t start_ns = clock_monotonic_ns();
    if (!join_one(brokers, brokers->count, ret_problem) ||
        !brokers_await(brokers, brokers->count - 1, ret_problem)) {
        return false;
    }
    *ret_seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    return true;
}

/* ---------------------------------------------------------------- the end */

bool brokers_stop(struct brokers *brokers)
{
    bool good = true;
    const int leads = brokers->is_cluster ? brokers_leader(brokers) : -1;
    for (uint32_t i = 0; i < brokers->count; i++) { /* who leads ends last, so nobody takes over */
        if ((int)i != leads) {
            good = program_end(&brokers->places[i].pid, SIGTERM, STOP_NS) && good;
        }
    }
    if (leads >= 0) {
        good = program_end(&brokers->places[leads].pid, SIGTERM, STOP_NS) && good;
    }
    return good;
}

void brokers_end(struct brokers *brokers)
{
    for (uint32_t i = 0; i < brokers->count; i++) {
        (void)program_end(&brokers->places[i].pid, SIGKILL, STOP_NS);
    }
    (void)program_end(&brokers->market.broker, SIGKILL, STOP_NS);
    if (brokers->is_cluster) {
        etcd_cluster_end(&brokers->etcd);
    }
    program_folder_remove(brokers->market.folder);
}
