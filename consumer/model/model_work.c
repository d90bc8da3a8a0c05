#include "consumer/model/model_work.h"

#include "base/checked.h"

#include <string.h>

/* A node whose work is counted. */
struct counting {
    const struct onnx_model *model;
    const struct onnx_shapes *shapes;
    const struct onnx_node *node;
    struct problem *problem;
    struct model_node *result;
};

const char *model_source_name(enum model_source source)
{
    static const char *const names[MODEL_SOURCES] = {"nothing", "exact", "least"};
    return names[source];
}

/* ---------------------------------------------------------------- inputs and outputs */

static uint32_t value_of(const struct counting *counting, uint32_t input)
{
    return input < counting->node->input_count
               ? counting->model->uses[counting->node->first_input + input]
               : ONNX_NONE;
}

/* Inputs that a rule of shapes has looked at are there. */
static const struct onnx_fact *input_of(const struct counting *counting, uint32_t input)
{
    static const struct onnx_fact nothing = {.first_value = ONNX_NONE};
    const uint32_t value = value_of(counting, input);
    return value == ONNX_NONE ? &nothing : &counting->shapes->facts[value];
}

/* Returns the first output that the node does not leave out, or an empty fact. */
static const struct onnx_fact *output_of(const struct counting *counting)
{
    static const struct onnx_fact nothing = {.first_value = ONNX_NONE};
    const struct onnx_node *node = counting->node;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = counting->model->makes[node->first_output + i];
        if (value != ONNX_NONE) {
            return &counting->shapes->facts[value];
        }
    }
    return &nothing;
}

bool model_is_constant(const struct onnx_model *model, uint32_t value)
{
    if (value == ONNX_NONE) {
        return false;
    }
    const struct onnx_value *known = &model->values[value];
    return known->initializer != ONNX_NONE ||
           (known->node != ONNX_NONE &&
            onnx_span_is(model->nodes[known->node].operator, "Constant"));
}

static int64_t integer_of(const struct counting *counting, const char *name, int64_t usual)
{
    const struct onnx_attribute *attribute =
        onnx_attribute_of(counting->model, counting->node, name);
    return attribute != NULL && attribute->has_integer ? attribute->integer : usual;
}

/* The shapes are inferred, so that an axis exists. */
static uint32_t axis_of(const struct counting *counting, int64_t usual, uint32_t rank)
{
    const int64_t axis = integer_of(counting, "axis", usual);
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* Returns the product of dims `first` to `end` - 1, which is at most the elements of the tensor
 * unless one of the other dims is 0; nodes without elements are not counted. */
static int64_t product_of(const struct onnx_fact *fact, uint32_t first, uint32_t end)
{
    int64_t product = 1;
    for (uint32_t i = first; i < end; i++) {
        product *= fact->dims[i];
    }
    return product;
}

static bool is_real(enum onnx_type type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 ||
           type == ONNX_BFLOAT16;
}

/* Returns the dtype of products of a type. Sums of whole numbers are those of int8. */
static enum dtype dtype_of(enum onnx_type type)
{
    switch (type) {
    case ONNX_FLOAT:
        return DTYPE_FP32;
    case ONNX_DOUBLE:
        return DTYPE_FP64;
    case ONNX_FLOAT16:
        return DTYPE_FP16;
    case ONNX_BFLOAT16:
        return DTYPE_BF16;
    default:
        return DTYPE_INT8;
    }
}

/* ---------------------------------------------------------------- results */

static void set_operation(struct counting *counting, enum model_source source,
                          const struct operation *operation)
{
    counting->result->source = source;
    counting->result->operation = *operation;
}

/* Counts `elements` that are read and written once, by their size in bytes. */
static void set_moved(struct counting *counting, enum onnx_type type, int64_t elements)
{
    static const enum dtype by_bytes[] = {
        [1] = DTYPE_INT8, [2] = DTYPE_FP16, [4] = DTYPE_FP32, [8] = DTYPE_FP64};
    const int64_t bytes = onnx_type_bytes(type);
    const int64_t all = bytes > 8 ? 2 * elements : elements;
    if (bytes == 0 || elements == 0) {
        return; /* texts have no known size */
    }
    struct operation operation = operation_of(OPERATION_COPY, by_bytes[bytes > 8 ? 8 : bytes]);
    operation.shape.elements.elements = all;
    set_operation(counting, MODEL_LEAST, &operation);
}

/* Counts a tensor that is only read, or only written: half as the one, half as the other. */
static void set_half(struct counting *counting, const struct onnx_fact *fact)
{
    set_moved(counting, fact->type, fact->elements / 2 + fact->elements % 2);
}

/* Counts an operation on each element; whole numbers count as moved. */
static void set_each(struct counting *counting, enum operation_kind kind, enum model_source source,
                     const struct onnx_fact *fact)
{
    if (!is_real(fact->type)) {
        set_moved(counting, fact->type, fact->elements);
        return;
    }
    struct operation operation = operation_of(kind, dtype_of(fact->type));
    operation.shape.elements.elements = fact->elements;
    set_operation(counting, source, &operation);
}

/* Counts rows; whole numbers count as read. */
static void set_rows(struct counting *counting, enum operation_kind kind, enum model_source source,
                     const struct onnx_fact *fact, int64_t rows, int64_t width)
{
    if (!is_real(fact->type)) {
        set_half(counting, fact);
        return;
    }
    struct operation operation = operation_of(kind, dtype_of(fact->type));
    operation.shape.rows.rows = rows;
    operation.shape.rows.width = width;
    set_operation(counting, source, &operation);
}

/* ---------------------------------------------------------------- products */

static void set_product(struct counting *counting, const struct product_shape *shape,
                        enum onnx_type type, uint32_t right)
{
    struct operation operation = operation_of(OPERATION_MATMUL, dtype_of(type));
    operation.shape.product.m = shape->m;
    operation.shape.product.n = shape->n;
    operation.shape.product.k = shape->k;
    operation.shape.product.batch = shape->batch;
    counting->result->is_heavy = true;
    counting->result->has_weights = model_is_constant(counting->model, value_of(counting, right));
    set_operation(counting, MODEL_EXACT, &operation);
}

/* A right matrix without a batch serves all rows of the left one. */
static bool count_matmul(struct counting *counting)
{
    const bool is_quantised = onnx_span_is(counting->node->operator, "QLinearMatMul");
    const uint32_t right = is_quantised ? 3 : 1;
    const struct onnx_fact *a = input_of(counting, 0);
    const struct onnx_fact *b = input_of(counting, right);
    struct product_shape shape = {.batch = 1, .k = a->dims[a->rank - 1]};
    shape.n = b->rank == 1 ? 1 : b->dims[b->rank - 1];
    const int64_t rows_and_batch = output_of(counting)->elements / (shape.n > 0 ? shape.n : 1);
    shape.m = b->rank <= 2 ? rows_and_batch : a->rank == 1 ? 1 : a->dims[a->rank - 2];
    shape.batch = shape.m > 0 ? rows_and_batch / shape.m : 1;
    set_product(counting, &shape, a->type, right);
    return true;
}

/* The bias is added where the product is summed, and not counted. */
static bool count_gemm(struct counting *counting)
{
    const struct onnx_fact *a = input_of(counting, 0);
    const struct onnx_fact *to = output_of(counting);
    const struct product_shape shape = {.m = to->dims[0],
                                        .n = to->dims[1],
                                        .k =
                                            a->dims[integer_of(counting, "transA", 0) != 0 ? 0 : 1],
                                        .batch = 1};
    set_product(counting, &shape, a->type, 1);
    return true;
}

/* A recurrent layer is a product for each direction; that one place waits for the one before is not
 * counted. */
static bool count_recurrent(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *weights = input_of(counting, 1);
    const struct onnx_fact *again = input_of(counting, 2);
    const struct product_shape shape = {.m = x->dims[0] * x->dims[1],
                                        .n = weights->dims[1],
                                        .k = weights->dims[2] + again->dims[2],
                                        .batch = weights->dims[0]};
    set_product(counting, &shape, x->type, 1);
    return true;
}

/* ---------------------------------------------------------------- convolutions */

/* Returns number `index` of a list of the node's attributes. */
static int64_t list_at(const struct counting *counting, const char *name, uint32_t index,
                       int64_t usual)
{
    const struct onnx_attribute *attribute =
        onnx_attribute_of(counting->model, counting->node, name);
    int64_t values[2 * ONNX_RANK_MOST];
    size_t count = 0;
    const bool is_there = attribute != NULL &&
                          onnx_attribute_integers(attribute, 2 * ONNX_RANK_MOST, values, &count) &&
                          index < count;
    return is_there ? values[index] : usual;
}

/* Returns the side that so many windows reach. A side that does not fit is one that no operation
 * takes. */
static int64_t reach_of(int64_t places, int64_t kernel, const struct conv_shape *shape)
{
    int64_t steps = 0;
    int64_t reach = 0;
    const bool fits = checked_mul(places - 1, shape->stride, &steps) &&
                      checked_mul(kernel - 1, shape->dilation, &reach) &&
                      checked_add(reach, steps, &reach) && reach < OPERATION_DIMENSION_MOST;
    return fits ? reach + 1 : OPERATION_DIMENSION_MOST + 1;
}

/* Returns how many windows lie along a side, which is not shorter than a window. */
static int64_t windows_along(int64_t side, int64_t kernel, const struct conv_shape *shape)
{
    return (side + 2 * shape->padding - shape->dilation * (kernel - 1) - 1) / shape->stride + 1;
}

/* Takes the input itself where padding is alike on all sides and gives the places of `to`. */
static void take_own_input(const struct counting *counting, const struct onnx_fact *x,
                           const struct onnx_fact *to, struct conv_shape *shape)
{
    struct conv_shape own = *shape;
    own.height = x->dims[2];
    own.width = x->dims[3];
    own.padding = list_at(counting, "pads", 0, 0);
    bool is_own = own.padding >= 0 && own.padding <= OPERATION_DIMENSION_MOST;
    for (uint32_t i = 1; i < 4; i++) {
        is_own = is_own && list_at(counting, "pads", i, 0) == own.padding;
    }
    if (is_own && windows_along(own.height, own.kernel_height, &own) == to->dims[2] &&
        windows_along(own.width, own.kernel_width, &own) == to->dims[3]) {
        *shape = own;
    }
}

/* Takes a convolution of one to three dims of space as one of two: the first dims are put together.
 * `to` has the windows' places, and `filters` the kernel. */
static void set_conv(struct counting *counting, const struct onnx_fact *x,
                     const struct onnx_fact *filters, const struct onnx_fact *to, int64_t channels,
                     int64_t outputs)
{
    struct operation operation = operation_of(OPERATION_CONV, dtype_of(x->type));
    struct conv_shape *shape = &operation.shape.conv;
    const uint32_t last = x->rank - 1;
    const int64_t stride = list_at(counting, "strides", 0, 1);
    const int64_t dilation = list_at(counting, "dilations", 0, 1);
    const bool is_even = x->rank == 4 && list_at(counting, "strides", 1, 1) == stride &&
                         list_at(counting, "dilations", 1, 1) == dilation;
    shape->batch = x->dims[0];
    shape->channels = channels;
    shape->filters = outputs;
    shape->groups = integer_of(counting, "group", 1);
    shape->kernel_height = product_of(filters, 2, last);
    shape->kernel_width = filters->dims[last];
    shape->stride = is_even ? stride : 1;
    shape->dilation = is_even ? dilation : 1;
    /* The windows' reach is the input with its padding: all but the bytes of it is exact. */
    shape->height = reach_of(product_of(to, 2, last), shape->kernel_height, shape);
    shape->width = reach_of(to->dims[last], shape->kernel_width, shape);
    if (is_even && shape->height <= OPERATION_DIMENSION_MOST &&
        shape->width <= OPERATION_DIMENSION_MOST) {
        take_own_input(counting, x, to, shape);
    }
    counting->result->is_heavy = true;
    set_operation(counting, MODEL_EXACT, &operation);
}

static bool count_conv(struct counting *counting)
{
    const bool is_quantised = onnx_span_is(counting->node->operator, "QLinearConv");
    const uint32_t right = is_quantised ? 3 : 1;
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *filters = input_of(counting, right);
    counting->result->has_weights = model_is_constant(counting->model, value_of(counting, right));
    set_conv(counting, x, filters, output_of(counting), x->dims[1], filters->dims[0]);
    return true;
}

/* A transposed convolution does what the convolution does whose gradient it is: the windows are at
 * the places of its input. */
static bool count_conv_transpose(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *filters = input_of(counting, 1);
    const struct onnx_fact *to = output_of(counting);
    counting->result->has_weights = model_is_constant(counting->model, value_of(counting, 1));
    set_conv(counting, x, filters, x, to->dims[1], x->dims[1]);
    return true;
}

/* ---------------------------------------------------------------- along rows, and pools */

static bool count_softmax(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const bool is_flat = counting->node->opset < 13; /* all dims from the axis on are one row */
    const uint32_t axis = x->rank == 0 ? 0 : axis_of(counting, is_flat ? 1 : -1, x->rank);
    const bool has_axis = axis < x->rank;
    const int64_t width = !has_axis ? 1 : is_flat ? product_of(x, axis, x->rank) : x->dims[axis];
    set_rows(counting, OPERATION_SOFTMAX, MODEL_EXACT, x, x->elements / width, width);
    return true;
}

static bool count_layer_norm(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const int64_t width = product_of(x, axis_of(counting, -1, x->rank), x->rank);
    counting->result->has_weights = model_is_constant(counting->model, value_of(counting, 1));
    set_rows(counting, OPERATION_LAYERNORM, MODEL_EXACT, x, x->elements / width, width);
    return true;
}

static bool count_batch_norm(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    if (!is_real(x->type) || x->rank < 2) {
        set_each(counting, OPERATION_RELU, MODEL_LEAST, x);
        return true;
    }
    struct operation operation = operation_of(OPERATION_BATCHNORM, dtype_of(x->type));
    operation.shape.batchnorm.batch = x->dims[0];
    operation.shape.batchnorm.channels = x->dims[1];
    operation.shape.batchnorm.size = product_of(x, 2, x->rank);
    counting->result->has_weights = true;
    set_operation(counting, MODEL_EXACT, &operation);
    return true;
}

/* Sums, maxima and pools read each element once. Windows that overlap compute more. */
static bool count_reduce(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *to = output_of(counting);
    const bool fits = to->elements > 0 && x->elements % to->elements == 0;
    const int64_t rows = fits ? to->elements : 1;
    set_rows(counting, OPERATION_REDUCE, fits ? MODEL_EXACT : MODEL_LEAST, x, rows,
             x->elements / rows);
    return true;
}

static bool count_pool(struct counting *counting)
{
    (void)count_reduce(counting);
    counting->result->source = MODEL_LEAST;
    return true;
}

static bool count_top_k(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *to = output_of(counting);
    const uint32_t axis = axis_of(counting, -1, x->rank);
    if (!is_real(x->type) || to->elements == 0) {
        set_moved(counting, x->type, x->elements);
        return true;
    }
    struct operation operation = operation_of(OPERATION_TOPK, dtype_of(x->type));
    operation.shape.topk.width = x->dims[axis];
    operation.shape.topk.rows = x->elements / x->dims[axis];
    operation.shape.topk.k = to->dims[axis];
    set_operation(counting, MODEL_EXACT, &operation);
    return true;
}

/* ---------------------------------------------------------------- element by element, and moves */

static bool count_unary(struct counting *counting)
{
    static const struct {
        const char *name;
        enum operation_kind kind;
    } own[] = {{"Relu", OPERATION_RELU}, {"Sigmoid", OPERATION_SIGMOID}, {"Tanh", OPERATION_TANH}};
    enum operation_kind kind = OPERATION_RELU;
    enum model_source source = MODEL_LEAST;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (onnx_span_is(counting->node->operator, own[i].name)) {
            kind = own[i].kind;
            source = MODEL_EXACT;
        }
    }
    set_each(counting, kind, source, output_of(counting));
    return true;
}

/* A broadcast operand, or a result of a smaller type, is not counted as a sum. The count is
 * the result and as much of an operand. */
static bool count_binary(struct counting *counting)
{
    const struct onnx_fact *to = output_of(counting);
    const struct onnx_fact *a = input_of(counting, 0);
    const struct onnx_fact *b = input_of(counting, 1);
    const bool is_whole = a->elements == to->elements && b->elements == to->elements &&
                          counting->node->input_count == 2;
    if (a->type != to->type) {
        const bool is_less = onnx_type_bytes(a->type) < onnx_type_bytes(to->type);
        set_moved(counting, is_less ? a->type : to->type, to->elements);
        return true;
    }
    set_each(counting, is_whole ? OPERATION_ADD : OPERATION_RELU,
             is_whole ? MODEL_EXACT : MODEL_LEAST, to);
    return true;
}

static bool count_moved(struct counting *counting)
{
    const struct onnx_fact *to = output_of(counting);
    set_moved(counting, to->type, to->elements);
    return true;
}

/* A split makes several tensors of all elements of one. */
static bool count_split(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    set_moved(counting, x->type, x->elements);
    return true;
}

static bool count_cast(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *to = output_of(counting);
    const bool is_less = onnx_type_bytes(x->type) < onnx_type_bytes(to->type);
    set_moved(counting, is_less ? x->type : to->type, to->elements);
    return true;
}

static bool count_written(struct counting *counting)
{
    set_half(counting, output_of(counting));
    return true;
}

static bool count_read(struct counting *counting)
{
    set_half(counting, input_of(counting, 0));
    return true;
}

/* Rows that are picked out of weights are an embedding: the table lies there, and few rows move. */
static bool count_gather(struct counting *counting)
{
    const struct onnx_fact *x = input_of(counting, 0);
    const struct onnx_fact *to = output_of(counting);
    const bool is_table = model_is_constant(counting->model, value_of(counting, 0)) &&
                          x->rank == 2 && is_real(x->type) && axis_of(counting, 0, x->rank) == 0;
    if (!is_table || to->elements == 0) {
        return count_moved(counting);
    }
    struct operation operation = operation_of(OPERATION_EMBEDDING, dtype_of(x->type));
    operation.shape.embedding.tokens = to->elements / x->dims[1];
    operation.shape.embedding.width = x->dims[1];
    operation.shape.embedding.vocabulary = x->dims[0];
    counting->result->has_weights = true;
    set_operation(counting, MODEL_EXACT, &operation);
    return true;
}

static bool count_nothing(struct counting *counting)
{
    counting->result->source = MODEL_NOTHING;
    return true;
}

/* ---------------------------------------------------------------- the table */

struct counter {
    const char *operators; /* names with a blank on each side */
    bool (*count)(struct counting *counting);
};

static const struct counter counters[] = {
    {" Conv ConvInteger QLinearConv ", count_conv},
    {" MatMul MatMulInteger QLinearMatMul ", count_matmul},
    {" Gemm ", count_gemm},
    {" ConvTranspose ", count_conv_transpose},
    {" LSTM GRU RNN ", count_recurrent},
    {" Softmax LogSoftmax Hardmax ", count_softmax},
    {" LayerNormalization ", count_layer_norm},
    {" BatchNormalization ", count_batch_norm},
    {" GlobalAveragePool GlobalMaxPool GlobalLpPool ReduceL1 ReduceL2 ReduceLogSum "
     "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ArgMax "
     "ArgMin ",
     count_reduce},
    {" AveragePool MaxPool LpPool NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss ", count_pool},
    {" TopK ", count_top_k},
    {" Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh CumSum "
     "Elu Erf Exp Floor HardSigmoid HardSwish InstanceNormalization IsInf IsNaN LRN LeakyRelu Log "
     "LpNormalization MeanVarianceNormalization Neg Not PRelu Reciprocal Relu Round "
     "Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu ",
     count_unary},
    {" Add And BitShift Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or "
     "Pow Sub Sum Where Xor ",
     count_binary},
    {" Concat DepthToSpace GatherElements GatherND ReverseSequence Scatter ScatterElements "
     "ScatterND Slice SpaceToDepth Transpose Trilu ",
     count_moved},
    {" Split ", count_split},
    {" Cast CastLike DequantizeLinear DynamicQuantizeLinear QuantizeLinear ", count_cast},
    {" Bernoulli ConstantOfShape Expand EyeLike OneHot Pad RandomNormalLike RandomUniformLike "
     "Range Resize Tile Upsample ",
     count_written},
    {" NonZero ", count_read},
    {" Gather ", count_gather},
    {" Constant Dropout Flatten Identity Reshape Shape Size Squeeze Unsqueeze ", count_nothing},
};

static bool lists(const char *operators, struct onnx_span name)
{
    char word[32];
    if (name.size + 3 > sizeof word) {
        return false;
    }
    (void)snprintf(word, sizeof word, " %.*s ", (int)name.size, (const char *)name.at);
    return strstr(operators, word) != NULL;
}

bool model_node_count(const struct onnx_model *model, const struct onnx_shapes *shapes,
                      uint32_t number, struct model_node *ret_node, struct problem *ret_problem)
{
    struct counting counting = {.model = model,
                                .shapes = shapes,
                                .node = &model->nodes[number],
                                .problem = ret_problem,
                                .result = ret_node};
    *ret_node = (struct model_node){.source = MODEL_NOTHING};
    const struct onnx_fact *to = output_of(&counting);
    const bool has_work = to->elements > 0 && input_of(&counting, 0)->elements > 0;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        if (lists(counters[i].operators, counting.node->operator)) {
            /* Empty tensors cost nothing; a node without inputs is made of attributes. */
            return has_work ? counters[i].count(&counting) : true;
        }
    }
    problem_set(ret_problem, "node \"%s\" (%s): the work of this operator is not known here",
                onnx_node_label(model, counting.node).text,
                onnx_label(counting.node->operator).text);
    return false;
}
