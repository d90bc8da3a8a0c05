/* formats/onnx/onnx.h reads the graph of an ONNX file. A graph has nodes, inputs, outputs, and the
 * headers of weights.
 *
 * The file is a protocol buffer (onnx.proto, IR versions 3 to 8), made by a stranger. The reader
 * is our own, since a decoder of protocol buffers copies all weights and allocates what a file
 * claims. Here everything is a span of the file's bytes, which the caller keeps as long as the
 * model. Memory is taken for what is there, never for what a number in the file says, and each
 * count has a cap:
 *
 *     ModelProto
 *       opset_import      7 to 17 of the domain ai.onnx
 *       graph
 *         input, output   names and types, with dims that are numbers or names
 *         initializer     weights: name, type, dims; bytes in the file, or in another by its path
 *         node            operator, names of inputs and outputs, attributes
 *
 * Nothing of a model is executed. Names that stand twice, inputs that nobody makes, circles,
 * weights that are not there and paths that lead out of the folder are refused, by name. Graphs
 * within attributes are not read: the operators that have such graphs are unknown here. Shapes are
 * in onnx_infer.h. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_H
#define BOURSE_FORMATS_ONNX_ONNX_H

#include "base/problem.h"
#include "formats/onnx/onnx_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ONNX_IR_LEAST = 3,
    ONNX_IR_NEWEST = 8,
    ONNX_OPSET_LEAST = 7,
    ONNX_OPSET_NEWEST = 17,
    ONNX_OPSETS_MOST = 64,
    ONNX_NODES_MOST = 65536,
    ONNX_INITIALIZERS_MOST = 65536,
    ONNX_INTERFACE_MOST = 4096,     /* inputs, and outputs, of the graph */
    ONNX_USES_MOST = 1 << 18,       /* inputs, and outputs, of all nodes */
    ONNX_ATTRIBUTES_MOST = 1 << 18, /* attributes of all nodes */
    ONNX_NAME_BYTES = 1024,         /* a name, and the path of other data */
    ONNX_RANK_MOST = 8,             /* dims of a tensor */
    ONNX_LABEL_SIZE = 80,           /* a name in a message */
};
#define ONNX_FILE_BYTES (INT64_C(1) << 31)   /* a protocol buffer is not larger */
#define ONNX_DIM_MOST (INT64_C(1) << 40)     /* one dim of a tensor */
#define ONNX_TENSOR_BYTES (INT64_C(1) << 46) /* one tensor */
#define ONNX_NONE UINT32_MAX

enum onnx_status {
    ONNX_OK,
    ONNX_MALFORMED,   /* the bytes are no such message */
    ONNX_TOO_LARGE,   /* a cap above is reached */
    ONNX_VERSION,     /* an IR version or an opset that is not known here */
    ONNX_NAME,        /* a name is missing, too long, or not plain text */
    ONNX_TWICE,       /* two things make one name */
    ONNX_UNMADE,      /* nobody makes an input */
    ONNX_CYCLE,       /* nodes wait for one another */
    ONNX_ORDER,       /* a node stands before one that it needs */
    ONNX_WEIGHTS,     /* the header of weights and their bytes do not agree */
    ONNX_PATH,        /* the path of other data leads elsewhere */
    ONNX_UNSUPPORTED, /* sparse weights, types that are no tensors */
    /* Statuses of onnx_infer.h. */
    ONNX_OPERATOR, /* an operator, or a form of one, is unknown */
    ONNX_DIM,      /* a dim of an input has no value */
    ONNX_SHAPE,    /* shapes that do not go together */
    ONNX_DYNAMIC,  /* a shape depends on values that only a run would know */
    ONNX_OVERFLOW, /* a dim or a tensor is too large */
    ONNX_NO_MEMORY,
};

/* Returns the name of a status for programs, such as "CYCLE"; docs/errors.md lists the names. */
const char *onnx_status_name(enum onnx_status status);

/* Types of elements, by their numbers in onnx.proto. */
enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_COMPLEX64 = 14,
    ONNX_COMPLEX128 = 15,
    ONNX_BFLOAT16 = 16,
    ONNX_TYPES = 17,
};
const char *onnx_type_name(enum onnx_type type); /* "float16" */
/* Returns the bytes of an element; a string counts as 0. */
int64_t onnx_type_bytes(enum onnx_type type);

/* Weights, or a value within an attribute. Only the header is decoded. */
struct onnx_tensor {
    struct onnx_span name;
    enum onnx_type type;
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST]; /* each 0 to ONNX_DIM_MOST */
    int64_t elements, bytes;      /* of the tensor, wherever it lies */
    bool is_external;             /* its bytes are in another file */
    struct onnx_span path;        /* external: relative, without ".." */
    int64_t offset;               /* external: of the first byte */
    struct onnx_span message;     /* all of it, for onnx_tensor_integers */
};

/* An attribute of a node; onnx_attribute.c decodes its lists. */
struct onnx_attribute {
    struct onnx_span name, message;
    bool has_integer, has_real, has_text, has_tensor, has_graph;
    int64_t integer;
    float real;
    struct onnx_span text, tensor;
};

/* A node's inputs are uses[first_input] and so on: indices of values, or ONNX_NONE for an input
 * that is left out. Its outputs follow in `makes`. */
struct onnx_node {
    struct onnx_span name, operator, domain;
    uint32_t first_input, input_count;
    uint32_t first_output, output_count;
    uint32_t first_attribute, attribute_count;
    int64_t opset; /* version of the node's domain */
};

struct onnx_dim {
    int64_t value;         /* -1: it is not a number */
    struct onnx_span name; /* of size 0: it has no name either */
};

/* An input or an output of the graph, with what the file says of it. */
struct onnx_port {
    struct onnx_span name;
    uint32_t value;      /* index in `values` */
    enum onnx_type type; /* UNDEFINED: it does not say, or it is no tensor */
    bool is_tensor, has_shape;
    uint32_t rank;
    struct onnx_dim dims[ONNX_RANK_MOST];
};

/* Something with a name: an input of the graph, weights, or an output of a node. */
struct onnx_value {
    struct onnx_span name;
    uint32_t node;        /* that makes it, or ONNX_NONE */
    uint32_t initializer; /* its weights, or ONNX_NONE */
    uint32_t input;       /* of the graph, or ONNX_NONE */
};

struct onnx_model {
    int64_t ir_version, opset; /* opset: of ai.onnx */
    struct onnx_span producer;
    struct onnx_node *nodes; /* each after those that it needs */
    uint32_t node_count;
    struct onnx_tensor *initializers;
    uint32_t initializer_count;
    struct onnx_port *inputs, *outputs;
    uint32_t input_count, output_count;
    struct onnx_value *values;
    uint32_t value_count;
    uint32_t *uses, *makes;
    uint32_t use_count, make_count;
    struct onnx_attribute *attributes;
    uint32_t attribute_count;
};

/* Reads a model out of the bytes of a file, which have to outlive the model. The caller owns the
 * model. Any status but OK gives none, and says in `ret_problem` (may be NULL) what is wrong and
 * with which node. The text may have names of the file: they are printable, at most
 * ONNX_LABEL_SIZE - 1 bytes each. */
enum onnx_status onnx_read(const uint8_t *bytes, size_t length, struct onnx_model **ret_model,
                           struct problem *ret_problem);
void onnx_destroy(struct onnx_model **self);

/* Reads one TensorProto, as files of inputs and outputs have it. Its name may be missing. */
enum onnx_status onnx_tensor_read(struct onnx_span message, struct onnx_tensor *ret_tensor,
                                  struct problem *ret_problem);
/* Decodes all elements of a tensor of integers or booleans, and floats that are whole numbers. The
 * tensor has at most `most` elements, and its bytes are in the file; otherwise nothing is decoded
 * and false is returned. */
bool onnx_tensor_integers(const struct onnx_tensor *tensor, size_t most, int64_t *ret_values);
/* Decodes all elements of a tensor of float32, under the same conditions. */
bool onnx_tensor_reals(const struct onnx_tensor *tensor, size_t most, float *ret_values);

/* Returns the node's attribute of that name, or NULL. */
const struct onnx_attribute *onnx_attribute_of(const struct onnx_model *model,
                                               const struct onnx_node *node, const char *name);
/* Decodes a list of integers; `*ret_count` is its length. Returns false when it is longer than
 * `most`, or the bytes are wrong. */
bool onnx_attribute_integers(const struct onnx_attribute *attribute, size_t most,
                             int64_t *ret_values, size_t *ret_count);
/* Returns the length of a list of reals, or SIZE_MAX where the bytes are wrong. */
size_t onnx_attribute_reals(const struct onnx_attribute *attribute);

bool onnx_span_is(struct onnx_span span, const char *text);
/* Returns the order of a span of at least one byte and a text, byte by byte: less than 0, 0 when
 * they are equal, or more. */
int onnx_span_compare(struct onnx_span span, const char *text);
bool onnx_span_equals(struct onnx_span a, struct onnx_span b);
/* Holds a name for a message: printable and cut. */
struct onnx_label {
    char text[ONNX_LABEL_SIZE];
};
struct onnx_label onnx_label(struct onnx_span name);
/* Returns what a node is called: its own name, or the first name that it makes. */
struct onnx_span onnx_node_name(const struct onnx_model *model, const struct onnx_node *node);
struct onnx_label onnx_node_label(const struct onnx_model *model, const struct onnx_node *node);

#endif
