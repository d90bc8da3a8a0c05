/* `struct broker` is one complete broker, which the units broker*.c of this folder share. */
#ifndef BOURSE_BROKER_BROKER_INTERNAL_H
#define BOURSE_BROKER_BROKER_INTERNAL_H

#include "broker/broker.h"

#include "broker/answer/reader.h"
#include "broker/blob/blob_store.h"
#include "broker/blob/keeper/keeper.h"
#include "broker/blob/outputs.h"
#include "broker/blob/port/blob_access.h"
#include "broker/blob/port/blobs.h"
#include "broker/cluster/membership.h"
#include "broker/cluster/transfer.h"
#include "broker/core/committer.h"
#include "broker/core/core.h"
#include "broker/core/follower.h"
#include "broker/core/logtime.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/verify.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/epoch.h"
#include "broker/storage/snapshot/snapshots.h"
#include "runtime/market.h"
#include "runtime/router.h"
#include "runtime/zap.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct broker {
    struct broker_config config;
    int signals;                   /* descriptor of process_signals */
    bool has_ended;                /* a signal came while this broker followed another one */
    bool hands_over;               /* the operator wants another broker to lead */
    char wish[TRANSFER_WISH_SIZE]; /* which one, as transfer.h says it */
    /* The epoch under which this process led until it handed over; 0: it did not. */
    uint64_t handed_over_epoch;
    bool is_announced; /* market.yaml is there */
    bool has_feed;     /* the exchange has its feed since this broker followed */
    struct storage store;
    struct membership *membership; /* NULL: the journal is on this disk alone */
    struct exchange *exchange;
    struct logtime *clock;
    struct epoch epoch;
    bool is_group; /* the folder's group gets in: the agent of root's market */
    gid_t group;
    char folder[PATH_MAX], snapshots_folder[PATH_MAX], market_path[PATH_MAX], database[PATH_MAX];
    char history[PATH_MAX], challenges[PATH_MAX], blobs_folder[PATH_MAX];
    char epoch_path[PATH_MAX];
    char old_market_path[PATH_MAX]; /* market.yaml of a killed broker: its space is kept for ours */
    struct market market;
    void *context;
    struct zap *zap;
    struct router *control, *blob_port;
    int file_port;
    struct directory *directories[3]; /* gateway, reader, blobs */
    struct blob_access *access;
    struct blob_store *blob_store;
    struct outputs *outputs;
    struct disk_reserve reserve;
    struct budget *budget; /* shared by gateway, core and reader */
    struct queue *workers_in[GATEWAY_WORKERS_MAX];
    struct queue *core_in, *groups, *to_tables, *applied, *returned, *releases, *notes, *names,
        *reads, *keeps, *snapshot_requests;
    struct gateway *gateway;
    struct verify_worker *workers[GATEWAY_WORKERS_MAX];
    struct core *core;
    struct committer *committer;
    struct follower *follower;
    atomic_uint committing; /* groups between core and committer */
    struct reader_thread *reader;
    struct keeper *keeper;
    struct snapshots *snapshots;
    struct blobs *blobs;
};

/* Opens the storage. A start on a full disk gives the reserve up and tries once more. */
bool broker_open_storage(struct broker *broker, bool adopt, bool *ret_new,
                         struct problem *ret_problem);
/* Rebuilds or founds the exchange, leads the journal, and sets the limits of broker.yaml. With
 * `adopt` a folder may leave the etcd cluster that its journal was on. */
bool broker_start_exchange(struct broker *broker, bool is_new, bool adopt,
                           struct problem *ret_problem);

/* Follows the leader of the journal on etcd until this broker leads. Opens the ports. Returns false
 * with a problem, or when broker->has_ended. */
bool broker_follow(struct broker *broker, bool adopt, struct problem *ret_problem);

/* Writes market.yaml. Returns false with a problem. */
bool broker_announce(struct broker *broker, struct problem *ret_problem);
/* Announces the market and serves it until a signal ends the broker. A SIGHUP reads broker.yaml
 * again, or hands the lead over when a request for that is in the folder. Returns false with a
 * problem when market.yaml cannot be written for another reason than a full disk. */
bool broker_serve(struct broker *broker, int signals, struct problem *ret_problem);
/* Reads broker.yaml again and applies what can change while the broker runs. The log names what
 * changed, and what waits for a restart. A file with a fault changes nothing. */
void broker_reload(struct broker *broker);

/* Opens the ports and writes their endpoints to broker->market. */
bool broker_open_ports(struct broker *broker, struct problem *ret_problem);
/* Closes the ports that are open, and the sockets' context. */
void broker_close_ports(struct broker *broker);

#endif
