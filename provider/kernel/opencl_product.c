#include "provider/kernel/opencl_product.h"

/* The results are the same on a device without a fused multiplication, but for rounding. */
#define HEAD                                                                                       \
    "#ifdef FP_FAST_FMAF\n"                                                                        \
    "#define FMA(a, b, c) fma(a, b, c)\n"                                                          \
    "#else\n"                                                                                      \
    "#define FMA(a, b, c) ((a) * (b) + (c))\n"                                                     \
    "#endif\n"

/* A work-item computes BLOCKS blocks of C one below another. A block has ROWS x 2 vectors. Their
 * sums stay in registers for DEPTH rows of B, and wait in memory for the next DEPTH rows. These
 * rows of B are copied first, side by side. Otherwise rows whose length is a power of two would
 * drive each other out of the cache. Rows below the last row are computed as copies of the last
 * row, and not stored. The last columns are computed together with some columns before them, so
 * that the vectors are full; each work-item stores only its own columns. When a matrix has fewer
 * columns than a block, its numbers are computed one by one. */
static const char cores_source[] = HEAD
    "#define JOIN(a, b) a##b\n"
    "#define NAME(a, b) JOIN(a, b)\n"
    "#define VECTOR NAME(float, LANES)\n"
    "#define LOAD NAME(vload, LANES)\n"
    "#define STORE NAME(vstore, LANES)\n"
    "#define COLUMNS (2 * LANES)\n"
    "#define BLOCKS 8\n"
    "#define DEPTH 128\n"
    "void one_by_one(uint first, uint rows, uint inner, uint columns, float alpha, float beta,\n"
    "                global const float *a, global const float *b, global float *c)\n"
    "{\n"
    "    for (uint row = first; row < rows && row < first + BLOCKS * ROWS; row++) {\n"
    "        for (uint column = 0; column < columns; column++) {\n"
    "            float sum = 0;\n"
    "            for (uint k = 0; k < inner; k++) {\n"
    "                sum = FMA(a[(ulong)row * inner + k], b[(ulong)k * columns + column], sum);\n"
    "            }\n"
    "            global float *cell = c + (ulong)row * columns + column;\n"
    "            *cell = beta == 0 ? alpha * sum : FMA(alpha, sum, beta * *cell);\n"
    "        }\n"
    "    }\n"
    "}\n"
    "kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
    "void bourse_product(uint rows, uint inner, uint columns, float alpha, float beta,\n"
    "                    global const float *a, global const float *b, global float *c)\n"
    "{\n"
    "    local float part[DEPTH * COLUMNS];\n"
    "    local float total[BLOCKS * ROWS * COLUMNS];\n"
    "    const uint top = get_group_id(0) * BLOCKS * ROWS;\n"
    "    const uint own = get_group_id(1) * COLUMNS;\n"
    "    if (columns < COLUMNS) {\n"
    "        one_by_one(top, rows, inner, columns, alpha, beta, a, b, c);\n"
    "        return;\n"
    "    }\n"
    "    const uint column = min(own, columns - COLUMNS);\n"
    "    const uint end = min(rows, top + BLOCKS * ROWS);\n"
    "    for (uint depth = 0; depth < inner; depth += DEPTH) {\n"
    "        const uint length = min((uint)DEPTH, inner - depth);\n"
    "        global const float *other = b + (ulong)depth * columns + column;\n"
    "        for (uint k = 0; k < length; k++, other += columns) {\n"
    "            STORE(LOAD(0, other), 2 * k, part);\n"
    "            STORE(LOAD(1, other), 2 * k + 1, part);\n"
    "        }\n"
    "        for (uint first = top; first < end; first += ROWS) {\n"
    "            local float *kept = total + (first - top) * COLUMNS;\n"
    "            global const float *from[ROWS];\n"
    "            VECTOR sum[ROWS][2];\n"
    "            #pragma unroll\n"
    "            for (uint i = 0; i < ROWS; i++) {\n"
    "                from[i] = a + (ulong)min(first + i, rows - 1) * inner + depth;\n"
    "                sum[i][0] = depth == 0 ? (VECTOR)(0) : LOAD(2 * i, kept);\n"
    "                sum[i][1] = depth == 0 ? (VECTOR)(0) : LOAD(2 * i + 1, kept);\n"
    "            }\n"
    "            for (uint k = 0; k < length; k++) {\n"
    "                const VECTOR left = LOAD(2 * k, part);\n"
    "                const VECTOR right = LOAD(2 * k + 1, part);\n"
    "                #pragma unroll\n"
    "                for (uint i = 0; i < ROWS; i++) {\n"
    "                    const VECTOR factor = (VECTOR)(from[i][k]);\n"
    "                    sum[i][0] = FMA(factor, left, sum[i][0]);\n"
    "                    sum[i][1] = FMA(factor, right, sum[i][1]);\n"
    "                }\n"
    "            }\n"
    "            #pragma unroll\n"
    "            for (uint i = 0; i < ROWS; i++) {\n"
    "                STORE(sum[i][0], 2 * i, kept);\n"
    "                STORE(sum[i][1], 2 * i + 1, kept);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    for (uint row = top; row < end; row++) {\n"
    "        local const float *kept = total + (row - top) * COLUMNS;\n"
    "        global float *to = c + (ulong)row * columns + column;\n"
    "        for (uint j = own - column; j < COLUMNS; j++) {\n"
    "            to[j] = beta == 0 ? alpha * kept[j] : FMA(beta, to[j], alpha * kept[j]);\n"
    "        }\n"
    "    }\n"
    "}\n";

/* A group computes 64 x 64 numbers of C, and each work-item 4 x 4 of them, 16 apart. The group
 * reads 64 x 16 numbers of A and 16 x 64 of B at a time. Numbers outside the matrices are 0. */
static const char groups_source[] =
    HEAD "#define TILE 64\n"
         "#define DEPTH 16\n"
         "kernel __attribute__((reqd_work_group_size(256, 1, 1)))\n"
         "void bourse_product(uint rows, uint inner, uint columns, float alpha, float beta,\n"
         "                    global const float *a, global const float *b, global float *c)\n"
         "{\n"
         "    local float part_a[DEPTH][TILE + 1];\n"
         "    local float part_b[DEPTH][TILE];\n"
         "    const uint item = get_local_id(0);\n"
         "    const uint x = item % 16;\n"
         "    const uint y = item / 16;\n"
         "    const uint first = get_group_id(0) * TILE;\n"
         "    const uint column = get_group_id(1) * TILE;\n"
         "    float sum[4][4];\n"
         "    for (uint i = 0; i < 4; i++) {\n"
         "        for (uint j = 0; j < 4; j++) {\n"
         "            sum[i][j] = 0;\n"
         "        }\n"
         "    }\n"
         "    for (uint depth = 0; depth < inner; depth += DEPTH) {\n"
         "        for (uint i = item; i < TILE * DEPTH; i += 256) {\n"
         "            const uint row = first + i / DEPTH;\n"
         "            const uint k = depth + i % DEPTH;\n"
         "            part_a[i % DEPTH][i / DEPTH] =\n"
         "                row < rows && k < inner ? a[(ulong)row * inner + k] : 0;\n"
         "        }\n"
         "        for (uint i = item; i < TILE * DEPTH; i += 256) {\n"
         "            const uint k = depth + i / TILE;\n"
         "            const uint at = column + i % TILE;\n"
         "            part_b[i / TILE][i % TILE] =\n"
         "                k < inner && at < columns ? b[(ulong)k * columns + at] : 0;\n"
         "        }\n"
         "        barrier(CLK_LOCAL_MEM_FENCE);\n"
         "        for (uint k = 0; k < DEPTH; k++) {\n"
         "            float left[4];\n"
         "            float right[4];\n"
         "            for (uint i = 0; i < 4; i++) {\n"
         "                left[i] = part_a[k][y + 16 * i];\n"
         "                right[i] = part_b[k][x + 16 * i];\n"
         "            }\n"
         "            for (uint i = 0; i < 4; i++) {\n"
         "                for (uint j = 0; j < 4; j++) {\n"
         "                    sum[i][j] = FMA(left[i], right[j], sum[i][j]);\n"
         "                }\n"
         "            }\n"
         "        }\n"
         "        barrier(CLK_LOCAL_MEM_FENCE);\n"
         "    }\n"
         "    for (uint i = 0; i < 4; i++) {\n"
         "        for (uint j = 0; j < 4; j++) {\n"
         "            const uint row = first + y + 16 * i;\n"
         "            const uint at = column + x + 16 * j;\n"
         "            if (row < rows && at < columns) {\n"
         "                global float *cell = c + (ulong)row * columns + at;\n"
         "                *cell = beta == 0 ? alpha * sum[i][j]\n"
         "                                  : FMA(alpha, sum[i][j], beta * *cell);\n"
         "            }\n"
         "        }\n"
         "    }\n"
         "}\n";

struct kernel_product opencl_product_of_cores(uint32_t lanes)
{
    static const char entry[] = "bourse_product";
    /* Wide vectors come with 32 registers, and narrow ones with 16. */
    if (lanes >= 16) {
        return (struct kernel_product){.source = cores_source,
                                       .entry = entry,
                                       .options = "-D LANES=16 -D ROWS=8",
                                       .rows = 64,
                                       .columns = 32,
                                       .group = {1, 1}};
    }
    if (lanes == 8) {
        return (struct kernel_product){.source = cores_source,
                                       .entry = entry,
                                       .options = "-D LANES=8 -D ROWS=6",
                                       .rows = 48,
                                       .columns = 16,
                                       .group = {1, 1}};
    }
    return (struct kernel_product){.source = cores_source,
                                   .entry = entry,
                                   .options = "-D LANES=4 -D ROWS=6",
                                   .rows = 48,
                                   .columns = 8,
                                   .group = {1, 1}};
}

struct kernel_product opencl_product_of_groups(void)
{
    return (struct kernel_product){.source = groups_source,
                                   .entry = "bourse_product",
                                   .options = "",
                                   .rows = 64,
                                   .columns = 64,
                                   .group = {256, 1}};
}
