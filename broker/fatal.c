#include "broker/fatal.h"

#include "runtime/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_SIZE = 512 };

/* Destructors do not run, because other threads are still running. */
static _Noreturn void end(int status, const char *text)
{
    log_error("%s", text);
    _exit(status);
}

void fatal(const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* a longer text is cut */
    va_end(arguments);
    end(FATAL_EXIT_STATUS, text);
}

void fatal_deposed(const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    end(FATAL_DEPOSED_STATUS, text);
}
