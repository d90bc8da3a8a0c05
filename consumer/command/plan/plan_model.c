#include "consumer/command/plan/plan_model.h"

#include "base/text.h"
#include "consumer/command/plan/work_refusal.h"
#include "consumer/command/show.h"
#include "consumer/model/model_steps.h"
#include "planner/templates/making.h"
#include "runtime/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS_MOST = 64, PORTS_SHOWN = 8 };

struct plan_model {
    const char *path;
    uint8_t *bytes; /* the file; the model and the shapes point into it */
    size_t length;
    struct onnx_model *model;
    struct onnx_shapes *shapes;
    struct model_plan *plan;
    struct onnx_binding dims[DIMS_MOST];
    size_t dim_count;
};

/* The kind of work that tables of a plan name. A model has no parameters; its dims are said. */
static const struct template_parameter no_parameters[] = {MAKING_END};
static const struct template model_template = {
    .name = "onnx", .meaning = "one run of a model", .parameters = no_parameters};

bool plan_model_is_named(const char *word)
{
    return command_is_model(word);
}

void plan_model_destroy(struct plan_model **self)
{
    struct plan_model *model = *self;
    if (model != NULL) {
        model_plan_destroy(&model->plan);
        onnx_shapes_destroy(&model->shapes);
        onnx_destroy(&model->model);
        free(model->bytes);
        free(model);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- reading */

/* Reads "NAME=N" into a binding, which borrows the name. */
static bool read_dim(struct plan_model *model, const char *text)
{
    const char *mark = strrchr(text, '=');
    char *end = NULL;
    if (mark == NULL || mark == text || mark[1] < '0' || mark[1] > '9' ||
        model->dim_count == DIMS_MOST) {
        return false;
    }
    errno = 0;
    const long long value = strtoll(mark + 1, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    model->dims[model->dim_count++] = (struct onnx_binding){
        .name = {(const uint8_t *)text, (size_t)(mark - text)}, .value = value};
    return true;
}

static int read_dims(struct work *work)
{
    const struct invocation *invocation = work->invocation;
    for (size_t i = 0; i < invocation->given_count; i++) {
        const struct given *given = &invocation->given[i];
        if (strcmp(given->name, "dim") == 0 && !read_dim(work->model, given->value)) {
            return complain(work->invocation, BOURSE_USAGE,
                            "--dim %s: it is NAME=N, as in batch=16, at most %d times",
                            cell_plain(given->value), DIMS_MOST);
        }
    }
    return BOURSE_OK;
}

static int refuse_model(const struct work *work, const char *name, const struct problem *problem)
{
    return work_refuse(work, BOURSE_USAGE, "MODEL_", name, problem->text);
}

static int read_model(struct work *work)
{
    struct plan_model *model = work->model;
    struct problem problem = {.text = ""};
    if (!file_read(model->path, (size_t)ONNX_FILE_BYTES, &model->bytes, &model->length, &problem)) {
        return complain(work->invocation, BOURSE_USAGE, "%s", problem.text);
    }
    enum onnx_status status = onnx_read(model->bytes, model->length, &model->model, &problem);
    const struct onnx_infer_input input = {
        .model = model->model, .bindings = model->dims, .binding_count = model->dim_count};
    status = status == ONNX_OK ? onnx_infer(&input, &model->shapes, &problem) : status;
    if (status != ONNX_OK) {
        return status == ONNX_NO_MEMORY ? work_no_memory(work)
                                        : refuse_model(work, onnx_status_name(status), &problem);
    }
    const enum steps_status made =
        model_plan_make(model->model, model->shapes, &model->plan, &problem);
    if (made == STEPS_NO_MEMORY) {
        return work_no_memory(work);
    }
    return made == STEPS_OK ? BOURSE_OK
                            : refuse_model(work,
                                           made == STEPS_BAD_VALUE ? onnx_status_name(ONNX_OPERATOR)
                                                                   : steps_status_name(made),
                                           &problem);
}

int plan_model_make(struct work *work, const char *path)
{
    work->template = &model_template;
    if (work->request.setting_count > 0 || work->request.batch > 0) {
        return complain(work->invocation, BOURSE_USAGE,
                        "--set and --batch are for templates; a model's dims are said with --dim, "
                        "as in --dim batch=16");
    }
    work->model = calloc(1, sizeof *work->model);
    if (work->model == NULL) {
        return work_no_memory(work);
    }
    work->model->path = path;
    work->path = path;
    int status = read_dims(work);
    status = status == BOURSE_OK ? read_model(work) : status;
    if (status == BOURSE_OK) {
        work->steps = model_plan_take_steps(work->model->plan);
    }
    return status;
}

/* ---------------------------------------------------------------- showing */

/* An input that has weights is no input of a run. */
static bool is_brought(const struct onnx_model *model, const struct onnx_port *port)
{
    return model->values[port->value].initializer == ONNX_NONE;
}

static void show_ports(const struct plan_model *model, const char *title,
                       const struct onnx_port *ports, uint32_t count)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct onnx_fact *fact = &model->shapes->facts[ports[i].value];
        if (!is_brought(model->model, &ports[i]) || shown++ >= PORTS_SHOWN) {
            continue;
        }
        (void)printf("%-12s %s %s\n", title, onnx_label(ports[i].name).text,
                     fact->is_known ? onnx_shape_text(fact).text : "no tensor");
    }
    if (shown > PORTS_SHOWN) {
        (void)printf("and %u more %ss: --json has them\n", shown - PORTS_SHOWN, title);
    }
}

/* Writes a number with a prefix of a thousand: "130.9 G". */
static struct work_cell in_thousands(double value)
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
    size_t at = 0;
    struct work_cell cell;
    while (value >= 1000 && at + 1 < sizeof prefixes / sizeof prefixes[0]) {
        value /= 1000;
        at++;
    }
    (void)snprintf(cell.text, sizeof cell.text, "%.4g%s", value, prefixes[at]);
    return cell;
}

/* Says how much is counted, and where each count comes from. */
static void show_work(const struct model_plan *plan)
{
    const double operations = plan->operations[MODEL_EXACT] + plan->operations[MODEL_LEAST];
    const double bytes = plan->bytes[MODEL_EXACT] + plan->bytes[MODEL_LEAST];
    (void)printf("work         %s operations, %sB read and written\n",
                 in_thousands(operations).text, in_thousands(bytes).text);
    const double share = operations > 0 ? plan->operations[MODEL_EXACT] / operations : 0;
    (void)printf("counted      %" PRIu32 " node%s by the formula of the operator (%.1f%% of the "
                 "operations)\n",
                 plan->counts[MODEL_EXACT], text_plural(plan->counts[MODEL_EXACT]),
                 (double)(int)(1000 * share) / 10);
    (void)printf("             %" PRIu32 " as the least that any device must do, %" PRIu32
                 " as nothing\n",
                 plan->counts[MODEL_LEAST], plan->counts[MODEL_NOTHING]);
    (void)printf("             each node alone: a device that fuses nodes moves fewer bytes\n");
}

/* Says of a device which node's work it cannot do, if it cannot do all. */
static void show_unable(const struct work *work, uint32_t device)
{
    const struct cost_device *on = work->devices[device].cost;
    for (size_t i = 0; i < work->steps->step_count; i++) {
        const struct step *step = &work->steps->steps[i];
        struct step_cost taken;
        struct cost cost;
        size_t part = 0;
        char text[200];
        const enum cost_status status = steps_cost(on, step, &taken, &part);
        if (status == COST_OK || part >= step->part_count) {
            continue;
        }
        const struct operation *operation = &step->parts[part].operation;
        if (cost_predict(on, operation, &cost) != COST_OK) {
            cost_explain(status, work_device(work, device), on->profile, operation, &cost, text,
                         sizeof text);
            (void)printf("cannot do    %s: %s\n", step->name, text);
            return;
        }
    }
}

/* Names each device that cannot do a step; of several alike, the first. */
static void show_unable_devices(const struct work *work)
{
    for (uint32_t i = 0; i < work->set->count; i++) {
        bool is_new = true;
        for (uint32_t k = 0; is_new && k < i; k++) {
            is_new = work->set->items[k].known == NULL ||
                     work->set->items[k].known != work->set->items[i].known;
        }
        if (is_new) {
            show_unable(work, i);
        }
    }
}

void plan_model_show(const struct work *work)
{
    const struct plan_model *model = work->model;
    (void)printf("plan only: `bourse run MODEL` runs the model on the market's devices\n");
    (void)printf("model        %s: %" PRIu32 " node%s, opset %" PRId64 ", %s parameters, %s of "
                 "weights\n",
                 cell_plain(model->path), model->model->node_count,
                 text_plural(model->model->node_count), model->model->opset,
                 in_thousands((double)model->plan->parameters).text,
                 cell_bytes((uint64_t)model->plan->weight_bytes));
    show_ports(model, "input", model->model->inputs, model->model->input_count);
    show_ports(model, "output", model->model->outputs, model->model->output_count);
    show_work(model->plan);
    show_unable_devices(work);
}

/* ---------------------------------------------------------------- for programs */

/* Names of a model that was read are plain text, and whole here. */
static json_t *json_name(struct onnx_span name)
{
    return json_stringn((const char *)name.at, name.size);
}

static json_t *json_ports(const struct plan_model *model, const struct onnx_port *ports,
                          uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct onnx_fact *fact = &model->shapes->facts[ports[i].value];
        json_t *dims = json_array();
        for (uint32_t k = 0; k < fact->rank; k++) {
            (void)json_array_append_new(dims, json_integer((json_int_t)fact->dims[k]));
        }
        if (!is_brought(model->model, &ports[i])) {
            json_decref(dims);
            continue;
        }
        (void)json_array_append_new(list,
                                    json_pack("{s:o, s:s, s:o}", "name", json_name(ports[i].name),
                                              "type", onnx_type_name(fact->type), "dims", dims));
    }
    return list;
}

static json_t *json_node(const struct work *work, uint32_t number)
{
    const struct plan_model *model = work->model;
    const struct onnx_node *node = &model->model->nodes[number];
    const struct model_node *counted = &model->plan->nodes[number];
    struct operation_size size = {.flops = 0};
    char text[OPERATION_TEXT_SIZE];
    json_t *counted_as = json_null();
    if (counted->source != MODEL_NOTHING &&
        operation_measure(&counted->operation, &size, NULL) == OPERATION_OK) {
        operation_write(&counted->operation, text);
        counted_as = json_string(text);
    }
    return json_pack("{s:o, s:o, s:s, s:s, s:o, s:f, s:I, s:I}", "node",
                     json_name(onnx_node_name(model->model, node)), "operator",
                     json_name(node->operator), "step",
                     work->steps->steps[model->plan->step_of[number]].name, "source",
                     model_source_name(counted->source), "operation", counted_as, "operations",
                     (double)size.flops, "read_bytes", (json_int_t)size.read_bytes, "written_bytes",
                     (json_int_t)size.written_bytes);
}

json_t *plan_model_json(const struct work *work)
{
    const struct plan_model *model = work->model;
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < model->model->node_count; i++) {
        (void)json_array_append_new(nodes, json_node(work, i));
    }
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "path", cell_plain(model->path), "ir_version",
        (json_int_t)model->model->ir_version, "opset", (json_int_t)model->model->opset,
        "parameters", (json_int_t)model->plan->parameters, "weight_bytes",
        (json_int_t)model->plan->weight_bytes, "inputs",
        json_ports(model, model->model->inputs, model->model->input_count), "outputs",
        json_ports(model, model->model->outputs, model->model->output_count), "nodes", nodes);
}
