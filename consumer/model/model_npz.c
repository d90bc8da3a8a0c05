#include "consumer/model/model_npz.h"

#include "consumer/job/input_list.h"
#include "formats/zip/zip.h"
#include "runtime/files.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE_BYTES = 256 << 10 };

struct unpacking {
    int archive, out;
    struct zip_folder folder;
    struct zip_member member;
    uint64_t offset; /* of the member's bytes */
    uint64_t written;
    uLong crc;
    uint8_t *in, *piece; /* PIECE_BYTES each */
    struct problem *problem;
};

unsigned model_npz_path(const char *text)
{
    static const char suffix[] = ".npz";
    for (const char *at = strstr(text, suffix); at != NULL; at = strstr(at + 1, suffix)) {
        const char after = at[sizeof suffix - 1];
        if (at > text && (after == '\0' || (after == ':' && at[sizeof suffix] != '\0'))) {
            return (unsigned)(at - text) + (unsigned)sizeof suffix - 1;
        }
    }
    return 0;
}

static bool fail(struct unpacking *unpacking, const char *what)
{
    problem_set(unpacking->problem, "\"%.100s\" of the archive %s", unpacking->member.name, what);
    return false;
}

/* Writes bytes of the array. An array never becomes longer than the archive says. */
static bool put(struct unpacking *unpacking, const uint8_t *bytes, size_t length)
{
    if (length > unpacking->member.bytes - unpacking->written) {
        return fail(unpacking, "is longer than the archive says");
    }
    if (!file_write_at(unpacking->out, bytes, length, unpacking->written)) {
        problem_set(unpacking->problem, "cannot be unpacked into a temporary file; is there room?");
        return false;
    }
    unpacking->crc = crc32(unpacking->crc, bytes, (uInt)length);
    unpacking->written += length;
    return true;
}

static bool take(struct unpacking *unpacking, uint64_t done, size_t *ret_length)
{
    const uint64_t left = unpacking->member.packed_bytes - done;
    const size_t length = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    *ret_length = length;
    return file_read_at(unpacking->archive, unpacking->in, length, unpacking->offset + done) ||
           fail(unpacking, "cannot be read");
}

static bool copy(struct unpacking *unpacking)
{
    size_t length = 0;
    for (uint64_t done = 0; done < unpacking->member.packed_bytes; done += length) {
        if (!take(unpacking, done, &length) || !put(unpacking, unpacking->in, length)) {
            return false;
        }
    }
    return true;
}

static bool inflate_all(struct unpacking *unpacking, z_stream *stream)
{
    size_t length = 0;
    int status = Z_OK;
    for (uint64_t done = 0; status != Z_STREAM_END && done < unpacking->member.packed_bytes;
         done += length) {
        if (!take(unpacking, done, &length)) {
            return false;
        }
        stream->next_in = unpacking->in;
        stream->avail_in = (uInt)length;
        do {
            stream->next_out = unpacking->piece;
            stream->avail_out = PIECE_BYTES;
            status = inflate(stream, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
                return fail(unpacking, "is damaged");
            }
            if (!put(unpacking, unpacking->piece, PIECE_BYTES - stream->avail_out)) {
                return false;
            }
        } while (stream->avail_out == 0 && status != Z_STREAM_END);
    }
    return status == Z_STREAM_END || fail(unpacking, "is cut: its bytes end too early");
}

static bool expand(struct unpacking *unpacking)
{
    z_stream stream = {.next_in = NULL};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return fail(unpacking, "needs more memory than there is");
    }
    const bool good = inflate_all(unpacking, &stream);
    (void)inflateEnd(&stream); /* only frees memory */
    return good;
}

/* Finds the member and the place of its bytes. */
static bool find(struct unpacking *unpacking, uint64_t size, const char *name)
{
    const size_t tail = size < ZIP_TAIL_BYTES ? (size_t)size : ZIP_TAIL_BYTES;
    uint8_t *bytes = malloc(ZIP_FOLDER_BYTES);
    uint8_t local[ZIP_LOCAL_BYTES];
    struct problem *problem = unpacking->problem;
    static_assert((int)ZIP_TAIL_BYTES <= (int)ZIP_FOLDER_BYTES, "one buffer serves for both");
    bool good = bytes != NULL && file_read_at(unpacking->archive, bytes, tail, size - tail);
    if (!good) {
        problem_set(problem, "it cannot be read");
    }
    good = good && zip_read_end(bytes, tail, size, &unpacking->folder, problem);
    if (good && !file_read_at(unpacking->archive, bytes, unpacking->folder.size,
                              unpacking->folder.offset)) {
        problem_set(problem, "it cannot be read");
        good = false;
    }
    good = good && zip_find(bytes, &unpacking->folder, name, &unpacking->member, problem);
    free(bytes);
    if (good &&
        !file_read_at(unpacking->archive, local, sizeof local, unpacking->member.header_offset)) {
        return fail(unpacking, "cannot be read");
    }
    return good && zip_read_local(local, &unpacking->folder, &unpacking->member, &unpacking->offset,
                                  problem);
}

static bool unpack(struct unpacking *unpacking)
{
    unpacking->crc = crc32(0, NULL, 0);
    unpacking->in = malloc(PIECE_BYTES);
    unpacking->piece = malloc(PIECE_BYTES);
    bool good = unpacking->in != NULL && unpacking->piece != NULL;
    if (!good) {
        problem_set(unpacking->problem, "out of memory");
    }
    good = good && (unpacking->member.method == ZIP_STORED ? copy(unpacking) : expand(unpacking));
    free(unpacking->in);
    free(unpacking->piece);
    if (good && unpacking->written != unpacking->member.bytes) {
        return fail(unpacking, "is shorter than the archive says");
    }
    return good && (unpacking->crc == unpacking->member.crc || fail(unpacking, "is damaged"));
}

int model_npz_unpack(const char *path, const char *name, struct problem *ret_problem)
{
    struct problem why = {""};
    struct unpacking unpacking = {.out = -1, .problem = &why};
    uint64_t size = 0;
    unpacking.archive = input_open(path, &size, ret_problem);
    if (unpacking.archive < 0) {
        return -1;
    }
    bool good = find(&unpacking, size, name);
    if (good) {
        unpacking.out = input_temporary(&why);
        good = unpacking.out >= 0 && unpack(&unpacking);
    }
    (void)close(unpacking.archive); /* read only: nothing to lose */
    if (!good) {
        problem_set(ret_problem, "%.150s: %.330s", input_shown(path).text, why.text);
        if (unpacking.out >= 0) {
            (void)close(unpacking.out); /* the file has no name and ends here */
        }
        return -1;
    }
    return unpacking.out;
}

bool model_npz_has(const char *path, const char *name)
{
    struct problem why = {""};
    struct unpacking unpacking = {.problem = &why};
    uint64_t size = 0;
    unpacking.archive = input_open(path, &size, &why);
    if (unpacking.archive < 0) {
        return false;
    }
    const bool has = find(&unpacking, size, name);
    (void)close(unpacking.archive); /* read only: nothing to lose */
    return has;
}
