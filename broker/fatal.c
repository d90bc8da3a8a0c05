#include "broker/fatal.h"

#include "runtime/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void fatal(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* a longer text is cut */
    va_end(arguments);
    log_error("%s", text);
    _exit(FATAL_EXIT_STATUS); /* no destructors: other threads are still running */
}
