/* The program bourse-pjrt is a plug-in (docs/plugins.md) for the devices of a PJRT library, such as
 * a TPU. The owner's plug-in is a script that names the library:
 *
 *     #!/bin/sh
 *     exec /usr/libexec/bourse/bourse-pjrt /opt/libtpu/libtpu.so
 *
 * The program runs in the jail of a job, where bourse-plugin starts the script. */
#include "base/device_kind.h"
#include "provider/pjrt/pjrt_serve.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line: the last line of standard error is what the agent shows its owner. */
static const char usage[] = "usage: bourse-pjrt [--list] [--device N] [--kind KIND] "
                            "[--create NAME=VALUE]... LIBRARY\n";
static const char help[] =
    "\n"
    "Answers requests on standard input, one line of JSON each, with what the device of a PJRT\n"
    "library says and does (docs/plugins.md of bourse). LIBRARY is the path of the library, such\n"
    "as libtpu.so.\n"
    "\n"
    "  --list               prints the devices of the library, and answers nothing\n"
    "  --device N           the device with this place in the library's list; 0, the first one\n"
    "  --kind KIND          the market's kind of the device, such as tpu; else by the library\n"
    "  --create NAME=VALUE  an option for the library's client: a whole number, true, false, or a\n"
    "                       text\n";

static bool read_device(const char *text, size_t *ret_device)
{
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    *ret_device = number;
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool is_kind(const char *word)
{
    size_t count;
    const struct device_kind *kinds = device_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, word) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_option(int option, const char *value, struct pjrt_options *options)
{
    switch (option) {
    case 'd':
        return read_device(value, &options->device);
    case 'k':
        options->kind = value;
        return is_kind(value);
    case 'c':
        if (options->create_count == PJRT_CREATE_MAX || !pjrt_client_is_option(value)) {
            return false;
        }
        options->create[options->create_count++] = value;
        return true;
    default:
        return false;
    }
}

/* Returns a stream to standard output, which then leads to standard error, so that nothing that a
 * library prints comes between the answers. Returns NULL with errno. */
static FILE *take_output(void)
{
    const int answers = dup(STDOUT_FILENO);
    if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return NULL;
    }
    return fdopen(answers, "w");
}

int main(int count, char **words)
{
    static const struct option long_options[] = {
        {"device", required_argument, NULL, 'd'}, {"kind", required_argument, NULL, 'k'},
        {"create", required_argument, NULL, 'c'}, {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct pjrt_options options = {.library = NULL};
    bool is_list = false;
    int option;
    while ((option = getopt_long(count, words, "", long_options, NULL)) != -1) {
        if (option == 'h') {
            return printf("%s%s", usage, help) < 0;
        }
        is_list = is_list || option == 'l';
        if (option != 'l' && !read_option(option, optarg, &options)) {
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (optind + 1 != count) {
        (void)fputs(usage, stderr);
        return 2;
    }
    options.library = words[optind];
    FILE *out = take_output();
    if (out == NULL) {
        (void)fprintf(stderr, "bourse-pjrt: standard output: %s\n", strerror(errno));
        return 1;
    }
    return is_list ? pjrt_serve_list(&options, out) : pjrt_serve(&options, stdin, out);
}
