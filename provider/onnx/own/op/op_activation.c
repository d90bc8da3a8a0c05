/* This file has the activations, which are functions of one element and of a few numbers that
 * attributes give. They compute float32 and double. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_walk.h"

#include <math.h>

struct activation {
    int kind;
    float alpha, beta;
    const struct own_tensor *x;
    struct own_tensor *y;
};

/* The numbers of the attributes are float32, as the reference's are. */
static double activate(const struct activation *self, double x)
{
    const double a = (double)self->alpha;
    const double b = (double)self->beta;
    switch ((enum own_activation)self->kind) {
    case OWN_RELU:
        return x > 0 || x != x ? x : 0;
    case OWN_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case OWN_THRESHOLDED_RELU:
        return x > a ? x : 0;
    case OWN_ELU:
        return x < 0 ? a * expm1(x) : x;
    case OWN_CELU:
        return x < 0 ? a * expm1(x / a) : x;
    case OWN_SELU:
        return x > 0 ? b * x : b * (a * expm1(x));
    case OWN_SIGMOID:
        return 1 / (1 + exp(-x));
    case OWN_HARD_SIGMOID:
        return fmax(0, fmin(1, a * x + b));
    case OWN_HARD_SWISH:
        return x * fmax(0, fmin(1, x / 6 + 0.5));
    case OWN_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case OWN_SOFTSIGN:
        return x / (1 + fabs(x));
    case OWN_SHRINK:
        return x < -a ? x + b : x > a ? x - b : 0;
    case OWN_ACTIVATIONS:
        break;
    }
    return x;
}

static void work(void *context, int64_t first, int64_t last)
{
    const struct activation *self = context;
    if (self->x->type == ONNX_DOUBLE) {
        for (int64_t i = first; i < last; i++) {
            ((double *)self->y->to)[i] = activate(self, ((const double *)self->x->at)[i]);
        }
        return;
    }
    const float *x = self->x->at;
    float *y = self->y->to;
    if (self->kind == OWN_RELU) { /* the most frequent one, in a form that a compiler widens */
        for (int64_t i = first; i < last; i++) {
            y[i] = x[i] < 0 ? 0 : x[i];
        }
        return;
    }
    if (self->kind == OWN_SIGMOID) {
        for (int64_t i = first; i < last; i++) {
            y[i] = 1 / (1 + expf(-x[i]));
        }
        return;
    }
    for (int64_t i = first; i < last; i++) {
        y[i] = (float)activate(self, (double)x[i]);
    }
}

bool own_op_activation(struct own_call *call)
{
    enum { OPERATIONS = 8 };
    static const struct {
        const char *first, *second;
        float alpha, beta;
    } numbers[OWN_ACTIVATIONS] = {
        [OWN_LEAKY_RELU] = {"alpha", NULL, 0.01F, 0},
        [OWN_THRESHOLDED_RELU] = {"alpha", NULL, 1, 0},
        [OWN_ELU] = {"alpha", NULL, 1, 0},
        [OWN_CELU] = {"alpha", NULL, 1, 0},
        [OWN_SELU] = {"alpha", "gamma", 1.67326319217681884765625F, 1.05070102214813232421875F},
        [OWN_HARD_SIGMOID] = {"alpha", "beta", 0.2F, 0.5F},
        [OWN_SHRINK] = {"lambd", "bias", 0.5F, 0},
    };
    struct activation self = {
        .kind = call->kind, .x = own_input(call, 0), .y = own_output(call, 0)};
    const char *first = numbers[call->kind].first;
    const char *second = numbers[call->kind].second;
    self.alpha = first != NULL ? own_real(call, first, numbers[call->kind].alpha) : 0;
    self.beta = second != NULL ? own_real(call, second, numbers[call->kind].beta) : 0;
    own_parallel(call->threads, self.x->elements, own_parallel_least(OPERATIONS), work, &self);
    return true;
}

/* ---------------------------------------------------------------- Clip */

/* Returns a bound of Clip. Opsets before 11 have it as an attribute. */
static bool bound_of(struct own_call *call, uint32_t input, const char *name, double usual,
                     double *ret_bound)
{
    const struct own_tensor *bound = own_input(call, input);
    if (call->rule.node->opset < 11) {
        *ret_bound = (double)own_real(call, name, (float)usual);
        return true;
    }
    if (bound != NULL && (bound->elements != 1 || bound->type != own_input(call, 0)->type)) {
        return own_fault(call, ONNX_SHAPE, input, "it is not one number of input 0's type");
    }
    *ret_bound = bound != NULL ? own_real_at(bound, 0) : usual;
    return true;
}

#define CLIP(element)                                                                              \
    for (int64_t i = 0; i < x->elements; i++) {                                                    \
        const element value = ((const element *)x->at)[i];                                         \
        const element raised = value < (element)least ? (element)least : value;                    \
        ((element *)y->to)[i] = raised > (element)most ? (element)most : raised;                   \
    }                                                                                              \
    return true

bool own_op_clip(struct own_call *call)
{
    static const struct {
        double least, most;
    } ranges[ONNX_TYPES] = {
        [ONNX_FLOAT] = {-INFINITY, INFINITY},  [ONNX_DOUBLE] = {-INFINITY, INFINITY},
        [ONNX_INT8] = {INT8_MIN, INT8_MAX},    [ONNX_UINT8] = {0, UINT8_MAX},
        [ONNX_INT16] = {INT16_MIN, INT16_MAX}, [ONNX_UINT16] = {0, UINT16_MAX},
        [ONNX_INT32] = {INT32_MIN, INT32_MAX}, [ONNX_UINT32] = {0, UINT32_MAX},
    };
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    double least = 0;
    double most = 0;
    if (!bound_of(call, 1, "min", ranges[x->type].least, &least) ||
        !bound_of(call, 2, "max", ranges[x->type].most, &most)) {
        return false;
    }
    switch (x->type) {
    case ONNX_FLOAT:
        CLIP(float);
    case ONNX_DOUBLE:
        CLIP(double);
    case ONNX_INT8:
        CLIP(int8_t);
    case ONNX_UINT8:
        CLIP(uint8_t);
    case ONNX_INT16:
        CLIP(int16_t);
    case ONNX_UINT16:
        CLIP(uint16_t);
    case ONNX_INT32:
        CLIP(int32_t);
    case ONNX_UINT32:
        CLIP(uint32_t);
    default:
        return own_fault(call, ONNX_OPERATOR, 0, "%s is not computed here",
                         onnx_type_name(x->type));
    }
}

/* ---------------------------------------------------------------- PRelu, Dropout */

bool own_op_prelu(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *slope = own_input(call, 1);
    float *y = own_output(call, 0)->to;
    if (!own_input_is(call, 1, ONNX_FLOAT) || !own_input_broadcasts(call, 1, x->rank, x->dims)) {
        return false;
    }
    struct own_walk walk = own_walk_over(x->rank, x->dims);
    own_walk_operand(&walk, 0, x);
    own_walk_operand(&walk, 1, slope);
    own_walk_ready(&walk);
    for (int64_t row = 0; row < walk.rows; row++) {
        own_walk_seek(&walk, row);
        const float *values = (const float *)x->at + walk.at[0];
        const float *slopes = (const float *)slope->at + walk.at[1];
        for (int64_t i = 0; i < walk.length; i++) {
            const float value = values[i * walk.step[0]];
            *y++ = value < 0 ? slopes[i * walk.step[1]] * value : value;
        }
    }
    return true;
}

/* Nothing is dropped in a run that does not train. */
bool own_op_dropout(struct own_call *call)
{
    const struct own_tensor *training = own_input(call, 2);
    const struct own_tensor *ratio = own_input(call, 1);
    struct own_tensor *mask = own_output(call, 1);
    const bool trains = training != NULL && training->elements > 0 && own_real_at(training, 0) != 0;
    const bool drops = ratio == NULL || ratio->elements != 1 || own_real_at(ratio, 0) != 0;
    if (trains && drops) {
        return own_fault(call, ONNX_OPERATOR, 2, "training draws numbers, which is not done here");
    }
    if (mask != NULL && mask->type != ONNX_BOOL) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT,
                         "a mask that is no boolean is not computed here");
    }
    for (int64_t i = 0; mask != NULL && i < mask->elements; i++) {
        ((uint8_t *)mask->to)[i] = 1;
    }
    return own_op_view(call);
}
