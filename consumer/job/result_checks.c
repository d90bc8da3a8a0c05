#include "consumer/job/result_checks.h"

#include "base/cleanup.h"
#include "base/requirement.h"
#include "consumer/client/client.h"
#include "formats/template.h"
#include "formats/tensor_op.h"
#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A check takes about this long: its start, and the reading of every element for all vectors. */
#define START_MS 10
#define NS_PER_BYTE 6

enum { ARGUMENTS = 6, NAME_BYTES = LIMIT_NAME_BYTES };

struct check { /* owns everything that one check points to */
    Bourse__V1__ManifestSubtask subtask;
    Bourse__V1__ManifestTask task;
    Bourse__V1__ManifestFrom from;
    Bourse__V1__ManifestFrom *from_pointer;
    Bourse__V1__ManifestInput *inputs[2]; /* inputs of the checked subtask */
    char *arguments[ARGUMENTS];
    char *names[3]; /* A, B and C */
    char *words[3]; /* the names as templates of literal text */
    char name[NAME_BYTES + 1];
};

struct result_checks {
    size_t count;
    struct check *items;
    Bourse__V1__ManifestSubtask *checked; /* subtasks that the manifest did not list */
    Bourse__V1__ManifestSubtask **pointers;
    int64_t expect_ms; /* of one check, on average */
};

void result_checks_destroy(struct result_checks **self)
{
    struct result_checks *checks = *self;
    if (checks == NULL) {
        return;
    }
    for (size_t i = 0; checks->items != NULL && i < checks->count; i++) {
        for (size_t k = 0; k < 3; k++) {
            free(checks->items[i].names[k]);
            free(checks->items[i].words[k]);
        }
    }
    free(checks->items);
    free(checks->checked);
    free(checks->pointers);
    free(checks);
    *self = NULL;
}

static bool no_memory(struct bourse_error *error)
{
    return client_fail(error, BOURSE_LOCAL, "out of memory");
}

/* ---------------------------------------------------------------- what a subtask computes */

struct product { /* operation of one subtask, with filled templates */
    char *arguments[LIMIT_ARGUMENTS];
    size_t count;
    struct tensor_op op;
};

static void product_fini(struct product *product)
{
    for (size_t i = 0; i < product->count; i++) {
        free(product->arguments[i]);
    }
}

static bool read_product(const Bourse__V1__Manifest *manifest, const struct subtask_terms *terms,
                         const struct template_values *values, struct product *product,
                         struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    for (size_t i = 0; i < terms->argument_count && i < LIMIT_ARGUMENTS; i++) {
        product->arguments[product->count] =
            template_filled(terms->arguments[i], values, LIMIT_ARGUMENT_BYTES, NULL);
        if (product->arguments[product->count] == NULL) {
            return client_fail(error, BOURSE_USAGE, "run: '%s' cannot be filled in",
                               terms->arguments[i]);
        }
        product->count++;
    }
    if (strcmp(manifest->executor, "tensor") != 0 ||
        !tensor_op_read((const char *const *)product->arguments, product->count, false,
                        &product->op, &problem)) {
        return client_fail(error, BOURSE_USAGE, "run: %s", problem.text);
    }
    return tensor_op_is_product(&product->op) ||
           client_fail(error, BOURSE_USAGE,
                       "verify: cheap checks exist for matrix products: matmul, or gemm with "
                       "--alpha 1 --beta 0");
}

/* ---------------------------------------------------------------- one check */

/* Returns a template that always gives this text. */
static char *literal(const char *text)
{
    size_t length = strlen(text);
    char *copy = malloc(2 * length + 1);
    size_t used = 0;
    for (size_t i = 0; copy != NULL && i < length; i++) {
        copy[used++] = text[i];
        if (text[i] == '{' || text[i] == '}') {
            copy[used++] = text[i];
        }
    }
    if (copy != NULL) {
        copy[used] = '\0';
    }
    return copy;
}

static Bourse__V1__ManifestInput *input_of(Bourse__V1__ManifestInput *const *inputs, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(inputs[i]->name, name) == 0) {
            return inputs[i];
        }
    }
    return NULL;
}

/* The factors must be files of the job, because an output of another subtask goes only to subtasks
 * that wait for it. */
static bool take_factors(const Bourse__V1__Manifest *manifest,
                         const Bourse__V1__ManifestSubtask *checked, struct check *check,
                         uint64_t *ret_bytes, struct bourse_error *error)
{
    *ret_bytes = 0;
    for (size_t k = 0; k < 2; k++) {
        const char *name = check->names[k];
        Bourse__V1__ManifestInput *own = input_of(checked->inputs, checked->n_inputs, name);
        const Bourse__V1__ManifestInput *shared =
            input_of(manifest->shared, manifest->n_shared, name);
        if (own == NULL && shared == NULL) {
            return client_fail(error, BOURSE_USAGE,
                               "verify: cheap: '%s' must be one of the job's files, not what "
                               "another task leaves; use verify: none, or submit what takes it "
                               "as a job of its own",
                               name);
        }
        *ret_bytes += own != NULL ? own->size : shared->size;
        bool again = k == 1 && own != NULL && own == check->inputs[0];
        if (own != NULL && !again) {
            check->inputs[check->subtask.n_inputs++] = own;
        }
    }
    return true;
}

/* The product must be the only output, because nothing else is checked. */
static bool is_only_output(const struct subtask_terms *terms, const struct template_values *values,
                           const char *product)
{
    char *name = terms->output_count != 1
                     ? NULL
                     : template_filled(terms->outputs[0], values, LIMIT_ARGUMENT_BYTES, NULL);
    bool same = name != NULL && strcmp(name, product) == 0;
    free(name);
    return same;
}

static void name_check(const Bourse__V1__ManifestSubtask *checked, uint64_t number,
                       struct check *check)
{
    if (checked->task != NULL && checked->task->name != NULL) {
        (void)snprintf(check->name, sizeof check->name, "check of %.*s",
                       NAME_BYTES - (int)sizeof "check of", checked->task->name);
    } else {
        (void)snprintf(check->name, sizeof check->name, "check of subtask %" PRIu64, number);
    }
}

static bool copy_names(const struct tensor_op *op, struct check *check)
{
    const char *const names[] = {op->a, op->b, op->result};
    for (size_t k = 0; k < 3; k++) {
        assert(names[k] != NULL); /* the operation is a product */
        check->names[k] = strdup(names[k]);
        check->words[k] = literal(names[k]);
        if (check->names[k] == NULL || check->words[k] == NULL) {
            return false;
        }
    }
    return true;
}

static void fill_check(uint32_t index, struct check *check)
{
    static char verb[] = "freivalds";
    static char seed[] = TENSOR_DRAWN;
    static char rounds[8];
    (void)snprintf(rounds, sizeof rounds, "%d", TENSOR_CHECK_ROUNDS);
    char *const arguments[ARGUMENTS] = {verb, check->words[0], check->words[1], check->words[2],
                                        seed, rounds};
    memcpy(check->arguments, arguments, sizeof arguments);
    bourse__v1__manifest_from__init(&check->from);
    check->from.task = index;
    check->from.name = check->names[2];
    check->from.output = check->names[2];
    check->from_pointer = &check->from;
    bourse__v1__manifest_task__init(&check->task);
    check->task.name = check->name;
    check->task.n_arguments = ARGUMENTS;
    check->task.arguments = check->arguments;
    check->task.n_from = 1;
    check->task.from = &check->from_pointer;
    check->subtask.task = &check->task;
    check->subtask.inputs = check->inputs;
}

static bool make_check(const Bourse__V1__Manifest *manifest, bool is_array,
                       const Bourse__V1__ManifestSubtask *checked, uint32_t index,
                       struct check *check, uint64_t *ret_bytes, struct bourse_error *error)
{
    CLEANUP(product_fini) struct product product = {.count = 0};
    const struct subtask_terms terms = subtask_terms(manifest, index);
    const struct template_values values = {
        .in = terms.input, .value = terms.value, .index = terms.number};
    bourse__v1__manifest_subtask__init(&check->subtask);
    if (!read_product(manifest, &terms, &values, &product, error)) {
        return false;
    }
    if (!copy_names(&product.op, check)) {
        return no_memory(error);
    }
    if (!is_only_output(&terms, &values, product.op.result)) {
        return client_fail(error, BOURSE_USAGE,
                           "verify: cheap: the product '%s' must be all that `outputs:` names",
                           product.op.result);
    }
    name_check(checked, is_array ? subtask_number(manifest, true, index) : terms.number, check);
    fill_check(index, check);
    return take_factors(manifest, checked, check, ret_bytes, error);
}

/* ---------------------------------------------------------------- the job */

static struct result_checks *result_checks_create(const Bourse__V1__Manifest *manifest,
                                                  size_t count)
{
    CLEANUP(result_checks_destroy) struct result_checks *checks = calloc(1, sizeof *checks);
    if (checks == NULL) {
        return NULL;
    }
    bool is_listed = manifest->n_subtasks > 0;
    checks->count = count;
    checks->items = calloc(count, sizeof *checks->items);
    checks->checked = calloc(is_listed ? 1 : count, sizeof *checks->checked);
    checks->pointers = calloc(2 * count, sizeof(void *));
    if (checks->items == NULL || checks->checked == NULL || checks->pointers == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_listed) {
            bourse__v1__manifest_subtask__init(&checks->checked[i]);
        }
        checks->pointers[i] = is_listed ? manifest->subtasks[i] : &checks->checked[i];
        checks->pointers[count + i] = &checks->items[i].subtask;
    }
    struct result_checks *made = checks;
    checks = NULL;
    return made;
}

/* Puts "job.yaml:7: " before an error about a subtask that a job file describes. */
static void say_where(const struct bourse_job *job, uint32_t index, struct bourse_error *error)
{
    if (error == NULL || error->status != BOURSE_USAGE || job->file_name == NULL) {
        return;
    }
    const struct job_file *file = job->file;
    unsigned line = file->task_count > 0 ? file->tasks[job->order[index]].line : file->run_line;
    if (line > 0) {
        char what[sizeof error->text];
        client_copy(what, sizeof what, error->text);
        (void)client_fail(error, BOURSE_USAGE, "%s:%u: %s", job->file_name, line, what);
    }
}

static bool make_all(const struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                     struct result_checks *checks, struct bourse_error *error)
{
    uint64_t sum_ms = 0;
    const bool is_array = subtask_is_array(manifest);
    assert(checks->count > 0);
    for (size_t i = 0; i < checks->count; i++) {
        uint64_t bytes = 0;
        if (!make_check(manifest, is_array, checks->pointers[i], (uint32_t)i, &checks->items[i],
                        &bytes, error)) {
            say_where(job, (uint32_t)i, error);
            return false;
        }
        bytes = bytes < UINT64_C(1) << 48 ? bytes : UINT64_C(1) << 48;
        sum_ms += START_MS + bytes * NS_PER_BYTE / 1000000;
    }
    checks->expect_ms = (int64_t)((sum_ms + checks->count - 1) / checks->count);
    return true;
}

static bool need_role(struct requirement *needs, bool is_referee)
{
    bool alone = needs->count == 0;
    if (needs->count + 3 > REQUIREMENT_NODES_MAX) {
        return false;
    }
    needs->nodes[needs->count++] = (struct requirement_node){
        .op = REQUIREMENT_EQ, .attribute = {.name = "referee", .number = 1}};
    if (!is_referee) { /* a device that is no referee lacks the attribute */
        needs->nodes[needs->count++] = (struct requirement_node){.op = REQUIREMENT_NOT};
    }
    if (!alone) {
        needs->nodes[needs->count++] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    }
    return true;
}

bool result_checks_need_referee(struct requirement *needs)
{
    return need_role(needs, true);
}

bool result_checks_need_no_referee(struct requirement *needs)
{
    return need_role(needs, false);
}

/* A check is as wide as the widest subtask, because it holds the same matrices in memory. */
static bool part_of_file(const struct bourse_job *job, struct order_part *part)
{
    const struct job_file *file = job->file;
    *part = (struct order_part){
        .needs = file->needs, .slots = 1, .limit_ms = file->limit_ms, .term_ms = file->term_ms};
    for (size_t i = 0; i < job->part_count; i++) {
        part->slots = job->parts[i].slots > part->slots ? job->parts[i].slots : part->slots;
    }
    return order_add_need(&part->needs, "executor", "tensor") &&
           result_checks_need_referee(&part->needs);
}

static bool add_part(struct bourse_job *job, const struct result_checks *checks,
                     struct bourse_error *error)
{
    if (job->part_count == ORDER_PARTS_MAX) {
        return client_fail(error, BOURSE_USAGE,
                           "verify: cheap: with its checks the job has more than %d parts; let "
                           "more of its tasks have the same needs, slots and limits",
                           ORDER_PARTS_MAX);
    }
    struct order_part *part = &job->parts[job->part_count];
    if (job->check.slots > 0) {
        *part = job->check;
    } else if (!part_of_file(job, part)) {
        return client_fail(error, BOURSE_USAGE, "needs: too many terms beside those of the checks");
    }
    part->subtasks = (uint32_t)checks->count;
    part->at_most = 0;
    part->expect_ns = order_expect_ns(checks->expect_ms, part->limit_ms);
    job->part_count++;
    return true;
}

/* Returns the expected time of subtask `index`. */
static int64_t expect_of(const struct bourse_job *job, uint32_t index)
{
    size_t part = 0;
    while (index >= job->parts[part].subtasks) {
        index -= job->parts[part++].subtasks;
    }
    return job->parts[part].expect_ns;
}

static bool extend_graph(struct bourse_job *job, uint32_t count, struct bourse_error *error)
{
    const struct order_graph *old = &job->graph;
    struct order_graph graph = {.count = 2 * count, .edge_count = old->edge_count + count};
    graph.rank = calloc(graph.count, sizeof *graph.rank);
    graph.after_count = calloc(graph.count, sizeof *graph.after_count);
    graph.after = calloc(graph.edge_count, sizeof *graph.after);
    int64_t *expect_ns = calloc(graph.count, sizeof *expect_ns);
    const bool tells_apart = old->count > 0 && old->expect_ms != NULL;
    graph.expect_ms = tells_apart ? calloc(graph.count, sizeof *graph.expect_ms) : NULL;
    bool good = (!tells_apart || graph.expect_ms != NULL) && graph.rank != NULL &&
                graph.after_count != NULL && graph.after != NULL && expect_ns != NULL;
    if (good && old->count > 0) {
        memcpy(graph.after_count, old->after_count, count * sizeof *graph.after_count);
    }
    if (good && tells_apart) { /* the market never starts a second attempt beside a check */
        memcpy(graph.expect_ms, old->expect_ms, count * sizeof *graph.expect_ms);
    }
    if (good && old->edge_count > 0) {
        memcpy(graph.after, old->after, old->edge_count * sizeof *graph.after);
    }
    for (uint32_t i = 0; good && i < count; i++) {
        graph.after_count[count + i] = 1;
        graph.after[old->edge_count + i] = i;
        expect_ns[i] = expect_of(job, i);
        expect_ns[count + i] = expect_of(job, count + i);
    }
    if (!good) {
        order_graph_fini(&graph);
        free(expect_ns);
        return no_memory(error);
    }
    order_rank(&graph, expect_ns);
    free(expect_ns);
    order_graph_fini(&job->graph);
    job->graph = graph;
    return true;
}

/* Finds a fault that the market would refuse, before anything is sent. */
static bool are_machines(const struct bourse_job *job, struct bourse_error *error)
{
    for (size_t i = 0; i < job->part_count; i++) {
        if (requirement_asks_simulated(&job->parts[i].needs)) {
            (void)client_refused(error, REJECT_VERIFY,
                                 "needs: with verify: cheap they must not ask for a simulated "
                                 "device: its results are not checked; use verify: none");
            if (error != NULL) {
                client_copy(error->field, sizeof error->field, "needs");
            }
            return false;
        }
    }
    return true;
}

bool result_checks_add(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                       struct result_checks **ret_checks, struct bourse_error *error)
{
    size_t count = (size_t)job->subtasks;
    assert(count > 0);
    *ret_checks = NULL;
    if (strcmp(job->file->verify, "cheap") != 0) {
        return true;
    }
    if (count > LIMIT_GRAPH_SUBTASKS / 2 || job->graph.edge_count + count > LIMIT_GRAPH_EDGES) {
        return client_fail(error, BOURSE_USAGE,
                           "verify: cheap: %zu subtasks; %d at most can be checked, split the job",
                           count, LIMIT_GRAPH_SUBTASKS / 2);
    }
    if (!are_machines(job, error)) {
        return false;
    }
    struct result_checks *checks = result_checks_create(manifest, count);
    *ret_checks = checks;
    if (checks == NULL) {
        return no_memory(error);
    }
    if (!make_all(job, manifest, checks, error) || !add_part(job, checks, error) ||
        !extend_graph(job, (uint32_t)count, error)) {
        return false;
    }
    job->subtasks = 2 * count;
    job->checks = (uint32_t)count;
    manifest->subtasks = checks->pointers;
    manifest->n_subtasks = 2 * count;
    manifest->subtask_count = (uint32_t)(2 * count);
    return true;
}

/* ---------------------------------------------------------------- read back */

uint32_t result_checks_count(const Bourse__V1__Manifest *manifest)
{
    bool is_cheap = manifest->terms != NULL && strcmp(manifest->terms->verify, "cheap") == 0 &&
                    manifest->n_subtasks == manifest->subtask_count &&
                    manifest->subtask_count % 2 == 0;
    return is_cheap ? manifest->subtask_count / 2 : 0;
}

bool result_checks_remove(Bourse__V1__Manifest *manifest, struct order_part *ret_part)
{
    uint32_t count = result_checks_count(manifest);
    Bourse__V1__ManifestTerms *terms = manifest->terms;
    if (count == 0 || terms->n_parts < 2 || terms->parts[terms->n_parts - 1]->subtasks != count) {
        return false;
    }
    const Bourse__V1__ManifestPart *wire = terms->parts[terms->n_parts - 1];
    *ret_part = (struct order_part){.subtasks = count,
                                    .slots = wire->slots,
                                    .limit_ms = wire->limit_ms,
                                    .term_ms = wire->term_ms,
                                    .expect_ns = wire->expect_ns};
    if (!codec_requirement_from_wire(wire->needs, &ret_part->needs)) {
        return false;
    }
    terms->n_parts--; /* the manifest's arena owns the memory */
    manifest->n_subtasks -= count;
    manifest->subtask_count -= count;
    return true;
}
