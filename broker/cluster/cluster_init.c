#include "broker/cluster/cluster_init.h"

#include "base/text.h"
#include "broker/cluster/certificates.h"
#include "broker/cluster/cluster_nodes.h"
#include "runtime/entropy.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE = 8192, ORIGIN_BYTES_MAX = 60, KEY_BYTES = 32 };

/* An init is the command under way. */
struct init {
    const struct cluster_init_options *options;
    struct cluster_nodes nodes;
    unsigned days;
    uint64_t token; /* tells the new etcd cluster from any other */
    char part[PATH_MAX], authority[PATH_MAX];
    char text[FILE_SIZE];
    size_t length;
};

/* ---- files */

__attribute__((format(printf, 2, 3))) static void put(struct init *init, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written =
        vsnprintf(init->text + init->length, sizeof init->text - init->length, format, arguments);
    va_end(arguments);
    init->length += written > 0 ? (size_t)written : 0;
}

/* Writes what was put into a file. */
static bool write_out(struct init *init, const char *folder, const char *name,
                      struct problem *ret_problem)
{
    char path[PATH_MAX];
    const size_t length = init->length;
    init->length = 0;
    if (length >= sizeof init->text ||
        snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        problem_set(ret_problem, "%s/%s: the names are too long", folder, name);
        return false;
    }
    return file_write(path, init->text, length, 0600, ret_problem);
}

static bool make_folder(const char *parent, const char *name, char ret_path[PATH_MAX],
                        struct problem *ret_problem)
{
    if (snprintf(ret_path, PATH_MAX, "%s/%s", parent, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
    } else if (mkdir(ret_path, 0700) == 0) {
        return true;
    }
    problem_set(ret_problem, "%s/%s: %s", parent, name, strerror(errno));
    return false;
}

static bool copy_ca(const struct init *init, const char *folder, const char *name,
                    struct problem *ret_problem)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    (void)snprintf(from, sizeof from, "%s/ca.pem", init->authority);
    (void)snprintf(to, sizeof to, "%s/%s", folder, name);
    return file_copy(from, to, ret_problem);
}

/* ---- etcd */

static unsigned port_of(const struct cluster_node *node, enum cluster_nodes_port which)
{
    return node->port + (unsigned)which;
}

static void put_members(struct init *init)
{
    for (size_t i = 0; i < init->nodes.count; i++) {
        const struct cluster_node *node = &init->nodes.nodes[i];
        put(init, "%sbourse-%zu=https://%s:%u", i == 0 ? "" : ",", i + 1, node->host,
            port_of(node, NODE_PEERS));
    }
}

static void put_transport(struct init *init, const char *side)
{
    put(init,
        "%s-transport-security:\n  cert-file: etcd.pem\n  key-file: etcd.key\n"
        "  client-cert-auth: true\n  trusted-ca-file: ca.pem\n",
        side);
}

/* The numbers are those of docs/operator.md, The members. */
static bool write_etcd(struct init *init, size_t number, const char *folder,
                       struct problem *ret_problem)
{
    const struct cluster_node *node = &init->nodes.nodes[number - 1];
    put(init,
        "# Member %zu of etcd for a bourse market. Paths are relative to this folder.\n"
        "name: bourse-%zu\ndata-dir: data\n",
        number, number);
    put(init, "listen-client-urls: https://%s:%u\nadvertise-client-urls: https://%s:%u\n",
        cluster_node_listens(node), port_of(node, NODE_CLIENTS), node->host,
        port_of(node, NODE_CLIENTS));
    put(init, "listen-peer-urls: https://%s:%u\ninitial-advertise-peer-urls: https://%s:%u\n",
        cluster_node_listens(node), port_of(node, NODE_PEERS), node->host,
        port_of(node, NODE_PEERS));
    put(init, "initial-cluster: ");
    put_members(init);
    put(init, "\ninitial-cluster-token: bourse-%016" PRIx64 "\ninitial-cluster-state: new\n",
        init->token);
    put_transport(init, "client");
    put_transport(init, "peer");
    put(init, "snapshot-count: 1000\nheartbeat-interval: 50\nelection-timeout: 500\n"
              "pre-vote: true\nquota-backend-bytes: 8589934592\n"
              "auto-compaction-retention: \"0\"\nlogger: zap\nlog-level: warn\n");
    return write_out(init, folder, "etcd.yaml", ret_problem);
}

static bool write_unit(struct init *init, const char *folder, struct problem *ret_problem)
{
    put(init, "[Unit]\nDescription=etcd for a bourse market\nAfter=network-online.target\n"
              "Wants=network-online.target\n\n"
              "[Service]\nType=notify\nUser=etcd\nWorkingDirectory=/var/lib/bourse-etcd\n"
              "ExecStart=/usr/bin/etcd --config-file etcd.yaml\nRestart=always\nRestartSec=1\n"
              "LimitNOFILE=65536\nUMask=0077\nNoNewPrivileges=yes\nProtectSystem=strict\n"
              "ReadWritePaths=/var/lib/bourse-etcd\nProtectHome=yes\nPrivateTmp=yes\n\n"
              "[Install]\nWantedBy=multi-user.target\n");
    return write_out(init, folder, "bourse-etcd.service", ret_problem);
}

static bool make_etcd(struct init *init, size_t number, const char *node_folder,
                      struct problem *ret_problem)
{
    char folder[PATH_MAX];
    return make_folder(node_folder, "etcd", folder, ret_problem) &&
           copy_ca(init, folder, "ca.pem", ret_problem) &&
           certificates_sign(init->authority, folder, "etcd", &init->nodes.nodes[number - 1],
                             CERTIFICATES_MEMBER, init->days, ret_problem) &&
           write_etcd(init, number, folder, ret_problem) && write_unit(init, folder, ret_problem);
}

/* ---- the broker */

static void put_addresses(struct init *init)
{
    put(init, "addresses:\n");
    for (size_t i = 0; i < init->nodes.count; i++) {
        const struct cluster_node *node = &init->nodes.nodes[i];
        put(init, "  - {control: tcp://%s:%u, blobs: tcp://%s:%u}\n", node->host,
            port_of(node, NODE_CONTROL), node->host, port_of(node, NODE_BLOBS));
    }
}

static void put_journal(struct init *init)
{
    put(init, "journal:\n  etcd: [");
    for (size_t i = 0; i < init->nodes.count; i++) {
        const struct cluster_node *node = &init->nodes.nodes[i];
        put(init, "%shttps://%s:%u", i == 0 ? "" : ", ", node->host, port_of(node, NODE_CLIENTS));
    }
    put(init, "]\n  ca: " CLUSTER_INIT_CA "\n  certificate: " CLUSTER_INIT_CLIENT
              ".pem\n  key: " CLUSTER_INIT_CLIENT ".key\n");
}

static bool write_broker(struct init *init, size_t number, const char *folder,
                         struct problem *ret_problem)
{
    const struct cluster_node *node = &init->nodes.nodes[number - 1];
    const char *on = cluster_node_listens(node);
    put(init, "# Broker %zu of %zu. Paths are relative to this folder.\n", number,
        init->nodes.count);
    if (init->options->origin != NULL) {
        put(init, "origin: %s\n", init->options->origin);
    }
    put(init, "listen: tcp://%s:%u\nblob_listen: tcp://%s:%u\n", on, port_of(node, NODE_CONTROL),
        on, port_of(node, NODE_BLOBS));
    put(init, "advertise: tcp://%s:%u\nblob_advertise: tcp://%s:%u\n", node->host,
        port_of(node, NODE_CONTROL), node->host, port_of(node, NODE_BLOBS));
    put(init, "cluster: {rank: %zu, address: \"tcp://%s:%u\"}\n", number - 1, node->host,
        port_of(node, NODE_CONTROL));
    put_journal(init);
    put_addresses(init);
    put(init,
        "genesis:\n  accounts:\n    - {key: \"%s\", name: operator, roles: [operator, consumer], "
        "credits: \"0\"}\n",
        init->options->operator);
    return write_out(init, folder, MARKET_BROKER_CONFIG, ret_problem);
}

static bool make_broker(struct init *init, size_t number, const char *node_folder,
                        struct problem *ret_problem)
{
    char folder[PATH_MAX];
    return make_folder(node_folder, "broker", folder, ret_problem) &&
           copy_ca(init, folder, CLUSTER_INIT_CA, ret_problem) &&
           certificates_sign(init->authority, folder, CLUSTER_INIT_CLIENT,
                             &init->nodes.nodes[number - 1], CERTIFICATES_CLIENT, init->days,
                             ret_problem) &&
           write_broker(init, number, folder, ret_problem);
}

/* ---- the whole */

static bool make_node(struct init *init, size_t number, struct problem *ret_problem)
{
    char name[16];
    char folder[PATH_MAX];
    (void)snprintf(name, sizeof name, "node%zu", number);
    return make_folder(init->part, name, folder, ret_problem) &&
           make_etcd(init, number, folder, ret_problem) &&
           make_broker(init, number, folder, ret_problem);
}

static bool check_origin(const char *origin)
{
    const size_t length = origin != NULL ? strlen(origin) : 1;
    bool good = length > 0 && length <= ORIGIN_BYTES_MAX;
    for (size_t i = 0; origin != NULL && i < length; i++) {
        good =
            good && (strchr("./-", origin[i]) != NULL || (origin[i] >= 'a' && origin[i] <= 'z') ||
                     (origin[i] >= '0' && origin[i] <= '9'));
    }
    return good;
}

static bool read_days(const char *text, unsigned *ret_days)
{
    char *end;
    const long days = text != NULL ? strtol(text, &end, 10) : CERTIFICATES_DAYS;
    *ret_days = (unsigned)days;
    return text == NULL || (*text >= '1' && *text <= '9' && *end == '\0' && days > 0 &&
                            days <= CERTIFICATES_DAYS_MAX);
}

static bool check_words(struct init *init, struct problem *ret_problem)
{
    const struct cluster_init_options *options = init->options;
    uint8_t key[KEY_BYTES];
    if (options->nodes == NULL) {
        problem_set(ret_problem, "init needs the machines: --nodes 10.0.0.1,10.0.0.2,10.0.0.3");
        return false;
    }
    if (options->operator== NULL || !text_unhex(options->operator, key, sizeof key)) {
        problem_set(ret_problem, "init needs the operator's public key, 64 hex digits: --operator "
                                 "KEY; `bourse key` makes a key and prints it");
        return false;
    }
    if (!check_origin(options->origin)) {
        problem_set(ret_problem,
                    "--origin: give at most %d small letters, digits, points, hyphens and slashes, "
                    "as in exchange.example/main",
                    ORIGIN_BYTES_MAX);
        return false;
    }
    if (!read_days(options->days, &init->days)) {
        problem_set(ret_problem, "--days: give 1 to %d", CERTIFICATES_DAYS_MAX);
        return false;
    }
    return cluster_nodes_read(options->nodes, &init->nodes, ret_problem);
}

/* A folder that is there is left alone: it may hold the only key of an authority. */
static bool begin(struct init *init, struct problem *ret_problem)
{
    struct stat status;
    const char *folder = init->options->folder;
    if (lstat(folder, &status) == 0) {
        problem_set(ret_problem,
                    "%s is there already, and nothing is overwritten: name a new folder", folder);
        return false;
    }
    if (snprintf(init->part, sizeof init->part, "%s.part", folder) >= (int)sizeof init->part) {
        problem_set(ret_problem, "%.200s: the name is too long", folder);
        return false;
    }
    if (mkdir(init->part, 0700) != 0) {
        problem_set(ret_problem, "%s: %s%s", init->part, strerror(errno),
                    errno == EEXIST ? "; an init that failed left it, remove it" : "");
        return false;
    }
    return true;
}

static bool make(struct init *init, struct problem *ret_problem)
{
    init->token = entropy_u64();
    bool good = make_folder(init->part, "ca", init->authority, ret_problem) &&
                certificates_authority(init->authority, init->days, ret_problem);
    for (size_t i = 1; good && i <= init->nodes.count; i++) {
        good = make_node(init, i, ret_problem);
    }
    if (!good) {
        return false;
    }
    if (rename(init->part, init->options->folder) != 0) {
        problem_set(ret_problem, "%s: %s", init->options->folder, strerror(errno));
        return false;
    }
    return true;
}

static void tell(const struct init *init)
{
    const char *folder = init->options->folder;
    (void)printf(
        "%s has a folder for each node, and ca/, whose key signs new certificates: keep it "
        "apart.\n",
        folder);
    for (size_t i = 0; i < init->nodes.count; i++) {
        const struct cluster_node *node = &init->nodes.nodes[i];
        (void)printf("node%zu  %s: ports %u to %u\n", i + 1, node->host, node->port,
                     node->port + NODE_PORTS - 1);
    }
    (void)puts(
        "Carry nodeN/etcd to /var/lib/bourse-etcd and nodeN/broker to /var/lib/bourse of node "
        "N,\nstart etcd on all nodes, then the broker of node 1, and let the others join:\n"
        "docs/operator.md, Three machines, has every step.");
}

bool cluster_init_run(const struct cluster_init_options *options, bool *ret_is_usage,
                      struct problem *ret_problem)
{
    struct init *init = calloc(1, sizeof *init);
    *ret_is_usage = false;
    if (init == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    init->options = options;
    *ret_is_usage = !check_words(init, ret_problem);
    const bool good = !*ret_is_usage && begin(init, ret_problem) && make(init, ret_problem);
    if (good) {
        tell(init);
    }
    free(init);
    return good;
}
