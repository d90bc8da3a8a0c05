/* The main thread of a running broker announces the market, obeys signals, and gives the supervisor
 * signs of life. */
#include "broker/broker_internal.h"
#include "broker/fatal.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANNOUNCE_MS = 1000 };

bool broker_announce(struct broker *broker, struct problem *ret_problem)
{
    struct market *market = &broker->market;
    market->server = *identity_transport(broker->store.transport_key);
    market->cluster = broker->store.genesis.cluster;
    market->log_key = broker->store.genesis.log_key;
    market->pid = getpid();
    market->other_count = config_others(&broker->config, market->control, market->others);
    memcpy(market->origin, broker->store.genesis.origin, sizeof market->origin);
    (void)unlink(broker->old_market_path);
    if (!market_write(broker->market_path, market, ret_problem)) {
        return false;
    }
    if (broker->is_group && (chown(broker->market_path, (uid_t)-1, broker->group) != 0 ||
                             chmod(broker->market_path, 0640) != 0)) {
        problem_set(ret_problem, "%s: %s", broker->market_path, strerror(errno));
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- signs of life */

/* The gateway never waits for another thread, so a gateway without turns hangs. Threads that write
 * are not watched, because a slow disk is no reason to kill a broker. */
struct pulse {
    const struct gateway *gateway;
    int64_t every_ms; /* 0: nobody waits for signs of life */
    uint64_t turns;
};

static struct pulse pulse_of(const struct broker *broker)
{
    return (struct pulse){.gateway = broker->gateway,
                          .every_ms = (notify_alive_every_ns() + 999999) / 1000000};
}

static void beat(struct pulse *pulse)
{
    uint64_t turns = gateway_turns(pulse->gateway);
    if (pulse->every_ms > 0 && turns != pulse->turns) {
        pulse->turns = turns;
        notify_alive();
    }
}

/* ---------------------------------------------------------------- signals */

enum waited { WAITED_END, WAITED_RELOAD, WAITED_TIMEOUT };

/* Waits for one signal. A negative timeout has no end. */
static enum waited wait_for_signal(int signals, int64_t timeout_ms)
{
    struct pollfd item = {.fd = signals, .events = POLLIN};
    for (;;) {
        const int ready = poll(&item, 1, (int)timeout_ms);
        if (ready < 0 && errno != EINTR) {
            fatal("signals cannot be received: %s", strerror(errno));
        }
        struct signalfd_siginfo info;
        if (ready > 0 && read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
            return info.ssi_signo == SIGHUP ? WAITED_RELOAD : WAITED_END;
        }
        if (ready == 0) {
            return WAITED_TIMEOUT;
        }
    }
}

/* Returns how long to wait: until the next pulse, or until the next attempt to announce, whichever
 * comes first. -1: without end. */
static int64_t timeout_of(const struct pulse *pulse, bool is_announced)
{
    if (is_announced) {
        return pulse->every_ms > 0 ? pulse->every_ms : -1;
    }
    return pulse->every_ms > 0 && pulse->every_ms < ANNOUNCE_MS ? pulse->every_ms : ANNOUNCE_MS;
}

/* A SIGHUP is for the request to hand over that is in the folder, or for broker.yaml. Returns true
 * when the broker hands over. */
static bool obeys_transfer(struct broker *broker)
{
    if (!transfer_take(broker->folder, broker->wish)) {
        broker_reload(broker);
        return false;
    }
    if (broker->store.replicated == NULL) {
        log_error("the lead cannot be handed over: the journal is on this disk alone");
    } else if (atomic_load(&broker->store.quorum.is_away)) {
        log_error("the lead cannot be handed over while etcd takes no entry");
    } else {
        log_info("hands the lead over%s%s", broker->wish[0] != '\0' ? " to " : "", broker->wish);
        broker->hands_over = true;
    }
    return broker->hands_over;
}

/* Serves until a signal. While the disk has no room for market.yaml, only clients that know the
 * endpoints reach the broker. */
bool broker_serve(struct broker *broker, int signals, struct problem *ret_problem)
{
    bool is_announced = broker_announce(broker, ret_problem);
    if (!is_announced && disk_reserve_state(&broker->reserve) == DISK_RESERVE_UNUSED) {
        return false;
    }
    struct pulse pulse = pulse_of(broker);
    notify_ready();
    if (!is_announced) {
        log_error("%s; the file is written as soon as there is room", ret_problem->text);
    }
    for (;;) {
        enum waited waited = wait_for_signal(signals, timeout_of(&pulse, is_announced));
        if (waited == WAITED_END) {
            return true;
        }
        if (waited == WAITED_RELOAD && obeys_transfer(broker)) {
            return true;
        }
        is_announced = is_announced || broker_announce(broker, ret_problem);
        beat(&pulse);
    }
}
