#include "planner/layout/stages.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* State of a number of devices of each group, with one of `group` in front: the first column that
 * they reach. */
struct cell {
    uint16_t first; /* column_count: they reach nothing */
    uint16_t next;  /* column at which the stage behind the front begins */
    uint8_t behind; /* group of that stage */
};

/* A number of devices in each group. */
struct number {
    uint8_t counts[STAGES_GROUPS];
    uint8_t total;  /* STAGES_DEVICES + 1: too many */
    uint8_t groups; /* bits of the groups with devices */
};

struct stages_search {
    const struct stages_input *input;
    size_t numbers;                /* product of (count + 1) over the groups */
    size_t strides[STAGES_GROUPS]; /* one more of a group is this many numbers further */
    struct number *of;             /* indexed by number */
    struct cell *cells;            /* [number * group_count + group] */
    double limit_s;
    uint64_t cells_filled;
    uint16_t reached[STAGES_GROUPS][STAGES_DEVICES + 1]
                    /* First column + 1 by group, stages after, and end; 0 means not computed. */
                    [STAGES_COLUMNS + 1];
};

static struct cell *cell_at(const struct stages_search *search, size_t number, size_t group)
{
    return &search->cells[number * search->input->group_count + group];
}

/* ---------------------------------------------------------------- beginning and end */

static bool is_good(const struct stages_input *input)
{
    size_t numbers = 1;
    bool ok = input->column_count >= 1 && input->column_count <= STAGES_COLUMNS &&
              input->group_count >= 1 && input->group_count <= STAGES_GROUPS &&
              input->micro_batches >= 1;
    for (size_t g = 0; ok && g < input->group_count; g++) {
        ok = input->counts[g] >= 1 && input->counts[g] <= STAGES_DEVICES;
        numbers *= ok ? input->counts[g] + 1 : 1;
        ok = ok && numbers <= STAGES_NUMBERS;
    }
    return ok;
}

static void count_devices(struct stages_search *search)
{
    for (size_t number = 0; number < search->numbers; number++) {
        struct number *it = &search->of[number];
        uint32_t total = 0;
        for (size_t g = 0; g < search->input->group_count; g++) {
            uint32_t count =
                (uint32_t)(number / search->strides[g] % (search->input->counts[g] + 1));
            it->counts[g] = (uint8_t)count;
            it->groups = (uint8_t)(it->groups | (count > 0) << g);
            total += count;
        }
        it->total =
            (uint8_t)(total < STAGES_DEVICES ? total : STAGES_DEVICES + (total > STAGES_DEVICES));
    }
}

enum stages_status stages_create(const struct stages_input *input,
                                 struct stages_search **ret_search)
{
    if (!is_good(input)) {
        return STAGES_BAD_INPUT;
    }
    struct stages_search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return STAGES_NO_MEMORY;
    }
    search->input = input;
    search->numbers = 1;
    for (size_t g = 0; g < input->group_count; g++) {
        search->strides[g] = search->numbers;
        search->numbers *= input->counts[g] + 1;
    }
    search->of = calloc(search->numbers, sizeof *search->of);
    search->cells = calloc(search->numbers * input->group_count, sizeof *search->cells);
    if (search->of == NULL || search->cells == NULL) {
        stages_destroy(&search);
        return STAGES_NO_MEMORY;
    }
    count_devices(search);
    *ret_search = search;
    return STAGES_OK;
}

void stages_destroy(struct stages_search **self)
{
    if (*self != NULL) {
        free((*self)->of);
        free((*self)->cells);
        free(*self);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- within a limit */

static double time_of(const struct stages_input *input, size_t column, size_t group)
{
    return input->time_s[column * input->group_count + group];
}

static uint16_t look(const struct stages_search *search, uint16_t end, size_t group,
                     double in_flight)
{
    const struct stages_input *input = search->input;
    double time_s = 0;
    double bytes = 0;
    double working = 0;
    uint16_t first = end;
    while (first > 0) {
        size_t column = first - 1u;
        size_t at = column * input->group_count + group;
        time_s += input->time_s[at];
        bytes += input->fixed_bytes[at] + in_flight * input->held_bytes[at];
        working = fmax(working, input->working_bytes[at]);
        if (!(time_s <= search->limit_s && time_s < INFINITY) ||
            bytes + working > input->memory_bytes[group]) {
            break; /* more columns take more of all */
        }
        first--;
    }
    return first;
}

/* Returns the first column of a stage that ends before `end`, on a device of `group` with `after`
 * stages after it. */
static uint16_t reach(struct stages_search *search, uint16_t end, size_t group, uint32_t after)
{
    const struct stages_input *input = search->input;
    bool is_all = input->holds_all || input->micro_batches <= (int64_t)after;
    double in_flight = is_all ? (double)input->micro_batches : (double)after + 1;
    uint16_t *known = &search->reached[group][is_all ? STAGES_DEVICES : after][end];
    if (*known == 0) {
        *known = (uint16_t)(look(search, end, group, in_flight) + 1);
    }
    return (uint16_t)(*known - 1);
}

static bool is_linked(const struct stages_search *search, size_t from, size_t to)
{
    double link_s = search->input->link_s[from * search->input->group_count + to];
    return link_s < INFINITY && link_s <= search->limit_s;
}

/* Finds the best front with a device of `group`. Among equals, devices of one group stay
 * together. */
static struct cell best_front(struct stages_search *search, size_t number, size_t group)
{
    const struct stages_input *input = search->input;
    uint16_t end = (uint16_t)input->column_count;
    struct cell best = {.first = end, .next = end, .behind = (uint8_t)group};
    size_t others = number - search->strides[group];
    uint32_t after = search->of[others].total;
    if (others == 0) {
        best.first = reach(search, end, group, 0);
        return best;
    }
    for (size_t g = 0; g < input->group_count; g++) {
        size_t behind = (group + g) % input->group_count; /* the own group comes first */
        const struct cell *cell = cell_at(search, others, behind);
        bool is_part =
            search->of[others].counts[behind] > 0 && cell->first > 0 && cell->first < end;
        if (is_part && is_linked(search, group, behind)) {
            uint16_t first = reach(search, cell->first, group, after);
            if (first < cell->first && first < best.first) {
                best = (struct cell){first, cell->first, (uint8_t)behind};
            }
        }
    }
    return best;
}

enum stages_status stages_find(struct stages_search *search, double limit_s)
{
    bool is_any = false;
    search->limit_s = limit_s;
    memset(search->reached, 0, sizeof search->reached);
    search->cells_filled += search->numbers * search->input->group_count;
    for (size_t number = 1; number < search->numbers; number++) {
        for (size_t g = 0; g < search->input->group_count; g++) {
            if (search->of[number].counts[g] > 0) {
                struct cell cell = best_front(search, number, g);
                *cell_at(search, number, g) = cell;
                is_any = is_any || cell.first == 0;
            }
        }
    }
    return is_any ? STAGES_OK : STAGES_NOWHERE;
}

static void read_stages(const struct stages_search *search, size_t number, size_t group,
                        struct stages *ret_stages)
{
    const struct stages_input *input = search->input;
    *ret_stages = (struct stages){.stage_count = 0};
    for (uint16_t column = 0; column < input->column_count;) {
        const struct cell *cell = cell_at(search, number, group);
        double time_s = 0;
        assert(cell->first == column && cell->next > column);
        for (size_t c = column; c < cell->next; c++) {
            time_s += time_of(input, c, group);
        }
        ret_stages->stages[ret_stages->stage_count++] =
            (struct stages_stage){column, cell->next - (uint32_t)column, (uint32_t)group};
        ret_stages->slowest_s = fmax(ret_stages->slowest_s, time_s);
        ret_stages->sum_s += time_s;
        column = cell->next;
        number -= search->strides[group];
        group = cell->behind;
    }
}

bool stages_take(const struct stages_search *search, uint32_t groups, struct stages *ret_stages)
{
    uint32_t fewest = STAGES_DEVICES + 1;
    for (size_t number = 1; number < search->numbers; number++) {
        uint32_t total = search->of[number].total;
        if (total > fewest || total > STAGES_DEVICES || search->of[number].groups != groups) {
            continue;
        }
        for (size_t g = 0; g < search->input->group_count; g++) {
            if (search->of[number].counts[g] > 0 && cell_at(search, number, g)->first == 0) {
                struct stages found;
                read_stages(search, number, g, &found);
                if (total < fewest || found.sum_s < ret_stages->sum_s) {
                    *ret_stages = found;
                    fewest = total;
                }
            }
        }
    }
    return fewest <= STAGES_DEVICES;
}

uint64_t stages_effort(const struct stages_search *search)
{
    return search->cells_filled;
}

enum stages_status stages_least(struct stages_search *search, double *ret_limit_s)
{
    static const double close = 1.01;
    double low = 0;
    double high = 0;
    for (size_t c = 0; c < search->input->column_count; c++) {
        double least = INFINITY;
        double most = 0;
        for (size_t g = 0; g < search->input->group_count; g++) {
            double time_s = time_of(search->input, c, g);
            least = fmin(least, time_s);
            most = time_s < INFINITY ? fmax(most, time_s) : most;
        }
        low = fmax(low, least);
        high += most;
    }
    if (!(low < INFINITY) || stages_find(search, INFINITY) != STAGES_OK) {
        return STAGES_NOWHERE;
    }
    high = fmax(high, low);
    while (stages_find(search, high) != STAGES_OK) { /* a link takes longer than all stages */
        high = high > 0 ? 2 * high : 1e-9;
    }
    low = fmax(low, high * 1e-6);
    while (high > low * close) {
        double middle = sqrt(low) * sqrt(high);
        if (stages_find(search, middle) == STAGES_OK) {
            high = middle;
        } else {
            low = middle;
        }
    }
    *ret_limit_s = high;
    return STAGES_OK;
}
