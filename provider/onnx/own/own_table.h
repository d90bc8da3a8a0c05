/* provider/onnx/own/own_table.h is the table of the operators that are computed here. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_TABLE_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_TABLE_H

#include "provider/onnx/own/own_call.h"

enum own_flags {
    OWN_BY_FLOAT = 1,    /* float16 and bfloat16 are computed as float32, and rounded at the end */
    OWN_IS_VIEW = 2,     /* output 0 shares the bytes of input 0 */
    OWN_READS_REALS = 4, /* the dims depend on real numbers in the inputs */
    OWN_LACKS_FIRST = 8, /* output 0 may be left out */
};

struct own_operator {
    const char *name;
    bool (*run)(struct own_call *call);
    int kind;
    uint32_t types;         /* of input 0; bit N is type N; 0: there is no input */
    const char *attributes; /* that are known, with blanks between */
    unsigned flags;
    bool (*shape)(struct own_call *call); /* makes the outputs' dims; NULL: the rule does */
};

/* Returns the operator of the domain ai.onnx with this name, or NULL. */
const struct own_operator *own_operator_named(struct onnx_span name);
size_t own_operator_count(void);
/* Returns the operator at a place of the table, which is sorted by name. */
const struct own_operator *own_operator_at(size_t index);
/* Returns true when an attribute is one that the operator knows. */
bool own_operator_knows(const struct own_operator *known, struct onnx_span attribute);

#endif
