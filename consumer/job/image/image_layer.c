#include "consumer/job/image/image_layer.h"

#include "base/sha256.h"
#include "consumer/job/input_list.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PIECE_BYTES = 1 << 18,
    WINDOW_BITS = 15 + 16, /* the largest window, and the header and trailer of gzip */
    ZSTD_WINDOW_LOG = 27,  /* a decoder takes at most 128 MiB of memory */
};

struct reading {
    const struct image_part *part;
    uint64_t done; /* bytes of the part read so far */
    struct sha256 hash;
    uint8_t *in, *out; /* PIECE_BYTES each */
    struct sha256 out_hash;
    uint64_t written, most;
    int fd; /* -1: only hashes are wanted */
    struct problem *problem;
};

static bool fail(struct reading *reading, const char *what)
{
    problem_set(reading->problem, "%s", what);
    return false;
}

/* Reads and hashes the next piece. *ret_length is 0 at the end. */
static bool next_piece(struct reading *reading, size_t *ret_length)
{
    const uint64_t rest = reading->part->size - reading->done;
    const size_t length = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
    if (!file_read_at(reading->part->fd, reading->in, length,
                      reading->part->offset + reading->done)) {
        problem_set(reading->problem, "it cannot be read: %s", strerror(errno));
        return false;
    }
    sha256_add(&reading->hash, reading->in, length);
    reading->done += length;
    *ret_length = length;
    return true;
}

/* A piece of zeros becomes a hole, so that zeros take no room on the disk. */
static bool is_zero(const uint8_t *bytes, size_t length)
{
    return length > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static bool put(struct reading *reading, size_t length)
{
    if (length > reading->most - reading->written) {
        problem_set(reading->problem,
                    "the layers have more than %llu bytes without their compression",
                    (unsigned long long)reading->most);
        return false;
    }
    if (!is_zero(reading->out, length) &&
        !file_write_at(reading->fd, reading->out, length, reading->written)) {
        problem_set(reading->problem, "the temporary file for it cannot be written: %s",
                    strerror(errno));
        return false;
    }
    sha256_add(&reading->out_hash, reading->out, length);
    reading->written += length;
    return true;
}

/* ---------------------------------------------------------------- compressions */

static const char DAMAGED[] = "it is damaged: its compressed bytes cannot be read";

/* A gzip file is a list of members. */
static bool inflate_all(struct reading *reading, z_stream *stream)
{
    bool is_ended = true;
    size_t length = 0;
    do {
        if (!next_piece(reading, &length)) {
            return false;
        }
        stream->next_in = reading->in;
        stream->avail_in = (unsigned)length;
        while (stream->avail_in > 0) {
            if (is_ended && inflateReset(stream) != Z_OK) {
                return fail(reading, DAMAGED);
            }
            is_ended = false;
            do {
                stream->next_out = reading->out;
                stream->avail_out = PIECE_BYTES;
                const int status = inflate(stream, Z_NO_FLUSH);
                if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
                    return fail(reading, DAMAGED);
                }
                is_ended = status == Z_STREAM_END;
                if (!put(reading, PIECE_BYTES - stream->avail_out)) {
                    return false;
                }
            } while (stream->avail_out == 0 && !is_ended);
        }
    } while (length > 0);
    return is_ended || fail(reading, "it is cut: its compressed bytes end too early");
}

static bool expand_gzip(struct reading *reading)
{
    z_stream stream = {.next_in = NULL};
    if (inflateInit2(&stream, WINDOW_BITS) != Z_OK) {
        return fail(reading, "out of memory");
    }
    const bool good = inflate_all(reading, &stream);
    (void)inflateEnd(&stream); /* only frees memory */
    return good;
}

static bool decompress_all(struct reading *reading, ZSTD_DStream *stream)
{
    size_t length = 0;
    size_t status = 0; /* 0 at the end of a frame */
    do {
        if (!next_piece(reading, &length)) {
            return false;
        }
        ZSTD_inBuffer in = {.src = reading->in, .size = length};
        bool is_full = false;
        while (in.pos < in.size || is_full) {
            ZSTD_outBuffer out = {.dst = reading->out, .size = PIECE_BYTES};
            status = ZSTD_decompressStream(stream, &out, &in);
            if (ZSTD_isError(status)) {
                return fail(reading, DAMAGED);
            }
            is_full = out.pos == out.size && status != 0;
            if (!put(reading, out.pos)) {
                return false;
            }
        }
    } while (length > 0);
    return status == 0 || fail(reading, "it is cut: its compressed bytes end too early");
}

static bool expand_zstd(struct reading *reading)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    bool good = stream != NULL &&
                !ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
    good = good ? decompress_all(reading, stream) : fail(reading, "out of memory");
    (void)ZSTD_freeDStream(stream); /* only frees memory */
    return good;
}

static bool hash_plain(struct reading *reading)
{
    size_t length = 0;
    do {
        if (!next_piece(reading, &length)) {
            return false;
        }
        sha256_add(&reading->out_hash, reading->in, length);
    } while (length > 0);
    reading->written = reading->done;
    return reading->written <= reading->most || fail(reading, "the layers are too large together");
}

/* ---------------------------------------------------------------- layers */

enum compression { PLAIN, GZIP, ZSTD, OTHER };

static enum compression compression_of(const struct image_part *part)
{
    static const struct {
        uint8_t bytes[6];
        size_t length;
        enum compression compression;
    } magics[] = {{{0x1f, 0x8b}, 2, GZIP},
                  {{0x28, 0xb5, 0x2f, 0xfd}, 4, ZSTD},
                  {{'B', 'Z', 'h'}, 3, OTHER},
                  {{0xfd, '7', 'z', 'X', 'Z', 0}, 6, OTHER}};
    uint8_t begin[6] = {0};
    const size_t length = part->size < sizeof begin ? (size_t)part->size : sizeof begin;
    if (!file_read_at(part->fd, begin, length, part->offset)) {
        return PLAIN; /* reading fails again, with its reason */
    }
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        if (memcmp(begin, magics[i].bytes, magics[i].length) == 0) {
            return magics[i].compression;
        }
    }
    return PLAIN;
}

static bool expand(struct reading *reading, enum compression compression)
{
    bool good = false;
    reading->in = malloc(PIECE_BYTES);
    reading->out = malloc(PIECE_BYTES);
    if (reading->in == NULL || reading->out == NULL) {
        good = fail(reading, "out of memory");
    } else if (compression == OTHER) {
        good = fail(reading, "it is compressed by bzip2 or xz; layers have gzip, zstd or nothing");
    } else {
        good = compression == GZIP   ? expand_gzip(reading)
               : compression == ZSTD ? expand_zstd(reading)
                                     : hash_plain(reading);
    }
    free(reading->in);
    free(reading->out);
    return good;
}

static bool has_digests(struct reading *reading, const struct hash32 *digest,
                        const struct hash32 *diff_id)
{
    const struct hash32 hash = sha256_end(&reading->hash);
    const struct hash32 out_hash = sha256_end(&reading->out_hash);
    if (digest != NULL && !hash32_equal(&hash, digest)) {
        return fail(reading, "it has other bytes than its digest says; copy the image again");
    }
    return hash32_equal(&out_hash, diff_id) ||
           fail(reading, "without its compression, it has other bytes than its diff_id says; copy "
                         "or build the image again");
}

bool image_layer_open(const struct image_part *part, const struct hash32 *digest,
                      const struct hash32 *diff_id, uint64_t *left, struct image_part *ret_layer,
                      struct problem *ret_problem)
{
    struct reading reading = {.part = part, .most = *left, .fd = -1, .problem = ret_problem};
    const enum compression compression = compression_of(part);
    const bool is_file = compression == GZIP || compression == ZSTD;
    if (is_file && (reading.fd = input_temporary(ret_problem)) < 0) {
        return false;
    }
    sha256_start(&reading.hash);
    sha256_start(&reading.out_hash);
    bool good = expand(&reading, compression) && has_digests(&reading, digest, diff_id);
    if (good && is_file && ftruncate(reading.fd, (off_t)reading.written) != 0) {
        problem_set(ret_problem, "the temporary file for it cannot be written: %s",
                    strerror(errno));
        good = false;
    }
    if (!good) {
        if (is_file) {
            (void)close(reading.fd); /* the file has no name and ends here */
        }
        return false;
    }
    *left -= reading.written;
    *ret_layer =
        is_file ? (struct image_part){.fd = reading.fd, .is_own = true, .size = reading.written}
                : (struct image_part){.fd = part->fd, .offset = part->offset, .size = part->size};
    return true;
}
