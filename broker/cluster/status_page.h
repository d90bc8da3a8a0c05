/* A status_page shows a market's brokers and its etcd to the operator. It is text, JSON, or figures
 * for Prometheus. The code is pure but for the stream that it writes to. */
#ifndef BOURSE_BROKER_CLUSTER_STATUS_PAGE_H
#define BOURSE_BROKER_CLUSTER_STATUS_PAGE_H

#include "broker/cluster/folder_copy.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_roster.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct status_page {
    const struct etcd_inquiry *etcd;
    const struct folder_copy *own;
    const struct etcd_roster_list *brokers;
    const char *own_id; /* of this folder's record; "": it has none */
    bool is_own_old;    /* this folder is of a journal that has ended */
    int64_t now_ms;     /* wall clock */
};

enum status_page_role {
    STATUS_PAGE_LEADS,
    STATUS_PAGE_FOLLOWS,
    STATUS_PAGE_STOPPED,
    STATUS_PAGE_SILENT
};
/* Returns what broker number `i` of the list does. STOPPED: it said so. SILENT: its lease ended. */
enum status_page_role status_page_role(const struct status_page *page, size_t i);
/* Returns how many entries broker number `i` lacks. One that was at the end of the journal a moment
 * before its record lacks none. */
uint64_t status_page_behind(const struct status_page *page, size_t i);
/* Compares the newest states of broker number `i` and of the leader. UNKNOWN: they are of two
 * commands, nobody leads, or there is none yet. */
enum status_page_state { STATUS_PAGE_UNKNOWN, STATUS_PAGE_AGREES, STATUS_PAGE_DIFFERS };
enum status_page_state status_page_state(const struct status_page *page, size_t i);

void status_page_text(FILE *out, const struct status_page *page);
void status_page_json(FILE *out, const struct status_page *page);
/* Writes Prometheus' text format. Without a journal, only the members of etcd are there. */
void status_page_metrics(FILE *out, const struct status_page *page);
/* Writes the lines of the members of etcd and of its alarms. */
void status_page_etcd(FILE *out, const struct etcd_inquiry *found);

#endif
