#include "broker/cluster/cluster_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535 };

static bool is_host_character(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '.' || character == '-';
}

/* Reads four numbers up to 255 with points between them. */
static bool is_ipv4(const char *host)
{
    for (int part = 0; part < 4; part++) {
        char *end;
        if (*host < '0' || *host > '9') {
            return false;
        }
        const long number = strtol(host, &end, 10);
        if (number > 255 || end - host > 3 || *end != (part < 3 ? '.' : '\0')) {
            return false;
        }
        host = end + 1;
    }
    return true;
}

static bool read_port(const char *text, unsigned *ret_port)
{
    char *end;
    if (*text < '1' || *text > '9') {
        return false;
    }
    const long port = strtol(text, &end, 10);
    *ret_port = (unsigned)port;
    return *end == '\0' && port <= PORT_MAX - NODE_PORTS + 1;
}

static bool read_node(char *text, struct cluster_node *ret_node, struct problem *ret_problem)
{
    char *colon = strchr(text, ':');
    ret_node->port = CLUSTER_NODES_PORT;
    if (colon != NULL) {
        *colon = '\0';
        if (!read_port(colon + 1, &ret_node->port)) {
            problem_set(ret_problem, "--nodes: the port %.20s of %.100s: give one up to %d",
                        colon + 1, text, PORT_MAX - NODE_PORTS + 1);
            return false;
        }
    }
    const size_t length = strlen(text);
    bool good = length > 0 && length < sizeof ret_node->host && text[0] != '-';
    for (size_t i = 0; i < length; i++) {
        good = good && is_host_character(text[i]);
    }
    if (!good) {
        problem_set(ret_problem,
                    "--nodes: \"%.100s\" is no host: give names or IPv4 addresses of machines, as "
                    "in 10.0.0.1,10.0.0.2,10.0.0.3",
                    text);
        return false;
    }
    (void)snprintf(ret_node->host, sizeof ret_node->host, "%s", text);
    ret_node->is_ip = is_ipv4(text);
    return true;
}

static bool is_apart(const struct cluster_node *one, const struct cluster_node *other)
{
    return strcmp(one->host, other->host) != 0 || one->port + NODE_PORTS <= other->port ||
           other->port + NODE_PORTS <= one->port;
}

static bool add(struct cluster_nodes *nodes, char *text, struct problem *ret_problem)
{
    struct cluster_node *node = &nodes->nodes[nodes->count];
    if (nodes->count == CLUSTER_NODES_MAX) {
        problem_set(ret_problem, "--nodes: %d nodes are the most", CLUSTER_NODES_MAX);
        return false;
    }
    if (!read_node(text, node, ret_problem)) {
        return false;
    }
    for (size_t i = 0; i < nodes->count; i++) {
        if (!is_apart(&nodes->nodes[i], node)) {
            problem_set(ret_problem,
                        "--nodes: %.100s is named twice; two nodes on one host need ports that are "
                        "%d apart",
                        node->host, NODE_PORTS);
            return false;
        }
    }
    nodes->count++;
    return true;
}

bool cluster_nodes_read(const char *text, struct cluster_nodes *ret_nodes,
                        struct problem *ret_problem)
{
    char copy[CLUSTER_NODES_MAX * (CLUSTER_NODES_HOST_SIZE + 8)];
    ret_nodes->count = 0;
    if (strlen(text) >= sizeof copy) {
        problem_set(ret_problem, "--nodes: the list is too long");
        return false;
    }
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (!add(ret_nodes, at, ret_problem)) {
            return false;
        }
        at = comma != NULL ? comma + 1 : NULL;
    }
    if (ret_nodes->count < 3 || ret_nodes->count % 2 == 0) {
        problem_set(ret_problem,
                    "--nodes: %zu were named; give an odd number, 3 at least, so that most of them "
                    "are left when one is lost",
                    ret_nodes->count);
        return false;
    }
    return true;
}

const char *cluster_node_listens(const struct cluster_node *node)
{
    return node->is_ip ? node->host : "0.0.0.0";
}
