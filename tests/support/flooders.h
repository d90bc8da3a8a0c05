/* tests/support/flooders.h floods a broker with messages of one type, and measures what is left to
 * honest work (P24).
 *
 * A flood is compared with the same flooders sending to a sink, a process beside the broker that
 * reads and forgets. So the processors of the machine are equally busy in both cases. The flooders
 * are one member with one session or eight, who reads the answers or does not. */
#ifndef BOURSE_TESTS_FLOODERS_H
#define BOURSE_TESTS_FLOODERS_H

#include "protocol/codec.h"
#include "protocol/message.h"
#include "tests/support/arena.h"
#include "tests/support/honest.h"

struct flood_body {
    uint8_t *bytes;
    size_t length;
};

struct flood {
    const char *name;
    enum message_type type;      /* the message's port is the flooders' port */
    struct flood_body bodies[2]; /* sent in turns; the second may be missing */
    enum reject_code refused;    /* the refusal that the sender gets */
    /* The sink answers each message with so many bytes, within SINK_MIB_S; 0: the sink does not
     * answer. So who reads large answers has the same work with both. */
    size_t answer_bytes;
    /* Makes the body of message `number`, where no two messages may be alike. NULL: they may be. */
    void (*vary)(struct flood_body *body, uint64_t number);
};

enum { FLOODS_MOST = 64 };
struct floods {
    struct flood items[FLOODS_MOST];
    size_t count;
};

struct flood_body flood_encode(const ProtobufCMessage *message);
struct flood *flood_add(struct floods *floods, const char *name, enum message_type type,
                        const ProtobufCMessage *message);
void floods_free(struct floods *floods);
/* Fails the test with the names of the types that a client may send to that port and that no flood
 * is of. So a new type of message needs a flood. */
void floods_check_types(const struct floods *floods, bool is_of_blobs);
/* Sends each message once. Fails the test where a message is refused otherwise than expected. So no
 * flood has messages that are thrown away at the door. */
void floods_check_answers(struct floods *floods, const struct arena *arena,
                          const struct identity *key);

/* Does honest work at a pace, like honest_window. */
typedef unsigned flood_honest(void *context, int64_t window_ms, int64_t interval_ns,
                              struct honest_times *times);
struct flood_victim {
    struct arena *arena;
    flood_honest *work;
    void *context;
    int64_t window_ms; /* of the long form; else half as long */
    /* Between two requests: flood_commands takes a quarter of the pace that the work reaches alone,
     * flood_pace_alone an eighth. */
    int64_t interval_ns;
};
/* The arena's owner, who sends commands with honest_window. */
struct flood_victim flood_commands(struct arena *arena);
/* Sets the interval of work that was not measured before to an eighth of its pace alone. Such work
 * keeps several threads busy, the victim's own among them. At a quarter of the pace, two processors
 * that also serve the flooders would be full, and the measure would be of their queue. */
void flood_pace_alone(struct flood_victim *victim);

/* Runs the floods from `first` on, at most `count`, or of these the one that BOURSE_FLOOD names. CI
 * asks for one way, BOURSE_LONG=yes for all four. Fails the test with the names of the floods that
 * slow the victim more than honest_bounds. All floods are of one port. */
void floods_run(struct floods *floods, size_t first, size_t count,
                const struct flood_victim *victim, const struct identity *key);

#endif
