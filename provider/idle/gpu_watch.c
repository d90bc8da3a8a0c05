#include "provider/idle/gpu_watch.h"

#include "provider/idle/process_sensor.h"
#include "provider/jail/watcher.h"
#include "provider/tensor/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_BYTES = 64 << 10, NODES_MOST = GPU_WATCH_DEVICES_MAX * 8 };
#define NS_PER_MS INT64_C(1000000)

struct device {
    const struct kernel_device *facts;
    char label[ATTRIBUTE_TEXT_SIZE];
    struct gpu_rule rule;
    int64_t allowed_bytes; /* of its memory, for jobs; 0: all */
    int64_t own_bytes;     /* what the agent's programs take of it; -1: not known */
};

struct gpu_watch {
    struct gpu_watch_config config;
    /* Devices with figures come first, and their figures have the same place. */
    struct device devices[GPU_WATCH_DEVICES_MAX];
    struct gpu_figures figures[GPU_WATCH_DEVICES_MAX];
    size_t count, watched_count;
    struct watcher watcher; /* a control without a socket: the watcher was told to end */
    bool is_asked;
    int64_t asked_ns, due_ns; /* due_ns: of the next question, or of the next start */
    int64_t read_ns;          /* time of the last figures; -1: none yet */
    char line[LINE_BYTES];    /* the part of an answer that has come */
    size_t line_length;
    struct problem problem; /* why there are no figures; "": there are, or none were asked for */
};

struct gpu_watch *gpu_watch_create(const struct gpu_watch_config *config)
{
    struct gpu_watch *watch = calloc(1, sizeof *watch);
    if (watch != NULL) {
        watch->config = *config;
        watch->watcher = (struct watcher){.socket = -1, .control = -1};
        watch->read_ns = -1;
    }
    return watch;
}

void gpu_watch_destroy(struct gpu_watch **self)
{
    struct gpu_watch *watch = *self;
    if (watch != NULL) {
        watcher_close(&watch->watcher);
        free(watch);
        *self = NULL;
    }
}

void gpu_watch_add(struct gpu_watch *watch, const struct kernel_device *device, const char *label,
                   int64_t allowed_bytes, int64_t now_ns)
{
    static const struct gpu_terms none;
    const bool is_watched = device->api == KERNEL_CUDA;
    if (watch->count == GPU_WATCH_DEVICES_MAX) {
        return;
    }
    const size_t place = is_watched ? watch->watched_count : watch->count;
    memmove(&watch->devices[place + 1], &watch->devices[place],
            (watch->count - place) * sizeof watch->devices[0]);
    watch->devices[place] =
        (struct device){.facts = device, .allowed_bytes = allowed_bytes, .own_bytes = -1};
    (void)snprintf(watch->devices[place].label, sizeof watch->devices[place].label, "%s", label);
    gpu_rule_init(&watch->devices[place].rule, is_watched ? watch->config.terms : &none, now_ns);
    if (is_watched) {
        struct gpu_figures *figures = &watch->figures[watch->watched_count++];
        (void)snprintf(figures->id, sizeof figures->id, "%s", device->id);
        gpu_figures_clear(figures);
    }
    watch->count++;
}

/* ---------------------------------------------------------------- judging */

/* Finds a program of others in the list, and writes "python3 (process 3182)". */
static void find_other(const struct gpu_watch *watch, const struct gpu_processes *processes,
                       char ret_name[IDLE_NAME_SIZE])
{
    ret_name[0] = '\0';
    for (size_t i = 0; i < processes->count && ret_name[0] == '\0'; i++) {
        char name[IDLE_PROGRAM_SIZE];
        const pid_t pid = processes->pids[i];
        if (process_sensor_owner("", pid, watch->config.self, name) == PROCESS_OTHERS) {
            (void)snprintf(ret_name, IDLE_NAME_SIZE, "%s%sprocess %lld%s", name,
                           name[0] != '\0' ? " (" : "", (long long)pid, name[0] != '\0' ? ")" : "");
        }
    }
    if (ret_name[0] == '\0' && processes->has_unnamed) {
        (void)snprintf(ret_name, IDLE_NAME_SIZE, "a program that the driver does not name");
    }
}

/* Adds up what the agent's own programs take of the device's memory. Returns -1 when the driver
 * does not tell. */
static int64_t find_own_bytes(const struct gpu_watch *watch, const struct gpu_processes *processes)
{
    int64_t sum_bytes = 0;
    for (size_t i = 0; i < processes->count; i++) {
        char name[IDLE_PROGRAM_SIZE];
        if (processes->memory_bytes[i] >= 0 &&
            process_sensor_owner("", processes->pids[i], watch->config.self, name) ==
                PROCESS_OURS) {
            sum_bytes += processes->memory_bytes[i];
        }
    }
    return processes->is_known ? sum_bytes : -1;
}

void gpu_watch_change(struct gpu_watch *watch)
{
    for (size_t i = 0; i < watch->watched_count; i++) {
        gpu_rule_change(&watch->devices[i].rule, watch->config.terms);
    }
}

static void judge_device(struct gpu_watch *watch, size_t index, int64_t now_ns)
{
    const struct gpu_figures *figures = &watch->figures[index];
    watch->devices[index].own_bytes =
        watch->devices[index].allowed_bytes > 0 ? find_own_bytes(watch, &figures->compute) : -1;
    struct gpu_reading reading = {.is_lost = figures->is_lost,
                                  .sees_compute = figures->compute.is_known,
                                  .sees_graphics = figures->graphics.is_known,
                                  .sees_heat = figures->celsius >= 0,
                                  .sees_power = figures->power_mw >= 0,
                                  .celsius = (int32_t)figures->celsius,
                                  .milliwatts = figures->power_mw};
    if (watch->config.terms->is_set) {
        find_other(watch, &figures->compute, reading.compute);
        find_other(watch, &figures->graphics, reading.graphics);
    }
    (void)gpu_rule_see(&watch->devices[index].rule, now_ns, &reading);
}

/* Passes what a reading says of energy on. A split device tells only of all its parts together. */
static void gauge(struct gpu_watch *watch, int64_t now_ns)
{
    for (size_t i = 0; watch->config.gauges != NULL && i < watch->watched_count; i++) {
        const struct gpu_figures *figures = &watch->figures[i];
        energy_gauge_read(watch->config.gauges, watch->devices[i].label, now_ns,
                          figures->is_split ? -1 : figures->energy_mj,
                          figures->is_split ? -1 : figures->power_mw);
    }
}

static void judge(struct gpu_watch *watch, int64_t now_ns)
{
    for (size_t i = 0; i < watch->watched_count; i++) {
        judge_device(watch, i, now_ns);
    }
}

/* Lets time pass for the rules. Returns true when an order changed. */
static bool wait_on(struct gpu_watch *watch, int64_t now_ns)
{
    bool has_changed = false;
    for (size_t i = 0; i < watch->watched_count; i++) {
        struct gpu_rule *rule = &watch->devices[i].rule;
        const enum idle_order before = gpu_rule_order(rule);
        has_changed = gpu_rule_wait(rule, now_ns) != before || has_changed;
    }
    return has_changed;
}

/* ---------------------------------------------------------------- the watcher */

/* Tells the watcher to end. The next one starts once this one has ended: a process that hangs in
 * the driver cannot be killed, and others would hang beside it. */
static void stop(struct gpu_watch *watch, int64_t now_ns)
{
    (void)close(watch->watcher.socket);
    watch->watcher.socket = -1;
    launcher_kill(watch->watcher.control);
    watch->is_asked = false;
    watch->due_ns = now_ns + GPU_WATCH_RETRY_NS;
}

/* Applies the rule without figures, because they could not be read. */
static void go_blind(struct gpu_watch *watch, int64_t now_ns)
{
    for (size_t i = 0; i < watch->watched_count; i++) {
        gpu_figures_clear(&watch->figures[i]);
    }
    judge(watch, now_ns);
}

static void add_node(const char **nodes, size_t *count, const char *node)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(nodes[i], node) == 0) {
            return;
        }
    }
    if (*count < NODES_MOST) {
        nodes[(*count)++] = node;
    }
}

static bool start(struct gpu_watch *watch)
{
    const char *nodes[NODES_MOST + 1] = {NULL};
    const char *words[GPU_WATCH_DEVICES_MAX + 2] = {KERNEL_WATCH};
    size_t node_count = 0;
    for (size_t i = 0; i < watch->watched_count; i++) {
        words[1 + i] = watch->figures[i].id;
        const char *const *of = kernel_device_nodes(watch->devices[i].facts);
        for (; *of != NULL; of++) {
            add_node(nodes, &node_count, *of);
        }
    }
    const struct watcher_spec spec = {
        .path = watch->config.kernel_path, .nodes = nodes, .words = words};
    watch->line_length = 0;
    return watcher_open(watch->config.launcher, &spec, &watch->watcher, &watch->problem);
}

/* Starts the watcher when the former one has ended. Returns false when there is none then. */
static bool start_again(struct gpu_watch *watch, int64_t now_ns)
{
    int status;
    watch->due_ns = now_ns + GPU_WATCH_RETRY_NS;
    if (watch->watcher.control >= 0) {
        if (!launcher_wait(watch->watcher.control, 0, &status)) {
            return false; /* it hangs in the driver, where no signal reaches it */
        }
        watcher_close(&watch->watcher);
    }
    if (!start(watch)) {
        return false;
    }
    watch->due_ns = now_ns;
    return true;
}

static void ask(struct gpu_watch *watch, int64_t now_ns)
{
    /* The socket has room for a byte; a watcher that is gone shows by the end of the socket. */
    (void)send(watch->watcher.socket, "\n", 1, MSG_NOSIGNAL);
    watch->is_asked = true;
    watch->asked_ns = now_ns;
}

/* Returns true when the owner wants more watched than the loss of a device. */
static bool looks_often(const struct gpu_watch *watch)
{
    bool has_limit = watch->config.terms->is_set;
    for (size_t i = 0; i < watch->watched_count; i++) {
        has_limit = has_limit || watch->devices[i].allowed_bytes > 0;
    }
    return has_limit;
}

/* Takes a whole line from what has come. */
static void take_line(struct gpu_watch *watch, size_t length, int64_t now_ns)
{
    struct problem problem = {""};
    const bool good =
        gpu_figures_read(watch->line, length, watch->figures, watch->watched_count, &problem);
    watch->problem = problem;
    watch->read_ns = good ? now_ns : watch->read_ns;
    watch->is_asked = false;
    watch->line_length = 0; /* one question has one line */
    watch->due_ns = now_ns + (looks_often(watch) ? GPU_WATCH_LOOK_NS : GPU_WATCH_LONG_LOOK_NS);
    gauge(watch, now_ns);
    judge(watch, now_ns);
}

/* Reads what has come. Returns true when the devices were judged. */
static bool hear(struct gpu_watch *watch, int64_t now_ns)
{
    for (;;) {
        char *place = watch->line + watch->line_length;
        const size_t room = sizeof watch->line - watch->line_length;
        const ssize_t length = recv(watch->watcher.socket, place, room, 0);
        if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
            return false;
        }
        if (length <= 0) { /* it has ended, or its line is too long: `room` is 0 then */
            if (watch->problem.text[0] == '\0') {
                problem_set(&watch->problem, "bourse-kernel, which reads the figures, has ended");
            }
            stop(watch, now_ns);
            go_blind(watch, now_ns);
            return true;
        }
        const char *end = memchr(place, '\n', (size_t)length);
        watch->line_length += (size_t)length;
        if (end != NULL) {
            take_line(watch, (size_t)(end - watch->line), now_ns);
            return true;
        }
    }
}

/* Starts the watcher, asks it and reads its answer. Returns true when the devices were judged. */
static bool look(struct gpu_watch *watch, int64_t now_ns)
{
    if (watch->watcher.socket < 0 && now_ns >= watch->due_ns && !start_again(watch, now_ns)) {
        go_blind(watch, now_ns);
        return true;
    }
    if (watch->watcher.socket < 0) {
        return false;
    }
    if (hear(watch, now_ns)) {
        return true;
    }
    if (watch->is_asked && now_ns - watch->asked_ns >= GPU_WATCH_PATIENCE_NS) {
        problem_set(&watch->problem, "NVIDIA's management library does not answer");
        stop(watch, now_ns);
        go_blind(watch, now_ns);
        return true;
    }
    if (!watch->is_asked && now_ns >= watch->due_ns) {
        ask(watch, now_ns);
    }
    return false;
}

bool gpu_watch_turn(struct gpu_watch *watch, int64_t now_ns)
{
    const bool has_judged = watch->watched_count > 0 && look(watch, now_ns);
    return wait_on(watch, now_ns) || has_judged;
}

int gpu_watch_fd(const struct gpu_watch *watch)
{
    return watch->watcher.socket;
}

int64_t gpu_watch_due_ns(const struct gpu_watch *watch)
{
    int64_t due_ns = watch->watched_count == 0 ? INT64_MAX
                     : watch->is_asked         ? watch->asked_ns + GPU_WATCH_PATIENCE_NS
                                               : watch->due_ns;
    for (size_t i = 0; i < watch->watched_count; i++) {
        const int64_t step_ns = gpu_rule_due_ns(&watch->devices[i].rule);
        due_ns = step_ns < due_ns ? step_ns : due_ns;
    }
    return due_ns;
}

/* ---------------------------------------------------------------- telling */

size_t gpu_watch_count(const struct gpu_watch *watch)
{
    return watch->count;
}

const char *gpu_watch_label(const struct gpu_watch *watch, size_t index)
{
    return watch->devices[index].label;
}

enum idle_order gpu_watch_order(const struct gpu_watch *watch, size_t index)
{
    return gpu_rule_order(&watch->devices[index].rule);
}

bool gpu_watch_is_lost(const struct gpu_watch *watch, size_t index)
{
    return watch->devices[index].rule.is_lost;
}

void gpu_watch_reason(const struct gpu_watch *watch, size_t index, int64_t now_ns,
                      char ret_text[IDLE_REASON_SIZE])
{
    gpu_rule_reason(&watch->devices[index].rule, now_ns, ret_text);
}

bool gpu_watch_figures(const struct gpu_watch *watch, size_t index, int64_t now_ns,
                       struct gpu_figures *ret_figures, int64_t *ret_age_ns)
{
    if (index >= watch->watched_count || watch->read_ns < 0 ||
        !gpu_figures_any(&watch->figures[index])) {
        return false;
    }
    *ret_figures = watch->figures[index];
    *ret_age_ns = now_ns - watch->read_ns;
    return true;
}

bool gpu_watch_exceeds(const struct gpu_watch *watch, size_t index, int64_t *ret_used_bytes,
                       int64_t *ret_allowed_bytes)
{
    const struct device *device = &watch->devices[index];
    *ret_used_bytes = device->own_bytes;
    *ret_allowed_bytes = device->allowed_bytes;
    return device->allowed_bytes > 0 &&
           device->own_bytes > device->allowed_bytes + GPU_WATCH_CONTEXT_BYTES;
}

const char *gpu_watch_problem(const struct gpu_watch *watch)
{
    return watch->problem.text;
}

/* Returns why figures of the device are not known, or "". */
static const char *why_not(const struct gpu_watch *watch, size_t index)
{
    return index >= watch->watched_count
               ? (watch->config.terms->is_set ? "figures are read of CUDA devices only, so `gpu:` "
                                                "has no effect on this device"
                                              : "figures are read of CUDA devices only")
           : watch->problem.text[0] != '\0' ? watch->problem.text
           : watch->figures[index].is_split ? "the device is split by MIG, whose parts are not read"
           : watch->read_ns < 0             ? "not read yet"
                                            : watch->figures[index].why;
}

static json_t *figure_json(int64_t figure)
{
    return figure < 0 ? json_null() : json_integer(figure);
}

static json_t *device_json(const struct gpu_watch *watch, size_t index, int64_t now_ns)
{
    static const char *const words[] = {
        [IDLE_WORK] = "work", [IDLE_HOLD] = "hold", [IDLE_SAVE] = "save", [IDLE_RETURN] = "return"};
    struct gpu_figures figures = {.id = ""};
    char reason[IDLE_REASON_SIZE] = "";
    const enum idle_order order = gpu_watch_order(watch, index);
    gpu_figures_clear(&figures);
    if (index < watch->watched_count) {
        figures = watch->figures[index];
    }
    if (order != IDLE_WORK) {
        gpu_watch_reason(watch, index, now_ns, reason);
    }
    const bool has_age = index < watch->watched_count && watch->read_ns >= 0;
    return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "device",
                     watch->devices[index].label, "order", words[order], "reason", reason, "lost",
                     (int)figures.is_lost, "memory_used", figure_json(figures.memory_used),
                     "memory_total", figure_json(figures.memory_total), "busy_percent",
                     figure_json(figures.busy_percent), "power_mw", figure_json(figures.power_mw),
                     "power_limit_mw", figure_json(figures.power_limit_mw), "celsius",
                     figure_json(figures.celsius), "age_ms",
                     figure_json(has_age ? (now_ns - watch->read_ns) / NS_PER_MS : -1), "why",
                     why_not(watch, index));
}

json_t *gpu_watch_json(const struct gpu_watch *watch, int64_t now_ns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < watch->count; i++) {
        (void)json_array_append_new(list, device_json(watch, i, now_ns));
    }
    return list;
}
