/* This file has the recurrent layers RNN, GRU and LSTM of float32, with their usual functions. The
 * products with the inputs of all steps are one product; each step then adds what it takes from the
 * state. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_product.h"

#include <math.h>
#include <string.h>

enum { GATES_MOST = 4, SIDE_MOST = 1 << 28 };

struct layer {
    int kind;
    int64_t gates, length, batch, width, hidden, ways;
    bool batch_first, resets_late, is_relu;
    const struct own_tensor *x, *weights, *again, *bias, *lengths, *state, *cell, *peepholes;
    struct own_tensor *y, *last, *last_cell;
    /* Scratch: the weights turned, the products with all inputs, those of one step, the state. */
    float *turned, *turned_again, *from_inputs, *from_state, *h, *c, *reset;
};

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Returns element `unit` of a gate's two biases, added. */
static float bias_of(const struct layer *self, int64_t way, int64_t gate, int64_t unit, bool input,
                     bool again)
{
    const int64_t all = self->gates * self->hidden;
    if (self->bias == NULL) {
        return 0;
    }
    const float *bias = (const float *)self->bias->at + way * 2 * all + gate * self->hidden + unit;
    return (input ? bias[0] : 0) + (again ? bias[all] : 0);
}

static int64_t state_at(const struct layer *self, int64_t way, int64_t b)
{
    return (self->batch_first ? b * self->ways + way : way * self->batch + b) * self->hidden;
}

static int64_t steps_of(const struct layer *self, int64_t b)
{
    return self->lengths != NULL ? own_integer_at(self->lengths, b) : self->length;
}

/* ---------------------------------------------------------------- one step */

/* The row of gates that a batch's step gets of the inputs. */
static const float *inputs_of(const struct layer *self, int64_t t, int64_t b)
{
    const int64_t row = self->batch_first ? b * self->length + t : t * self->batch + b;
    return self->from_inputs + row * self->gates * self->hidden;
}

static void step_rnn(const struct layer *self, int64_t way, int64_t b, const float *input)
{
    const float *state = self->from_state + b * self->hidden;
    for (int64_t i = 0; i < self->hidden; i++) {
        const float sum = input[i] + state[i] + bias_of(self, way, 0, i, true, true);
        self->h[b * self->hidden + i] = self->is_relu ? (sum > 0 ? sum : 0) : tanhf(sum);
    }
}

static float peephole(const struct layer *self, int64_t way, int64_t gate, int64_t i, float cell)
{
    enum { PEEPHOLES = 3 };
    return self->peepholes == NULL
               ? 0
               : cell * ((const float *)
                             self->peepholes->at)[(way * PEEPHOLES + gate) * self->hidden + i];
}

/* Gates are input, output, forget and cell. */
static void step_lstm(const struct layer *self, int64_t way, int64_t b, const float *input)
{
    const int64_t hidden = self->hidden;
    const float *state = self->from_state + b * self->gates * hidden;
    for (int64_t i = 0; i < hidden; i++) {
        float gates[GATES_MOST];
        float *cell = &self->c[b * hidden + i];
        for (int64_t g = 0; g < GATES_MOST; g++) {
            gates[g] = input[g * hidden + i] + state[g * hidden + i] +
                       bias_of(self, way, g, i, true, true);
        }
        const float in = sigmoid(gates[0] + peephole(self, way, 0, i, *cell));
        const float forget = sigmoid(gates[2] + peephole(self, way, 2, i, *cell));
        *cell = forget * *cell + in * tanhf(gates[3]);
        const float out = sigmoid(gates[1] + peephole(self, way, 1, i, *cell));
        self->h[b * hidden + i] = out * tanhf(*cell);
    }
}

/* Gates are update, reset and new. With a late reset the state's product is reset; otherwise the
 * state is, before its product. */
static void step_gru(const struct layer *self, int64_t way, int64_t b, const float *input)
{
    const int64_t hidden = self->hidden;
    const float *state = self->from_state + b * self->gates * hidden;
    const float *again = self->turned_again + 2 * hidden; /* columns of the new gate */
    float *h = self->h + b * hidden;
    for (int64_t i = 0; i < hidden; i++) {
        const float sum =
            input[hidden + i] + state[hidden + i] + bias_of(self, way, 1, i, true, true);
        self->reset[i] = sigmoid(sum) * (self->resets_late ? 1 : h[i]);
    }
    for (int64_t i = 0; i < hidden; i++) {
        float from_state = self->resets_late ? state[2 * hidden + i] : 0;
        for (int64_t k = 0; !self->resets_late && k < hidden; k++) {
            from_state += self->reset[k] * again[k * self->gates * hidden + i];
        }
        from_state += bias_of(self, way, 2, i, false, true);
        from_state *= self->resets_late ? self->reset[i] : 1;
        const float fresh =
            tanhf(input[2 * hidden + i] + bias_of(self, way, 2, i, true, false) + from_state);
        const float update = sigmoid(input[i] + state[i] + bias_of(self, way, 0, i, true, true));
        self->reset[hidden + i] = (1 - update) * fresh + update * h[i];
    }
    memcpy(h, self->reset + hidden, (size_t)hidden * sizeof *h);
}

static void put_step(const struct layer *self, int64_t way, int64_t t, int64_t b)
{
    const int64_t row = self->batch_first ? (b * self->length + t) * self->ways + way
                                          : (t * self->ways + way) * self->batch + b;
    if (self->y != NULL) {
        memcpy((float *)self->y->to + row * self->hidden, self->h + b * self->hidden,
               (size_t)self->hidden * sizeof(float));
    }
}

/* ---------------------------------------------------------------- one way */

static void begin_states(const struct layer *self, int64_t way)
{
    const size_t bytes = (size_t)self->hidden * sizeof(float);
    for (int64_t b = 0; b < self->batch; b++) {
        float *h = self->h + b * self->hidden;
        float *c = self->c + b * self->hidden;
        memset(h, 0, bytes);
        memset(c, 0, bytes);
        if (self->state != NULL) {
            memcpy(h, (const float *)self->state->at + state_at(self, way, b), bytes);
        }
        if (self->cell != NULL) {
            memcpy(c, (const float *)self->cell->at + state_at(self, way, b), bytes);
        }
    }
}

static void end_states(const struct layer *self, int64_t way)
{
    const size_t bytes = (size_t)self->hidden * sizeof(float);
    for (int64_t b = 0; b < self->batch; b++) {
        if (self->last != NULL) {
            memcpy((float *)self->last->to + state_at(self, way, b), self->h + b * self->hidden,
                   bytes);
        }
        if (self->last_cell != NULL) {
            memcpy((float *)self->last_cell->to + state_at(self, way, b),
                   self->c + b * self->hidden, bytes);
        }
    }
}

static bool run_steps(struct own_call *call, const struct layer *self, int64_t way, bool reverses)
{
    const int64_t all = self->gates * self->hidden;
    const struct own_sides sides = {self->batch, self->hidden, all};
    for (int64_t s = 0; s < self->length; s++) {
        if (!own_product(call, sides, 1, self->h, self->turned_again, 0, self->from_state)) {
            return false;
        }
        for (int64_t b = 0; b < self->batch; b++) {
            const int64_t steps = steps_of(self, b);
            const int64_t t = reverses ? steps - 1 - s : s;
            if (s >= steps) {
                continue; /* the sequence is over: its state stays */
            }
            if (self->kind == OWN_RNN) {
                step_rnn(self, way, b, inputs_of(self, t, b));
            } else if (self->kind == OWN_LSTM) {
                step_lstm(self, way, b, inputs_of(self, t, b));
            } else {
                step_gru(self, way, b, inputs_of(self, t, b));
            }
            put_step(self, way, t, b);
        }
    }
    return true;
}

static bool run_way(struct own_call *call, const struct layer *self, int64_t way, bool reverses)
{
    const int64_t all = self->gates * self->hidden;
    const struct own_sides sides = {self->length * self->batch, self->width, all};
    own_turn((const float *)self->weights->at + way * all * self->width, all, self->width,
             self->turned);
    own_turn((const float *)self->again->at + way * all * self->hidden, all, self->hidden,
             self->turned_again);
    begin_states(self, way);
    if (!own_product(call, sides, 1, self->x->at, self->turned, 0, self->from_inputs) ||
        !run_steps(call, self, way, reverses)) {
        return false;
    }
    end_states(self, way);
    return true;
}

/* ---------------------------------------------------------------- the layer */

/* Reads which functions the gates have. The usual ones are known, and Relu for RNN. */
static bool read_functions(struct own_call *call, struct layer *self)
{
    enum { STRINGS = 9 }; /* AttributeProto.strings */
    static const char *const usual[3][3] = {
        [OWN_RNN] = {"Tanh", "Tanh", "Tanh"},
        [OWN_GRU] = {"Sigmoid", "Tanh", "Tanh"},
        [OWN_LSTM] = {"Sigmoid", "Tanh", "Tanh"},
    };
    const uint32_t each = self->kind == OWN_RNN ? 1 : self->kind == OWN_GRU ? 2 : 3;
    const struct onnx_attribute *said =
        onnx_attribute_of(call->rule.model, call->rule.node, "activations");
    uint32_t at = 0;
    struct onnx_field field;
    struct onnx_wire wire =
        onnx_wire_over(said != NULL ? said->message : (struct onnx_span){NULL, 0});
    while (onnx_wire_next(&wire, &field)) {
        if (field.number != STRINGS) {
            continue;
        }
        const bool is_relu = self->kind == OWN_RNN && onnx_span_is(field.bytes, "Relu");
        const bool is_known = is_relu || onnx_span_is(field.bytes, usual[self->kind][at % each]);
        if (!is_known || (at > 0 && is_relu != self->is_relu)) {
            return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT,
                             "the activation \"%s\" is not known here",
                             onnx_label(field.bytes).text);
        }
        self->is_relu = is_relu;
        at++;
    }
    return true;
}

static bool lengths_are_right(struct own_call *call, const struct layer *self)
{
    if (!own_input_is(call, 4, ONNX_INT32) || !own_input_fits(call, 4, 1, &self->batch)) {
        return false;
    }
    for (int64_t b = 0; b < self->batch; b++) {
        if (steps_of(self, b) < 0 || steps_of(self, b) > self->length) {
            return own_fault(call, ONNX_SHAPE, 4, "sequence %lld has %lld of %lld steps",
                             (long long)b, (long long)steps_of(self, b), (long long)self->length);
        }
    }
    return true;
}

static bool inputs_are_right(struct own_call *call, const struct layer *self)
{
    const int64_t all = self->gates * self->hidden;
    const int64_t weights[] = {self->ways, all, self->width};
    const int64_t again[] = {self->ways, all, self->hidden};
    const int64_t bias[] = {self->ways, 2 * all};
    const int64_t first = self->batch_first ? self->batch : self->ways;
    const int64_t second = self->batch_first ? self->ways : self->batch;
    const int64_t state[] = {first, second, self->hidden};
    const int64_t peepholes[] = {self->ways, 3 * self->hidden};
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (i != 4 && !own_input_is(call, i, ONNX_FLOAT)) {
            return false;
        }
    }
    return own_input_fits(call, 1, 3, weights) && own_input_fits(call, 2, 3, again) &&
           own_input_fits(call, 3, 2, bias) && own_input_fits(call, 5, 3, state) &&
           own_input_fits(call, 6, 3, state) && own_input_fits(call, 7, 2, peepholes) &&
           lengths_are_right(call, self);
}

/* Takes all scratch as one block, which the caller releases. */
static struct own_block *take_scratch(struct own_call *call, struct layer *self)
{
    const int64_t all = self->gates * self->hidden;
    const int64_t sizes[] = {
        all * self->width, all * self->hidden,         all * self->length * self->batch,
        all * self->batch, self->hidden * self->batch, self->hidden * self->batch,
        2 * self->hidden};
    float **const places[] = {
        &self->turned, &self->turned_again, &self->from_inputs, &self->from_state, &self->h,
        &self->c,      &self->reset};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        sum += sizes[i];
    }
    struct own_block *block = own_scratch(call, sum, sizeof(float));
    float *next = block != NULL ? own_block_bytes(block) : NULL;
    for (size_t i = 0; next != NULL && i < sizeof sizes / sizeof sizes[0]; i++) {
        *places[i] = next;
        next += sizes[i];
    }
    return block;
}

static bool read_direction(struct own_call *call, struct layer *self, bool *ret_reverses)
{
    const struct onnx_span said = own_text(call, "direction", "forward");
    const bool is_both = onnx_span_is(said, "bidirectional");
    *ret_reverses = onnx_span_is(said, "reverse");
    if ((!is_both && !*ret_reverses && !onnx_span_is(said, "forward")) ||
        self->ways != (is_both ? 2 : 1)) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT,
                         "its direction \"%s\" does not fit the weights", onnx_label(said).text);
    }
    return true;
}

static struct layer layer_of(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const bool batch_first = own_integer(call, "layout", 0) == 1;
    return (struct layer){.kind = call->kind,
                          .gates = call->kind == OWN_RNN   ? 1
                                   : call->kind == OWN_GRU ? 3
                                                           : 4,
                          .length = x->dims[batch_first ? 1 : 0],
                          .batch = x->dims[batch_first ? 0 : 1],
                          .width = x->dims[2],
                          .hidden = own_input(call, 2)->dims[2],
                          .ways = own_input(call, 1)->dims[0],
                          .batch_first = batch_first,
                          .resets_late = own_integer(call, "linear_before_reset", 0) != 0,
                          .x = x,
                          .weights = own_input(call, 1),
                          .again = own_input(call, 2),
                          .bias = own_input(call, 3),
                          .lengths = own_input(call, 4),
                          .state = own_input(call, 5),
                          .cell = own_input(call, 6),
                          .peepholes = own_input(call, 7),
                          .y = own_output(call, 0),
                          .last = own_output(call, 1),
                          .last_cell = own_output(call, 2)};
}

bool own_op_recurrent(struct own_call *call)
{
    struct layer self = layer_of(call);
    bool reverses = false;
    if (self.hidden > SIDE_MOST || self.width > SIDE_MOST || self.batch > SIDE_MOST ||
        self.length > SIDE_MOST / (self.batch + 1)) {
        return own_fault(call, ONNX_TOO_LARGE, 0, "it has more than 2^28 steps, or units");
    }
    if (!read_direction(call, &self, &reverses) || !read_functions(call, &self) ||
        !inputs_are_right(call, &self)) {
        return false;
    }
    struct own_block *block = take_scratch(call, &self);
    bool is_done = block != NULL;
    if (is_done && self.y != NULL && self.y->bytes > 0) {
        memset(self.y->to, 0, (size_t)self.y->bytes);
    }
    for (int64_t way = 0; is_done && way < self.ways; way++) {
        is_done = run_way(call, &self, way, reverses || way == 1);
    }
    own_block_release(block);
    return is_done;
}
