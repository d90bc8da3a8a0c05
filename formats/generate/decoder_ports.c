#include "formats/generate/decoder_ports.h"

#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)
#define PAST "past_key_values."
#define PRESENT "present."

enum { IDS_RANK = 2, LOGITS_RANK = 3, PAST_RANK = 4, PAST_AXIS = 2 };

static bool is_real(enum onnx_type type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16;
}

static bool begins(struct onnx_span name, const char *with)
{
    return name.size > strlen(with) && memcmp(name.at, with, strlen(with)) == 0;
}

static bool check_shape(const struct onnx_port *port, bool has_type, uint32_t rank,
                        const char *what, struct problem *problem)
{
    return (has_type && port->has_shape && port->rank == rank) ||
           REFUSE(problem, "\"%s\" of the model is %s and not %s", onnx_label(port->name).text,
                  onnx_type_name(port->type), what);
}

/* The numbers of tokens and of prompts change from step to step. */
static bool is_free(const struct onnx_port *port, uint32_t axis, struct problem *problem)
{
    const int64_t dim = port->dims[axis].value;
    return dim < 0 || (axis == 0 && dim == 1) ||
           REFUSE(problem, "dim %u of \"%s\" is always %lld; a text needs any length", axis,
                  onnx_label(port->name).text, (long long)dim);
}

static bool check_ids(const struct onnx_port *port, struct problem *problem)
{
    return check_shape(port, port->type == ONNX_INT64, IDS_RANK, "int64 with two dims", problem) &&
           is_free(port, 0, problem) && is_free(port, 1, problem);
}

static bool check_past(const struct onnx_port *port, struct problem *problem)
{
    if (!check_shape(port, is_real(port->type), PAST_RANK, "float32 or float16 with four dims",
                     problem) ||
        !is_free(port, 0, problem) || !is_free(port, PAST_AXIS, problem)) {
        return false;
    }
    return (port->dims[1].value > 0 && port->dims[3].value > 0) ||
           REFUSE(problem, "\"%s\" does not say its heads and their width",
                  onnx_label(port->name).text);
}

static bool take_input(const struct onnx_port *port, size_t index, struct decoder_ports *ports,
                       struct problem *problem)
{
    if (begins(port->name, PAST)) {
        if (ports->past_count == DECODER_PASTS_MOST) {
            return REFUSE(problem, "the model has more than %d keys and values",
                          DECODER_PASTS_MOST);
        }
        ports->pasts[ports->past_count++] = index;
        return check_past(port, problem);
    }
    size_t *place = onnx_span_is(port->name, "input_ids")        ? &ports->ids
                    : onnx_span_is(port->name, "attention_mask") ? &ports->mask
                    : onnx_span_is(port->name, "position_ids")   ? &ports->positions
                                                                 : NULL;
    if (place == NULL) {
        return REFUSE(problem,
                      "the model's input \"%s\" is none that a prompt fills: input_ids, "
                      "attention_mask, position_ids and past_key_values.N.key and .value",
                      onnx_label(port->name).text);
    }
    *place = index;
    return check_ids(port, problem);
}

/* Finds the output that is the past of the next step. */
static bool find_present(const struct onnx_port *past, const struct onnx_port *outputs,
                         size_t count, size_t *ret_index, struct problem *problem)
{
    const size_t before = strlen(PRESENT);
    const struct onnx_span end = {past->name.at + strlen(PAST), past->name.size - strlen(PAST)};
    for (size_t i = 0; i < count; i++) {
        const struct onnx_port *port = &outputs[i];
        if (!begins(port->name, PRESENT) || port->name.size - before != end.size ||
            memcmp(port->name.at + before, end.at, end.size) != 0) {
            continue;
        }
        *ret_index = i;
        return port->type == past->type ||
               REFUSE(problem, "\"%s\" is %s, and the past that it becomes is %s",
                      onnx_label(port->name).text, onnx_type_name(port->type),
                      onnx_type_name(past->type));
    }
    return REFUSE(problem, "the model has no output \"present.\" for its input \"%s\"",
                  onnx_label(past->name).text);
}

static bool find_logits(const struct onnx_port *outputs, size_t count, struct decoder_ports *ports,
                        struct problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        if (onnx_span_is(outputs[i].name, "logits")) {
            ports->logits = i;
            ports->vocabulary = outputs[i].has_shape && outputs[i].rank == LOGITS_RANK
                                    ? outputs[i].dims[LOGITS_RANK - 1].value
                                    : -1;
            return is_real(outputs[i].type) ||
                   REFUSE(problem, "the model's output \"logits\" is %s, not float32 or float16",
                          onnx_type_name(outputs[i].type));
        }
    }
    return REFUSE(problem, "the model has no output \"logits\", so that it makes no text");
}

bool decoder_ports_read(const struct onnx_port *inputs, size_t input_count,
                        const struct onnx_port *outputs, size_t output_count,
                        struct decoder_ports *ret_ports, struct problem *ret_problem)
{
    *ret_ports = (struct decoder_ports){
        .ids = DECODER_NONE, .mask = DECODER_NONE, .positions = DECODER_NONE, .vocabulary = -1};
    for (size_t i = 0; i < input_count; i++) {
        if (!take_input(&inputs[i], i, ret_ports, ret_problem)) {
            return false;
        }
    }
    if (ret_ports->ids == DECODER_NONE) {
        return REFUSE(ret_problem,
                      "the model has no input \"input_ids\", so that it takes no text");
    }
    if (ret_ports->past_count == 0) {
        return REFUSE(ret_problem,
                      "the model has no past (past_key_values.0.key and so on); export it with "
                      "past, as in `optimum-cli export onnx --task text-generation-with-past`");
    }
    for (size_t i = 0; i < ret_ports->past_count; i++) {
        if (!find_present(&inputs[ret_ports->pasts[i]], outputs, output_count,
                          &ret_ports->presents[i], ret_problem)) {
            return false;
        }
    }
    return find_logits(outputs, output_count, ret_ports, ret_problem);
}

bool decoder_ports_fit(int64_t vocabulary, uint32_t tokens, struct problem *ret_problem)
{
    if (vocabulary < tokens || vocabulary > (int64_t)tokens + DECODER_PADDING_MOST) {
        return REFUSE(ret_problem,
                      "the model's vocabulary has %lld tokens, and the tokenizer has %u: the two "
                      "do not belong together",
                      (long long)vocabulary, tokens);
    }
    return true;
}
