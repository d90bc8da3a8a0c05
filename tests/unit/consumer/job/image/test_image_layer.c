/* The tests read layers with each compression, cut and damaged layers, and bombs. */
#include "consumer/job/image/image_layer.h"

#include "base/sha256.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { BYTES = 1000000 };

static uint8_t *content, *packed;
static size_t packed_length;
static struct problem problem;

static void setup(void)
{
    content = malloc(BYTES);
    packed = malloc(2 * BYTES);
    ck_assert(content != NULL && packed != NULL);
    for (size_t i = 0; i < BYTES; i++) {
        content[i] = (uint8_t)(i * i >> 7);
    }
    packed_length = 0;
}

static void teardown(void)
{
    free(content);
    free(packed);
}

/* Appends a gzip member of a part of the content. */
static void gzip(size_t from, size_t length)
{
    z_stream stream = {.next_in = content + from,
                       .avail_in = (unsigned)length,
                       .next_out = packed + packed_length,
                       .avail_out = (unsigned)(2 * BYTES - packed_length)};
    ck_assert_int_eq(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed_length += stream.total_out;
    (void)deflateEnd(&stream);
}

static void zstd(size_t from, size_t length)
{
    const size_t size =
        ZSTD_compress(packed + packed_length, 2 * BYTES - packed_length, content + from, length, 1);
    ck_assert(!ZSTD_isError(size));
    packed_length += size;
}

/* Opens the packed bytes, which lie behind other bytes of a file, as a layer of the content. */
static bool open_layer(const struct hash32 *digest, uint64_t *left, struct image_part *ret_layer)
{
    const struct hash32 diff_id = sha256_of(content, BYTES);
    const int fd = memfd_create("layer", MFD_CLOEXEC);
    ck_assert(fd >= 0 && file_write_at(fd, packed, packed_length, 100));
    const struct image_part part = {.fd = fd, .offset = 100, .size = packed_length};
    const bool good = image_layer_open(&part, digest, &diff_id, left, ret_layer, &problem);
    if (good && !ret_layer->is_own) {
        return true;
    }
    (void)close(fd);
    return good;
}

static void is_content(void)
{
    uint64_t left = BYTES + 7;
    const struct hash32 digest = sha256_of(packed, packed_length);
    struct image_part layer = {.fd = -1};
    uint8_t *read = malloc(BYTES);
    ck_assert_msg(open_layer(&digest, &left, &layer), "%s", problem.text);
    ck_assert_uint_eq(layer.size, BYTES);
    ck_assert_uint_eq(left, 7);
    ck_assert(read != NULL && file_read_at(layer.fd, read, BYTES, layer.offset));
    ck_assert_int_eq(memcmp(read, content, BYTES), 0);
    free(read);
    layer.is_own = true; /* the test's */
    image_part_fini(&layer);
}

static void is_refused(const struct hash32 *digest, uint64_t most, const char *why)
{
    uint64_t left = most;
    struct image_part layer = {.fd = -1};
    ck_assert(!open_layer(digest, &left, &layer));
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s", problem.text);
    ck_assert_uint_eq(left, most);
    ck_assert_int_eq(layer.fd, -1);
}

START_TEST(each_compression_gives_the_content)
{
    memcpy(packed, content, BYTES);
    packed_length = BYTES;
    is_content();
    packed_length = 0;
    gzip(0, BYTES);
    is_content();
    packed_length = 0;
    zstd(0, BYTES);
    is_content();
}
END_TEST

START_TEST(members_and_frames_follow_one_another)
{
    gzip(0, 1);
    gzip(1, 262143); /* all of a piece */
    gzip(262144, BYTES - 262144);
    is_content();
    packed_length = 0;
    zstd(0, 262144);
    zstd(262144, 262144);
    zstd(524288, BYTES - 524288);
    is_content();
}
END_TEST

START_TEST(zeros_keep_their_place)
{
    memset(content + 100000, 0, 800000);
    memset(content + 900000, 0, 100000); /* the end, too */
    gzip(0, BYTES);
    is_content();
}
END_TEST

START_TEST(cut_and_damaged_layers_are_refused)
{
    gzip(0, BYTES);
    const size_t whole = packed_length;
    packed_length = whole / 2;
    is_refused(NULL, BYTES, "end too early");
    packed_length = whole - 1;
    is_refused(NULL, BYTES, "end too early");
    packed_length = whole;
    packed[whole / 2] ^= 1;
    is_refused(NULL, BYTES, "");
    packed[whole / 2] ^= 1;
    memcpy(packed + whole, "rest", 4);
    packed_length = whole + 4;
    is_refused(NULL, BYTES, "is damaged");
    packed_length = 0;
    zstd(0, BYTES);
    packed_length -= 1;
    is_refused(NULL, BYTES, "end too early");
    memcpy(packed, "BZh91AY", 7);
    is_refused(NULL, BYTES, "bzip2 or xz");
}
END_TEST

START_TEST(digests_hold)
{
    struct hash32 digest;
    gzip(0, BYTES);
    digest = sha256_of(packed, packed_length);
    digest.bytes[31] ^= 1;
    is_refused(&digest, BYTES, "than its digest says");
    content[BYTES - 1] ^= 1; /* the diff_id is of other bytes */
    is_refused(NULL, BYTES, "than its diff_id says");
}
END_TEST

START_TEST(a_bomb_is_refused_at_the_limit)
{
    memset(content, 0, BYTES);
    gzip(0, BYTES);
    ck_assert_uint_lt(packed_length, BYTES / 100);
    is_refused(NULL, BYTES - 1, "have more than 999999 bytes without their compression");
    packed_length = 0;
    zstd(0, BYTES);
    is_refused(NULL, BYTES - 1, "have more than 999999 bytes");
    memcpy(packed, content, BYTES);
    packed_length = BYTES;
    is_refused(NULL, BYTES - 1, "too large together");
}
END_TEST

SUITE("image_layer", setup, teardown, TEST(each_compression_gives_the_content),
      TEST(members_and_frames_follow_one_another), TEST(zeros_keep_their_place),
      TEST(cut_and_damaged_layers_are_refused), TEST(digests_hold),
      TEST(a_bomb_is_refused_at_the_limit))
