/* tests/programs/follower.c - a broker of a market that follows another one, and does nothing else.
 *
 *     follower KEYFILE CONTROL BLOBS LEADER
 *         Binds the endpoints CONTROL and BLOBS with the market's transport key, and refuses every
 *         message with NOT_LEADER. LEADER is a file whose line is the leader's address; without the
 *         file, or with an empty one, nobody is known to lead. The file is read for each message.
 *         Prints "ready", and then the type of each message. SIGTERM ends the program.
 */
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "protocol/reject.h"
#include "runtime/keyfile.h"
#include "runtime/process.h"
#include "runtime/router.h"
#include "runtime/zap.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { TURN_MS = 20 };

static int fail(const char *what, const struct problem *problem)
{
    (void)fprintf(stderr, "follower: %s: %s\n", what, problem->text);
    return EXIT_FAILURE;
}

/* Reads the leader's address. Returns NULL when there is none. */
static char *leader_of(const char *path, char text[LIMIT_ENDPOINT_BYTES + 2])
{
    FILE *file = fopen(path, "r");
    char *line = file == NULL ? NULL : fgets(text, LIMIT_ENDPOINT_BYTES + 2, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    if (line != NULL) {
        line[strcspn(line, "\n")] = '\0';
    }
    return line == NULL || line[0] == '\0' ? NULL : line;
}

static void refuse(struct router *router, const struct router_message *message,
                   const struct envelope *request, char *leader)
{
    size_t length;
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_NOT_LEADER;
    body.text = (char *)(uintptr_t) "this broker follows another one";
    body.leader_address = leader;
    uint8_t *packed = codec_encode(&body.base, &length);
    const struct envelope answer = {.version = ENVELOPE_VERSION,
                                    .type = MESSAGE_REJECT,
                                    .id = request->id,
                                    .body = packed,
                                    .body_length = (uint32_t)length};
    const size_t size = envelope_size(&answer);
    uint8_t *bytes = malloc(size);
    if (packed != NULL && bytes != NULL) {
        envelope_write(&answer, bytes, size);
        (void)router_send(router, &message->route, &message->client, bytes, size);
    }
    free(bytes);
    free(packed);
}

static void turn(struct router *router, const char *port, const char *leader_path)
{
    struct router_message message;
    struct envelope request;
    char leader[LIMIT_ENDPOINT_BYTES + 2];
    if (router_receive(router, TURN_MS, &message) == 1 &&
        envelope_read(message.bytes, message.length, LIMIT_BLOB_MESSAGE_BYTES, &request) ==
            ENVELOPE_OK) {
        refuse(router, &message, &request, leader_of(leader_path, leader));
        (void)printf("%s %s\n", port, message_name((enum message_type)request.type));
        (void)fflush(stdout);
    }
}

static bool open_port(void *context, const struct identity *identity, const char *endpoint,
                      struct router **ret_router, struct problem *problem)
{
    const struct router_config config = {.identity = identity,
                                         .max_message_bytes = LIMIT_BLOB_MESSAGE_BYTES};
    return router_open(context, &config, ret_router, problem) &&
           router_bind(*ret_router, endpoint, false, NULL, 0, problem);
}

int main(int argc, char **argv)
{
    struct problem problem = {.text = ""};
    struct identity *identity = NULL;
    struct router *control = NULL;
    struct router *blobs = NULL;
    struct zap *zap = NULL;
    if (argc != 5) {
        (void)fprintf(stderr, "usage: follower KEYFILE CONTROL BLOBS LEADER\n");
        return 2;
    }
    if (sodium_init() < 0 || !process_start(&problem) ||
        !keyfile_load(argv[1], &identity, &problem)) {
        return fail(argv[1], &problem);
    }
    void *context = zmq_ctx_new();
    if (!zap_start(context, &zap, &problem) ||
        !open_port(context, identity, argv[2], &control, &problem) ||
        !open_port(context, identity, argv[3], &blobs, &problem)) {
        return fail("the ports", &problem);
    }
    (void)puts("ready");
    (void)fflush(stdout);
    for (;;) { /* the signal ends the process; the kernel closes what is open */
        turn(control, "control", argv[4]);
        turn(blobs, "blobs", argv[4]);
    }
}
