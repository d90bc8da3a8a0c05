/* The target plays a worker to its agent: a worker that a job has taken over may say anything. The
 * first byte is the number of descriptors that come with the message. */
#include "provider/jail/jail_internal.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_BYTES = 100 };

static void check_reply(const uint8_t *data, size_t size, size_t file_count)
{
    static const char *const outputs[] = {"one", "two"};
    static struct jail_reply reply;
    struct jail_request request = {
        .outputs = outputs, .output_count = 2, .output_bytes = FILE_BYTES, .capture_bytes = 50};
    int files[4];
    uint64_t captured[2];
    for (size_t i = 0; i < file_count; i++) {
        files[i] = memfd_create("output", MFD_CLOEXEC);
        assert(files[i] >= 0 && ftruncate(files[i], FILE_BYTES) == 0);
    }
    memset(&reply, 0, sizeof reply);
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        reply.outputs[i].fd = -1;
    }
    if (!jail_wire_read_reply(data, size, &request, files, file_count, &reply, captured)) {
        assert(reply.outputs[0].fd == -1 && reply.outputs[1].fd == -1);
        return;
    }
    assert(reply.outcome < OUTCOME_COUNT);
    assert(captured[0] <= request.capture_bytes && captured[1] <= request.capture_bytes);
    assert(reply.output_count == (reply.outcome == OUTCOME_OK ? request.output_count : 0));
    uint64_t total = 0;
    for (size_t i = 0; i < reply.output_count; i++) {
        total += reply.outputs[i].size;
        (void)close(reply.outputs[i].fd);
    }
    assert(total <= request.output_bytes);
    assert(memchr(reply.detail, 0, sizeof reply.detail) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_hello hello;
    if (size == 0) {
        return 0;
    }
    (void)jail_wire_read_hello(data + 1, size - 1, &hello);
    check_reply(data + 1, size - 1, data[0] % 4);
    return 0;
}
