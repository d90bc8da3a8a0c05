/* The machines of a cluster, as a command line names them. */
#include "broker/cluster/cluster_nodes.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct cluster_nodes nodes;
static struct problem problem;

START_TEST(a_node_is_a_host_with_or_without_a_port)
{
    ck_assert_msg(cluster_nodes_read("10.0.0.1,b.example:5000,10.0.0.1:4774", &nodes, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(nodes.count, 3);
    ck_assert_str_eq(nodes.nodes[0].host, "10.0.0.1");
    ck_assert_uint_eq(nodes.nodes[0].port, CLUSTER_NODES_PORT);
    ck_assert_str_eq(cluster_node_listens(&nodes.nodes[0]), "10.0.0.1");
    ck_assert_str_eq(nodes.nodes[1].host, "b.example");
    ck_assert_uint_eq(nodes.nodes[1].port, 5000);
    ck_assert_str_eq(cluster_node_listens(&nodes.nodes[1]), "0.0.0.0");
    ck_assert_uint_eq(nodes.nodes[2].port, 4774);
}
END_TEST

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "no host"},
    {"a", "odd number"},
    {"a,b", "odd number"},
    {"a,b,c,d", "odd number"},
    {"a,b,", "no host"},
    {"a,b,a", "named twice"},
    {"a,b,a:4773", "named twice"},
    {"a,b,c:0", "port"},
    {"a,b,c:65533", "port"},
    {"a,b,c:5 ", "port"},
    {"a,b,-c", "no host"},
    {"a,b,c\nd", "no host"},
    {"a,b,c/../d", "no host"},
    {"a,b,c,d,e,f,g,h,i", "the most"},
};

START_TEST(what_is_no_cluster_is_refused)
{
    ck_assert(!cluster_nodes_read(wrong[_i].text, &nodes, &problem));
    ck_assert_msg(strstr(problem.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].text,
                  problem.text);
}
END_TEST

SUITE("cluster_nodes", NULL, NULL, TEST(a_node_is_a_host_with_or_without_a_port),
      LOOP(what_is_no_cluster_is_refused, 0, sizeof wrong / sizeof wrong[0]))
