#include "consumer/command/shell/shell_escape.h"

static bool ends_line(char byte)
{
    return byte == '\n' || byte == '\r';
}

static enum shell_action action_of(char byte)
{
    enum { CONTROL_Z = 'Z' & 0x1f };
    switch (byte) {
    case '.':
        return SHELL_LEAVE;
    case '?':
        return SHELL_HELP;
    case CONTROL_Z:
        return SHELL_SUSPEND;
    default:
        return SHELL_NOTHING;
    }
}

enum shell_action shell_escape_read(struct shell_escape *escape, const char *bytes, size_t size,
                                    char *ret_bytes, size_t *ret_size, size_t *ret_used)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        const char byte = bytes[i];
        if (escape->has_tilde) {
            escape->has_tilde = false;
            const enum shell_action action = action_of(byte);
            if (action != SHELL_NOTHING) { /* the line has not begun */
                *ret_size = count;
                *ret_used = i + 1;
                return action;
            }
            ret_bytes[count++] = '~';
            escape->is_in_line = !ends_line(byte);
            if (byte == '~') {
                continue;
            }
        } else if (byte == '~' && !escape->is_in_line) {
            escape->has_tilde = true;
            continue;
        }
        ret_bytes[count++] = byte;
        escape->is_in_line = !ends_line(byte);
    }
    *ret_size = count;
    *ret_used = size;
    return SHELL_NOTHING;
}
