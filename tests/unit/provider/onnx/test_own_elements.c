/* Our own ONNX operators that go element by element, reduce, pick or change types, against values
 * computed by hand. */
#include "provider/onnx/own/own_half.h"
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#include <math.h>

#define CHECK own_case_check
#define REFUSED own_case_refused

START_TEST(arithmetic_broadcasts)
{
    CHECK(13, "Add", "", IN("f2,2: 1 2 3 4", "f2: 10 20"), OUT("f2,2: 11 22 13 24"));
    CHECK(13, "Sub", "", IN("f2,1: 5 7", "f1,3: 1 2 3"), OUT("f2,3: 4 3 2 6 5 4"));
    CHECK(13, "Mul", "", IN("d2: 1.5 -2", "d: 2"), OUT("d2: 3 -4"));
    CHECK(13, "Div", "", IN("f2: 1 -3", "f2: 4 2"), OUT("f2: 0.25 -1.5"));
    CHECK(13, "Div", "", IN("i4: 7 -7 7 -9", "i4: 2 2 -2 -1"), OUT("i4: 3 -3 -3 9"));
    CHECK(14, "Add", "", IN("u2: 250 1", "u2: 10 2"), OUT("u2: 4 3"));
    CHECK(13, "Add", "", IN("h2: 1 2", "h2: 0.5 0.25"), OUT("h2: 1.5 2.25"));
    CHECK(7, "Add", "", IN("f2,0:", "f1: 1"), OUT("f2,0:"));
    CHECK(13, "Sum", "", IN("f2: 1 2", "f2: 3 4", "f: 5"), OUT("f2: 9 11"));
    CHECK(13, "Mean", "", IN("f2: 1 2", "f2: 3 4"), OUT("f2: 2 3"));
    CHECK(13, "Max", "", IN("f3: 1 nan 3", "f1: 2"), OUT("f3: 2 nan 3"));
    CHECK(13, "Min", "", IN("j2: -1 5", "j2: 0 0", "j: 3"), OUT("j2: -1 0"));
}
END_TEST

START_TEST(smallest_integers_have_no_counterpart)
{
    CHECK(13, "Neg", "", IN("i1: -9223372036854775808"), OUT("i1: -9223372036854775808"));
    CHECK(13, "Abs", "", IN("c2: -128 -3"), OUT("c2: -128 3"));
    CHECK(13, "Div", "", IN("i1: -9223372036854775808", "i1: -1"), OUT("i1: -9223372036854775808"));
    CHECK(13, "Mod", "", IN("i1: -9223372036854775808", "i1: -1"), OUT("i1: 0"));
}
END_TEST

START_TEST(powers_and_remainders)
{
    CHECK(13, "Pow", "", IN("f3: 1 2 3", "f: 2"), OUT("f3: 1 4 9"));
    CHECK(13, "Pow", "", IN("f2: 4 9", "f2: 0.5 -1"), OUT("f2: 2 0.111111"));
    CHECK(13, "Pow", "", IN("i3: 2 -1 3", "i3: 10 3 0"), OUT("i3: 1024 -1 1"));
    CHECK(13, "Mod", "", IN("i4: 7 -7 7 -7", "i4: 3 3 -3 -3"), OUT("i4: 1 2 -2 -1"));
    CHECK(13, "Mod", "fmod=1", IN("i2: -7 7", "i2: 3 -3"), OUT("i2: -1 1"));
    CHECK(13, "Mod", "fmod=1", IN("f2: -7.5 7.5", "f2: 2 -2"), OUT("f2: -1.5 1.5"));
    CHECK(11, "BitShift", "direction=LEFT", IN("u3: 1 3 1", "u3: 3 7 8"), OUT("u3: 8 128 0"));
    CHECK(11, "BitShift", "direction=RIGHT", IN("w2: 16 1", "w2: 2 40"), OUT("w2: 4 0"));
}
END_TEST

START_TEST(functions_of_one_element)
{
    CHECK(13, "Ceil", "", IN("f3: 1.2 -1.2 2"), OUT("f3: 2 -1 2"));
    CHECK(13, "Floor", "", IN("f2: 1.8 -1.2"), OUT("f2: 1 -2"));
    CHECK(11, "Round", "", IN("f5: 0.5 1.5 2.5 -0.5 -1.7"), OUT("f5: 0 2 2 0 -2"));
    CHECK(13, "Sign", "", IN("f3: -3 0 2"), OUT("f3: -1 0 1"));
    CHECK(13, "Sqrt", "", IN("f2: 4 2"), OUT("f2: 2 1.4142135"));
    CHECK(13, "Reciprocal", "", IN("f2: 4 -0.5"), OUT("f2: 0.25 -2"));
    CHECK(13, "Exp", "", IN("f2: 0 1"), OUT("f2: 1 2.7182818"));
    CHECK(13, "Log", "", IN("f2: 1 2.7182818"), OUT("f2: 0 1"));
    CHECK(13, "Erf", "", IN("f2: 0 1"), OUT("f2: 0 0.8427008"));
    CHECK(13, "Tanh", "", IN("f2: 0 1"), OUT("f2: 0 0.7615942"));
    CHECK(7, "Sin", "", IN("f2: 0 1.5707963"), OUT("f2: 0 1"));
    CHECK(7, "Cos", "", IN("d2: 0 3.14159265358979"), OUT("d2: 1 -1"));
    CHECK(7, "Tan", "", IN("f1: 0.7853982"), OUT("f1: 1"));
    CHECK(7, "Asin", "", IN("f1: 1"), OUT("f1: 1.5707963"));
    CHECK(7, "Acos", "", IN("f1: 1"), OUT("f1: 0"));
    CHECK(7, "Atan", "", IN("f1: 1"), OUT("f1: 0.7853982"));
    CHECK(9, "Sinh", "", IN("f1: 1"), OUT("f1: 1.1752012"));
    CHECK(9, "Cosh", "", IN("f1: 0"), OUT("f1: 1"));
    CHECK(9, "Asinh", "", IN("f1: 1.1752012"), OUT("f1: 1"));
    CHECK(9, "Acosh", "", IN("f1: 1"), OUT("f1: 0"));
    CHECK(9, "Atanh", "", IN("f1: 0.7615942"), OUT("f1: 1"));
}
END_TEST

START_TEST(activations)
{
    CHECK(13, "Relu", "", IN("f3: -1 0 2"), OUT("f3: 0 0 2"));
    CHECK(13, "LeakyRelu", "alpha=~0.1", IN("f2: -10 3"), OUT("f2: -1 3"));
    CHECK(10, "ThresholdedRelu", "alpha=~2", IN("f3: 1 2 3"), OUT("f3: 0 0 3"));
    CHECK(13, "Elu", "", IN("f2: -1 2"), OUT("f2: -0.6321206 2"));
    CHECK(12, "Celu", "alpha=~2", IN("f2: -2 1"), OUT("f2: -1.2642411 1"));
    CHECK(13, "Selu", "", IN("f2: -1 1"), OUT("f2: -1.1113307 1.050701"));
    CHECK(13, "Sigmoid", "", IN("f3: 0 2 -200"), OUT("f3: 0.5 0.8807971 0"));
    CHECK(13, "HardSigmoid", "", IN("f3: -5 1 5"), OUT("f3: 0 0.7 1"));
    CHECK(14, "HardSwish", "", IN("f3: -4 1 4"), OUT("f3: 0 0.6666667 4"));
    CHECK(13, "Softplus", "", IN("f3: 0 100 -100"), OUT("f3: 0.6931472 100 0"));
    CHECK(13, "Softsign", "", IN("f2: 1 -3"), OUT("f2: 0.5 -0.75"));
    CHECK(9, "Shrink", "lambd=~1 bias=~0.5", IN("f3: -2 0.5 2"), OUT("f3: -1.5 0 1.5"));
    CHECK(13, "Clip", "", IN("f3: -5 1 5", "f: -2", "f: 2"), OUT("f3: -2 1 2"));
    CHECK(13, "Clip", "", IN("c2: -5 5", "", "c: 3"), OUT("c2: -5 3"));
    CHECK(10, "Clip", "min=~0 max=~6", IN("f2: -1 7"), OUT("f2: 0 6"));
    CHECK(13, "PRelu", "", IN("f1,2,2: -1 -2 3 -4", "f2,1: 0.1 0.5"),
          OUT("f1,2,2: -0.1 -0.2 3 -2"));
    CHECK(13, "Dropout", "", IN("f2: 1 2"), OUT("f2: 1 2", "b2: 1 1"));
}
END_TEST

START_TEST(comparisons_and_logic)
{
    CHECK(13, "Equal", "", IN("i3: 1 2 3", "i: 2"), OUT("b3: 0 1 0"));
    CHECK(13, "Greater", "", IN("f3: 1 2 nan", "f: 1"), OUT("b3: 0 1 0"));
    CHECK(13, "Less", "", IN("u2: 1 200", "u: 100"), OUT("b2: 1 0"));
    CHECK(12, "GreaterOrEqual", "", IN("f2: 1 2", "f: 2"), OUT("b2: 0 1"));
    CHECK(12, "LessOrEqual", "", IN("j2: 1 3", "j: 2"), OUT("b2: 1 0"));
    CHECK(7, "And", "", IN("b4: 0 0 1 1", "b4: 0 1 0 1"), OUT("b4: 0 0 0 1"));
    CHECK(7, "Or", "", IN("b4: 0 0 1 1", "b4: 0 1 0 1"), OUT("b4: 0 1 1 1"));
    CHECK(7, "Xor", "", IN("b4: 0 0 1 1", "b4: 0 1 0 1"), OUT("b4: 0 1 1 0"));
    CHECK(7, "Not", "", IN("b2: 0 1"), OUT("b2: 1 0"));
    CHECK(9, "Where", "", IN("b2,1: 1 0", "f2: 1 2", "f1: 9"), OUT("f2,2: 1 2 9 9"));
    CHECK(13, "IsNaN", "", IN("f3: nan 1 inf"), OUT("b3: 1 0 0"));
    CHECK(10, "IsInf", "detect_negative=0", IN("f3: inf -inf 1"), OUT("b3: 1 0 0"));
}
END_TEST

START_TEST(reductions)
{
    CHECK(13, "ReduceSum", "keepdims=0", IN("f2,2: 1 2 3 4", "i1: 0"), OUT("f2: 4 6"));
    CHECK(13, "ReduceSum", "noop_with_empty_axes=1", IN("f2: 1 2"), OUT("f2: 1 2"));
    CHECK(11, "ReduceSum", "axes=[1]", IN("f2,2: 1 2 3 4"), OUT("f2,1: 3 7"));
    CHECK(13, "ReduceMean", "axes=[-1] keepdims=0", IN("f2,2: 1 2 3 4"), OUT("f2: 1.5 3.5"));
    CHECK(13, "ReduceMean", "axes=[0,2] keepdims=0", IN("f2,2,2: 1 2 3 4 5 6 7 8"),
          OUT("f2: 3.5 5.5"));
    CHECK(13, "ReduceMax", "keepdims=0", IN("i3: -9007199254740993 5 2"), OUT("i: 5"));
    CHECK(13, "ReduceMin", "keepdims=0", IN("i2: -9007199254740993 5"),
          OUT("i: -9007199254740993"));
    CHECK(13, "ReduceProd", "keepdims=0", IN("f3: 2 3 4"), OUT("f: 24"));
    CHECK(13, "ReduceL1", "keepdims=0", IN("f3: -1 2 -3"), OUT("f: 6"));
    CHECK(13, "ReduceL2", "keepdims=0", IN("f2: 3 -4"), OUT("f: 5"));
    CHECK(13, "ReduceLogSum", "keepdims=0", IN("f2: 1 1"), OUT("f: 0.6931472"));
    CHECK(13, "ReduceLogSumExp", "keepdims=0", IN("f2: 1000 1000"), OUT("f: 1000.6931"));
    CHECK(13, "ReduceSumSquare", "keepdims=0", IN("f2: 3 4"), OUT("f: 25"));
    CHECK(13, "ReduceSum", "keepdims=0", IN("f0:"), OUT("f: 0"));
    REFUSED(13, "ReduceMax", "", IN("f0:"), 'f', ONNX_ENGINE_FAILED, "nothing has no greatest");
}
END_TEST

START_TEST(picks_along_an_axis)
{
    CHECK(13, "ArgMax", "axis=1 keepdims=0", IN("f2,3: 1 3 3 9 2 4"), OUT("i2: 1 0"));
    CHECK(13, "ArgMax", "axis=1 select_last_index=1", IN("f1,3: 1 3 3"), OUT("i1,1: 2"));
    CHECK(13, "ArgMin", "axis=0", IN("f2,2: 1 5 3 2"), OUT("i1,2: 0 1"));
    CHECK(11, "TopK", "", IN("f1,5: 3 1 4 1 5", "i1: 3"), OUT("f1,3: 5 4 3", "i1,3: 4 2 0"));
    CHECK(11, "TopK", "largest=0", IN("f5: 3 1 4 1 5", "i1: 2"), OUT("f2: 1 1", "i2: 1 3"));
    CHECK(11, "TopK", "axis=0", IN("j2,2: 1 4 3 2", "i1: 1"), OUT("j1,2: 3 4", "i1,2: 1 0"));
    CHECK(11, "CumSum", "", IN("f3: 1 2 3", "i: 0"), OUT("f3: 1 3 6"));
    CHECK(11, "CumSum", "exclusive=1 reverse=1", IN("i3: 1 2 3", "i: 0"), OUT("i3: 5 3 0"));
    CHECK(11, "CumSum", "", IN("j2,2: 1 2 3 4", "j: -2"), OUT("j2,2: 1 2 4 6"));
}
END_TEST

START_TEST(types_change)
{
    CHECK(13, "Cast", "to=7", IN("f3: 1.9 -1.9 3"), OUT("i3: 1 -1 3"));
    CHECK(13, "Cast", "to=1", IN("i2: 3 -4"), OUT("f2: 3 -4"));
    CHECK(13, "Cast", "to=9", IN("f3: 0 0.5 nan"), OUT("b3: 0 1 1"));
    CHECK(13, "Cast", "to=3", IN("i2: 300 -1"), OUT("c2: 44 -1"));
    CHECK(13, "Cast", "to=10", IN("f3: 1 65519 1e-8"), OUT("h3: 1 65504 0"));
    CHECK(13, "Cast", "to=7", IN("f3: nan 1e30 -1e30"),
          OUT("i3: 0 9223372036854775807 -9223372036854775808"));
    CHECK(15, "CastLike", "", IN("f2: 1.5 2.5", "j1: 0"), OUT("j2: 1 2"));
    REFUSED(13, "Cast", "to=8", IN("f1: 1"), 'f', ONNX_ENGINE_UNSUPPORTED, "not made here");
}
END_TEST

START_TEST(halves_round_to_nearest)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        const float half = own_half_widen((uint16_t)bits);
        const float brain = own_brain_widen((uint16_t)bits);
        ck_assert(half != half || own_half_narrow(half) == bits);
        ck_assert(brain != brain || own_brain_narrow(brain) == bits);
    }
    /* The steps behind 1 are 2^-10 and 2^-7. A number in the middle goes to the even one. */
    ck_assert_uint_eq(own_half_narrow(1 + 0x1.8p-11F), 0x3c01);
    ck_assert_uint_eq(own_half_narrow(1 + 0x1p-11F), 0x3c00);
    ck_assert_uint_eq(own_half_narrow(1 + 0x1.8p-10F), 0x3c02);
    ck_assert_uint_eq(own_half_narrow(65519.0F), 0x7bff);
    ck_assert_uint_eq(own_half_narrow(-65520.0F), 0xfc00);
    ck_assert_uint_eq(own_half_narrow(0x1.8p-24F), 2);
    ck_assert_uint_eq(own_half_narrow(NAN) & 0x7e00, 0x7e00);
    ck_assert_uint_eq(own_brain_narrow(1 + 0x1.8p-8F), 0x3f81);
    ck_assert_uint_eq(own_brain_narrow(1 + 0x1p-8F), 0x3f80);
    ck_assert_uint_eq(own_brain_narrow(INFINITY), 0x7f80);
    ck_assert_uint_eq(own_brain_narrow(NAN) & 0x7fc0, 0x7fc0);
}
END_TEST

START_TEST(zero_divides_no_integer)
{
    REFUSED(13, "Div", "", IN("i2: 1 2", "i2: 1 0"), 'i', ONNX_ENGINE_FAILED, "divided by zero");
    REFUSED(13, "Mod", "", IN("i2: 1 2", "i1: 0"), 'i', ONNX_ENGINE_FAILED, "divided by zero");
}
END_TEST

SUITE("own_elements", NULL, NULL, TEST(arithmetic_broadcasts),
      TEST(smallest_integers_have_no_counterpart), TEST(powers_and_remainders),
      TEST(functions_of_one_element), TEST(activations), TEST(comparisons_and_logic),
      TEST(reductions), TEST(picks_along_an_axis), TEST(types_change),
      TEST(halves_round_to_nearest), TEST(zero_divides_no_integer))
