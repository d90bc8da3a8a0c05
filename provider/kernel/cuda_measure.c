#include "provider/kernel/cuda_measure.h"

/* Drivers since CUDA 9 take this version of PTX, and every device since 2014 has this target. */
#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"

/* Leaves the number of the thread in the whole range in %r4 and %rd2. */
#define INDEX                                                                                      \
    "    mov.u32 %r1, %ctaid.x;\n"                                                                 \
    "    mov.u32 %r2, %ntid.x;\n"                                                                  \
    "    mov.u32 %r3, %tid.x;\n"                                                                   \
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"                                                         \
    "    cvt.u64.u32 %rd2, %r4;\n"

/* Eight sums do not wait for one another, and begin with different values. */
#define BEGIN                                                                                      \
    "    cvt.rn.f32.u32 %x0, %r4;\n"                                                               \
    "    add.f32 %x1, %x0, 0f3F800000; add.f32 %x2, %x1, 0f3F800000;\n"                            \
    "    add.f32 %x3, %x2, 0f3F800000; add.f32 %x4, %x3, 0f3F800000;\n"                            \
    "    add.f32 %x5, %x4, 0f3F800000; add.f32 %x6, %x5, 0f3F800000;\n"                            \
    "    add.f32 %x7, %x6, 0f3F800000;\n"
#define EIGHT                                                                                      \
    "    fma.rn.f32 %x0, %x0, %a, %b; fma.rn.f32 %x1, %x1, %a, %b;\n"                              \
    "    fma.rn.f32 %x2, %x2, %a, %b; fma.rn.f32 %x3, %x3, %a, %b;\n"                              \
    "    fma.rn.f32 %x4, %x4, %a, %b; fma.rn.f32 %x5, %x5, %a, %b;\n"                              \
    "    fma.rn.f32 %x6, %x6, %a, %b; fma.rn.f32 %x7, %x7, %a, %b;\n"
#define STEP EIGHT EIGHT EIGHT EIGHT
#define SUM                                                                                        \
    "    add.f32 %x0, %x0, %x1; add.f32 %x2, %x2, %x3; add.f32 %x4, %x4, %x5;\n"                   \
    "    add.f32 %x6, %x6, %x7; add.f32 %x0, %x0, %x2; add.f32 %x4, %x4, %x6;\n"                   \
    "    add.f32 %x0, %x0, %x4;\n"

#define RATE                                                                                       \
    ".visible .entry bourse_rate(.param .u64 out, .param .f32 a, .param .f32 b,\n"                 \
    "                            .param .u32 steps)\n"                                             \
    "{\n"                                                                                          \
    "    .reg .pred %p;\n"                                                                         \
    "    .reg .b32 %r<6>;\n"                                                                       \
    "    .reg .b64 %rd<5>;\n"                                                                      \
    "    .reg .f32 %a, %b, %x<8>;\n"                                                               \
    "    ld.param.u64 %rd1, [out];\n"                                                              \
    "    ld.param.f32 %a, [a];\n"                                                                  \
    "    ld.param.f32 %b, [b];\n"                                                                  \
    "    ld.param.u32 %r5, [steps];\n" INDEX BEGIN "again:\n" STEP "    sub.u32 %r5, %r5, 1;\n"    \
    "    setp.ne.u32 %p, %r5, 0;\n"                                                                \
    "    @%p bra again;\n" SUM "    cvta.to.global.u64 %rd1, %rd1;\n"                              \
    "    shl.b64 %rd3, %rd2, 2;\n"                                                                 \
    "    add.u64 %rd4, %rd1, %rd3;\n"                                                              \
    "    st.global.f32 [%rd4], %x0;\n"                                                             \
    "    ret;\n"                                                                                   \
    "}\n"

#define COPY                                                                                       \
    ".visible .entry bourse_copy(.param .u64 from, .param .u64 to)\n"                              \
    "{\n"                                                                                          \
    "    .reg .b32 %r<5>;\n"                                                                       \
    "    .reg .b64 %rd<7>;\n"                                                                      \
    "    .reg .f32 %x<4>;\n"                                                                       \
    "    ld.param.u64 %rd1, [from];\n"                                                             \
    "    ld.param.u64 %rd3, [to];\n" INDEX "    cvta.to.global.u64 %rd1, %rd1;\n"                  \
    "    cvta.to.global.u64 %rd3, %rd3;\n"                                                         \
    "    shl.b64 %rd4, %rd2, 4;\n"                                                                 \
    "    add.u64 %rd5, %rd1, %rd4;\n"                                                              \
    "    add.u64 %rd6, %rd3, %rd4;\n"                                                              \
    "    ld.global.v4.f32 {%x0, %x1, %x2, %x3}, [%rd5];\n"                                         \
    "    st.global.v4.f32 [%rd6], {%x0, %x1, %x2, %x3};\n"                                         \
    "    ret;\n"                                                                                   \
    "}\n"

/* The numbers are those of challenge_chain_fold. */
#define FOLD                                                                                       \
    ".visible .entry bourse_fold(.param .u64 values)\n"                                            \
    "{\n"                                                                                          \
    "    .reg .b32 %r<6>;\n"                                                                       \
    "    .reg .b64 %rd<5>;\n"                                                                      \
    "    .reg .f32 %x;\n"                                                                          \
    "    ld.param.u64 %rd1, [values];\n" INDEX "    cvta.to.global.u64 %rd1, %rd1;\n"              \
    "    shl.b64 %rd3, %rd2, 2;\n"                                                                 \
    "    add.u64 %rd4, %rd1, %rd3;\n"                                                              \
    "    ld.global.f32 %x, [%rd4];\n"                                                              \
    "    cvt.rzi.s32.f32 %r5, %x;\n"                                                               \
    "    shr.s32 %r5, %r5, 2;\n"                                                                   \
    "    and.b32 %r5, %r5, 1023;\n"                                                                \
    "    sub.s32 %r5, %r5, 512;\n"                                                                 \
    "    cvt.rn.f32.s32 %x, %r5;\n"                                                                \
    "    st.global.f32 [%rd4], %x;\n"                                                              \
    "    ret;\n"                                                                                   \
    "}\n"

const char cuda_measure_source[] = HEAD RATE COPY FOLD;
