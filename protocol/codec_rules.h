/* protocol/codec_rules.h has the words in which codec_shapes.c, codec_manifest.c,
 * codec_shapes_terminal.c and codec_shapes_challenge.c write the rules of fields. No other file
 * includes it. */
#ifndef BOURSE_PROTOCOL_CODEC_RULES_H
#define BOURSE_PROTOCOL_CODEC_RULES_H

#include "protocol/codec_check.h"
#include "protocol/limits.h"

#define NUMBER(low, high)                                                                          \
    {                                                                                              \
        .kind = RULE_NUMBER, .least = (low), .most = (high)                                        \
    }
#define COUNT NUMBER(0, INT64_MAX) /* any number >= 0 */
#define ANY NUMBER(INT64_MIN, INT64_MAX)
#define FLAG NUMBER(0, 1)
#define MONEY NUMBER(0, INT64_MAX)
#define MOMENT NUMBER(0, LIMIT_TIME_MS)
#define DURATION NUMBER(1, LIMIT_DURATION_MS)
#define DURATION_NS NUMBER(1, LIMIT_DURATION_MS * 1000000)
#define SPAN NUMBER(0, LIMIT_DURATION_MS) /* a duration that may be 0 */
#define SIZED(low, high)                                                                           \
    {                                                                                              \
        .kind = RULE_BYTES, .least = (low), .most = (high)                                         \
    }
#define ID SIZED(16, 16)
#define HASH SIZED(32, 32) /* keys have this size too */
#define SIGNATURE SIZED(64, 64)
#define NAME(low, high)                                                                            \
    {                                                                                              \
        .kind = RULE_NAME, .least = (low), .most = (high)                                          \
    }
#define LINE(low, high)                                                                            \
    {                                                                                              \
        .kind = RULE_LINE, .least = (low), .most = (high)                                          \
    }
#define TEXT(low, high)                                                                            \
    {                                                                                              \
        .kind = RULE_TEXT, .least = (low), .most = (high)                                          \
    }
#define ENDPOINT                                                                                   \
    {                                                                                              \
        .kind = RULE_ENDPOINT, .least = sizeof "tcp://h:1" - 1, .most = LIMIT_ENDPOINT_BYTES       \
    }
#define NOTE LINE(0, LIMIT_TEXT_BYTES)
#define NESTED(name)                                                                               \
    {                                                                                              \
        .kind = RULE_NESTED, .shape = &name##_shape                                                \
    }
#define MANY(name, cap)                                                                            \
    {                                                                                              \
        .kind = RULE_NESTED, .count_max = (cap), .shape = &name##_shape                            \
    }
#define MANY_SIZED(low, high, cap)                                                                 \
    {                                                                                              \
        .kind = RULE_BYTES, .least = (low), .most = (high), .count_max = (cap)                     \
    }
#define MANY_TEXT(low, high, cap)                                                                  \
    {                                                                                              \
        .kind = RULE_TEXT, .least = (low), .most = (high), .count_max = (cap)                      \
    }
#define MANY_NAME(low, high, cap)                                                                  \
    {                                                                                              \
        .kind = RULE_NAME, .least = (low), .most = (high), .count_max = (cap)                      \
    }
#define MANY_LINE(low, high, cap)                                                                  \
    {                                                                                              \
        .kind = RULE_LINE, .least = (low), .most = (high), .count_max = (cap)                      \
    }

#define PACKED(low, high, cap)                                                                     \
    {                                                                                              \
        .kind = RULE_PACKED, .least = (low), .most = (high), .count_max = (cap)                    \
    }

#define SUBTASKS NUMBER(1, LIMIT_SUBTASKS)
#define SUBTASK_INDEX NUMBER(0, LIMIT_SUBTASKS - 1)
#define TALLY NUMBER(0, LIMIT_SUBTASKS)
#define AT_MOST NUMBER(0, LIMIT_SUBTASKS)
#define SLOTS NUMBER(1, LIMIT_SLOTS)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define RULES(name, ...) static const struct rule name[] = {__VA_ARGS__}
#define SHAPE_CHECKED(name, type, function, ...)                                                   \
    static const struct rule name##_rules[] = {__VA_ARGS__};                                       \
    static const struct shape name##_shape = {&bourse__v1__##type##__descriptor, name##_rules,     \
                                              LENGTH(name##_rules), function}
/* A shape of a file beside codec_shapes.c, which codec_check.h declares. */
#define SHARED_SHAPE(name, type, function, ...)                                                    \
    static const struct rule name##_rules[] = {__VA_ARGS__};                                       \
    const struct shape codec_##name##_shape = {&bourse__v1__##type##__descriptor, name##_rules,    \
                                               LENGTH(name##_rules), function}
#define SHAPE(name, type, ...) SHAPE_CHECKED(name, type, NULL, __VA_ARGS__)
#define SHAPE_EMPTY(name, type)                                                                    \
    static const struct shape name##_shape = {&bourse__v1__##type##__descriptor, NULL, 0, NULL}

#endif
