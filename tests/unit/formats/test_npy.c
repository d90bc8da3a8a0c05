/* Headers of .npy files: those that NumPy writes, byte for byte, and those that lie. */
#include "formats/npy.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct file {
    uint8_t *bytes;
    size_t length;
};

/* A file with this text as its header (version 1, no padding) and so many bytes of data. */
static struct file file_of(const char *text, size_t data_bytes)
{
    size_t length = strlen(text);
    struct file file = {.length = 10 + length + data_bytes};
    file.bytes = calloc(1, file.length);
    ck_assert_ptr_nonnull(file.bytes);
    memcpy(file.bytes, "\x93NUMPY\x01", 8);
    file.bytes[8] = (uint8_t)(length & 0xff);
    file.bytes[9] = (uint8_t)(length >> 8);
    memcpy(file.bytes + 10, text, length);
    return file;
}

static bool read_text(const char *text, size_t data_bytes, struct npy *ret_npy,
                      struct problem *ret_problem)
{
    struct file file = file_of(text, data_bytes);
    bool good = npy_read(file.bytes, file.length, file.length, ret_npy, ret_problem);
    free(file.bytes);
    return good;
}

START_TEST(files_that_numpy_writes_are_read)
{
    static const struct {
        const char *name, *type, *refusal; /* as a matrix; NULL: it is one */
        uint32_t dimensions;
        uint64_t shape[NPY_DIMENSIONS];
        uint64_t bytes;
    } files[] = {
        {"float32-2x3", "float32", NULL, 2, {2, 3}, 24},
        {"version-2", "float32", NULL, 2, {2, 3}, 24},
        {"version-3", "float32", NULL, 2, {2, 3}, 24},
        {"python-2", "float32", NULL, 2, {2, 3}, 24},
        {"empty-0x5", "float32", NULL, 2, {0, 5}, 0},
        {"int64-4", "int64", "the elements are int64", 1, {4}, 32},
        {"scalar", "float64", "the elements are float64", 0, {0}, 8},
        {"fortran-2x3", "float32", "Fortran order", 2, {2, 3}, 24},
        {"big-endian",
         "float32, big-endian",
         "the elements are float32, big-endian",
         2,
         {2, 3},
         24},
        {"complex64-2x2x2", "complex64", "the elements are complex64", 3, {2, 2, 2}, 64},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[256];
        char type[NPY_TYPE_SIZE];
        struct file file = {NULL, 0};
        struct npy npy;
        struct problem problem = {""};
        (void)snprintf(path, sizeof path, "%s/tests/golden/npy/%s.npy", BOURSE_SOURCE_DIR,
                       files[i].name);
        ck_assert_msg(file_read(path, 4096, &file.bytes, &file.length, &problem), "%s",
                      problem.text);
        ck_assert_msg(npy_read(file.bytes, file.length, file.length, &npy, &problem), "%s: %s",
                      files[i].name, problem.text);
        free(file.bytes);
        ck_assert_uint_eq(npy.dimension_count, files[i].dimensions);
        ck_assert_mem_eq(npy.shape, files[i].shape, sizeof npy.shape);
        ck_assert_uint_eq(npy.data_bytes, files[i].bytes);
        ck_assert_uint_eq(npy.data_offset + npy.data_bytes, file.length);
        npy_type_text(&npy, type);
        ck_assert_str_eq(type, files[i].type);
        ck_assert_int_eq(npy_is_matrix(&npy, &problem), files[i].refusal == NULL);
        ck_assert_msg(files[i].refusal == NULL || strstr(problem.text, files[i].refusal) != NULL,
                      "%s: %s", files[i].name, problem.text);
    }
}
END_TEST

START_TEST(a_matrix_is_written_as_numpy_writes_it)
{
    char path[256];
    struct file file = {NULL, 0};
    struct problem problem = {""};
    uint8_t header[NPY_MATRIX_BYTES];
    (void)snprintf(path, sizeof path, "%s/tests/golden/npy/float32-2x3.npy", BOURSE_SOURCE_DIR);
    ck_assert(file_read(path, 4096, &file.bytes, &file.length, &problem));
    npy_write_matrix(2, 3, header);
    ck_assert_uint_eq(file.length, sizeof header + 24);
    ck_assert_mem_eq(header, file.bytes, sizeof header);
    free(file.bytes);

    struct npy npy;
    uint64_t side = UINT64_C(1) << 40; /* even the widest numbers fit */
    npy_write_matrix(0, INT64_MAX, header);
    ck_assert(npy_read(header, sizeof header, sizeof header, &npy, &problem));
    ck_assert_uint_eq(npy.shape[1], INT64_MAX);
    npy_write_matrix(side, side, header);
    ck_assert(!npy_read(header, sizeof header, sizeof header, &npy, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "makes more than"));
}
END_TEST

/* The files of the golden folder are of an older NumPy. Newer ones pad the text further. */
START_TEST(any_array_is_written_as_numpy_writes_it)
{
    static const char *const names[] = {"float32-2x3", "empty-0x5", "int64-4", "scalar",
                                        "complex64-2x2x2"};
    struct problem problem = {""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        struct file file = {NULL, 0};
        struct npy npy;
        uint8_t header[NPY_HEADER_MOST];
        (void)snprintf(path, sizeof path, "%s/tests/golden/npy/%s.npy", BOURSE_SOURCE_DIR,
                       names[i]);
        ck_assert(file_read(path, 4096, &file.bytes, &file.length, &problem));
        ck_assert(npy_read(file.bytes, file.length, file.length, &npy, &problem));
        ck_assert_uint_eq(npy_write(&npy, header), npy.data_offset);
        ck_assert_msg(memcmp(header, file.bytes, npy.data_offset) == 0, "%s", names[i]);
        free(file.bytes);
    }
}
END_TEST

START_TEST(the_longest_header_is_read_again)
{
    struct npy npy = {.kind = 'b', .item_bytes = 1, .dimension_count = NPY_DIMENSIONS};
    struct npy again;
    struct problem problem = {""};
    uint8_t header[NPY_HEADER_MOST];
    for (size_t i = 0; i < NPY_DIMENSIONS; i++) {
        npy.shape[i] = i == 3 ? 0 : INT64_MAX;
    }
    const size_t length = npy_write(&npy, header);
    ck_assert_uint_eq(length % 64, 0);
    ck_assert_msg(npy_read(header, length, length, &again, &problem), "%s", problem.text);
    ck_assert_mem_eq(again.shape, npy.shape, sizeof npy.shape);
    ck_assert(again.kind == 'b' && again.item_bytes == 1 && !again.is_fortran);
    ck_assert_ptr_nonnull(strstr((const char *)header + 10, "'descr': '|b1'"));
}
END_TEST

START_TEST(any_order_quotes_and_spaces_are_taken)
{
    static const char *const texts[] = {
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "{\"shape\": ( 2 , 3, ), \"descr\": \"<f4\", \"fortran_order\": False}   \n",
        " { 'fortran_order' : False , 'shape' : (2, 3) , 'descr' : '<f4' , } \t\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct npy npy;
        struct problem problem = {""};
        ck_assert_msg(read_text(texts[i], 24, &npy, &problem), "%s: %s", texts[i], problem.text);
        ck_assert_uint_eq(npy.element_count, 6);
        ck_assert(!npy.is_fortran);
    }
}
END_TEST

START_TEST(hostile_headers_are_refused_in_words)
{
#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define TYPE(type) "{'descr': " type ", 'fortran_order': False, 'shape': (2,)}"
    static const struct {
        const char *text;
        size_t data_bytes;
        const char *says;
    } wrong[] = {
        {HEAD "(9223372036854775808,)}", 0, "a dimension is larger than 9223372036854775807"},
        {HEAD "(99999999999999999999999,)}", 0, "a dimension is larger than"},
        {HEAD "(4294967296, 4294967296)}", 0, "the shape makes more than 9223372036854775807"},
        {HEAD "(9223372036854775807,)}", 8, "the shape makes more than"},
        {HEAD "(1099511627776,)}", 8, "the file is cut off: the header says 4398046511104 bytes"},
        {HEAD "(2, 3)}", 23, "says 24 bytes of data, and there are 23; copy or save it again"},
        {HEAD "(2, 3)}", 25, "says 24 bytes of data, and there are 25; save one array per file"},
        {HEAD "(1, 1, 1, 1, 1, 1, 1, 1, 1)}", 4, "more than 8 dimensions"},
        {HEAD "(-1,)}", 0, "a dimension is negative"},
        {HEAD "(2 3)}", 24, "the shape is no tuple"},
        {HEAD "(6)}", 24, "the shape is no tuple"},
        {HEAD "[6]}", 24, "the shape is no tuple"},
        {HEAD "(x,)}", 24, "a dimension is no number"},
        {HEAD "(,)}", 24, "a dimension is no number"},
        {HEAD "(2,", 8, "a dimension is no number"},
        {HEAD "(2,)} x", 8, "something follows"},
        {HEAD "(2,), 'shape': (2,)}", 8, "a key is unknown, or stands there twice"},
        {HEAD "(2,), 'other': 1}", 8, "a key is unknown, or stands there twice"},
        {HEAD "(2,) 'x': 1}", 8, "a comma is missing"},
        {"{'descr': '<f4', 'shape': (2,)}", 8, "fortran_order or shape is missing"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, "neither True nor False"},
        {"{'descr' '<f4'}", 8, "a colon is missing"},
        {"{'descr: 1}", 8, "a quote is not closed"},
        {"{'des\\x63r': 1}", 8, "too long or escaped"},
        {"{'a text that is far longer than any key or type of this format may ever be'}", 8,
         "too long or escaped"},
        {"", 8, "there is no dictionary"},
        {"exec('rm')", 8, "there is no dictionary"},
        {TYPE("'|O'"), 16, "the file holds Python objects, which are never read"},
        {TYPE("[('a', '<f4'), ('b', '<i4')]"), 16, "the file holds records"},
        {TYPE("'<U5'"), 40, "of type '<U5', which are no numbers"},
        {TYPE("'<f3'"), 6, "of type '<f3'"},
        {TYPE("'|f4'"), 8, "of type '|f4'"},
        {TYPE("'<f999999'"), 8, "of type '<f999999'"},
        {TYPE("'<f'"), 8, "of type '<f'"},
        {TYPE("'<'"), 8, "of type '<'"},
        {TYPE("''"), 8, "of type ''"},
        {TYPE("'\x1b[2J'"), 8, "of type '?[2J'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct npy npy = {.kind = 'x'};
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i].text, wrong[i].data_bytes, &npy, &problem), "%s",
                      wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s: %s", wrong[i].text,
                      problem.text);
        ck_assert_int_eq(npy.kind, 'x'); /* a failed call writes nothing */
    }
}
END_TEST

START_TEST(a_type_does_not_end_at_a_nul)
{
    static const char *const texts[] = {
        "{'descr': '<f4~', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4~i8', 'fortran_order': False, 'shape': (2,)}",
        "{'descr~': '<f4', 'fortran_order': False, 'shape': (2,)}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct npy npy;
        struct problem problem = {""};
        struct file file = file_of(texts[i], 8);
        *(char *)memchr(file.bytes, '~', file.length) = '\0';
        ck_assert(!npy_read(file.bytes, file.length, file.length, &npy, &problem));
        ck_assert_msg(strstr(problem.text, "holds a NUL") != NULL, "%s", problem.text);
        free(file.bytes);
    }
}
END_TEST

START_TEST(files_of_another_kind_are_refused_in_words)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *says;
    } wrong[] = {
        {"", 0, "the file is no .npy file"},
        {"1 2 3\n", 6, "the file is no .npy file"},
        {"PK\x03\x04more", 8, "an archive (.npz)"},
        {"\x93NUM", 4, "cut off in its header"},
        {"\x93NUMPY\x01\x00\x10", 9, "cut off in its header"},
        {"\x93NUMPY\x01\x00\x10\x00{", 11, "cut off in its header"},
        {"\x93NUMPY\x02\x00\x10\x00\x00", 11, "cut off in its header"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14, "said to take 4294967295 bytes; at most 65536"},
        {"\x93NUMPY\x04\x00\x01\x00\x00\x00{", 13, "of version 4.0"},
        {"\x93NUMPY\x01\x07\x01\x00{}", 12, "of version 1.7"},
        {"\x93NUMPY\x00\x00\x01\x00{}", 12, "of version 0.0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct npy npy;
        struct problem problem = {""};
        ck_assert(!npy_read((const uint8_t *)wrong[i].bytes, wrong[i].length, wrong[i].length, &npy,
                            &problem));
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%zu: %s", i, problem.text);
    }
}
END_TEST

START_TEST(the_front_of_a_large_file_is_enough)
{
    struct file file = file_of(HEAD "(1000000, 1000)}", NPY_PREFIX_BYTES);
    struct npy npy;
    struct problem problem = {""};
    uint64_t whole = file.length - NPY_PREFIX_BYTES + UINT64_C(4000000000);
    ck_assert_msg(npy_read(file.bytes, file.length, whole, &npy, &problem), "%s", problem.text);
    ck_assert_uint_eq(npy.data_bytes, UINT64_C(4000000000));
    ck_assert(!npy_read(file.bytes, file.length, whole - 1, &npy, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "and there are 3999999999"));
    free(file.bytes);
}
END_TEST

START_TEST(data_at_an_odd_place_is_no_matrix)
{
    struct npy npy;
    struct problem problem = {""};
    ck_assert(read_text("{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 24, &npy, &problem));
    ck_assert_uint_eq(npy.data_offset, 61);
    ck_assert(!npy_is_matrix(&npy, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "begins at byte 61"));
}
END_TEST

SUITE("npy", NULL, NULL, TEST(files_that_numpy_writes_are_read),
      TEST(a_matrix_is_written_as_numpy_writes_it), TEST(any_array_is_written_as_numpy_writes_it),
      TEST(the_longest_header_is_read_again), TEST(any_order_quotes_and_spaces_are_taken),
      TEST(hostile_headers_are_refused_in_words), TEST(a_type_does_not_end_at_a_nul),
      TEST(files_of_another_kind_are_refused_in_words), TEST(the_front_of_a_large_file_is_enough),
      TEST(data_at_an_odd_place_is_no_matrix))
