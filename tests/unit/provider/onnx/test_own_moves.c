/* Our own ONNX operators that move elements, name places or make tensors, against values computed
 * by hand. */
#include "tests/support/own_case.h"
#include "tests/support/suite.h"

#define CHECK own_case_check
#define REFUSED own_case_refused

START_TEST(dims_change_and_bytes_stay)
{
    CHECK(14, "Reshape", "", IN("f2,3: 1 2 3 4 5 6", "i2: 3 -1"), OUT("f3,2: 1 2 3 4 5 6"));
    CHECK(14, "Reshape", "", IN("f2,3: 1 2 3 4 5 6", "i3: 0 1 3"), OUT("f2,1,3: 1 2 3 4 5 6"));
    CHECK(13, "Flatten", "axis=-1", IN("f1,2,2: 1 2 3 4"), OUT("f2,2: 1 2 3 4"));
    CHECK(13, "Squeeze", "", IN("b1,2,1: 1 0", "i1: 0"), OUT("b2,1: 1 0"));
    CHECK(11, "Unsqueeze", "axes=[0,2]", IN("j2: 1 2"), OUT("j1,2,1: 1 2"));
    CHECK(13, "Identity", "", IN("h2: 1 2"), OUT("h2: 1 2"));
}
END_TEST

START_TEST(parts_join_and_leave)
{
    CHECK(13, "Transpose", "", IN("f2,3: 1 2 3 4 5 6"), OUT("f3,2: 1 4 2 5 3 6"));
    CHECK(13, "Transpose", "perm=[1,0,2]", IN("c2,2,2: 1 2 3 4 5 6 7 8"),
          OUT("c2,2,2: 1 2 5 6 3 4 7 8"));
    CHECK(13, "Concat", "axis=1", IN("f2,1: 1 2", "f2,2: 3 4 5 6", "f2,0:"),
          OUT("f2,3: 1 3 4 2 5 6"));
    CHECK(13, "Split", "axis=1", IN("f2,3: 1 2 3 4 5 6", "i2: 1 2"),
          OUT("f2,1: 1 4", "f2,2: 2 3 5 6"));
    CHECK(11, "Split", "", IN("i4: 1 2 3 4"), OUT("i2: 1 2", "i2: 3 4"));
    CHECK(13, "Slice", "", IN("f2,3: 1 2 3 4 5 6", "i1: 1", "i1: 1000", "i1: 1"),
          OUT("f2,2: 2 3 5 6"));
    CHECK(13, "Slice", "",
          IN("f5: 1 2 3 4 5", "i1: -1", "i1: -9223372036854775808", "i1: 0", "i1: -2"),
          OUT("f3: 5 3 1"));
    CHECK(7, "Slice", "starts=[0,1] ends=[1,3]", IN("f2,3: 1 2 3 4 5 6"), OUT("f1,2: 2 3"));
    CHECK(13, "Expand", "", IN("f2,1: 1 2", "i3: 2 1 2"), OUT("f2,2,2: 1 1 2 2 1 1 2 2"));
    CHECK(13, "Tile", "", IN("s2,2: 1 2 3 4", "i2: 2 2"),
          OUT("s4,4: 1 2 1 2 3 4 3 4 1 2 1 2 3 4 3 4"));
}
END_TEST

START_TEST(pads_and_blocks)
{
    CHECK(13, "Pad", "", IN("f2: 1 2", "i2: 1 2", "f: 9"), OUT("f5: 9 1 2 9 9"));
    CHECK(13, "Pad", "mode=reflect", IN("f3: 1 2 3", "i2: 2 1"), OUT("f6: 3 2 1 2 3 2"));
    CHECK(13, "Pad", "mode=edge", IN("i2,2: 1 2 3 4", "i4: 1 0 0 1"),
          OUT("i3,3: 1 2 2 1 2 2 3 4 4"));
    CHECK(13, "Pad", "", IN("f4: 1 2 3 4", "i2: -1 -1"), OUT("f2: 2 3"));
    CHECK(10, "Pad", "pads=[0,1] value=~5", IN("f1: 1"), OUT("f2: 1 5"));
    CHECK(14, "Trilu", "", IN("f2,3: 1 2 3 4 5 6", "i: 1"), OUT("f2,3: 0 2 3 0 0 6"));
    CHECK(14, "Trilu", "upper=0", IN("i2,2: 1 2 3 4"), OUT("i2,2: 1 0 3 4"));
    CHECK(10, "ReverseSequence", "", IN("f3,2: 1 2 3 4 5 6", "i2: 3 2"), OUT("f3,2: 5 4 3 2 1 6"));
    CHECK(13, "DepthToSpace", "blocksize=2", IN("f1,4,1,1: 1 2 3 4"), OUT("f1,1,2,2: 1 2 3 4"));
    CHECK(13, "SpaceToDepth", "blocksize=2", IN("f1,1,2,2: 1 2 3 4"), OUT("f1,4,1,1: 1 2 3 4"));
}
END_TEST

START_TEST(places_are_named)
{
    CHECK(13, "Gather", "", IN("f3,2: 1 2 3 4 5 6", "i2: 2 -3"), OUT("f2,2: 5 6 1 2"));
    CHECK(13, "Gather", "axis=1", IN("f2,2: 1 2 3 4", "j1,1: 1"), OUT("f2,1,1: 2 4"));
    CHECK(13, "GatherElements", "axis=1", IN("f2,2: 1 2 3 4", "i2,2: 0 0 1 0"),
          OUT("f2,2: 1 1 4 3"));
    CHECK(13, "GatherND", "", IN("f2,2: 1 2 3 4", "i2,2: 0 1 1 0"), OUT("f2: 2 3"));
    CHECK(13, "GatherND", "batch_dims=1", IN("f2,2: 1 2 3 4", "i2,1: 1 0"), OUT("f2: 2 3"));
    CHECK(13, "ScatterElements", "axis=0", IN("f3: 1 2 3", "i2: 2 0", "f2: 9 8"), OUT("f3: 8 2 9"));
    CHECK(16, "ScatterElements", "axis=0 reduction=add", IN("f2: 1 2", "i2: 1 1", "f2: 3 4"),
          OUT("f2: 1 9"));
    CHECK(13, "ScatterND", "", IN("f3: 1 2 3", "i1,1: 1", "f1: 7"), OUT("f3: 1 7 3"));
    CHECK(16, "ScatterND", "reduction=mul", IN("f2,2: 1 2 3 4", "i1,1: 1", "f1,2: 2 3"),
          OUT("f2,2: 1 2 6 12"));
}
END_TEST

START_TEST(tensors_are_made)
{
    CHECK(13, "Constant", "value_int=5", NO_INPUT, OUT("i: 5"));
    CHECK(13, "Constant", "value_ints=[1,2]", NO_INPUT, OUT("i2: 1 2"));
    CHECK(13, "Constant", "value_float=~2.5", NO_INPUT, OUT("f: 2.5"));
    CHECK(13, "ConstantOfShape", "", IN("i2: 1 2"), OUT("f1,2: 0 0"));
    CHECK(15, "Shape", "start=1",
          IN("f2,3,4: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"),
          OUT("i2: 3 4"));
    CHECK(13, "Size", "", IN("f2,2: 1 2 3 4"), OUT("i: 4"));
    CHECK(11, "Range", "", IN("i: 1", "i: 8", "i: 3"), OUT("i3: 1 4 7"));
    CHECK(11, "Range", "", IN("f: 1", "f: 0", "f: -0.5"), OUT("f2: 1 0.5"));
    CHECK(9, "EyeLike", "k=1", IN("f2,3: 9 9 9 9 9 9"), OUT("f2,3: 0 1 0 0 0 1"));
    CHECK(11, "OneHot", "", IN("i2: 1 -1", "i: 3", "f2: 0 5"), OUT("f2,3: 0 5 0 0 0 5"));
    CHECK(13, "NonZero", "", IN("f2,2: 1 0 0 2"), OUT("i2,2: 0 1 0 1"));
}
END_TEST

START_TEST(liars_are_refused)
{
    REFUSED(13, "Gather", "", IN("f2: 1 2", "i1: 2"), 'f', ONNX_ENGINE_FAILED, "no place among 2");
    REFUSED(13, "Gather", "", IN("f0:", "i1: 0"), 'f', ONNX_ENGINE_FAILED, "no place");
    REFUSED(13, "GatherND", "", IN("f2: 1 2", "i1,1: -3"), 'f', ONNX_ENGINE_FAILED, "no place");
    REFUSED(13, "GatherElements", "", IN("f2: 1 2", "i1: 9"), 'f', ONNX_ENGINE_FAILED, "no place");
    REFUSED(13, "ScatterND", "", IN("f2: 1 2", "i1,1: 7", "f1: 1"), 'f', ONNX_ENGINE_FAILED,
            "no place");
    REFUSED(13, "ScatterElements", "", IN("f2: 1 2", "i1: -5", "f1: 1"), 'f', ONNX_ENGINE_FAILED,
            "no place");
    REFUSED(13, "ScatterElements", "", IN("f2: 1 2", "i2: 0 1", "f1: 1"), 'f', ONNX_ENGINE_FAILED,
            "do not fit");
    REFUSED(14, "Reshape", "", IN("f2: 1 2", "i2: 4611686018427387904 2"), 'f', ONNX_ENGINE_FAILED,
            "Reshape");
    REFUSED(14, "Reshape", "", IN("f2: 1 2", "i1: -2"), 'f', ONNX_ENGINE_FAILED, "-2");
    REFUSED(13, "Expand", "", IN("f1: 1", "i2: 4611686018427387904 1"), 'f', ONNX_ENGINE_FAILED,
            "larger than 2^46");
    REFUSED(13, "Expand", "", IN("f1: 1", "i2: 1048576 1"), 'f', ONNX_ENGINE_MEMORY,
            "the bound is");
    REFUSED(13, "Tile", "", IN("f1: 1", "i1: 4611686018427387904"), 'f', ONNX_ENGINE_FAILED,
            "Tile");
    REFUSED(13, "ConstantOfShape", "", IN("i2: -1 4"), 'f', ONNX_ENGINE_FAILED, "ConstantOfShape");
    REFUSED(13, "ConstantOfShape", "", IN("i2: 1099511627776 1"), 'f', ONNX_ENGINE_MEMORY,
            "the bound is");
    REFUSED(13, "Pad", "", IN("f1: 1", "i2: 0 4611686018427387904"), 'f', ONNX_ENGINE_FAILED,
            "Pad");
    REFUSED(13, "Pad", "", IN("f3: 1 2 3", "i2: -9223372036854775808 9223372036854775807"), 'f',
            ONNX_ENGINE_FAILED, "Pad");
    REFUSED(13, "Pad", "mode=reflect", IN("f1: 1", "i2: 1 0"), 'f', ONNX_ENGINE_FAILED,
            "too few for its pads");
    REFUSED(13, "Pad", "mode=edge", IN("f0:", "i2: 1 0"), 'f', ONNX_ENGINE_FAILED,
            "too few for its pads");
    REFUSED(13, "Pad", "mode=wrap", IN("f1: 1", "i2: 1 0"), 'f', ONNX_ENGINE_UNSUPPORTED, "wrap");
    REFUSED(11, "Range", "", IN("i: 0", "i: 9223372036854775807", "i: 1"), 'i', ONNX_ENGINE_FAILED,
            "Range");
    REFUSED(11, "Range", "", IN("i: 0", "i: 5", "i: 0"), 'i', ONNX_ENGINE_FAILED, "no end");
    REFUSED(11, "OneHot", "", IN("i1: 0", "i: 1099511627775", "f2: 0 1"), 'f', ONNX_ENGINE_MEMORY,
            "the bound is");
    REFUSED(13, "Slice", "", IN("f2: 1 2", "i2: 0 0", "i2: 1 1", "i2: 0 0"), 'f',
            ONNX_ENGINE_FAILED, "cut twice");
    REFUSED(13, "Slice", "", IN("f2: 1 2", "i1: 0", "i1: 1", "i1: 0", "i1: 0"), 'f',
            ONNX_ENGINE_FAILED, "a step is 0");
    REFUSED(11, "TopK", "", IN("f2: 1 2", "i1: 3"), 'f', ONNX_ENGINE_FAILED, "no 3 elements");
    REFUSED(10, "ReverseSequence", "", IN("f1,1: 1", "i1: 2"), 'f', ONNX_ENGINE_FAILED, "2 of 1");
}
END_TEST

SUITE("own_moves", NULL, NULL, TEST(dims_change_and_bytes_stay), TEST(parts_join_and_leave),
      TEST(pads_and_blocks), TEST(places_are_named), TEST(tensors_are_made),
      TEST(liars_are_refused))
