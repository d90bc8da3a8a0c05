#include "consumer/market/history.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/requirement.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "consumer/product/matrix.h"
#include "consumer/product/tile.h"
#include "planner/cost/history.h"
#include "planner/cost/pace.h"
#include "planner/schedule/list_schedule.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKED_AT = 1 << 16, /* most subtasks to look at; a larger job is sampled */
    NAMES_MOST = 1024,   /* different programs of one job */
};

/* The names identify the different kinds of work in a job. */
struct names {
    struct hash32 items[NAMES_MOST];
    uint32_t first[NAMES_MOST]; /* first subtask with the work */
    size_t count;
};

static void add_name(struct names *names, const struct hash32 *name, uint32_t index)
{
    /* Neighbours are often alike, so the search goes backwards. */
    for (size_t i = names->count; i-- > 0;) {
        if (hash32_equal(&names->items[i], name)) {
            return;
        }
    }
    if (names->count < NAMES_MOST) {
        names->items[names->count] = *name;
        names->first[names->count++] = index;
    }
}

/* Returns false to stop. */
typedef bool on_wire_row(void *context, size_t name, const Bourse__V1__HistoryRow *row);

static size_t number_of(const struct names *names, const Bourse__V1__HistoryRow *row)
{
    size_t at = 0;
    while (at < names->count && memcmp(names->items[at].bytes, row->work.data, 32) != 0) {
        at++;
    }
    return at;
}

/* Asks for `count` names from `first` on, at most LIMIT_WORKS. */
static bool ask(struct bourse *bourse, const struct names *names, size_t first, size_t count,
                on_wire_row *visit, void *context, struct bourse_error *error)
{
    ProtobufCBinaryData works[LIMIT_WORKS];
    Bourse__V1__HistoryRequest body = BOURSE__V1__HISTORY_REQUEST__INIT;
    for (size_t i = 0; i < count; i++) {
        works[i] = (ProtobufCBinaryData){
            .data = (uint8_t *)(uintptr_t)names->items[first + i].bytes, .len = 32};
    }
    body.n_works = count;
    body.works = works;
    body.has_skip = 1;
    bool more = true;
    while (more) {
        ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_HISTORY_REQUEST, &body.base, MESSAGE_HISTORY_REPLY,
                         &answer, error)) {
            return false;
        }
        const Bourse__V1__HistoryReply *reply = (const void *)answer;
        bool goes_on = true;
        for (size_t i = 0; i < reply->n_rows && goes_on; i++) {
            const size_t name = number_of(names, reply->rows[i]);
            goes_on = name == names->count || visit(context, name, reply->rows[i]);
        }
        more = goes_on && reply->has_more && reply->more && reply->n_rows > 0;
        body.skip += (uint32_t)reply->n_rows;
        codec_free(&answer);
    }
    return true;
}

static bool ask_all(struct bourse *bourse, const struct names *names, on_wire_row *visit,
                    void *context, struct bourse_error *error)
{
    for (size_t first = 0; first < names->count; first += LIMIT_WORKS) {
        const size_t left = names->count - first;
        if (!ask(bourse, names, first, left < LIMIT_WORKS ? left : LIMIT_WORKS, visit, context,
                 error)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- what a job is expected to take
 */

/* These numbers stand for all real devices, and for all simulated devices, whose times come from a
 * model. */
#define CLASS_REAL 0
#define CLASS_SIMULATED SIZE_MAX

struct known { /* one name and size, on one class or over all */
    size_t name;
    uint32_t size;
    size_t of_class;
    uint64_t samples;
    int128 median_ns; /* sum over the samples */
    int64_t p90_ns;   /* the class's; over all classes, the slowest device's */
    bool has_no_p90;  /* some class has too few samples */
};

struct slowest { /* slowest device of a class */
    char device_class[BOURSE_NAME_SIZE];
    uint32_t pace;
};

struct table {
    const struct history_kind *kinds; /* separate kinds, from 1 on */
    size_t kind_count;
    uint32_t paces[LIST_SCHEDULE_CLASSES];         /* by kind; 0: its class's pace */
    struct slowest slowest[LIST_SCHEDULE_CLASSES]; /* when full, the last stands for all others */
    size_t slowest_count;
    struct known *items;
    size_t count, capacity;
    bool no_memory;
};

static struct known *find(const struct table *table, size_t name, uint32_t size, size_t of_class)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->items[i].name == name && table->items[i].size == size &&
            table->items[i].of_class == of_class) {
            return &table->items[i];
        }
    }
    return NULL;
}

/* Returns NULL when memory is short. */
static struct known *find_or_add(struct table *table, size_t name, uint32_t size, size_t of_class)
{
    struct known *known = find(table, name, size, of_class);
    if (known == NULL && table->count == table->capacity) {
        const size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        struct known *larger = reallocarray(table->items, capacity, sizeof *larger);
        if (larger == NULL) {
            table->no_memory = true;
            return NULL;
        }
        table->items = larger;
        table->capacity = capacity;
    }
    if (known == NULL) {
        known = &table->items[table->count++];
        *known = (struct known){.name = name, .size = size, .of_class = of_class};
    }
    return known;
}

/* Returns NULL when no device of the class is slower than its fastest. */
static struct slowest *slowest_of(struct table *table, const char *device_class)
{
    for (size_t i = 0; i < table->slowest_count; i++) {
        if (strcmp(table->slowest[i].device_class, device_class) == 0) {
            return &table->slowest[i];
        }
    }
    const size_t count = table->slowest_count;
    return count == LIST_SCHEDULE_CLASSES ? &table->slowest[count - 1] : NULL;
}

static bool add_to(struct table *table, size_t name, size_t of_class,
                   const Bourse__V1__HistoryRow *row, uint32_t pace)
{
    struct known *known = find_or_add(table, name, row->size, of_class);
    if (known == NULL) {
        return false;
    }
    known->has_no_p90 = known->has_no_p90 || !row->has_p90_ns;
    const int64_t p90_ns = row->has_p90_ns ? pace_takes_ns(row->p90_ns, pace) : 0;
    known->p90_ns = p90_ns > known->p90_ns ? p90_ns : known->p90_ns;
    known->samples += row->samples;
    known->median_ns += (int128)row->median_ns * row->samples;
    return true;
}

/* Writes the provider's key and the device's id of a row, or "" for a row of a class. */
static void device_of(const Bourse__V1__HistoryRow *row, char ret_account[BOURSE_HEX32_SIZE],
                      char ret_device[BOURSE_ID_SIZE])
{
    ret_account[0] = ret_device[0] = '\0';
    if (row->has_provider && row->has_device) {
        text_hex(row->provider.data, row->provider.len, ret_account);
        text_hex(row->device.data, row->device.len, ret_device);
    }
}

static bool is_of_kind(const struct history_kind *kind, const Bourse__V1__HistoryRow *row)
{
    char account[BOURSE_HEX32_SIZE];
    char device[BOURSE_ID_SIZE];
    device_of(row, account, device);
    return strcmp(kind->device_class, row->device_class) == 0 &&
           strcmp(kind->account, account) == 0 && strcmp(kind->device, device) == 0;
}

static void keep_pace(struct table *table, const Bourse__V1__HistoryRow *row)
{
    for (size_t c = 1; c < table->kind_count; c++) {
        table->paces[c] = is_of_kind(&table->kinds[c], row) ? row->pace : table->paces[c];
    }
    struct slowest *slowest = slowest_of(table, row->device_class);
    if (slowest == NULL) {
        slowest = &table->slowest[table->slowest_count++];
        client_copy(slowest->device_class, sizeof slowest->device_class, row->device_class);
    }
    slowest->pace = row->pace > slowest->pace ? row->pace : slowest->pace;
}

static bool add_known(void *context, size_t name, const Bourse__V1__HistoryRow *row)
{
    struct table *table = context;
    if (row->has_pace) {
        keep_pace(table, row);
        return true;
    }
    if (row->samples == 0 || row->median_ns <= 0) {
        return true;
    }
    const bool is_simulated = strncmp(row->device_class, "sim.", 4) == 0;
    const struct slowest *slowest = slowest_of(table, row->device_class);
    bool is_added = row->has_device || /* its class counts the samples */
                    add_to(table, name, is_simulated ? CLASS_SIMULATED : CLASS_REAL, row,
                           slowest == NULL ? PACE_ONE : slowest->pace);
    for (size_t c = 1; is_added && c < table->kind_count; c++) {
        is_added = !is_of_kind(&table->kinds[c], row) || add_to(table, name, c, row, PACE_ONE);
    }
    return is_added;
}

struct learning {
    const struct bourse_job *job;
    struct bourse_job *learner; /* the same job when its times are to change, else NULL */
    const Bourse__V1__Manifest *manifest;
    uint32_t stride;
    struct names names;
    struct table table;
    int64_t *expect_ns;             /* by subtask, for the ranks of tasks; else NULL */
    struct history_figure *figures; /* by class and unit */
};

/* Returns the time that the job states, or 0. */
static int64_t said_ns(const struct bourse_job *job, size_t part, uint32_t index)
{
    const struct job_file *file = job->file;
    if (job->order != NULL && index < file->task_count) {
        const int64_t expect_ms = file->tasks[job->order[index]].expect_ms;
        return expect_ms == JOB_ABSENT ? 0 : expect_ms * NS_PER_MS;
    }
    return job->learned.said_ns[part];
}

/* Returns the expected time before the market's answer: of the subtask in a continued job, or of
 * its part. */
static int64_t foreseen_ns(const struct bourse_job *job, size_t part, uint32_t index)
{
    return job->expect_ns != NULL && index < job->subtasks - job->checks
               ? job->expect_ns[index]
               : job->parts[part].expect_ns;
}

static const struct known *known_of(const struct learning *learning, uint32_t index,
                                    size_t of_class)
{
    const struct work work = work_of(learning->manifest, index);
    size_t name = 0;
    while (name < learning->names.count &&
           !hash32_equal(&learning->names.items[name], &work.name)) {
        name++;
    }
    return find(&learning->table, name, work.size, of_class);
}

static int64_t within_limit(int64_t takes_ns, int64_t limit_ms)
{
    const int64_t limit_ns = limit_ms * NS_PER_MS;
    return takes_ns < 1 ? 1 : takes_ns < limit_ns ? takes_ns : limit_ns;
}

/* The measured time is scaled to the device's pace. The job's stated time holds for all devices. */
static int64_t blended_ns(const struct known *known, uint32_t pace, int64_t said_ns,
                          int64_t limit_ms)
{
    const int64_t median_ns = (int64_t)(known->median_ns / known->samples);
    const struct history_summary summary = {
        .count = known->samples < UINT32_MAX ? (uint32_t)known->samples : UINT32_MAX,
        .median = pace_takes_ns(median_ns, pace)};
    return within_limit(history_blend(&summary, said_ns), limit_ms);
}

/* Returns the group of all devices on which a part may run: real or simulated. */
static size_t all_for(const struct order_part *part)
{
    return requirement_asks_simulated(&part->needs) ? CLASS_SIMULATED : CLASS_REAL;
}

/* Learns one subtask, which stands for `weight` subtasks of its part. */
static void learn_one(struct learning *learning, size_t part, uint32_t index, uint64_t weight,
                      int128 *sum_ns)
{
    const struct bourse_job *job = learning->job;
    struct job_learned *learned = &learning->learner->learned;
    const struct known *known = known_of(learning, index, all_for(&job->parts[part]));
    const int64_t said = said_ns(job, part, index);
    int64_t expect_ns = said > 0 ? said : foreseen_ns(job, part, index);
    if (known != NULL) {
        expect_ns = blended_ns(known, PACE_ONE, said, job->parts[part].limit_ms);
        learned->subtasks += weight;
        learned->samples = known->samples > learned->samples ? known->samples : learned->samples;
        const int64_t p90_ns = known->p90_ns > 0 ? known->p90_ns : 1;
        learned->has_no_p90 = learned->has_no_p90 || known->has_no_p90;
        learned->p90_ns = p90_ns > learned->p90_ns ? p90_ns : learned->p90_ns;
    }
    if (learning->expect_ns != NULL) {
        learning->expect_ns[index] = expect_ns;
    }
    if ((known != NULL || said > 0) && learning->stride == 1 && job->graph.expect_ms != NULL) {
        job->graph.expect_ms[index] = order_known_ms(expect_ns);
    }
    *sum_ns += (int128)expect_ns * weight;
}

/* Learns the subtasks of a part; one stands for all when they are alike. */
static void learn_part(struct learning *learning, size_t number, uint32_t first)
{
    struct order_part *part = &learning->learner->parts[number];
    const uint32_t step = learning->manifest->n_subtasks == 0 ? part->subtasks : learning->stride;
    int128 sum_ns = 0;
    for (uint32_t i = 0; i < part->subtasks; i += step) {
        const uint32_t left = part->subtasks - i;
        learn_one(learning, number, first + i, left < step ? left : step, &sum_ns);
    }
    assert(part->subtasks > 0);
    part->expect_ns = (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks);
}

static void name_part(struct learning *learning, size_t number, uint32_t first)
{
    const struct order_part *part = &learning->job->parts[number];
    const uint32_t step = learning->manifest->n_subtasks == 0 ? part->subtasks : learning->stride;
    for (uint32_t i = 0; i < part->subtasks; i += step) {
        const struct work work = work_of(learning->manifest, first + i);
        add_name(&learning->names, &work.name, first + i);
    }
}

/* Checks do not count as work of the job. */
static size_t parts_of_work(const struct bourse_job *job)
{
    return job->part_count - (job->checks > 0);
}

static void each_part(struct learning *learning,
                      void visit(struct learning *learning, size_t number, uint32_t first))
{
    uint32_t first = 0;
    for (size_t i = 0; i < parts_of_work(learning->job); i++) {
        visit(learning, i, first);
        first += learning->job->parts[i].subtasks;
    }
}

/* Returns true when subtasks of a part have unlike expected times. */
static bool are_unlike(const struct bourse_job *job, const int64_t *expect_ns)
{
    uint32_t index = 0;
    for (size_t i = 0; i < parts_of_work(job); i++) {
        for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
            if (expect_ns[index] != job->parts[i].expect_ns) {
                return true;
            }
        }
    }
    return false;
}

/* Independent work on inputs of unlike size goes to the market as tasks do. */
static bool make_list(struct bourse_job *job)
{
    struct order_graph *graph = &job->graph;
    graph->count = (uint32_t)job->subtasks;
    graph->rank = calloc(job->subtasks, sizeof *graph->rank);
    graph->expect_ms = calloc(job->subtasks, sizeof *graph->expect_ms);
    return graph->rank != NULL && graph->expect_ms != NULL;
}

static void learn(struct learning *learning)
{
    struct bourse_job *job = learning->learner;
    const bool is_tasks = job->graph.count > 0;
    const bool is_listed =
        learning->manifest->n_subtasks > 0 && job->checks == 0 && learning->stride == 1;
    const bool has_list = is_listed && (is_tasks || make_list(job));
    learning->expect_ns = has_list ? calloc(job->subtasks, sizeof *learning->expect_ns) : NULL;
    each_part(learning, learn_part);
    if (learning->expect_ns != NULL && (is_tasks || are_unlike(job, learning->expect_ns))) {
        order_rank(&job->graph, learning->expect_ns);
        free(job->expect_ns);
        job->expect_ns = learning->expect_ns;
        return;
    }
    if (learning->expect_ns != NULL) { /* alike: the times of single subtasks add nothing */
        free(learning->expect_ns);
        free(job->expect_ns);
        job->expect_ns = NULL;
    }
    if (!is_tasks) {
        order_graph_fini(&job->graph);
    }
}

/* Returns NULL when memory is short. */
static struct learning *learning_create(const struct bourse_job *job,
                                        const Bourse__V1__Manifest *manifest)
{
    struct learning *learning = calloc(1, sizeof *learning);
    if (learning != NULL) {
        learning->job = job;
        learning->manifest = manifest;
        learning->stride = 1 + (uint32_t)(manifest->n_subtasks / LOOKED_AT);
        each_part(learning, name_part);
    }
    return learning;
}

static void learning_destroy(struct learning *learning)
{
    free(learning->table.items);
    free(learning);
}

/* A continued job of tasks cannot tell the stated times of tasks from measured ones. */
static bool says_of_all(const struct bourse_job *job)
{
    return job->file->expect_ms != JOB_ABSENT && (job->graph.count == 0 || job->order != NULL);
}

static bool learn_from(struct bourse *bourse, struct bourse_job *job,
                       const Bourse__V1__Manifest *manifest, struct bourse_error *error)
{
    struct learning *learning = learning_create(job, manifest);
    if (learning == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    learning->learner = job;
    for (size_t i = 0; i < job->part_count; i++) {
        job->learned.said_ns[i] =
            says_of_all(job) ? order_expect_ns(job->file->expect_ms, job->parts[i].limit_ms) : 0;
    }
    struct bourse_error refused = {.status = BOURSE_OK};
    const bool told = ask_all(bourse, &learning->names, add_known, &learning->table, &refused);
    if (told && !learning->table.no_memory && learning->table.count > 0) {
        learn(learning);
    }
    learning_destroy(learning);
    if (!told && refused.status == BOURSE_UNREACHABLE) {
        *error = refused;
        return false;
    }
    return true;
}

bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->learned.is_done || job->manifest == NULL) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    const bool good = learn_from(bourse, job, manifest, error);
    job->learned.is_done = good;
    return good;
}

/* ---------------------------------------------------------------- by class of device */

bool history_is_by_subtask(const struct bourse_job *job)
{
    return job->expect_ns != NULL || job->order != NULL;
}

size_t history_units(const struct bourse_job *job)
{
    return history_is_by_subtask(job) ? job->subtasks : job->part_count;
}

static void add_samples(struct history_figure *figure, const struct known *known, uint32_t pace)
{
    const int64_t p90_ns = known->p90_ns > 0 ? pace_takes_ns(known->p90_ns, pace) : 1;
    const bool is_known = !known->has_no_p90 && (figure->samples == 0 || figure->p90_ns >= 0);
    figure->p90_ns = !is_known ? -1 : p90_ns > figure->p90_ns ? p90_ns : figure->p90_ns;
    figure->samples = known->samples > figure->samples ? known->samples : figure->samples;
}

/* A device without times of its own uses those of its class. */
static const struct known *known_of_class(const struct learning *learning, uint32_t index,
                                          size_t of_kind)
{
    const struct history_kind *kinds = learning->table.kinds;
    const struct known *known = NULL;
    for (size_t i = 1; known == NULL && i < learning->table.kind_count; i++) {
        if (kinds[i].device[0] == '\0' &&
            strcmp(kinds[i].device_class, kinds[of_kind].device_class) == 0) {
            known = known_of(learning, index, i);
        }
    }
    return known;
}

/* Sets the time of one subtask on a kind of devices. A figure without a measurement stays as
 * stated, guessed, or measured elsewhere. */
static void figure_one(const struct learning *learning, size_t part, uint32_t index, size_t of_kind,
                       struct history_figure *figure)
{
    const struct order_part *terms = &learning->job->parts[part];
    const int64_t said = said_ns(learning->job, part, index);
    const uint32_t told = of_kind == 0 ? 0 : learning->table.paces[of_kind];
    const uint32_t pace = told == 0 ? PACE_ONE : told;
    const struct known *own = known_of(learning, index, of_kind == 0 ? all_for(terms) : of_kind);
    const struct known *of_class =
        own != NULL || of_kind == 0 ? NULL : known_of_class(learning, index, of_kind);
    if (own != NULL) {
        figure->takes_ns = blended_ns(own, PACE_ONE, said, terms->limit_ms);
        add_samples(figure, own, PACE_ONE);
    } else if (of_class != NULL) {
        figure->takes_ns = blended_ns(of_class, pace, said, terms->limit_ms);
        add_samples(figure, of_class, pace);
        figure->is_at_pace = figure->is_at_pace || pace != PACE_ONE;
    }
}

static void figure_class(struct learning *learning, size_t number, uint32_t first, size_t of_class)
{
    const struct bourse_job *job = learning->job;
    const struct order_part *part = &job->parts[number];
    const bool by_subtask = history_is_by_subtask(job);
    const bool has_list = learning->manifest->n_subtasks > 0;
    const uint32_t step = has_list ? learning->stride : part->subtasks;
    struct history_figure *row = &learning->figures[of_class * history_units(job)];
    int128 sum_ns = 0;
    for (uint32_t i = 0; i < part->subtasks; i += step) {
        const uint32_t left = part->subtasks - i;
        struct history_figure *figure = &row[by_subtask ? first + i : number];
        const int64_t expect_ns = figure->takes_ns;
        figure_one(learning, number, first + i, of_class, figure);
        sum_ns += (int128)figure->takes_ns * (left < step ? left : step);
        figure->takes_ns = by_subtask ? figure->takes_ns : expect_ns;
    }
    if (!by_subtask) {
        row[number].takes_ns = (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks);
    }
}

static void figure_part(struct learning *learning, size_t number, uint32_t first)
{
    for (size_t c = 0; c < learning->table.kind_count; c++) {
        figure_class(learning, number, first, c);
    }
}

struct unlike {
    history_device_visitor *visitor;
    void *context;
};

static bool tell_device(void *context, size_t name, const Bourse__V1__HistoryRow *row)
{
    const struct unlike *unlike = context;
    char account[BOURSE_HEX32_SIZE];
    char device[BOURSE_ID_SIZE];
    (void)name;
    device_of(row, account, device);
    return device[0] == '\0' ||
           unlike->visitor(unlike->context, account, device, row->has_pace ? row->pace : 0);
}

bool history_unlike(struct bourse *bourse, const struct bourse_job *job,
                    history_device_visitor *visitor, void *context, struct bourse_error *error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->manifest == NULL || job->learned.subtasks == 0) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    struct learning *learning = learning_create(job, manifest);
    if (learning == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct unlike unlike = {visitor, context};
    struct bourse_error refused = {.status = BOURSE_OK};
    const bool told = ask_all(bourse, &learning->names, tell_device, &unlike, &refused);
    learning_destroy(learning);
    if (!told && refused.status == BOURSE_UNREACHABLE) {
        *error = refused;
        return false;
    }
    return true;
}

bool history_by_class(struct bourse *bourse, const struct bourse_job *job,
                      const struct history_kind *kinds, size_t kind_count,
                      struct history_figure *figures, struct bourse_error *error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    struct learning *learning = NULL;
    if (job->manifest == NULL || job->learned.subtasks == 0) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    learning = learning_create(job, manifest);
    if (learning == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    learning->figures = figures;
    learning->table.kinds = kinds;
    assert(kind_count <= LIST_SCHEDULE_CLASSES);
    learning->table.kind_count = kind_count;
    struct bourse_error refused = {.status = BOURSE_OK};
    const bool told = ask_all(bourse, &learning->names, add_known, &learning->table, &refused);
    if (told && !learning->table.no_memory) {
        each_part(learning, figure_part);
    }
    learning_destroy(learning);
    if (!told && refused.status == BOURSE_UNREACHABLE) {
        *error = refused;
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- as a list */

struct told { /* a class whose paces were told, with the first name */
    char device_class[BOURSE_NAME_SIZE];
    size_t name;
};

struct telling {
    const Bourse__V1__Manifest *manifest;
    const struct names *names;
    struct told told[LIST_SCHEDULE_CLASSES];
    size_t told_count;
    bourse_measured_visitor *visitor;
    void *context;
};

/* Each request repeats the paces. Beyond LIST_SCHEDULE_CLASSES classes they are told repeatedly. */
static bool was_told(struct telling *telling, size_t name, const char *device_class)
{
    size_t at = 0;
    while (at < telling->told_count && strcmp(telling->told[at].device_class, device_class) != 0) {
        at++;
    }
    if (at == telling->told_count && at < LIST_SCHEDULE_CLASSES) {
        struct told *told = &telling->told[telling->told_count++];
        client_copy(told->device_class, sizeof told->device_class, device_class);
        told->name = name;
    }
    return at < LIST_SCHEDULE_CLASSES && telling->told[at].name != name;
}

static bool tell_pace(struct telling *telling, size_t name, const Bourse__V1__HistoryRow *row)
{
    struct bourse_measured paced = {.pace = row->pace};
    if (was_told(telling, name, row->device_class)) {
        return true;
    }
    client_copy(paced.device_class, sizeof paced.device_class, row->device_class);
    device_of(row, paced.account, paced.device);
    return telling->visitor(telling->context, &paced);
}

static bool tell(void *context, size_t name, const Bourse__V1__HistoryRow *row)
{
    struct telling *telling = context;
    if (row->has_pace) {
        return tell_pace(telling, name, row);
    }
    const Bourse__V1__ManifestTask *task =
        subtask_task(telling->manifest, telling->names->first[name]);
    struct bourse_measured measured = {
        .index = telling->names->first[name],
        .bytes = work_bytes(row->size),
        .samples = row->samples,
        .outliers = row->outliers,
        .median_ns = row->median_ns,
        .p90_ns = row->has_p90_ns ? row->p90_ns : -1,
        .at_ms = row->at_ms,
    };
    client_copy(measured.task, sizeof measured.task,
                task != NULL && task->name != NULL ? task->name : "");
    client_copy(measured.device_class, sizeof measured.device_class, row->device_class);
    device_of(row, measured.account, measured.device);
    return telling->visitor(telling->context, &measured);
}

static bool tell_all(struct bourse *bourse, const Bourse__V1__Manifest *manifest,
                     bourse_measured_visitor *visitor, void *context, struct bourse_error *error)
{
    struct names *names = calloc(1, sizeof *names);
    if (names == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    const uint32_t stride = 1 + (uint32_t)(manifest->n_subtasks / LOOKED_AT);
    /* A part without a list of subtasks has alike ones. */
    uint32_t first = 0;
    for (size_t i = 0;
         manifest->n_subtasks == 0 && manifest->terms != NULL && i < manifest->terms->n_parts;
         i++) {
        const struct work work = work_of(manifest, first);
        add_name(names, &work.name, first);
        first += manifest->terms->parts[i]->subtasks;
    }
    for (uint32_t i = 0; i < manifest->n_subtasks || names->count == 0; i += stride) {
        const struct work work = work_of(manifest, i);
        add_name(names, &work.name, i);
    }
    struct telling telling = {
        .manifest = manifest, .names = names, .visitor = visitor, .context = context};
    const bool good = ask_all(bourse, names, tell, &telling, error);
    free(names);
    return good;
}

bool bourse_history(struct bourse *bourse, const char *id, bourse_measured_visitor *visitor,
                    void *context, struct bourse_error *ret_error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    return client_manifest(bourse, id, &manifest, ret_error) &&
           tell_all(bourse, manifest, visitor, context, ret_error);
}

bool bourse_history_of(struct bourse *bourse, const struct bourse_job *job,
                       bourse_measured_visitor *visitor, void *context,
                       struct bourse_error *ret_error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(ret_error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    return tell_all(bourse, manifest, visitor, context, ret_error);
}

/* ---------------------------------------------------------------- tiles of products */

struct tiles { /* tiles of one product */
    uint64_t inner;
    struct names names;
    struct matrix_block blocks[NAMES_MOST]; /* by name */
    history_tile_visitor *visitor;
    void *context;
};

/* Returns the work of a tile, as the manifest of a product describes it (product.c). */
static struct work tile_work(const struct matrix_block *block, uint64_t inner)
{
    static char executor[] = "tensor";
    static const char *const arguments[] = TILE_ARGUMENTS;
    char *copies[sizeof arguments / sizeof *arguments];
    char value[TILE_VALUE_SIZE];
    const struct matrix_block factors[2] = {{.rows = block->rows, .columns = inner},
                                            {.rows = inner, .columns = block->columns}};
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    Bourse__V1__ManifestTerms terms = BOURSE__V1__MANIFEST_TERMS__INIT;
    Bourse__V1__ManifestPart part = BOURSE__V1__MANIFEST_PART__INIT;
    Bourse__V1__ManifestPart *parts[] = {&part};
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    Bourse__V1__ManifestInput inputs[2];
    Bourse__V1__ManifestInput *input_pointers[] = {&inputs[0], &inputs[1]};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        copies[i] = (char *)(uintptr_t)arguments[i]; /* read only */
    }
    for (size_t i = 0; i < 2; i++) {
        bourse__v1__manifest_input__init(&inputs[i]);
        inputs[i].size = matrix_blob_bytes(&factors[i]);
    }
    tile_value(block, value);
    part.subtasks = part.slots = 1;
    terms.n_parts = 1;
    terms.parts = parts;
    subtask.value = value;
    subtask.n_inputs = 2;
    subtask.inputs = input_pointers;
    manifest.executor = executor;
    manifest.n_arguments = sizeof arguments / sizeof *arguments;
    manifest.arguments = copies;
    manifest.terms = &terms;
    manifest.n_subtasks = 1;
    manifest.subtasks = subtasks;
    return work_of(&manifest, 0);
}

static bool tell_tile(void *context, size_t name, const Bourse__V1__HistoryRow *row)
{
    const struct tiles *tiles = context;
    const struct matrix_block *block = &tiles->blocks[name];
    const struct history_tile tile = {.rows = block->rows,
                                      .columns = block->columns,
                                      .device_class = row->device_class,
                                      .samples = row->samples,
                                      .median_ns = row->median_ns,
                                      .p90_ns = row->has_p90_ns ? row->p90_ns : -1};
    /* The name of the work does not include the inner extent, but the size of the factors does. */
    return row->has_device || row->size != tile_work(block, tiles->inner).size ||
           row->samples == 0 || row->median_ns <= 0 || tiles->visitor(tiles->context, &tile);
}

static void add_tile(struct tiles *tiles, uint64_t rows, uint64_t columns)
{
    const struct matrix_block block = {.rows = rows, .columns = columns};
    const size_t before = tiles->names.count;
    const struct work work = tile_work(&block, tiles->inner);
    add_name(&tiles->names, &work.name, 0);
    if (tiles->names.count > before) {
        tiles->blocks[before] = block;
    }
}

bool history_tiles(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                   history_tile_visitor *visitor, void *context, struct bourse_error *error)
{
    struct tiles *tiles = calloc(1, sizeof *tiles);
    if (tiles == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    tiles->inner = inner;
    tiles->visitor = visitor;
    tiles->context = context;
    for (uint64_t i = 1; i <= HISTORY_GRID && i <= rows; i++) {
        for (uint64_t k = 1; k <= HISTORY_GRID && k <= columns; k++) {
            add_tile(tiles, rows / i + (rows % i > 0), columns / k + (columns % k > 0));
        }
    }
    const bool good = ask_all(bourse, &tiles->names, tell_tile, tiles, error);
    free(tiles);
    return good;
}
