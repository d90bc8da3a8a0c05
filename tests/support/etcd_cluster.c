#include "tests/support/etcd_cluster.h"

#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/etcd/grpc_member.h"
#include "tests/support/child.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 1024, ARGUMENTS = 40, AWAIT_LOOKS = 1200, LOOK_MS = 50 };

bool etcd_cluster_is_possible(void)
{
    return system("command -v etcd >/dev/null && command -v openssl >/dev/null") == 0;
}

static bool free_port(unsigned *ret_port, int *ret_socket)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *ret_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*ret_socket < 0 || bind(*ret_socket, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(*ret_socket, (struct sockaddr *)&address, &length) != 0) {
        return false;
    }
    *ret_port = ntohs(address.sin_port);
    return true;
}

/* All sockets are open at once, so that no port is found twice. */
static bool find_ports(struct etcd_cluster *cluster)
{
    int sockets[2 * ETCD_CLUSTER_MEMBERS];
    bool good = true;
    unsigned opened = 0;
    for (unsigned i = 0; good && i < 2 * ETCD_CLUSTER_MEMBERS; i++) {
        unsigned *port = i % 2 == 0 ? &cluster->client_ports[i / 2] : &cluster->peer_ports[i / 2];
        good = free_port(port, &sockets[i]);
        opened += sockets[i] >= 0;
    }
    for (unsigned i = 0; i < opened; i++) {
        (void)close(sockets[i]);
    }
    return good;
}

/* The words of one member's command line. */
struct words {
    char texts[ARGUMENTS][PATH_SIZE];
    char *pointers[ARGUMENTS + 1];
    unsigned count;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(words->texts[words->count], PATH_SIZE, format, arguments);
    va_end(arguments);
    words->pointers[words->count] = words->texts[words->count];
    words->pointers[++words->count] = NULL;
}

static void say(const struct etcd_cluster *cluster, unsigned member, struct words *words)
{
    const char *folder = cluster->folder;
    add(words, "etcd");
    add(words, "--name=m%u", member);
    add(words, "--data-dir=%s/m%u", folder, member);
    add(words, "--listen-client-urls=https://127.0.0.1:%u", cluster->client_ports[member]);
    add(words, "--advertise-client-urls=https://127.0.0.1:%u", cluster->client_ports[member]);
    add(words, "--listen-peer-urls=https://127.0.0.1:%u", cluster->peer_ports[member]);
    add(words, "--initial-advertise-peer-urls=https://127.0.0.1:%u", cluster->peer_ports[member]);
    add(words,
        "--initial-cluster=m0=https://127.0.0.1:%u,m1=https://127.0.0.1:%u,m2=https://127.0.0.1:%u",
        cluster->peer_ports[0], cluster->peer_ports[1], cluster->peer_ports[2]);
    add(words, "--initial-cluster-token=%s", folder);
    for (unsigned i = 0; i < 2; i++) {
        const char *side = i == 0 ? "" : "peer-";
        add(words, "--%scert-file=%s/server.pem", side, folder);
        add(words, "--%skey-file=%s/server.key", side, folder);
        add(words, "--%strusted-ca-file=%s/ca.pem", side, folder);
        add(words, "--%sclient-cert-auth", side);
    }
    add(words, "--snapshot-count=1000");
    add(words, "--heartbeat-interval=50");
    add(words, "--election-timeout=500");
    add(words, "--pre-vote");
    add(words, "--quota-backend-bytes=%" PRIu64, cluster->quota_bytes);
    add(words, "--log-level=warn");
    add(words, "--logger=zap");
}

static bool start(struct etcd_cluster *cluster, unsigned member)
{
    static struct words words;
    words.count = 0;
    say(cluster, member, &words);
    char log[PATH_SIZE];
    (void)snprintf(log, sizeof log, "%.500s/m%u.log", cluster->folder, member);
    cluster->pids[member] = child_fork();
    if (cluster->pids[member] == 0) {
        const int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(out, STDERR_FILENO);
        execvp("etcd", words.pointers);
        _exit(127);
    }
    return cluster->pids[member] > 0;
}

static void set_config(struct etcd_cluster *cluster)
{
    struct etcd_config *config = &cluster->config;
    config->member_count = ETCD_CLUSTER_MEMBERS;
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        (void)snprintf(config->members[i], sizeof config->members[i], "https://127.0.0.1:%u",
                       cluster->client_ports[i]);
    }
    (void)snprintf(config->ca, sizeof config->ca, "%.500s/ca.pem", cluster->folder);
    (void)snprintf(config->certificate, sizeof config->certificate, "%.500s/client.pem",
                   cluster->folder);
    (void)snprintf(config->key, sizeof config->key, "%.500s/client.key", cluster->folder);
}

bool etcd_cluster_start(struct etcd_cluster *cluster, const char *source, const char *folder,
                        uint64_t quota_bytes)
{
    char command[2 * PATH_SIZE];
    *cluster = (struct etcd_cluster){.quota_bytes = quota_bytes};
    (void)snprintf(cluster->folder, sizeof cluster->folder, "%s", folder);
    (void)snprintf(command, sizeof command, "bash '%s/tests/support/etcd_certificates.sh' '%s'",
                   source, folder);
    if (system(command) != 0 || !find_ports(cluster)) {
        return false;
    }
    set_config(cluster);
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        if (!start(cluster, i)) {
            return false;
        }
    }
    return etcd_cluster_await(cluster);
}

void etcd_cluster_signal(struct etcd_cluster *cluster, unsigned member, int signal)
{
    if (cluster->pids[member] <= 0) {
        return;
    }
    (void)kill(cluster->pids[member], signal);
    if (signal == SIGKILL) {
        (void)waitpid(cluster->pids[member], NULL, 0);
        cluster->pids[member] = 0;
    }
}

bool etcd_cluster_restart(struct etcd_cluster *cluster, unsigned member)
{
    return start(cluster, member);
}

/* Asks one member; false when it does not answer, or knows no leader. */
static bool ask(const struct etcd_cluster *cluster, unsigned member, bool *ret_leads)
{
    struct grpc_member *connection = grpc_member_create(&cluster->config, member);
    struct etcd_answer answer;
    bool good = false;
    if (connection != NULL) {
        const struct grpc_reply reply =
            grpc_member_call(connection, etcd_method_path(ETCD_STATUS), NULL, 0, 1000);
        good = reply.outcome == GRPC_ANSWERED &&
               etcd_answer_read(ETCD_STATUS, reply.message, reply.length, &answer) &&
               answer.leader != 0;
        *ret_leads = good && answer.leader == answer.member;
    }
    grpc_member_destroy(&connection);
    return good;
}

static bool all_know(const struct etcd_cluster *cluster)
{
    bool leads;
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        if (cluster->pids[i] > 0 && !ask(cluster, i, &leads)) {
            return false;
        }
    }
    return true;
}

bool etcd_cluster_await(const struct etcd_cluster *cluster)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    for (unsigned i = 0; i < AWAIT_LOOKS; i++) {
        if (all_know(cluster)) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

int etcd_cluster_leader(const struct etcd_cluster *cluster)
{
    for (int i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        bool leads = false;
        if (cluster->pids[i] > 0 && ask(cluster, (unsigned)i, &leads) && leads) {
            return i;
        }
    }
    return -1;
}

void etcd_cluster_end(struct etcd_cluster *cluster)
{
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        etcd_cluster_signal(cluster, i, SIGKILL);
    }
}
