#include "planner/layout/plan_course.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool plan_course_init(struct plan_course *course, const struct plan_input *input)
{
    *course = (struct plan_course){.input = input, .unlinked = {PLAN_ANYWHERE, PLAN_ANYWHERE}};
    course->traffic.free_s = calloc(plan_ports(input), sizeof *course->traffic.free_s);
    return course->traffic.free_s != NULL;
}

void plan_course_fini(struct plan_course *course)
{
    free(course->traffic.free_s);
    free(course->transfers);
    free(course->waits);
}

/* ---------------------------------------------------------------- records */

/* Grows a list by one entry, by doubling. */
static void *grow(struct plan_course *course, void *list, size_t count, size_t size)
{
    bool is_full = (count & (count - 1)) == 0; /* 0, or a power of two */
    void *more = is_full ? realloc(list, (count == 0 ? 1 : 2 * count) * size) : list;
    course->is_out_of_memory = course->is_out_of_memory || more == NULL;
    return more;
}

static void keep_transfer(struct plan_course *course, uint32_t from, uint32_t to, double bytes,
                          double start_s, double finish_s, const struct topology_transfer *route)
{
    struct plan_transfer *list =
        grow(course, course->transfers, course->transfer_count, sizeof *list);
    if (list == NULL) {
        return;
    }
    course->transfers = list;
    struct plan_transfer *transfer = &list[course->transfer_count++];
    *transfer = (struct plan_transfer){.from = from,
                                       .to = to,
                                       .bytes = bytes,
                                       .kind = route->kind,
                                       .start_s = start_s,
                                       .finish_s = finish_s,
                                       .link_count = route->link_count};
    memcpy(transfer->links, route->links, sizeof transfer->links);
}

static void keep_wait(struct plan_course *course, uint32_t device, double from_s, double until_s)
{
    if (!course->is_recorded || !(until_s > from_s)) {
        return;
    }
    struct plan_wait *list = grow(course, course->waits, course->wait_count, sizeof *list);
    if (list != NULL) {
        course->waits = list;
        list[course->wait_count++] =
            (struct plan_wait){.row = device, .from_s = from_s, .until_s = until_s};
    }
}

/* ---------------------------------------------------------------- one transfer */

static bool find(const struct plan_input *input, const struct topology_traffic *traffic,
                 uint32_t from, uint32_t to, double bytes, double ready_s,
                 struct topology_transfer *ret_way)
{
    uint32_t source = input->devices[from].memory;
    uint32_t target = input->devices[to].memory;
    if (source == target) {
        *ret_way = (struct topology_transfer){
            .kind = TOPOLOGY_HERE, .from = source, .start_s = ready_s, .finish_s = ready_s};
        return true;
    }
    if (input->topology == NULL || !(bytes <= (double)TOPOLOGY_BYTES_MOST)) {
        return false;
    }
    int64_t whole = (int64_t)bytes;
    whole += (double)whole < bytes;
    return topology_find(input->topology, traffic, UINT64_C(1) << source, target, whole, ready_s,
                         ret_way) == TOPOLOGY_OK;
}

bool plan_course_idle(const struct plan_input *input, uint32_t from, uint32_t to, double bytes,
                      double *ret_s, enum topology_kind *ret_kind)
{
    struct topology_transfer route;
    if (!find(input, NULL, from, to, bytes, 0, &route)) {
        return false;
    }
    *ret_s = route.finish_s;
    if (ret_kind != NULL) {
        *ret_kind = route.kind;
    }
    return true;
}

/* Finds and reserves a path. Names the two devices if there is none. */
static bool carry(struct plan_course *course, uint32_t from, uint32_t to, double bytes,
                  double ready_s, struct topology_transfer *ret_way)
{
    if (!find(course->input, &course->traffic, from, to, bytes, ready_s, ret_way)) {
        course->unlinked[0] = from;
        course->unlinked[1] = to;
        return false;
    }
    if (ret_way->link_count > 0) {
        topology_reserve(course->input->topology, &course->traffic, ret_way);
    }
    return true;
}

static void clear_traffic(struct plan_course *course)
{
    memset(course->traffic.free_s, 0, plan_ports(course->input) * sizeof *course->traffic.free_s);
}

/* ---------------------------------------------------------------- sums */

struct circle {
    const uint32_t *members;
    size_t count;
};

/* Returns the time of `rounds` in which each passes `bytes` on to the next, or INFINITY when a link
 * is missing. It is recorded as one transfer for each two neighbours. */
static double ring(struct plan_course *course, struct circle circle, double bytes, double rounds,
                   double start_s, bool is_recorded)
{
    struct topology_transfer routes[PLAN_DEVICES];
    double round_s = 0;
    if (circle.count < 2 || !(rounds > 0)) {
        return 0;
    }
    clear_traffic(course);
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t next = circle.members[(i + 1) % circle.count];
        if (!carry(course, circle.members[i], next, bytes, 0, &routes[i])) {
            return INFINITY;
        }
        round_s = fmax(round_s, routes[i].finish_s);
    }
    for (size_t i = 0; i < circle.count && is_recorded; i++) {
        uint32_t next = circle.members[(i + 1) % circle.count];
        if (routes[i].link_count > 0) {
            keep_transfer(course, circle.members[i], next, bytes * rounds, start_s,
                          start_s + rounds * round_s, &routes[i]);
        }
    }
    return rounds * round_s;
}

double plan_course_ring_s(const struct plan_input *input, const uint32_t *members, size_t count,
                          double bytes)
{
    struct plan_course course;
    double takes_s = INFINITY;
    if (plan_course_init(&course, input)) {
        takes_s = ring(&course, (struct circle){members, count}, bytes, 1, 0, false);
    }
    plan_course_fini(&course);
    return takes_s;
}

/* Returns the time to bring `bytes` of each to the first one, or from the first one. */
static double star(struct plan_course *course, struct circle circle, double bytes, bool is_inwards,
                   double start_s, bool is_recorded)
{
    double all_s = 0;
    clear_traffic(course);
    for (size_t i = 1; i < circle.count; i++) {
        struct topology_transfer route;
        uint32_t from = circle.members[is_inwards ? i : 0];
        uint32_t to = circle.members[is_inwards ? 0 : i];
        if (!carry(course, from, to, bytes, 0, &route)) {
            return INFINITY;
        }
        all_s = fmax(all_s, route.finish_s);
        if (is_recorded && route.link_count > 0) {
            keep_transfer(course, from, to, bytes, start_s + route.start_s,
                          start_s + route.finish_s, &route);
        }
    }
    return all_s;
}

/* Splits the circle into runs of neighbours that reach each other without a network. */
static size_t machines_of(const struct plan_course *course, struct circle circle,
                          struct circle *ret_machines)
{
    size_t count = 0;
    for (size_t i = 0; i < circle.count; i++) {
        enum topology_kind kind = TOPOLOGY_NETWORK;
        double unused_s = 0;
        bool is_near = i > 0 &&
                       plan_course_idle(course->input, circle.members[i - 1], circle.members[i], 1,
                                        &unused_s, &kind) &&
                       kind < TOPOLOGY_NETWORK;
        if (!is_near) {
            ret_machines[count++] = (struct circle){.members = &circle.members[i]};
        }
        ret_machines[count - 1].count++;
    }
    return count;
}

/* Sums within each machine and between machines. */
static double sum_in_two(struct plan_course *course, struct circle circle, double bytes,
                         double start_s, bool is_recorded)
{
    struct circle machines[PLAN_DEVICES];
    uint32_t leaders[PLAN_DEVICES];
    double in_s = 0;
    double out_s = 0;
    size_t count = machines_of(course, circle, machines);
    if (count == 1 || count == circle.count) {
        return INFINITY; /* the ring alone applies */
    }
    for (size_t i = 0; i < count; i++) {
        double size = (double)machines[i].count;
        double part = bytes / size;
        leaders[i] = machines[i].members[0];
        double ring_s = ring(course, machines[i], part, size - 1, start_s, is_recorded);
        double star_s = star(course, machines[i], part, true, start_s + ring_s, is_recorded);
        in_s = fmax(in_s, ring_s + star_s);
    }
    struct circle between = {leaders, count};
    double between_s = ring(course, between, bytes / (double)count, 2 * ((double)count - 1),
                            start_s + in_s, is_recorded);
    for (size_t i = 0; i < count; i++) {
        double size = (double)machines[i].count;
        double part = bytes / size;
        double begin_s = start_s + in_s + between_s;
        double star_s = star(course, machines[i], part, false, begin_s, is_recorded);
        double ring_s = ring(course, machines[i], part, size - 1, begin_s + star_s, is_recorded);
        out_s = fmax(out_s, star_s + ring_s);
    }
    return in_s + between_s + out_s;
}

/* Returns the time of a sum over all members; `parts` also counts members elsewhere. Returns
 * INFINITY when a link is missing. */
static double sum_up(struct plan_course *course, struct circle circle, double bytes, int64_t parts,
                     double start_s)
{
    double n = (double)parts;
    double flat_s = ring(course, circle, bytes / n, 2 * (n - 1), start_s, false);
    double two_s = INFINITY;
    if (flat_s < INFINITY && parts == (int64_t)circle.count) {
        two_s = sum_in_two(course, circle, bytes, start_s, false);
    }
    if (course->is_recorded && two_s < flat_s) {
        (void)sum_in_two(course, circle, bytes, start_s, true);
    } else if (course->is_recorded) {
        (void)ring(course, circle, bytes / n, 2 * (n - 1), start_s, true);
    }
    return fmin(flat_s, two_s);
}

/* The times of sums stay valid while the devices are the same. */
static double sum_s(struct plan_course *course, struct circle circle, size_t meeting, double bytes,
                    int64_t parts, double start_s)
{
    uint64_t devices = 0;
    for (size_t i = 0; i < circle.count; i++) {
        devices |= UINT64_C(1) << circle.members[i];
    }
    if (devices != course->summing) {
        course->summing = devices;
        memset(course->sum_bytes, 0, sizeof course->sum_bytes);
    }
    if (!(bytes > 0) || circle.count < 2) {
        return 0;
    }
    if (course->is_recorded || course->sum_bytes[meeting] != bytes) {
        course->sum_s[meeting] = sum_up(course, circle, bytes, parts, start_s);
        course->sum_bytes[meeting] = bytes;
    }
    return course->sum_s[meeting];
}

/* ---------------------------------------------------------------- from home and back */

static void lease(struct plan_course *course, uint32_t device, double first_s, double last_s)
{
    course->first_s[device] = fmin(course->first_s[device], first_s);
    course->last_s[device] = fmax(course->last_s[device], last_s);
}

static bool send(struct plan_course *course, uint32_t from, uint32_t to, double bytes,
                 double ready_s, double *ret_there_s)
{
    struct topology_transfer route;
    if (!carry(course, from, to, bytes, ready_s, &route)) {
        return false;
    }
    *ret_there_s = route.finish_s;
    if (route.link_count > 0) {
        lease(course, from, route.start_s, route.finish_s);
        lease(course, to, route.start_s, route.finish_s);
        if (course->is_recorded) {
            keep_transfer(course, from, to, bytes, route.start_s, route.finish_s, &route);
        }
    }
    return true;
}

/* Sorts devices by `keys`, the least first; equals go by device. */
static void sort(uint32_t *members, size_t count, const double *keys)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t it = members[i];
        size_t at = i;
        for (; at > 0 && keys[it] < keys[members[at - 1]]; at--) {
            members[at] = members[at - 1];
        }
        members[at] = it;
    }
}

static bool set_out(struct plan_course *course, const struct plan_shard *shards,
                    struct circle circle)
{
    uint32_t order[PLAN_DEVICES];
    double keys[PLAN_DEVICES] = {0};
    memcpy(order, circle.members, circle.count * sizeof *order);
    for (size_t i = 0; i < circle.count; i++) {
        keys[order[i]] = -shards[order[i]].time_s.value;
    }
    sort(order, circle.count, keys);
    clear_traffic(course);
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t d = order[i];
        if (d != course->home &&
            !send(course, course->home, d, shards[d].brought_bytes, 0, &course->begin_s[d])) {
            return false;
        }
    }
    return true;
}

static bool come_back(struct plan_course *course, const struct plan_shard *shards,
                      struct circle circle)
{
    uint32_t order[PLAN_DEVICES];
    memcpy(order, circle.members, circle.count * sizeof *order);
    sort(order, circle.count, course->end_s);
    clear_traffic(course); /* all transfers from home are over */
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t d = order[i];
        course->there_s[d] = course->end_s[d];
        if (d != course->home && !send(course, d, course->home, shards[d].fetched_bytes,
                                       course->end_s[d], &course->there_s[d])) {
            return false;
        }
        course->makespan_s = fmax(course->makespan_s, course->there_s[d]);
    }
    return true;
}

/* ---------------------------------------------------------------- meetings */

/* Runs one meeting: it takes the longest of its shares, and the sum of all bytes. `summed_s` is
 * when the sum before, if it ran behind other work, is over; 0 means none. */
static bool meet(struct plan_course *course, const struct plan_shard *shards, struct circle circle,
                 size_t meeting, double *at_s, double *summed_s)
{
    const bool is_behind = shards[circle.members[0]].meetings[meeting].is_behind;
    double start_s = *summed_s;
    double takes_s = 0;
    double bytes = 0;
    int64_t parts = 1;
    double arrived_s[PLAN_DEVICES];
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t d = circle.members[i];
        const struct plan_meeting *it = &shards[d].meetings[meeting];
        assert(meeting < shards[d].meeting_count);
        arrived_s[i] = at_s[d] + it->after_s;
        start_s = fmax(start_s, arrived_s[i]);
        takes_s = fmax(takes_s, it->takes_s);
        bytes = fmax(bytes, it->bytes);
        parts = it->parts > parts ? it->parts : parts;
    }
    double links_s = sum_s(course, circle, meeting, bytes, parts, start_s);
    if (!(links_s < INFINITY)) {
        return false;
    }
    double end_s = start_s + fmax(takes_s, links_s);
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t d = circle.members[i];
        double own_s = shards[d].meetings[meeting].takes_s;
        at_s[d] = is_behind ? arrived_s[i] + own_s : end_s;
        if (!is_behind) {
            keep_wait(course, d, arrived_s[i], start_s);
            keep_wait(course, d, start_s + own_s, end_s);
        }
    }
    *summed_s = is_behind ? end_s : 0;
    return true;
}

static bool work(struct plan_course *course, const struct plan_shard *shards, struct circle circle)
{
    double at_s[PLAN_DEVICES];
    size_t meetings = shards[circle.members[0]].meeting_count;
    double summed_s = 0;
    memcpy(at_s, course->begin_s, sizeof at_s);
    for (size_t k = 0; k < meetings; k++) {
        if (!meet(course, shards, circle, k, at_s, &summed_s)) {
            return false;
        }
    }
    for (size_t i = 0; i < circle.count; i++) {
        uint32_t d = circle.members[i];
        keep_wait(course, d, at_s[d], summed_s);
        at_s[d] = fmax(at_s[d], summed_s);
        course->end_s[d] = at_s[d] + (course->is_slow ? shards[d].p90_s : shards[d].rest_s);
        lease(course, d, course->begin_s[d], course->end_s[d]);
    }
    return true;
}

bool plan_course_run(struct plan_course *course, const struct plan_shard *shards)
{
    uint32_t members[PLAN_DEVICES];
    struct circle circle = {.members = members};
    for (uint32_t d = 0; d < course->input->device_count; d++) {
        course->begin_s[d] = 0;
        course->first_s[d] = INFINITY;
        course->last_s[d] = 0;
        if (shards[d].items > 0) {
            bool is_more = circle.count == 0 || shards[d].items > shards[course->home].items;
            course->home = is_more ? d : course->home;
            members[circle.count++] = d;
        }
    }
    course->makespan_s = 0;
    course->transfer_count = 0;
    course->wait_count = 0;
    return circle.count > 0 && set_out(course, shards, circle) && work(course, shards, circle) &&
           come_back(course, shards, circle) && !course->is_out_of_memory;
}
