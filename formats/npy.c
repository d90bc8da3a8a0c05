#include "formats/npy.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MAGIC_BYTES = 6, VERSION_BYTES = 8, WORD_SIZE = 64 };

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

static const char magic[MAGIC_BYTES] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* ---------------------------------------------------------------- the text: a Python dictionary */

struct scan {
    const char *at, *end;
    struct problem *problem;
};

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t')) {
        scan->at++;
    }
}

static bool take(struct scan *scan, char wanted)
{
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == wanted) {
        scan->at++;
        return true;
    }
    return false;
}

static bool malformed(const struct scan *scan, const char *what)
{
    return REFUSE(scan->problem, "the header is damaged: %s; save the array again with np.save",
                  what);
}

/* Reads a quoted text without escapes. */
static bool read_word(struct scan *scan, char ret_word[WORD_SIZE])
{
    char quote = take(scan, '\'') ? '\'' : take(scan, '"') ? '"' : '\0';
    if (quote == '\0') {
        return malformed(scan, "a quoted text is missing");
    }
    size_t length = 0;
    while (scan->at < scan->end && *scan->at != quote) {
        if (length + 1 == WORD_SIZE || *scan->at == '\\') {
            return malformed(scan, "a text is too long or escaped");
        }
        if (*scan->at == '\0') {
            return malformed(scan, "a text holds a NUL");
        }
        ret_word[length++] = *scan->at++;
    }
    if (!take(scan, quote)) {
        return malformed(scan, "a quote is not closed");
    }
    ret_word[length] = '\0';
    return true;
}

static bool is_digit(const struct scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static bool read_dimension(struct scan *scan, uint64_t *ret_dimension)
{
    uint64_t value = 0;
    if (scan->at < scan->end && *scan->at == '-') {
        return malformed(scan, "a dimension is negative");
    }
    if (!is_digit(scan)) {
        return malformed(scan, "a dimension is no number");
    }
    while (is_digit(scan)) {
        uint64_t digit = (uint64_t)(*scan->at++ - '0');
        if (value > ((uint64_t)INT64_MAX - digit) / 10) {
            return REFUSE(scan->problem,
                          "a dimension is larger than %" PRId64
                          "; save the array again with np.save",
                          INT64_MAX);
        }
        value = 10 * value + digit;
    }
    if (scan->at < scan->end && *scan->at == 'L') {
        scan->at++; /* Python 2 writes this suffix */
    }
    *ret_dimension = value;
    return true;
}

static bool read_shape(struct scan *scan, struct npy *npy)
{
    if (!take(scan, '(')) {
        return malformed(scan, "the shape is no tuple");
    }
    bool comma = true;
    while (!take(scan, ')')) {
        if (!comma) {
            return malformed(scan, "the shape is no tuple");
        }
        if (npy->dimension_count == NPY_DIMENSIONS) {
            return REFUSE(
                scan->problem,
                "the file has more than %d dimensions; reshape it to 2, as in array.reshape(1, -1)",
                NPY_DIMENSIONS);
        }
        if (!read_dimension(scan, &npy->shape[npy->dimension_count])) {
            return false;
        }
        npy->dimension_count++;
        comma = take(scan, ',');
    }
    if (npy->dimension_count == 1 && !comma) {
        return malformed(scan, "the shape is no tuple"); /* Python reads (3) as a number */
    }
    return true;
}

static bool known_size(char kind, uint64_t bytes)
{
    switch (kind) {
    case 'b':
        return bytes == 1;
    case 'i':
    case 'u':
        return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f':
        return bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    case 'c':
        return bytes == 8 || bytes == 16 || bytes == 32;
    default:
        return false;
    }
}

/* Reads a type such as '<f4': order, kind, bytes. */
static bool read_type(struct scan *scan, struct npy *npy)
{
    char word[WORD_SIZE] = "";
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == '[') {
        return REFUSE(scan->problem,
                      "the file holds records (a structured dtype); save one field, as in "
                      "np.save(file, array['field'])");
    }
    if (!read_word(scan, word)) {
        return false;
    }
    if (strchr(word, 'O') != NULL) {
        return REFUSE(scan->problem,
                      "the file holds Python objects, which are never read; convert the "
                      "array first, as in array.astype('float32')");
    }
    char shown[WORD_SIZE];
    text_printable(word, strlen(word), shown, sizeof shown);
    uint64_t bytes = 0;
    size_t at = 2;
    size_t length = strlen(word);
    while (at < length && at < 4 && word[at] >= '0' && word[at] <= '9') {
        bytes = 10 * bytes + (uint64_t)(word[at++] - '0');
    }
    bool ordered = word[0] == '<' || word[0] == '>' || (word[0] == '|' && bytes == 1);
    if (!ordered || at != length || !known_size(word[1], bytes)) {
        return REFUSE(scan->problem,
                      "the elements are of type '%s', which are no numbers known here; convert the "
                      "array, as in array.astype('float32')",
                      shown);
    }
    npy->kind = word[1];
    npy->item_bytes = (uint32_t)bytes;
    npy->is_big_endian = word[0] == '>';
    return true;
}

static bool read_order(struct scan *scan, struct npy *npy)
{
    static const char *const words[] = {"False", "True"};
    skip_space(scan);
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(scan->end - scan->at) >= length && memcmp(scan->at, words[i], length) == 0) {
            scan->at += length;
            npy->is_fortran = i == 1;
            return true;
        }
    }
    return malformed(scan, "fortran_order is neither True nor False");
}

static bool read_dictionary(struct scan *scan, struct npy *npy)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    static bool (*const readers[])(struct scan *, struct npy *) = {read_type, read_order,
                                                                   read_shape};
    enum { KEYS = 3 };
    bool seen[KEYS] = {false};
    bool comma = true;
    if (!take(scan, '{')) {
        return malformed(scan, "there is no dictionary");
    }
    while (!take(scan, '}')) {
        char word[WORD_SIZE];
        size_t key = 0;
        if (!comma) {
            return malformed(scan, "a comma is missing");
        }
        if (!read_word(scan, word)) {
            return false;
        }
        while (key < KEYS && strcmp(word, names[key]) != 0) {
            key++;
        }
        if (key == KEYS || seen[key]) {
            return malformed(scan, "a key is unknown, or stands there twice");
        }
        if (!take(scan, ':')) {
            return malformed(scan, "a colon is missing");
        }
        if (!readers[key](scan, npy)) {
            return false;
        }
        seen[key] = true;
        comma = take(scan, ',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) {
        return malformed(scan, "descr, fortran_order or shape is missing");
    }
    skip_space(scan);
    return scan->at == scan->end || malformed(scan, "something follows the dictionary");
}

/* ---------------------------------------------------------------- the file */

static bool multiply(uint64_t *value, uint64_t factor)
{
    if (factor != 0 && *value > (uint64_t)INT64_MAX / factor) {
        return false;
    }
    *value *= factor;
    return true;
}

static bool count_data(struct npy *npy, struct problem *problem)
{
    uint64_t bytes = npy->item_bytes;
    bool empty = false;
    for (uint32_t i = 0; i < npy->dimension_count; i++) {
        empty = empty || npy->shape[i] == 0;
    }
    for (uint32_t i = 0; i < npy->dimension_count && !empty; i++) {
        if (!multiply(&bytes, npy->shape[i])) {
            return REFUSE(problem,
                          "the shape makes more than %" PRId64
                          " bytes; save the array again with np.save",
                          INT64_MAX);
        }
    }
    npy->data_bytes = empty ? 0 : bytes;
    npy->element_count = npy->data_bytes / npy->item_bytes;
    return true;
}

static bool fits_file(const struct npy *npy, uint64_t file_bytes, struct problem *problem)
{
    uint64_t left = file_bytes - npy->data_offset;
    if (left < npy->data_bytes) {
        return REFUSE(problem,
                      "the file is cut off: the header says %" PRIu64
                      " bytes of data, and there are %" PRIu64 "; copy or save it again",
                      npy->data_bytes, left);
    }
    if (left > npy->data_bytes) {
        return REFUSE(problem,
                      "the header says %" PRIu64 " bytes of data, and there are %" PRIu64
                      "; save one array per file, with np.save",
                      npy->data_bytes, left);
    }
    return true;
}

/* Returns the start of the text and its declared length. */
static bool find_text(const uint8_t *bytes, size_t length, uint64_t file_bytes, size_t *ret_start,
                      uint64_t *ret_length, struct problem *problem)
{
    static const char zip[4] = {'P', 'K', '\x03', '\x04'};
    if (length >= sizeof zip && memcmp(bytes, zip, sizeof zip) == 0) {
        return REFUSE(problem,
                      "the file is an archive (.npz); save each array by itself, with np.save");
    }
    size_t known = length < MAGIC_BYTES ? length : MAGIC_BYTES;
    if (known == 0 || memcmp(bytes, magic, known) != 0) {
        return REFUSE(problem, "the file is no .npy file; np.save writes one");
    }
    if (length >= VERSION_BYTES && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)) {
        return REFUSE(
            problem,
            "the file is of version %u.%u of the format; 1.0, 2.0 and 3.0 are read: save it "
            "again with np.save",
            (unsigned)bytes[6], (unsigned)bytes[7]);
    }
    size_t width = length >= VERSION_BYTES && bytes[6] > 1 ? 4 : 2;
    if (length < VERSION_BYTES + width) {
        return REFUSE(problem, "the file is cut off in its header; copy or save it again");
    }
    *ret_start = VERSION_BYTES + width;
    *ret_length = 0;
    for (size_t i = 0; i < width; i++) {
        *ret_length |= (uint64_t)bytes[VERSION_BYTES + i] << (8 * i);
    }
    if (*ret_length > NPY_HEADER_BYTES) {
        return REFUSE(problem,
                      "the header is said to take %" PRIu64
                      " bytes; at most %d are read: save it again with np.save",
                      *ret_length, NPY_HEADER_BYTES);
    }
    if (*ret_start + *ret_length > file_bytes) {
        return REFUSE(problem, "the file is cut off in its header; copy or save it again");
    }
    return true;
}

bool npy_read(const uint8_t *bytes, size_t length, uint64_t file_bytes, struct npy *ret_npy,
              struct problem *ret_problem)
{
    assert(length == file_bytes || (length < file_bytes && length >= NPY_PREFIX_BYTES));

    struct npy npy = {.kind = '\0'};
    size_t start;
    uint64_t text_length;
    if (!find_text(bytes, length, file_bytes, &start, &text_length, ret_problem)) {
        return false;
    }
    npy.data_offset = start + text_length;
    struct scan scan = {.at = (const char *)bytes + start,
                        .end = (const char *)bytes + npy.data_offset,
                        .problem = ret_problem};
    if (!read_dictionary(&scan, &npy) || !count_data(&npy, ret_problem) ||
        !fits_file(&npy, file_bytes, ret_problem)) {
        return false;
    }
    *ret_npy = npy;
    return true;
}

/* ---------------------------------------------------------------- matrices */

void npy_type_text(const struct npy *npy, char ret_text[NPY_TYPE_SIZE])
{
    const char *kind = npy->kind == 'b'   ? "bool"
                       : npy->kind == 'i' ? "int"
                       : npy->kind == 'u' ? "uint"
                       : npy->kind == 'f' ? "float"
                                          : "complex";
    const char *order = npy->is_big_endian ? ", big-endian" : "";
    if (npy->kind == 'b') {
        (void)snprintf(ret_text, NPY_TYPE_SIZE, "%s", kind);
    } else {
        (void)snprintf(ret_text, NPY_TYPE_SIZE, "%s%" PRIu32 "%s", kind, 8 * npy->item_bytes,
                       order);
    }
}

bool npy_is_matrix(const struct npy *npy, struct problem *ret_problem)
{
    if (npy->kind != 'f' || npy->item_bytes != 4 || npy->is_big_endian) {
        char type[NPY_TYPE_SIZE];
        npy_type_text(npy, type);
        return REFUSE(ret_problem,
                      "the elements are %s, and float32 is computed with; convert them, as in "
                      "np.save(file, array.astype('<f4'))",
                      type);
    }
    if (npy->dimension_count != 2) {
        return REFUSE(ret_problem,
                      "the file has %" PRIu32 " dimension%s, and a matrix has 2; reshape it, as in "
                      "array.reshape(1, -1)",
                      npy->dimension_count, npy->dimension_count == 1 ? "" : "s");
    }
    if (npy->is_fortran) {
        return REFUSE(ret_problem,
                      "the file is in Fortran order (columns one after the other); save it "
                      "as np.save(file, np.ascontiguousarray(array))");
    }
    if (npy->data_offset % npy->item_bytes != 0) {
        return REFUSE(ret_problem,
                      "the data begins at byte %" PRIu64
                      ", which is no multiple of 4; save it again with np.save",
                      npy->data_offset);
    }
    return true;
}

/* ---------------------------------------------------------------- writing */

size_t npy_write(const struct npy *npy, uint8_t ret_bytes[NPY_HEADER_MOST])
{
    enum { PREFIX_BYTES = 10, ROUND = 64 };
    char text[NPY_HEADER_MOST - PREFIX_BYTES];
    assert(npy->dimension_count <= NPY_DIMENSIONS);
    int length = snprintf(text, sizeof text,
                          "{'descr': '%c%c%" PRIu32 "', 'fortran_order': False, 'shape': (",
                          npy->item_bytes == 1 ? '|' : '<', npy->kind, npy->item_bytes);
    for (uint32_t i = 0; i < npy->dimension_count; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%" PRIu64,
                           i > 0 ? ", " : "", npy->shape[i]);
    }
    /* Python reads (3) as a number. */
    length += snprintf(text + length, sizeof text - (size_t)length, "%s), }",
                       npy->dimension_count == 1 ? "," : "");
    const size_t total = (PREFIX_BYTES + (size_t)length + 1 + ROUND - 1) / ROUND * ROUND;
    assert(total <= NPY_HEADER_MOST); /* as many numbers of 20 digits fit */
    const size_t text_bytes = total - PREFIX_BYTES;
    memcpy(ret_bytes, magic, MAGIC_BYTES);
    ret_bytes[6] = 1;
    ret_bytes[7] = 0;
    ret_bytes[8] = (uint8_t)(text_bytes & 0xff);
    ret_bytes[9] = (uint8_t)(text_bytes >> 8);
    memcpy(ret_bytes + PREFIX_BYTES, text, (size_t)length);
    memset(ret_bytes + PREFIX_BYTES + length, ' ', text_bytes - (size_t)length - 1);
    ret_bytes[total - 1] = '\n';
    return total;
}

void npy_write_matrix(uint64_t rows, uint64_t columns, uint8_t ret_bytes[NPY_MATRIX_BYTES])
{
    const struct npy npy = {
        .kind = 'f', .item_bytes = 4, .dimension_count = 2, .shape = {rows, columns}};
    uint8_t bytes[NPY_HEADER_MOST];
    const size_t length = npy_write(&npy, bytes);
    assert(length == NPY_MATRIX_BYTES); /* two numbers of 20 digits fit */
    memcpy(ret_bytes, bytes, NPY_MATRIX_BYTES);
}
