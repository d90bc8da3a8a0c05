/* The program onnx-blocks writes a model like a transformer, for tests of stages.
 *
 *     onnx-blocks BLOCKS WIDTH ROWS     into the current folder: model.onnx, its weights in
 *                                       weights.bin, an input in i0.npy, and `words` as onnx-cases
 *                                       reads them
 *
 * A block is attention over the words of a row, and two products, each with its sum and its
 * normalisation. The input has ROWS rows of eight words of WIDTH numbers. */
#include "formats/npy.h"
#include "tests/support/onnx_writer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, NAME_SIZE = 64, INPUTS_SIZE = 4 * NAME_SIZE };

static bool write_file(const char *name, const void *head, size_t head_size, const void *bytes,
                       size_t size)
{
    FILE *file = fopen(name, "we");
    return file != NULL && fwrite(head, 1, head_size, file) == head_size &&
           fwrite(bytes, 1, size, file) == size && fclose(file) == 0;
}

/* Numbers between -1 and 1, the same each time. */
static float *random_numbers(size_t count, float scale)
{
    float *numbers = calloc(count + 1, sizeof *numbers);
    uint64_t dice = 88172645463325252U;
    for (size_t i = 0; numbers != NULL && i < count; i++) {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        numbers[i] = scale * ((float)(dice >> 40) / 8388608 - 1);
    }
    return numbers;
}

struct block {
    struct onnx_writer *writer;
    unsigned number, width;
};

/* Names a value of the block, in a ring of names. */
static const char *named(const struct block *block, const char *word)
{
    static char names[8][NAME_SIZE];
    static size_t at;
    at = (at + 1) % 8;
    (void)snprintf(names[at], NAME_SIZE, "b%u.%s", block->number, word);
    return names[at];
}

static void add(const struct block *block, const char *operator, const char * a, const char *b,
                const char *to)
{
    char inputs[INPUTS_SIZE];
    (void)snprintf(inputs, sizeof inputs, "%s %s", a, b);
    onnx_write_node(block->writer, operator, inputs, named(block, to));
}

static void add_product(const struct block *block, const char *from, const char *weights,
                        const char *to)
{
    char dims[32];
    (void)snprintf(dims, sizeof dims, "%u,%u", block->width, block->width);
    onnx_write_weights(block->writer, named(block, weights), dims);
    add(block, "MatMul", from, named(block, weights), to);
}

static void add_norm(const struct block *block, const char *from, const char *scale, const char *to)
{
    char dims[32];
    (void)snprintf(dims, sizeof dims, "%u", block->width);
    onnx_write_weights(block->writer, named(block, scale), dims);
    add(block, "LayerNormalization", from, named(block, scale), to);
}

/* Writes a block behind the value `from`. Returns the name of what it makes. */
static const char *add_block(const struct block *block, const char *from)
{
    add_product(block, from, "wq", "q");
    add_product(block, from, "wk", "k");
    add_product(block, from, "wv", "v");
    onnx_begin_node(block->writer, "Transpose", named(block, "k"), named(block, "kt"));
    onnx_node_integers(block->writer, "perm", "0,2,1");
    onnx_end_node(block->writer);
    add(block, "MatMul", named(block, "q"), named(block, "kt"), "scores");
    onnx_write_node(block->writer, "Softmax", named(block, "scores"), named(block, "weights"));
    add(block, "MatMul", named(block, "weights"), named(block, "v"), "attended");
    add(block, "Add", from, named(block, "attended"), "sum");
    add_norm(block, named(block, "sum"), "g1", "middle");
    add_product(block, named(block, "middle"), "w1", "wide");
    onnx_write_node(block->writer, "Relu", named(block, "wide"), named(block, "relu"));
    add_product(block, named(block, "relu"), "w2", "narrow");
    add(block, "Add", named(block, "middle"), named(block, "narrow"), "total");
    add_norm(block, named(block, "total"), "g2", "out");
    return named(block, "out");
}

static bool write_model(unsigned blocks, unsigned width)
{
    struct onnx_writer writer = {.opset = 17};
    struct block block = {.writer = &writer, .width = width};
    char dims[64];
    char from[NAME_SIZE] = "x";
    (void)snprintf(dims, sizeof dims, "rows,%d,%u", WORDS, width);
    onnx_write_input(&writer, "x", WRITER_FLOAT, dims);
    for (block.number = 1; block.number <= blocks; block.number++) {
        (void)snprintf(from, sizeof from, "%s", add_block(&block, from));
    }
    onnx_write_output(&writer, from, WRITER_FLOAT, dims);
    const size_t weights = (size_t)writer.offset;
    float *numbers = random_numbers(weights / sizeof(float), 0.2F);
    struct onnx_bytes model = onnx_write_end(&writer);
    char words[2 * NAME_SIZE];
    const int length = snprintf(words, sizeof words, "i x=i0.npy\no %s=o0.npy\n", from);
    const bool good = numbers != NULL && write_file("model.onnx", "", 0, model.at, model.size) &&
                      write_file("weights.bin", "", 0, numbers, weights) &&
                      write_file("words", "", 0, words, (size_t)length);
    free(numbers);
    onnx_bytes_fini(&model);
    return good;
}

static bool write_input(unsigned width, unsigned rows)
{
    const struct npy npy = {.kind = 'f',
                            .item_bytes = sizeof(float),
                            .dimension_count = 3,
                            .shape = {rows, WORDS, width}};
    uint8_t header[NPY_HEADER_MOST];
    const size_t length = npy_write(&npy, header);
    const size_t count = (size_t)rows * WORDS * width;
    float *numbers = random_numbers(count, 1);
    const bool good =
        numbers != NULL && write_file("i0.npy", header, length, numbers, count * sizeof(float));
    free(numbers);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fputs("usage: onnx-blocks BLOCKS WIDTH ROWS\n", stderr);
        return 2;
    }
    const unsigned width = (unsigned)strtoul(argv[2], NULL, 10);
    return write_model((unsigned)strtoul(argv[1], NULL, 10), width) &&
                   write_input(width, (unsigned)strtoul(argv[3], NULL, 10))
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
