/* This file holds the steps that most subcommands share, such as connecting and finding a
 * job. */
#include "consumer/command/command.h"
#include "consumer/command/complain.h"
#include "consumer/command/screen.h"

#include "formats/units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A signal interrupts this connection. */
static struct bourse *volatile connected;
static bool reads_anywhere; /* that connection takes answers of brokers that follow */

static void on_interrupt(int number)
{
    (void)number;
    if (connected != NULL) {
        bourse_interrupt(connected);
    }
}

bool command_reader_is_gone(void)
{
    struct pollfd one = {.fd = STDOUT_FILENO};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLERR) != 0;
}

bool command_may_replace(struct invocation *invocation, const char *option, const char *path,
                         const void *head, size_t head_length, const char *kind, int *ret_status)
{
    enum { HEAD_MOST = 16 };
    char found[HEAD_MOST];
    struct stat facts;
    assert(head_length <= sizeof found);
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
        return true; /* writing the file will report any fault */
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "%s %s: the file is there, and whether it is a %s cannot be read: "
                               "%s; give another name",
                               option, path, kind, strerror(errno));
        return false;
    }
    ssize_t length = read(file, found, head_length);
    (void)close(file); /* only read */
    if (length == (ssize_t)head_length && memcmp(found, head, head_length) == 0) {
        return true;
    }
    *ret_status =
        complain(invocation, BOURSE_USAGE,
                 "%s %s: the file is there and is no %s; give another name", option, path, kind);
    return false;
}

bool command_market_is_there(struct invocation *invocation, int *ret_status)
{
    const struct setting_value *market = &invocation->settings.items[SETTING_MARKET];
    static const char unnamed[] = "default";
    char folder[SETTING_VALUE_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", market->value);
    if (strncmp(market->origin, unnamed, strlen(unnamed)) == 0 ||
        access(dirname(folder), F_OK) == 0) {
        return true;
    }
    *ret_status = complain(invocation, BOURSE_USAGE,
                           "%s (%s): %s; name the folder of a market or its market.yaml, `bourse "
                           "up` starts one, `bourse join INVITATION` joins one",
                           market->value, market->origin, strerror(errno));
    return false;
}

struct bourse_options command_connection(struct invocation *invocation, const char *market,
                                         const char *key)
{
    int64_t timeout_ns = 0;
    /* The value was checked when it was read. */
    (void)units_duration(invocation->settings.items[SETTING_TIMEOUT].value, &timeout_ns);
    struct settings_readers readers = {.any = false};
    (void)settings_read_from(invocation->settings.items[SETTING_READ_FROM].value, &readers);
    return (struct bourse_options){.market = market,
                                   .key = key,
                                   .program = "bourse " BOURSE_VERSION,
                                   .timeout_ms = (int)(timeout_ns / 1000000),
                                   .most_ms = invocation->calls_most_ms,
                                   .on_silence = complain_of_silence,
                                   .on_moved = complain_of_move,
                                   .on_stalled = complain_of_stall,
                                   .silence_context = invocation,
                                   .read_from_any = readers.any,
                                   .least_index = readers.least_index};
}

bool command_agrees(struct invocation *invocation, const char *question, const char *unasked,
                    const char *declined, int *ret_status)
{
    const int answer = invocation->json ? -1 : screen_ask_yes_no(question);
    if (answer < 0) {
        *ret_status = complain(invocation, BOURSE_USAGE, "%s", unasked);
    } else if (answer == 0) {
        *ret_status = complain(invocation, BOURSE_CANCELLED, "%s", declined);
    }
    return answer == 1;
}

bool command_connect(struct invocation *invocation, int *ret_status)
{
    if (!command_market_is_there(invocation, ret_status)) {
        return false;
    }
    const struct bourse_options options =
        command_connection(invocation, invocation->settings.items[SETTING_MARKET].value,
                           invocation->settings.items[SETTING_KEY].value);
    struct bourse_error error;
    if (!bourse_open(&options, &invocation->bourse, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    connected = invocation->bourse;
    reads_anywhere = options.read_from_any;
    /* SA_RESETHAND makes a second signal end the process. */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return true;
}

bool command_state(struct bourse_state *ret_state)
{
    if (connected == NULL || !reads_anywhere) {
        return false;
    }
    bourse_state(connected, ret_state);
    return true;
}

void command_disconnect(struct invocation *invocation)
{
    connected = NULL; /* before the connection is freed: a signal may come at any time */
    bourse_close(&invocation->bourse);
}

bool command_resolve_job(struct invocation *invocation, const char *text,
                         char ret_id[BOURSE_ID_SIZE], int *ret_status)
{
    struct bourse_error error;
    if (!bourse_find_job(invocation->bourse, text, ret_id, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    return true;
}
