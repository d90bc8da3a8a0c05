/* Our own ONNX operators of products, windows, normalisations, quantised numbers, images and
 * recurrent layers, against values computed by hand. */
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#define CHECK own_case_check
#define REFUSED own_case_refused

START_TEST(products_of_matrices)
{
    CHECK(13, "MatMul", "", IN("f2,2: 1 2 3 4", "f2,2: 5 6 7 8"), OUT("f2,2: 19 22 43 50"));
    CHECK(13, "MatMul", "", IN("f2: 1 2", "f2: 3 4"), OUT("f: 11"));
    CHECK(13, "MatMul", "", IN("f2,1,2: 1 2 3 4", "f2,1: 1 10"), OUT("f2,1,1: 21 43"));
    CHECK(13, "MatMul", "", IN("f1,2: 1 2", "f2,2,1: 1 2 3 4"), OUT("f2,1,1: 5 11"));
    CHECK(13, "MatMul", "", IN("f2,1,1,2: 1 2 3 4", "f1,2,2,1: 1 2 3 4"),
          OUT("f2,2,1,1: 5 11 11 25"));
    CHECK(13, "MatMul", "", IN("f2,0:", "f0,2:"), OUT("f2,2: 0 0 0 0"));
    CHECK(13, "MatMul", "", IN("h1,2: 1 2", "h2,1: 0.5 0.25"), OUT("h1,1: 1"));
    CHECK(13, "Gemm", "alpha=~2 beta=~0.5", IN("f1,2: 1 2", "f2,2: 1 2 3 4", "f2: 10 20"),
          OUT("f1,2: 19 30"));
    CHECK(13, "Gemm", "transA=1 transB=1", IN("f2,1: 1 2", "f2,2: 1 2 3 4"), OUT("f1,2: 5 11"));
    CHECK(12, "Einsum", "equation=ij,jk->ik", IN("f2,2: 1 2 3 4", "f2,1: 1 10"),
          OUT("f2,1: 21 43"));
    CHECK(12, "Einsum", "equation=ii", IN("d2,2: 1 2 3 4"), OUT("d: 5"));
    REFUSED(13, "MatMul", "", IN("f2,2: 1 2 3 4", "f3,1: 1 2 3"), 'f', ONNX_ENGINE_FAILED,
            "columns meet");
    REFUSED(13, "MatMul", "", IN("f1,1: 1", "d1,1: 2"), 'f', ONNX_ENGINE_UNSUPPORTED, "float64");
    REFUSED(13, "Gemm", "", IN("f1,1: 1", "f1,1: 2", "f2: 1 2"), 'f', ONNX_ENGINE_FAILED,
            "do not broadcast");
}
END_TEST

START_TEST(convolutions)
{
    CHECK(11, "Conv", "", IN("f1,1,3: 1 2 3", "f1,1,2: 1 10", "f1: 100"), OUT("f1,1,2: 121 132"));
    CHECK(11, "Conv", "pads=[1,1] strides=[2]", IN("f1,1,3: 1 2 3", "f1,1,2: 1 10"),
          OUT("f1,1,2: 10 32"));
    CHECK(11, "Conv", "dilations=[2]", IN("f1,1,4: 1 2 3 4", "f1,1,2: 1 10"), OUT("f1,1,2: 31 42"));
    CHECK(11, "Conv", "group=2", IN("f1,2,2: 1 2 3 4", "f2,1,1: 10 100"),
          OUT("f1,2,2: 10 20 300 400"));
    CHECK(11, "Conv", "auto_pad=SAME_UPPER", IN("f1,1,3: 1 2 3", "f1,1,2: 1 10"),
          OUT("f1,1,3: 21 32 3"));
    CHECK(11, "Conv", "auto_pad=SAME_LOWER", IN("f1,1,3: 1 2 3", "f1,1,2: 1 10"),
          OUT("f1,1,3: 10 21 32"));
    CHECK(11, "Conv", "", IN("f1,1,2,2: 1 2 3 4", "f1,1,2,2: 1 1 1 1"), OUT("f1,1,1,1: 10"));
    CHECK(11, "ConvTranspose", "strides=[2]", IN("f1,1,2: 1 2", "f1,1,2: 1 10"),
          OUT("f1,1,4: 1 10 2 20"));
    CHECK(11, "ConvTranspose", "pads=[1,0] output_padding=[1]", IN("f1,1,2: 1 2", "f1,1,2: 1 10"),
          OUT("f1,1,3: 12 20 0"));
    CHECK(10, "ConvInteger", "", IN("u1,1,3: 1 2 3", "u1,1,2: 1 1", "u: 1"), OUT("j1,1,2: 1 3"));
    CHECK(10, "QLinearConv", "",
          IN("u1,1,2: 3 5", "f: 0.5", "u: 1", "c1,1,1: 2", "f: 1", "c: 0", "f: 2", "u: 10"),
          OUT("u1,1,2: 11 12"));
    REFUSED(11, "Conv", "", IN("f1,1,1: 1", "f1,1,2: 1 2"), 'f', ONNX_ENGINE_FAILED, "covers");
    REFUSED(11, "Conv", "pads=[0,1099511627776]", IN("f1,1,1: 1", "f1,1,1: 1"), 'f',
            ONNX_ENGINE_FAILED, "larger than 2^46");
    REFUSED(11, "Conv", "pads=[0,8000000]", IN("f1,1,1: 1", "f1,1,1: 1"), 'f', ONNX_ENGINE_MEMORY,
            "the bound is");
}
END_TEST

START_TEST(pools)
{
    CHECK(12, "MaxPool", "kernel_shape=[2]", IN("f1,1,3: 1 3 2"),
          OUT("f1,1,2: 3 3", "i1,1,2: 1 1"));
    CHECK(12, "MaxPool", "kernel_shape=[2] pads=[1,0]", IN("c1,1,2: -5 -7"), OUT("c1,1,2: -5 -5"));
    CHECK(11, "AveragePool", "kernel_shape=[2] pads=[1,0]", IN("f1,1,2: 2 4"), OUT("f1,1,2: 2 3"));
    CHECK(11, "AveragePool", "kernel_shape=[2] pads=[1,0] count_include_pad=1", IN("f1,1,2: 2 4"),
          OUT("f1,1,2: 1 3"));
    CHECK(11, "LpPool", "kernel_shape=[2] p=1", IN("f1,1,2: -3 4"), OUT("f1,1,1: 7"));
    CHECK(13, "GlobalAveragePool", "", IN("f1,2,2: 1 2 3 5"), OUT("f1,2,1: 1.5 4"));
    CHECK(13, "GlobalMaxPool", "", IN("f1,1,2,2: 1 9 3 5"), OUT("f1,1,1,1: 9"));
    CHECK(13, "GlobalLpPool", "", IN("f1,1,2: 3 4"), OUT("f1,1,1: 5"));
}
END_TEST

START_TEST(normalisations)
{
    CHECK(15, "BatchNormalization", "epsilon=~0",
          IN("f1,2,1: 3 4", "f2: 1 2", "f2: 0 1", "f2: 1 2", "f2: 4 1"), OUT("f1,2,1: 1 5"));
    CHECK(13, "InstanceNormalization", "epsilon=~0", IN("f1,1,2: 1 3", "f1: 2", "f1: 1"),
          OUT("f1,1,2: -1 3"));
    CHECK(17, "LayerNormalization", "epsilon=~0", IN("f1,2: 1 3", "f2: 1 2", "f2: 0 1"),
          OUT("f1,2: -1 3", "f1,1: 2", "f1,1: 1"));
    CHECK(13, "LRN", "size=3 alpha=~3 beta=~1 bias=~1", IN("f1,2,1: 1 2"),
          OUT("f1,2,1: 0.1666667 0.3333333"));
    CHECK(7, "LpNormalization", "axis=0", IN("f2: 3 4"), OUT("f2: 0.6 0.8"));
    CHECK(13, "MeanVarianceNormalization", "axes=[0]", IN("f2: 1 3"), OUT("f2: -1 1"));
    CHECK(13, "Softmax", "", IN("f2,2: 0 0 1000 1000"), OUT("f2,2: 0.5 0.5 0.5 0.5"));
    CHECK(11, "Softmax", "", IN("f1,2,2: 0 0 0 0"), OUT("f1,2,2: 0.25 0.25 0.25 0.25"));
    CHECK(13, "Softmax", "axis=0", IN("f2,1: 0 0.6931472"), OUT("f2,1: 0.3333333 0.6666667"));
    CHECK(13, "LogSoftmax", "", IN("f2: 0 0"), OUT("f2: -0.6931472 -0.6931472"));
    CHECK(13, "Hardmax", "", IN("f3: 1 5 5"), OUT("f3: 0 1 0"));
    REFUSED(15, "BatchNormalization", "training_mode=1",
            IN("f1,1: 3", "f1: 1", "f1: 0", "f1: 1", "f1: 4"), 'f', ONNX_ENGINE_UNSUPPORTED,
            "training");
}
END_TEST

START_TEST(quantised_numbers)
{
    CHECK(13, "QuantizeLinear", "", IN("f4: 1 2.5 -300 3.5", "f: 1", "c: 0"),
          OUT("c4: 1 2 -128 4"));
    CHECK(13, "QuantizeLinear", "axis=0", IN("f2: 10 10", "f2: 1 2", "u2: 0 1"), OUT("u2: 10 6"));
    CHECK(13, "DequantizeLinear", "", IN("u2: 3 5", "f: 0.5", "u: 1"), OUT("f2: 1 2"));
    CHECK(11, "DynamicQuantizeLinear", "", IN("f3: 0 2 -1"),
          OUT("u3: 85 255 0", "f: 0.01176471", "u: 85"));
    CHECK(10, "MatMulInteger", "", IN("u1,2: 3 4", "c2,1: 1 -2", "u: 1"), OUT("j1,1: -4"));
    CHECK(10, "QLinearMatMul", "",
          IN("u1,1: 5", "f: 1", "u: 1", "u1,1: 3", "f: 0.5", "u: 1", "f: 2", "u: 10"),
          OUT("u1,1: 12"));
}
END_TEST

START_TEST(images_change_their_size)
{
    CHECK(13, "Resize", "mode=nearest", IN("f1,1,2: 1 2", "", "f3: 1 1 2"), OUT("f1,1,4: 1 1 2 2"));
    CHECK(13, "Resize", "mode=linear", IN("f1,1,2: 1 3", "", "f3: 1 1 2"),
          OUT("f1,1,4: 1 1.5 2.5 3"));
    CHECK(13, "Resize", "mode=linear coordinate_transformation_mode=align_corners",
          IN("f1,1,2: 1 4", "", "", "i3: 1 1 4"), OUT("f1,1,4: 1 2 3 4"));
    CHECK(13, "Resize", "nearest_mode=floor coordinate_transformation_mode=asymmetric",
          IN("u1,1,2: 7 9", "", "", "i3: 1 1 3"), OUT("u1,1,3: 7 7 9"));
    CHECK(9, "Upsample", "mode=nearest", IN("f1,1,1,2: 1 2", "f4: 1 1 2 1"),
          OUT("f1,1,2,2: 1 2 1 2"));
    REFUSED(13, "Resize", "mode=area", IN("f1,1,2: 1 2", "", "f3: 1 1 2"), 'f',
            ONNX_ENGINE_UNSUPPORTED, "area");
    REFUSED(13, "Resize", "", IN("f1,1,2: 1 2", "", "f3: 1 1 1e30"), 'f', ONNX_ENGINE_FAILED,
            "scale");
}
END_TEST

/* All weights are 0 but for the biases, so that a gate is a number known beforehand. */
START_TEST(recurrent_layers)
{
    CHECK(14, "RNN", "hidden_size=1", IN("f2,1,1: 0.5 0", "f1,1,1: 1", "f1,1,1: 1"),
          OUT("f2,1,1,1: 0.4621172 0.4318124", "f1,1,1: 0.4318124"));
    CHECK(14, "RNN", "hidden_size=1 direction=reverse",
          IN("f2,1,1: 0.5 0", "f1,1,1: 1", "f1,1,1: 1"),
          OUT("f2,1,1,1: 0.4621172 0", "f1,1,1: 0.4621172"));
    CHECK(14, "LSTM", "hidden_size=1", IN("f1,1,1: 1", "f1,4,1: 0 0 0 1", "f1,4,1: 0 0 0 0"),
          OUT("f1,1,1,1: 0.1816991", "f1,1,1: 0.1816991", "f1,1,1: 0.3807971"));
    CHECK(14, "GRU", "hidden_size=1",
          IN("f1,1,1: 1", "f1,3,1: 0 0 1", "f1,3,1: 0 0 0", "", "", "f1,1,1: 2"),
          OUT("f1,1,1,1: 1.3807971"));
    REFUSED(14, "LSTM", "hidden_size=1 activations=Tanh",
            IN("f1,1,1: 1", "f1,4,1: 0 0 0 1", "f1,4,1: 0 0 0 0", "f1,7: 1 2 3 4 5 6 7"), 'f',
            ONNX_ENGINE_FAILED, "do not fit");
    REFUSED(14, "GRU", "hidden_size=1",
            IN("f1,1,1: 1", "f1,3,1: 0 0 1", "f1,3,1: 0 0 0", "", "j1: 2"), 'f', ONNX_ENGINE_FAILED,
            "2 of 1 steps");
}
END_TEST

START_TEST(losses)
{
    CHECK(13, "NegativeLogLikelihoodLoss", "", IN("f2,2: -1 -2 -3 -4", "i2: 0 1"), OUT("f: 2.5"));
    CHECK(13, "SoftmaxCrossEntropyLoss", "reduction=none", IN("f1,2: 0 0", "i1: 1"),
          OUT("f1: 0.6931472"));
    REFUSED(13, "NegativeLogLikelihoodLoss", "", IN("f1,2: -1 -2", "i1: 2"), 'f',
            ONNX_ENGINE_FAILED, "no class among 2");
}
END_TEST

SUITE("own_layers", NULL, NULL, TEST(products_of_matrices), TEST(convolutions), TEST(pools),
      TEST(normalisations), TEST(quantised_numbers), TEST(images_change_their_size),
      TEST(recurrent_layers), TEST(losses))
