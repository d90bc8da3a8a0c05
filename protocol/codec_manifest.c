/* This file holds the rules of every field of a manifest, the document that describes a job's work.
 * docs/protocol.md section 6 says the same in words. */
#include "protocol/codec_rules.h"

static bool check_manifest(const struct sighting *sighting, struct codec_error *ret_error)
{
    int64_t listed = sighting->counts[11];
    int64_t count = sighting->numbers[12];
    if (listed != 0 && listed != count) {
        return codec_check_refuse(ret_error, "subtask_count", count, listed);
    }
    if (sighting->counts[21] != 0 && count != 1) {
        return codec_check_refuse(ret_error, "subtask_count", count,
                                  1); /* a terminal has one program */
    }
    /* A folder or a user of an image means nothing without the image. */
    const uint32_t images = sighting->counts[7];
    const uint32_t users = sighting->counts[18];
    if (images == 0 && sighting->counts[17] + users > 0) {
        return codec_check_refuse(ret_error, users > 0 ? "user" : "directory", 1, 0);
    }
    return sighting->counts[19] <= users || codec_check_refuse(ret_error, "group", 1, 0);
}

SHAPE(manifest_input, manifest_input, LINE(1, LIMIT_PATH_BYTES), HASH, COUNT, FLAG);
SHAPE(manifest_limits, manifest_limits, DURATION, DURATION, COUNT, COUNT,
      NUMBER(1, LIMIT_PROCESSES), COUNT);
SHAPE(manifest_variable, manifest_variable, NAME(1, LIMIT_NAME_BYTES),
      TEXT(0, LIMIT_ARGUMENT_BYTES));

/* Checks that a wait for a file names the file and the output, and any other wait neither. */
static bool check_manifest_from(const struct sighting *sighting, struct codec_error *ret_error)
{
    uint32_t outputs = sighting->counts[2];
    return outputs == sighting->counts[1] ||
           codec_check_refuse(ret_error, "output", outputs, !outputs);
}

SHAPE_CHECKED(manifest_from, manifest_from, check_manifest_from, SUBTASK_INDEX,
              LINE(1, LIMIT_PATH_BYTES), LINE(1, LIMIT_PATH_BYTES));
SHAPE(manifest_task, manifest_task, NAME(1, LIMIT_NAME_BYTES),
      MANY_TEXT(0, LIMIT_ARGUMENT_BYTES, LIMIT_ARGUMENTS), MANY(manifest_variable, LIMIT_VARIABLES),
      TEXT(0, LIMIT_STANDARD_INPUT_BYTES), MANY_LINE(1, LIMIT_PATH_BYTES, LIMIT_OUTPUTS),
      NESTED(manifest_limits), MANY(manifest_from, LIMIT_FROM), LINE(1, LIMIT_PATH_BYTES));
SHAPE(manifest_subtask, manifest_subtask, TEXT(0, LIMIT_ARGUMENT_BYTES),
      MANY(manifest_input, LIMIT_INPUTS), NESTED(manifest_task), SUBTASK_INDEX, DURATION_NS);
SHAPE(manifest_part, manifest_part, SUBTASKS, NESTED(codec_requirement), SLOTS, AT_MOST, DURATION,
      DURATION, DURATION_NS);
SHAPE(manifest_place, manifest_place, NUMBER(1, UINT32_MAX), NUMBER(0, UINT32_MAX), COUNT,
      NUMBER(1, UINT32_MAX), NUMBER(0, LIMIT_CLASSES - 1));
SHAPE(manifest_time, manifest_time, DURATION_NS);
SHAPE(manifest_class, manifest_class, MANY(manifest_time, LIMIT_CLASS_TIMES));
SHAPE(manifest_terms, manifest_terms, NAME(1, LIMIT_WORD_BYTES), NUMBER(0, LIMIT_RETRIES), TALLY,
      FLAG, MANY(manifest_part, LIMIT_MANIFEST_PARTS), NUMBER(0, LIMIT_RETRIES),
      NUMBER(0, LIMIT_INTERRUPTIONS), MOMENT, DURATION, MONEY, MONEY, NUMBER(0, UINT32_MAX),
      MANY(manifest_place, LIMIT_PLACES), MANY(manifest_class, LIMIT_CLASSES),
      NUMBER(0, UINT32_MAX), AT_MOST);
RULES(manifest_rules, NUMBER(1, 1), NAME(1, LIMIT_WORD_BYTES), NAME(1, LIMIT_NAME_BYTES),
      MANY_TEXT(0, LIMIT_ARGUMENT_BYTES, LIMIT_ARGUMENTS), MANY(manifest_variable, LIMIT_VARIABLES),
      TEXT(0, LIMIT_STANDARD_INPUT_BYTES), MANY_LINE(1, LIMIT_PATH_BYTES, LIMIT_OUTPUTS), HASH,
      COUNT, NESTED(manifest_limits), MANY(manifest_input, LIMIT_INPUTS),
      MANY(manifest_subtask, LIMIT_SUBTASKS), SUBTASKS, DURATION_NS, ID, NESTED(manifest_terms),
      LINE(1, LIMIT_PATH_BYTES), LINE(1, LIMIT_PATH_BYTES), NUMBER(1, INT32_MAX),
      NUMBER(0, INT32_MAX), SPAN, NESTED(codec_manifest_terminal), FLAG, FLAG);
const struct shape codec_manifest_shape = {&bourse__v1__manifest__descriptor, manifest_rules,
                                           LENGTH(manifest_rules), check_manifest};
