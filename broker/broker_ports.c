/* The broker opens and closes its sockets here. */
#include "broker/broker_internal.h"

#include "broker/blob/port/blobs.h"
#include "protocol/limits.h"
#include "runtime/descriptor.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/router.h"
#include "runtime/zap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

static bool bind_ipc(struct broker *broker, struct router *router, const char *name,
                     char ret_endpoint[256], struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(broker->folder, name, path, sizeof path, ret_problem)) {
        return false;
    }
    size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (strlen(path) > most) {
        problem_set(
            ret_problem,
            "%.60s...: a socket's path has at most %zu bytes, this one %zu; use a shorter folder",
            path, most, strlen(path));
        return false;
    }
    (void)unlink(path); /* left by a killed broker, which the lock shows to be gone */
    (void)snprintf(ret_endpoint, 256, "ipc://%.107s", path); /* not cut: its length was checked */
    if (!router_bind(router, ret_endpoint, broker->is_group, NULL, 0, ret_problem)) {
        return false;
    }
    if (broker->is_group && chown(path, (uid_t)-1, broker->group) != 0) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static bool open_port(struct broker *broker, const char *socket_name, const char *listen,
                      const char *advertise, size_t message_bytes, struct router **ret_router,
                      char ret_endpoint[256], struct problem *ret_problem)
{
    uid_t own[] = {geteuid()};
    const bool is_blobs = message_bytes == LIMIT_BLOB_MESSAGE_BYTES;
    struct router_config config = {.identity = broker->store.transport_key,
                                   .max_message_bytes = message_bytes,
                                   /* Sealing a large blob does not hold up orders. */
                                   .io_threads = is_blobs ? BLOBS_IO_THREADS : 1,
                                   .receive_queue = is_blobs ? BLOBS_RECEIVE_QUEUE : 0,
                                   .send_key_bytes = is_blobs ? BLOBS_SEND_KEY_BYTES : 0,
                                   .uids = own,
                                   .uid_count = broker->is_group ? 0 : 1};
    char tcp[CONFIG_ENDPOINT_SIZE] = "";
    if (!router_open(broker->context, &config, ret_router, ret_problem) ||
        !bind_ipc(broker, *ret_router, socket_name, ret_endpoint, ret_problem)) {
        return false;
    }
    if (listen[0] == '\0') {
        return true;
    }
    if (!router_bind(*ret_router, listen, false, tcp, sizeof tcp, ret_problem)) {
        return false;
    }
    log_info("listening on %s", tcp);
    /* Invitations name this endpoint, so everybody connects to it, our own agent included. It is as
     * the operator wrote it, unless the system chose the port. For an IPv4 address the dual socket
     * has another name. */
    const char *port = strrchr(listen, ':');
    bool chosen = port != NULL && (strcmp(port, ":*") == 0 || strcmp(port, ":0") == 0);
    (void)snprintf(ret_endpoint, 256, "%s",
                   advertise[0] != '\0' ? advertise
                   : chosen             ? tcp
                                        : listen);
    return true;
}

/* The port lies beside the blob port; its name is no longer, so that its path fits. */
static bool open_file_port(struct broker *broker, struct problem *ret_problem)
{
    char path[PATH_MAX];
    if (!folder_path(broker->folder, MARKET_FILE_SOCKET, path, sizeof path, ret_problem) ||
        !descriptor_port_open(path, broker->is_group, &broker->file_port, ret_problem)) {
        return false;
    }
    if (broker->is_group && chown(path, (uid_t)-1, broker->group) != 0) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

bool broker_open_ports(struct broker *broker, struct problem *ret_problem)
{
    const struct broker_config *config = &broker->config;
    broker->context = zmq_ctx_new();
    if (broker->context == NULL || zmq_ctx_set(broker->context, ZMQ_IO_THREADS, 2) != 0) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    return zap_start(broker->context, &broker->zap, ret_problem) &&
           open_port(broker, MARKET_SOCKET, config->listen, config->advertise, LIMIT_MESSAGE_BYTES,
                     &broker->control, broker->market.control, ret_problem) &&
           open_port(broker, MARKET_BLOB_SOCKET, config->blob_listen, config->blob_advertise,
                     LIMIT_BLOB_MESSAGE_BYTES, &broker->blob_port, broker->market.blobs,
                     ret_problem) &&
           open_file_port(broker, ret_problem);
}

static void close_port(const struct broker *broker, struct router **router, const char *name)
{
    char path[PATH_MAX];
    struct problem problem;
    if (*router != NULL) {
        router_close(router);
        if (folder_path(broker->folder, name, path, sizeof path, &problem)) {
            (void)unlink(path); /* left by libzmq; the next start would remove it too */
        }
    }
}

static void close_file_port(struct broker *broker)
{
    char path[PATH_MAX];
    struct problem problem;
    if (broker->file_port >= 0) {
        (void)close(broker->file_port);
        broker->file_port = -1;
        if (folder_path(broker->folder, MARKET_FILE_SOCKET, path, sizeof path, &problem)) {
            (void)unlink(path); /* the next start would remove it too */
        }
    }
}

void broker_close_ports(struct broker *broker)
{
    close_port(broker, &broker->control, MARKET_SOCKET);
    close_port(broker, &broker->blob_port, MARKET_BLOB_SOCKET);
    close_file_port(broker);
    zap_stop(&broker->zap);
    if (broker->context != NULL) {
        (void)zmq_ctx_term(broker->context); /* all sockets are closed */
    }
}
