#include "consumer/job/manifest_refusal.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_SIZE = 224, NAME_SIZE = 96 };

/* A fault says where a text stands in the job, and its first byte that cannot be sent. */
struct fault {
    char place[PLACE_SIZE];
    size_t at;
    uint32_t point; /* the control character, or the byte */
    bool is_utf8;
};

/* The wire allows tabs and ends of lines among the control characters (protocol/codec_check.c). */
static bool is_allowed(uint32_t point)
{
    const bool is_control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    return !is_control || point == '\t' || point == '\n' || point == '\r';
}

/* Returns true when the text has a byte that cannot be sent. */
static bool find_byte(const char *text, struct fault *ret_fault)
{
    const size_t length = text == NULL ? 0 : strlen(text);
    const size_t good = text == NULL ? 0 : text_utf8_length(text, length);
    size_t size = 0;
    for (size_t at = 0; at < good; at += size) {
        const uint32_t point = text_code_point(text + at, good - at, &size);
        if (!is_allowed(point)) {
            *ret_fault = (struct fault){.at = at, .point = point, .is_utf8 = true};
            return true;
        }
    }
    if (good < length) {
        *ret_fault = (struct fault){.at = good, .point = (uint8_t)text[good]};
    }
    return good < length;
}

/* Argument 0 is the program. `of` is "" or names the task. */
static bool find_in_command(char *const *arguments, size_t count, const char *of,
                            struct fault *ret_fault)
{
    for (size_t i = 0; i < count; i++) {
        if (find_byte(arguments[i], ret_fault)) {
            if (i == 0) {
                (void)snprintf(ret_fault->place, PLACE_SIZE, "the program%s", of);
            } else {
                (void)snprintf(ret_fault->place, PLACE_SIZE, "argument %zu of the command%s", i,
                               of);
            }
            return true;
        }
    }
    return false;
}

static bool find_in_environment(Bourse__V1__ManifestVariable *const *variables, size_t count,
                                const char *of, struct fault *ret_fault)
{
    for (size_t i = 0; i < count; i++) {
        if (find_byte(variables[i]->value, ret_fault)) {
            char name[NAME_SIZE];
            text_printable(variables[i]->name, strlen(variables[i]->name), name, sizeof name);
            (void)snprintf(ret_fault->place, PLACE_SIZE, "the variable %s%s", name, of);
            return true;
        }
    }
    return false;
}

static bool find_in_input(const char *input, const char *of, struct fault *ret_fault)
{
    const bool found = find_byte(input, ret_fault);
    if (found) {
        (void)snprintf(ret_fault->place, PLACE_SIZE, "the standard input%s", of);
    }
    return found;
}

static bool find_in_subtask(const Bourse__V1__ManifestSubtask *subtask, size_t index,
                            struct fault *ret_fault)
{
    const Bourse__V1__ManifestTask *task = subtask->task;
    if (find_byte(subtask->value, ret_fault)) {
        (void)snprintf(ret_fault->place, PLACE_SIZE, "the value of subtask %zu", index);
        return true;
    }
    if (task == NULL) {
        return false;
    }
    char name[NAME_SIZE] = "";
    char of[NAME_SIZE + 16];
    text_printable(task->name == NULL ? "" : task->name,
                   task->name == NULL ? 0 : strlen(task->name), name, sizeof name);
    (void)snprintf(of, sizeof of, " of task %s", name);
    return find_in_command(task->arguments, task->n_arguments, of, ret_fault) ||
           find_in_environment(task->environment, task->n_environment, of, ret_fault) ||
           find_in_input(task->standard_input, of, ret_fault);
}

static bool find_fault(const Bourse__V1__Manifest *manifest, struct fault *ret_fault)
{
    bool found =
        find_in_command(manifest->arguments, manifest->n_arguments, "", ret_fault) ||
        find_in_environment(manifest->environment, manifest->n_environment, "", ret_fault) ||
        find_in_input(manifest->standard_input, "", ret_fault);
    for (size_t i = 0; !found && i < manifest->n_subtasks; i++) {
        found = find_in_subtask(manifest->subtasks[i], i, ret_fault);
    }
    return found;
}

void manifest_refusal_text(const Bourse__V1__Manifest *manifest, const struct codec_error *refused,
                           char *ret_text, size_t capacity)
{
    struct fault fault = {.place = ""};
    if (!find_fault(manifest, &fault)) {
        (void)snprintf(ret_text, capacity,
                       "the job cannot be sent: %s is out of its range (%" PRId64 ", limit %" PRId64
                       "), or is no plain text",
                       refused->field[0] != '\0' ? refused->field : "a field", refused->value,
                       refused->limit);
    } else if (fault.is_utf8) {
        (void)snprintf(ret_text, capacity,
                       "the job cannot be sent: %s has the control character 0x%02" PRIx32
                       " as byte %zu; the only control characters allowed are tabs and ends of "
                       "lines. Put the text into an input file, or let the program make it (printf "
                       "'\\%03" PRIo32 "')",
                       fault.place, fault.point, fault.at + 1, fault.point);
    } else {
        (void)snprintf(ret_text, capacity,
                       "the job cannot be sent: %s has byte %zu, 0x%02" PRIx32
                       ", which is not UTF-8. Put the bytes into an input file",
                       fault.place, fault.at + 1, fault.point);
    }
}
