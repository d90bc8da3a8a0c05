/* This file reads broker.yaml again while the broker runs. */
#include "broker/broker_internal.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RELOAD_TEXT = 1024 };

/* A key_list is a list of keys for a line of the log. Keys that do not fit are left out. */
struct key_list {
    char text[RELOAD_TEXT];
    size_t length;
};

static void add_key(struct key_list *list, const char *text)
{
    int written = snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                           list->length == 0 ? "" : ", ", text);
    if (written > 0 && list->length + (size_t)written < sizeof list->text) {
        list->length += (size_t)written;
    }
}

static void add_number(struct key_list *list, const char *key, uint32_t old, uint32_t now)
{
    char text[96];
    if (old != now) {
        (void)snprintf(text, sizeof text, "%s %" PRIu32 " -> %" PRIu32, key, old, now);
        add_key(list, text);
    }
}

/* Names the keys of the file that only a start reads. The genesis and the origin of a market never
 * change, so they are not compared. */
static void find_waiting(const struct broker_config *old, const struct broker_config *now,
                         struct key_list *ret_list)
{
    const struct {
        const char *key;
        bool differs;
    } keys[] = {
        {"listen", strcmp(old->listen, now->listen) != 0},
        {"blob_listen", strcmp(old->blob_listen, now->blob_listen) != 0},
        {"advertise", strcmp(old->advertise, now->advertise) != 0},
        {"blob_advertise", strcmp(old->blob_advertise, now->blob_advertise) != 0},
        {"addresses", old->address_count != now->address_count ||
                          memcmp(old->addresses, now->addresses, sizeof old->addresses) != 0},
        {"heartbeat", old->heartbeat_ms != now->heartbeat_ms},
        {"challenge", old->challenge_ms != now->challenge_ms},
        {"workers", old->workers != now->workers},
        {"snapshot_every", old->snapshot_every != now->snapshot_every},
        {"journal", memcmp(&old->etcd, &now->etcd, sizeof old->etcd) != 0},
        {"cluster", old->cluster_rank != now->cluster_rank ||
                        strcmp(old->cluster_address, now->cluster_address) != 0},
        {"reserve", old->reserve_bytes != now->reserve_bytes},
        {"limits.blob_quota", old->blob_quota_bytes != now->blob_quota_bytes},
        {"limits.blob_size", old->blob_size_bytes != now->blob_size_bytes},
        {"limits.retain", old->blob_retain_ms != now->blob_retain_ms},
        {"limits.retain_most", old->blob_retain_most_ms != now->blob_retain_most_ms},
        {"limits.retain_least", old->blob_retain_least_ms != now->blob_retain_least_ms},
        {"limits.forget_grace", old->forget_grace_ms != now->forget_grace_ms},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].differs) {
            add_key(ret_list, keys[i].key);
        }
    }
    char caps[RELOAD_TEXT / 2];
    config_limits_text(&old->limits, &now->limits, caps, sizeof caps);
    if (caps[0] != '\0') {
        add_key(ret_list, caps);
    }
}

static void apply(struct broker *broker, const struct broker_config *now)
{
    struct key_list changed = {.text = ""};
    struct key_list waiting = {.text = ""};
    struct broker_config *config = &broker->config;
    add_number(&changed, "limits.rate", config->rate, now->rate);
    add_number(&changed, "limits.rate_anonymous", config->rate_anonymous, now->rate_anonymous);
    add_number(&changed, "limits.steps", config->steps, now->steps);
    find_waiting(config, now, &waiting);

    config->rate = now->rate;
    config->rate_anonymous = now->rate_anonymous;
    config->steps = now->steps;
    gateway_set_rates(broker->gateway, now->rate, now->rate_anonymous);
    budget_set_steps(broker->budget, now->steps);

    log_info("SIGHUP: %s was read again; %s%s", MARKET_BROKER_CONFIG,
             changed.length > 0 ? "in force: " : "nothing that can change now has changed",
             changed.text);
    if (waiting.length > 0) {
        log_warning("SIGHUP: only a restart changes %s", waiting.text);
    }
}

void broker_reload(struct broker *broker)
{
    struct problem problem;
    struct broker_config *now = malloc(sizeof *now); /* it is large */
    if (now == NULL) {
        log_error("SIGHUP: out of memory; the broker goes on with its settings");
        return;
    }
    if (config_load(broker->folder, false, now, &problem)) {
        apply(broker, now);
    } else {
        log_error("SIGHUP: %s; nothing was changed, and the broker goes on with its settings",
                  problem.text);
    }
    free(now);
}
