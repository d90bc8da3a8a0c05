#include "broker/storage/entry.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"

static const uint8_t magic[4] = {'B', 'J', 'E', '1'};

enum { LENGTH_FIELD_BYTES = 4 };

void entry_results_set(struct entry_results *results, size_t position)
{
    assert(position < ENTRY_RESULTS_MAX);
    results->bits[position / 8] |= (uint8_t)(1U << (position % 8));
}

bool entry_results_has(const struct entry_results *results, size_t position)
{
    return position < ENTRY_RESULTS_MAX &&
           (results->bits[position / 8] & (1U << (position % 8))) != 0;
}

static uint32_t dice_bytes(const struct entry_command *command)
{
    return command->kind == ENTRY_RESULTS ? sizeof command->dice.bytes : 0;
}

static uint32_t missing_bytes(const struct entry_command *command)
{
    return (command->verdict & ENTRY_MISSING) != 0 ? sizeof command->missing.bits : 0;
}

size_t entry_command_size(const struct entry_command *command)
{
    return (size_t)LENGTH_FIELD_BYTES + ENTRY_COMMAND_HEAD_BYTES + dice_bytes(command) +
           missing_bytes(command) + command->payload_length;
}

static void write_command(struct writer *out, const struct entry_command *command)
{
    assert(command->payload_length <= ENTRY_MAX_BYTES);
    writer_u32(out, (uint32_t)entry_command_size(command) - LENGTH_FIELD_BYTES);
    writer_i64(out, command->log_time_ns);
    writer_u32(out, command->account);
    writer_u16(out, (uint16_t)command->kind);
    writer_u16(out, command->verdict);
    writer_bytes(out, command->dice.bytes, dice_bytes(command));
    writer_bytes(out, command->missing.bits, missing_bytes(command));
    writer_bytes(out, command->payload, command->payload_length);
}

size_t entry_write(const struct entry_head *head, const struct entry_command *commands,
                   uint8_t *ret_bytes, size_t capacity)
{
    assert(head->count > 0);
    struct writer out =
        writer_over(ret_bytes, capacity < ENTRY_MAX_BYTES ? capacity : ENTRY_MAX_BYTES);
    writer_bytes(&out, magic, sizeof magic);
    writer_u32(&out, head->count);
    writer_u64(&out, head->index);
    writer_u64(&out, head->epoch);
    writer_bytes(&out, head->batch.bytes, sizeof head->batch.bytes);
    writer_bytes(&out, head->previous.bytes, sizeof head->previous.bytes);
    writer_u64(&out, head->first_command);
    for (uint32_t i = 0; i < head->count; i++) {
        write_command(&out, &commands[i]);
    }
    return out.failed ? 0 : out.position;
}

static bool kind_is_known(uint16_t kind)
{
    return kind >= ENTRY_MESSAGE && kind <= ENTRY_OUTAGE;
}

static bool verdict_is_known(const struct entry_command *command)
{
    const uint16_t known = ENTRY_SIGNED | (command->kind == ENTRY_RESULTS ? ENTRY_MISSING : 0);
    return (command->verdict & ~known) == 0;
}

static bool read_command(struct reader *in, struct entry_command *ret_command)
{
    uint32_t length = reader_u32(in);
    if (in->failed || length < ENTRY_COMMAND_HEAD_BYTES) {
        return false;
    }
    struct entry_command command = {.log_time_ns = reader_i64(in), .account = reader_u32(in)};
    uint16_t kind = reader_u16(in);
    command.kind = (enum entry_command_kind)kind;
    command.verdict = reader_u16(in);
    uint32_t head_length =
        ENTRY_COMMAND_HEAD_BYTES + dice_bytes(&command) + missing_bytes(&command);
    if (in->failed || !kind_is_known(kind) || !verdict_is_known(&command) || length < head_length) {
        return false;
    }
    reader_bytes(in, command.dice.bytes, dice_bytes(&command));
    reader_bytes(in, command.missing.bits, missing_bytes(&command));
    command.payload_length = length - head_length;
    command.payload = reader_view(in, command.payload_length);
    if (in->failed) {
        return false;
    }
    *ret_command = command;
    return true;
}

bool entry_read_head(const void *bytes, size_t length, struct entry_head *ret_head)
{
    if (length > ENTRY_MAX_BYTES) {
        return false;
    }
    struct reader in = reader_over(bytes, length);
    const uint8_t *begin = reader_view(&in, sizeof magic);
    if (begin == NULL || memcmp(begin, magic, sizeof magic) != 0) {
        return false;
    }
    struct entry_head head = {
        .count = reader_u32(&in), .index = reader_u64(&in), .epoch = reader_u64(&in)};
    reader_bytes(&in, head.batch.bytes, sizeof head.batch.bytes);
    reader_bytes(&in, head.previous.bytes, sizeof head.previous.bytes);
    head.first_command = reader_u64(&in);
    if (in.failed || head.count == 0 || head.index == 0 || head.first_command == 0) {
        return false;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        struct entry_command command;
        if (!read_command(&in, &command)) {
            return false;
        }
    }
    if (!reader_finished(&in)) {
        return false;
    }
    *ret_head = head;
    return true;
}

bool entry_next(const void *bytes, size_t length, size_t *position,
                struct entry_command *ret_command)
{
    size_t start = *position == 0 ? ENTRY_HEAD_BYTES : *position;
    if (start >= length) {
        return false;
    }
    struct reader in = reader_over((const uint8_t *)bytes + start, length - start);
    if (!read_command(&in, ret_command)) {
        return false;
    }
    *position = start + in.position;
    return true;
}
