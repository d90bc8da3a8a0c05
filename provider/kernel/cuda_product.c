/* The kernel computes 64 x 64 numbers of C in a block of 256 threads.
 *
 * Thread 16 y + x computes 4 x 4 of these numbers. They lie in the rows y, y + 16, y + 32 and y +
 * 48 of the block, and in the columns x, x + 16, x + 32 and x + 48. The block reads 64 x 16 numbers
 * of A and 16 x 64 of B at a time into shared memory. Numbers outside the matrices are 0 there.
 *
 * In shared memory, a row of A has room for 65 numbers. So the threads that write a column use
 * different banks of the memory, and do not wait for each other. The columns of C are in the grid's
 * dimension x, which takes 2^31 - 1 blocks; y takes only 65535. Rows can be cut into bands, but
 * columns cannot. */
#include "provider/kernel/cuda_product.h"

#include <assert.h>
#include <string.h>

/* Drivers since CUDA 9 take this version of PTX, and every device since 2014 has this target. */
#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"

#define ENTRY                                                                                      \
    ".visible .entry bourse_product(.param .u32 rows, .param .u32 inner, .param .u32 columns,\n"   \
    "                               .param .f32 alpha, .param .f32 beta,\n"                        \
    "                               .param .u64 a, .param .u64 b, .param .u64 c)\n"                \
    "{\n"                                                                                          \
    "    .reg .pred %p<4>, %row<4>, %column<5>, %scaled;\n"                                        \
    "    .reg .b32 %rows, %inner, %columns, %item, %x, %y, %first, %at, %depth, %k, %r<4>;\n"      \
    "    .reg .b32 %to_a, %to_b, %from_a, %from_b, %height<4>, %base;\n"                           \
    "    .reg .b64 %a, %b, %c, %a<4>, %b<4>, %step, %row_bytes, %rd<4>;\n"                         \
    "    .reg .f32 %alpha, %beta, %s<16>, %l<4>, %t<4>, %value, %old;\n"                           \
    "    .shared .align 4 .b8 part_a[4160];\n"                                                     \
    "    .shared .align 4 .b8 part_b[4096];\n"                                                     \
    "    ld.param.u32 %rows, [rows];\n"                                                            \
    "    ld.param.u32 %inner, [inner];\n"                                                          \
    "    ld.param.u32 %columns, [columns];\n"                                                      \
    "    ld.param.f32 %alpha, [alpha];\n"                                                          \
    "    ld.param.f32 %beta, [beta];\n"                                                            \
    "    ld.param.u64 %a, [a];\n"                                                                  \
    "    ld.param.u64 %b, [b];\n"                                                                  \
    "    ld.param.u64 %c, [c];\n"                                                                  \
    "    cvta.to.global.u64 %a, %a;\n"                                                             \
    "    cvta.to.global.u64 %b, %b;\n"                                                             \
    "    cvta.to.global.u64 %c, %c;\n"                                                             \
    "    mov.u32 %item, %tid.x;\n"                                                                 \
    "    and.b32 %x, %item, 15;\n"                                                                 \
    "    shr.u32 %y, %item, 4;\n"                                                                  \
    "    mov.u32 %first, %ctaid.y;\n"                                                              \
    "    shl.b32 %first, %first, 6;\n"                                                             \
    "    mov.u32 %at, %ctaid.x;\n"                                                                 \
    "    shl.b32 %at, %at, 6;\n"

/* Computes the thread's row of C, whether the matrix has this row, and the address in A from which
 * the thread reads. */
#define A_ROW(i)                                                                                   \
    "    add.u32 %height" #i ", %first, %y;\n"                                                     \
    "    add.u32 %height" #i ", %height" #i ", 16*" #i ";\n"                                       \
    "    setp.lt.u32 %row" #i ", %height" #i ", %rows;\n"                                          \
    "    mul.wide.u32 %a" #i ", %height" #i ", %inner;\n"                                          \
    "    cvt.u64.u32 %rd0, %x;\n"                                                                  \
    "    add.u64 %a" #i ", %a" #i ", %rd0;\n"                                                      \
    "    shl.b64 %a" #i ", %a" #i ", 2;\n"                                                         \
    "    add.u64 %a" #i ", %a, %a" #i ";\n"

/* Leaves the address in B of what the thread reads: its columns are %item % 64 of the block. */
#define B_ROW(i)                                                                                   \
    "    add.u32 %r0, %k, 4*" #i ";\n"                                                             \
    "    mul.wide.u32 %b" #i ", %r0, %columns;\n"                                                  \
    "    cvt.u64.u32 %rd0, %r1;\n"                                                                 \
    "    add.u64 %b" #i ", %b" #i ", %rd0;\n"                                                      \
    "    shl.b64 %b" #i ", %b" #i ", 2;\n"                                                         \
    "    add.u64 %b" #i ", %b, %b" #i ";\n"

/* The step is 16 rows of B. The place of a thread in the part of B is its number, because a row of
 * that part has 64 numbers. */
#define PLACES                                                                                     \
    A_ROW(0)                                                                                       \
    A_ROW(1)                                                                                       \
    A_ROW(2)                                                                                       \
    A_ROW(3)                                                                                       \
    "    shr.u32 %k, %item, 6;\n"                                                                  \
    "    and.b32 %r2, %item, 63;\n"                                                                \
    "    add.u32 %r1, %at, %r2;\n"                                                                 \
    "    setp.lt.u32 %column4, %r1, %columns;\n" B_ROW(0) B_ROW(1) B_ROW(2)                        \
        B_ROW(3) "    mul.wide.u32 %step, %columns, 64;\n"                                         \
                 "    mov.u32 %base, part_a;\n"                                                    \
                 "    mul.lo.u32 %r0, %x, 260;\n"                                                  \
                 "    add.u32 %to_a, %base, %r0;\n"                                                \
                 "    shl.b32 %r0, %y, 2;\n"                                                       \
                 "    add.u32 %to_a, %to_a, %r0;\n"                                                \
                 "    add.u32 %from_a, %base, %r0;\n"                                              \
                 "    mov.u32 %base, part_b;\n"                                                    \
                 "    shl.b32 %r0, %item, 2;\n"                                                    \
                 "    add.u32 %to_b, %base, %r0;\n"                                                \
                 "    shl.b32 %r0, %x, 2;\n"                                                       \
                 "    add.u32 %from_b, %base, %r0;\n"                                              \
                 "    mov.u32 %depth, 0;\n"

#define NONE(i) "    mov.f32 %s" #i ", 0f00000000;\n"
#define FOUR_NONE(i, j, k, l) NONE(i) NONE(j) NONE(k) NONE(l)
#define BEGIN                                                                                      \
    FOUR_NONE(0, 1, 2, 3)                                                                          \
    FOUR_NONE(4, 5, 6, 7)                                                                          \
    FOUR_NONE(8, 9, 10, 11)                                                                        \
    FOUR_NONE(12, 13, 14, 15)

#define READ_A(i)                                                                                  \
    "    mov.f32 %value, 0f00000000;\n"                                                            \
    "    and.pred %p1, %p0, %row" #i ";\n"                                                         \
    "    @%p1 ld.global.f32 %value, [%a" #i "];\n"                                                 \
    "    st.shared.f32 [%to_a+64*" #i "], %value;\n"                                               \
    "    add.u64 %a" #i ", %a" #i ", 64;\n"
#define READ_B(i)                                                                                  \
    "    mov.f32 %value, 0f00000000;\n"                                                            \
    "    add.u32 %r0, %k, 4*" #i ";\n"                                                             \
    "    add.u32 %r0, %r0, %depth;\n"                                                              \
    "    setp.lt.u32 %p1, %r0, %inner;\n"                                                          \
    "    and.pred %p1, %p1, %column4;\n"                                                           \
    "    @%p1 ld.global.f32 %value, [%b" #i "];\n"                                                 \
    "    st.shared.f32 [%to_b+1024*" #i "], %value;\n"                                             \
    "    add.u64 %b" #i ", %b" #i ", %step;\n"
#define READ                                                                                       \
    "    add.u32 %r0, %depth, %x;\n"                                                               \
    "    setp.lt.u32 %p0, %r0, %inner;\n" READ_A(0) READ_A(1) READ_A(2) READ_A(3) READ_B(0)        \
        READ_B(1) READ_B(2) READ_B(3)

#define ADD(sum, i, j) "    fma.rn.f32 %s" #sum ", %l" #i ", %t" #j ", %s" #sum ";\n"
#define STEP(k)                                                                                    \
    "    ld.shared.f32 %l0, [%from_a+260*" #k "];\n"                                               \
    "    ld.shared.f32 %l1, [%from_a+260*" #k "+64];\n"                                            \
    "    ld.shared.f32 %l2, [%from_a+260*" #k "+128];\n"                                           \
    "    ld.shared.f32 %l3, [%from_a+260*" #k "+192];\n"                                           \
    "    ld.shared.f32 %t0, [%from_b+256*" #k "];\n"                                               \
    "    ld.shared.f32 %t1, [%from_b+256*" #k "+64];\n"                                            \
    "    ld.shared.f32 %t2, [%from_b+256*" #k "+128];\n"                                           \
    "    ld.shared.f32 %t3, [%from_b+256*" #k "+192];\n" ADD(0, 0, 0) ADD(1, 0, 1) ADD(2, 0, 2)    \
        ADD(3, 0, 3) ADD(4, 1, 0) ADD(5, 1, 1) ADD(6, 1, 2) ADD(7, 1, 3) ADD(8, 2, 0) ADD(9, 2, 1) \
            ADD(10, 2, 2) ADD(11, 2, 3) ADD(12, 3, 0) ADD(13, 3, 1) ADD(14, 3, 2) ADD(15, 3, 3)

#define AGAIN                                                                                      \
    "    bar.sync 0;\n"                                                                            \
    "    add.u32 %depth, %depth, 16;\n"                                                            \
    "    setp.lt.u32 %p0, %depth, %inner;\n"                                                       \
    "    @%p0 bra again;\n"

#define COLUMN(j)                                                                                  \
    "    add.u32 %r0, %r1, 16*" #j ";\n"                                                           \
    "    setp.lt.u32 %column" #j ", %r0, %columns;\n"
/* C is read only when beta is not 0. */
#define CELL(sum, i, j)                                                                            \
    "    mul.f32 %value, %alpha, %s" #sum ";\n"                                                    \
    "    and.pred %p1, %row" #i ", %column" #j ";\n"                                               \
    "    and.pred %p2, %p1, %scaled;\n"                                                            \
    "    mov.f32 %old, 0f00000000;\n"                                                              \
    "    @%p2 ld.global.f32 %old, [%rd0+64*" #j "];\n"                                             \
    "    @%p2 fma.rn.f32 %value, %beta, %old, %value;\n"                                           \
    "    @%p1 st.global.f32 [%rd0+64*" #j "], %value;\n"
#define ROW(i, s0, s1, s2, s3)                                                                     \
    "    mul.wide.u32 %rd0, %height" #i ", %columns;\n"                                            \
    "    add.u64 %rd0, %rd0, %rd1;\n"                                                              \
    "    shl.b64 %rd0, %rd0, 2;\n"                                                                 \
    "    add.u64 %rd0, %c, %rd0;\n" CELL(s0, i, 0) CELL(s1, i, 1) CELL(s2, i, 2) CELL(s3, i, 3)
#define COLUMNS                                                                                    \
    "    add.u32 %r1, %at, %x;\n"                                                                  \
    "    cvt.u64.u32 %rd1, %r1;\n"                                                                 \
    "    setp.neu.f32 %scaled, %beta, 0f00000000;\n" COLUMN(0) COLUMN(1) COLUMN(2) COLUMN(3)

/* The text comes in parts, because C compilers need not take a string of more than 4095 bytes. */
static const char *const parts[] = {HEAD ENTRY,
                                    PLACES,
                                    BEGIN,
                                    "again:\n" READ "    bar.sync 0;\n",
                                    STEP(0),
                                    STEP(1),
                                    STEP(2),
                                    STEP(3),
                                    STEP(4),
                                    STEP(5),
                                    STEP(6),
                                    STEP(7),
                                    STEP(8),
                                    STEP(9),
                                    STEP(10),
                                    STEP(11),
                                    STEP(12),
                                    STEP(13),
                                    STEP(14),
                                    STEP(15),
                                    AGAIN,
                                    COLUMNS,
                                    ROW(0, 0, 1, 2, 3),
                                    ROW(1, 4, 5, 6, 7),
                                    ROW(2, 8, 9, 10, 11),
                                    ROW(3, 12, 13, 14, 15),
                                    "    ret;\n}\n"};
enum { PARTS = sizeof parts / sizeof parts[0], SOURCE_BYTES = 32768 };

struct kernel_product cuda_product(void)
{
    static char source[SOURCE_BYTES];
    size_t length = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const size_t size = strlen(parts[i]);
        assert(length + size < SOURCE_BYTES);
        memcpy(source + length, parts[i], size + 1);
        length += size;
    }
    return (struct kernel_product){.source = source,
                                   .entry = "bourse_product",
                                   .options = "",
                                   .rows = 64,
                                   .columns = 64,
                                   .group = {256, 1},
                                   .row_dimension = 1};
}
