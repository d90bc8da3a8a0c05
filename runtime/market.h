/* runtime/market.h names the files of a market's folder, by which broker, agent and client find one
 * another.
 *
 *   DIR/              0700 (0710 and the agent's group when root runs an embedded market)
 *     market.yaml     written by the broker when it is ready (endpoints, keys, pid)         0640
 *     broker.yaml     the broker's config (optional keys; docs/operator.md)
 *     broker.key      Ed25519 seed of the broker's transport key          0600
 *     log.key         Ed25519 seed that signs checkpoints, and whether it did               0600
 *     owner.key       the operator's and consumer's key of an embedded market
 *     ledger.db       journal + ledger (SQLite), ledger.db-wal
 *     journal-tail.0, .1   newest entries of the journal, which ledger.db may not have yet
 *     HEAD            (index, chain hash, signed tree size); keep it OUT of backups
 *     LOCK            flock'ed by the running broker
 *     reserve         nothing but its size: room for cancels when the disk is full
 *     snapshots/      state-<index>.snapshot
 *     blobs/          blobs.db and large blobs as files
 *     history.db      measured times of work
 *     challenges      what challenges of devices found
 *     broker.sock, blobs.sock   ipc endpoints
 *     blobs.fd        hands over blobs as open files
 *     provider/       the agent's folder: provider.yaml, provider.key, control.sock, cache/,
 *                     spool/ (0700, the agent's user) */
#ifndef BOURSE_RUNTIME_MARKET_H
#define BOURSE_RUNTIME_MARKET_H

#define MARKET_FILE "market.yaml"
#define MARKET_BROKER_CONFIG "broker.yaml"
#define MARKET_BROKER_KEY "broker.key"
#define MARKET_LOG_KEY "log.key"
#define MARKET_AUDIT_KEY "audit.key"
#define MARKET_KEY_PUBLIC ".public" /* log.public stands for log.key where that is a credential */
#define MARKET_OWNER_KEY "owner.key"
#define MARKET_DATABASE "ledger.db"
#define MARKET_TAIL_0 "journal-tail.0"
#define MARKET_TAIL_1 "journal-tail.1"
#define MARKET_HEAD "HEAD"
#define MARKET_JOURNAL_ETCD "journal.etcd"
#define MARKET_EPOCH "epoch.secret"
#define MARKET_LOCK "LOCK"
#define MARKET_RESERVE "reserve"
#define MARKET_RESERVE_LAST "reserve.last"
#define MARKET_SNAPSHOTS "snapshots"
#define MARKET_BLOBS "blobs"
#define MARKET_HISTORY "history.db"
#define MARKET_CHALLENGES "challenges"
#define MARKET_SOCKET "broker.sock"
#define MARKET_BLOB_SOCKET "blobs.sock"
#define MARKET_FILE_SOCKET "blobs.fd" /* descriptor_path of MARKET_BLOB_SOCKET */
#define MARKET_PROVIDER "provider"
#define MARKET_PROVIDER_CONFIG "provider.yaml"
#define MARKET_PROVIDER_KEY "provider.key"
#define MARKET_CONTROL_SOCKET "control.sock" /* of the running agent, for its owner */
/* The agent's log has this when it is connected and its owner paused everything. */
#define PAUSED_SAID "connected; paused by its owner, nothing is offered"

#include "base/id.h"
#include "base/problem.h"
#include "formats/yaml.h"
#include "protocol/identity.h"
#include "protocol/route/contacts.h"

#include <stdbool.h>
#include <stddef.h>

/* The content of market.yaml. An invitation or a joined context writes the same to a client's
 * config. */
struct market {
    char control[LIMIT_ENDPOINT_BYTES + 1]; /* zmq endpoint */
    char blobs[LIMIT_ENDPOINT_BYTES + 1];
    /* The other brokers of the market, over tcp. All brokers have the keys below in common. */
    struct contact others[CONTACTS_MAX - 1];
    size_t other_count;
    struct key32 server; /* the broker's X25519 transport key */
    struct id128 cluster;
    char origin[64]; /* name of the Merkle log */
    struct key32 log_key;
    long pid; /* the broker's process id; 0: unknown */
};

/* market_read() and market_write() read and write market.yaml. The file names the broker's key, so
 * its writer chooses the broker. The file is read only if it is ours or root's and nobody else may
 * write it (files.h, file_read_trusted). */
bool market_read(const char *path, struct market *ret_market, struct problem *ret_problem);
bool market_write(const char *path, const struct market *market, struct problem *ret_problem);

/* Lists the addresses of all brokers of the market, `control` and `blobs` first, and returns how
 * many they are. */
size_t market_addresses(const struct market *market, struct contact ret_addresses[CONTACTS_MAX]);
/* Reads the key `addresses` of market.yaml or broker.yaml: a list of at most `most` maps, each with
 * the endpoints `control` and `blobs`. Writes at most `most` addresses, and returns how many. What
 * is wrong is refused by the file. */
size_t market_read_addresses(struct yaml_value list, struct contact *ret_addresses, size_t most);

/* Returns true when the folder of the file `path` is a broker's: the broker itself writes
 * market.yaml there. *ret_problem then says so. */
bool market_is_of_broker(const char *path, struct problem *ret_problem);

/* A joining client writes its file before it asks, so that nothing on its side can fail afterwards.
 * market_stage() writes the file beside `path` and makes it durable. market_settle() renames it,
 * which takes no space. market_unstage() removes it when the broker refused. A file left by a
 * killed process is overwritten. market_stage() refuses the folder of a broker. */
bool market_stage(const char *path, const struct market *market, struct problem *ret_problem);
bool market_settle(const char *path, struct problem *ret_problem);
void market_unstage(const char *path);

/* A key of the market is a file of its folder, or a credential that the supervisor hands to the
 * service (runtime/keyfile.h). Where it is a credential, the folder has the public key instead:
 * `log.public` stands for `log.key`. It is 64 hex digits and a newline. By it the audit knows that
 * the key is not lost. */

/* Returns true when the key is a credential of the service, even if it cannot be read. */
bool market_key_is_credential(const char *name);
/* Opens the key `name` of the market in `folder`. A key is made only where `may_make` says so and
 * there is none, because a new key beside a ledger would belong to another broker. The broker
 * cannot note in a credential that the key of a log has signed. So such a credential founds no
 * market, and must have that note.
 *
 * Returns false with a problem, also when the key is both a file and a credential. */
bool market_key_open(const char *folder, const char *name, bool may_make, struct identity **ret_key,
                     unsigned *ret_notes, struct problem *ret_problem);
/* Returns true when the folder of a market says that this key was a credential at the newest
 * start. */
bool market_key_is_elsewhere(const char *folder, const char *name);
/* Makes the folder tell where the key `name` is. `key` is the public key by which the market knows
 * it. The file of the public key is written for a credential, and removed for a key file. The
 * caller has checked that the key is the market's. */
bool market_key_tell(const char *folder, const char *name, const struct key32 *key,
                     struct problem *ret_problem);

#endif
