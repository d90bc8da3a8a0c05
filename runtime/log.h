/* runtime/log.h writes log lines to stderr. A line is "time level message", or one JSON object. The
 * functions are thread-safe. Values from peers go through text_printable before they get here. Pure
 * rooms never log. */
#ifndef BOURSE_RUNTIME_LOG_H
#define BOURSE_RUNTIME_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_setup(enum log_level least, bool json);
bool log_level_from(const char *name, enum log_level *ret_level); /* "error" ... "debug" */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
