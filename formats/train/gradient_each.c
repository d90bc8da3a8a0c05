/* This file has the derivatives of operators that compute element by element. */
#include "formats/train/gradient_internal.h"

#include <math.h>

#define MUL(a, b) gradient_two(deriving, "Mul", (a), (b))
#define SUB(a, b) gradient_two(deriving, "Sub", (a), (b))
#define DIV(a, b) gradient_two(deriving, "Div", (a), (b))
#define NEG(a) gradient_one(deriving, "Neg", (a))
#define REAL(value) onnx_build_scalar(&deriving->build, (value))
#define IN(i) gradient_in(deriving, node, (i))
#define OUT gradient_out(deriving, node)
#define ADD(i, gradient) gradient_add(deriving, node, (i), (gradient))
#define ADD_SUMMED(i, gradient) gradient_add_summed(deriving, node, (i), (gradient))
#define ASKED(i) gradient_asked(deriving, node, (i))

bool gradient_of_add(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD_SUMMED(0, dy);
    ADD_SUMMED(1, dy);
    return true;
}

bool gradient_of_sum(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        ADD_SUMMED(i, dy);
    }
    return true;
}

bool gradient_of_sub(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD_SUMMED(0, dy);
    if (ASKED(1)) {
        ADD_SUMMED(1, NEG(dy));
    }
    return true;
}

bool gradient_of_mul(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    if (ASKED(0)) {
        ADD_SUMMED(0, MUL(dy, IN(1)));
    }
    if (ASKED(1)) {
        ADD_SUMMED(1, MUL(dy, IN(0)));
    }
    return true;
}

bool gradient_of_div(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    const struct onnx_ref quotient = DIV(dy, IN(1));
    ADD_SUMMED(0, quotient);
    if (ASKED(1)) {
        ADD_SUMMED(1, NEG(MUL(quotient, OUT)));
    }
    return true;
}

bool gradient_of_neg(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, NEG(dy));
    return true;
}

/* The gradient where the output is above 0, and `below` elsewhere. */
static struct onnx_ref where_positive(struct deriving *deriving, struct onnx_ref value,
                                      struct onnx_ref above, struct onnx_ref below)
{
    const struct onnx_ref zero = REAL(0);
    const struct onnx_ref is_above = gradient_two(deriving, "Greater", value, zero);
    const struct onnx_ref inputs[] = {is_above, above, onnx_build_has(below) ? below : zero};
    return onnx_build_node(&deriving->build, "Where", 3, inputs);
}

bool gradient_of_relu(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, where_positive(deriving, OUT, dy, (struct onnx_ref){.made = 0}));
    return true;
}

bool gradient_of_leaky_relu(struct deriving *deriving, const struct onnx_node *node,
                            struct onnx_ref dy)
{
    const float alpha = gradient_real(deriving, node, "alpha", 0.01F);
    ADD(0, where_positive(deriving, IN(0), dy, MUL(dy, REAL(alpha))));
    return true;
}

bool gradient_of_sigmoid(struct deriving *deriving, const struct onnx_node *node,
                         struct onnx_ref dy)
{
    ADD(0, MUL(dy, MUL(OUT, SUB(REAL(1), OUT))));
    return true;
}

bool gradient_of_tanh(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, MUL(dy, SUB(REAL(1), MUL(OUT, OUT))));
    return true;
}

bool gradient_of_erf(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    const float factor = 1.12837916709551257390F; /* 2 / sqrt(pi) */
    const struct onnx_ref bell = gradient_one(deriving, "Exp", NEG(MUL(IN(0), IN(0))));
    ADD(0, MUL(dy, MUL(bell, REAL(factor))));
    return true;
}

bool gradient_of_exp(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, MUL(dy, OUT));
    return true;
}

bool gradient_of_log(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, DIV(dy, IN(0)));
    return true;
}

bool gradient_of_sqrt(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, DIV(MUL(dy, REAL(0.5F)), OUT));
    return true;
}

bool gradient_of_abs(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    ADD(0, MUL(dy, gradient_one(deriving, "Sign", IN(0))));
    return true;
}

bool gradient_of_softplus(struct deriving *deriving, const struct onnx_node *node,
                          struct onnx_ref dy)
{
    ADD(0, MUL(dy, gradient_one(deriving, "Sigmoid", IN(0))));
    return true;
}

bool gradient_of_reciprocal(struct deriving *deriving, const struct onnx_node *node,
                            struct onnx_ref dy)
{
    ADD(0, NEG(MUL(dy, MUL(OUT, OUT))));
    return true;
}

bool gradient_of_pow(struct deriving *deriving, const struct onnx_node *node, struct onnx_ref dy)
{
    if (ASKED(1)) {
        return gradient_fault(deriving, node, "has no derivative by its exponent");
    }
    if (gradient_fact(deriving, node, 1)->type != ONNX_FLOAT) {
        return gradient_fault(deriving, node, "has an exponent that is not float32");
    }
    const struct onnx_ref less = SUB(IN(1), REAL(1));
    ADD_SUMMED(0, MUL(dy, MUL(IN(1), gradient_two(deriving, "Pow", IN(0), less))));
    return true;
}
