#include "broker/config.h"

#include "base/text.h"
#include "protocol/identity.h"
#include "protocol/message.h"
#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct broker_config config;
static struct problem problem;

static bool parse_of(const char *text, bool is_new)
{
    problem.text[0] = '\0';
    return config_parse(text, strlen(text), "broker.yaml", is_new, &config, &problem);
}

static bool parse(const char *text)
{
    return parse_of(text, true);
}

static void ck_refused(const char *text, const char *what)
{
    ck_assert_msg(!parse(text), "accepted: %s", text);
    ck_assert_msg(strstr(problem.text, what) != NULL, "\"%s\" lacks \"%s\"", problem.text, what);
}

START_TEST(an_empty_file_means_the_defaults)
{
    ck_assert_msg(parse(""), "%s", problem.text);
    ck_assert_int_eq(config.heartbeat_ms, 1000);
    ck_assert_int_eq(config.blob_quota_bytes, INT64_C(64) << 30);
    ck_assert_str_eq(config.listen, "");
    ck_assert_uint_eq(config.genesis.account_count, 0);
    ck_assert_uint_eq(config.limits.subtasks_per_account, 10000000);
}
END_TEST

START_TEST(the_journal_may_be_on_etcd)
{
    ck_assert_msg(parse(""), "%s", problem.text);
    ck_assert_uint_eq(config.etcd.member_count, 0);
    ck_assert_msg(parse("journal:\n  etcd: [https://a.example:2379, 'https://[::1]:2380']\n"
                        "  ca: /c/ca.pem\n  certificate: /c/broker.pem\n  key: /c/broker.key\n"),
                  "%s", problem.text);
    ck_assert_uint_eq(config.etcd.member_count, 2);
    ck_assert_str_eq(config.etcd.members[1], "https://[::1]:2380");
    ck_assert_str_eq(config.etcd.ca, "/c/ca.pem");
    ck_assert_str_eq(config.etcd.certificate, "/c/broker.pem");
    ck_assert_str_eq(config.etcd.key, "/c/broker.key");
}
END_TEST

#define ON_ETCD                                                                                    \
    "journal: {etcd: ['https://a:1'], ca: /c/ca.pem, certificate: /c/b.pem, key: /c/b.key}\n"

START_TEST(a_broker_of_a_cluster_has_a_rank)
{
    ck_assert_msg(parse(ON_ETCD), "%s", problem.text);
    ck_assert_uint_eq(config.cluster_rank, 0);
    ck_assert_msg(parse(ON_ETCD "cluster: {rank: 9, address: 'tcp://b.example:4770'}\n"), "%s",
                  problem.text);
    ck_assert_uint_eq(config.cluster_rank, 9);
    ck_assert_str_eq(config.cluster_address, "tcp://b.example:4770");
    ck_assert_uint_eq(config.cluster_copies, 1);
    ck_assert_msg(parse(ON_ETCD "cluster: {rank: 9, copies: 2}\nlisten: tcp://127.0.0.1:1\n"
                                "blob_listen: tcp://127.0.0.1:2\naddresses:\n"
                                "  - {control: 'tcp://a.example:1', blobs: 'tcp://a.example:2'}\n"
                                "  - {control: 'tcp://b.example:1', blobs: 'tcp://b.example:2'}\n"),
                  "%s", problem.text);
    ck_assert_uint_eq(config.cluster_copies, 2);
    ck_refused(ON_ETCD "cluster: {rank: 9, copies: 2}\n", "addresses");
    ck_refused(ON_ETCD "cluster: {rank: 9, copies: 0}\n", "copies");
    ck_refused(ON_ETCD "cluster: {rank: 9, copies: 6}\n", "copies");
    ck_refused("cluster: {rank: 1}\n", "journal.etcd");
    ck_refused(ON_ETCD "cluster: {rank: 10}\n", "rank");
    ck_refused(ON_ETCD "cluster: {address: 'tcp://b.example:4770'}\n", "rank");
    ck_refused(ON_ETCD "cluster: {rank: 1, address: 'tcp://b.example:*'}\n", "port");
}
END_TEST

START_TEST(an_etcd_without_tls_or_files_is_refused)
{
    static const char files[] = "\n  ca: /a\n  certificate: /b\n  key: /c\n";
    static const char *const members[] = {"[]",
                                          "[http://a:2379]",
                                          "[https://a]",
                                          "[https://:2379]",
                                          "[https://a:0]",
                                          "[https://a:2379/x]",
                                          "https://a:2379"};
    char text[256];
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        (void)snprintf(text, sizeof text, "journal:\n  etcd: %s%s", members[i], files);
        ck_refused(text, "broker.yaml");
    }
    ck_refused("journal:\n  etcd: [https://a:2379]\n  ca: /a\n  certificate: /b\n", "key");
    ck_refused("journal:\n  etcd: [https://a:2379]\n  ca: ''\n  certificate: /b\n  key: /c\n",
               "from / or");
    ck_refused("journal:\n  ca: /a\n  certificate: /b\n  key: /c\n", "etcd");
    ck_refused("journal:\n  etcd: [https://a:2379]\n  user: root\n", "user");
}
END_TEST

START_TEST(by_default_no_account_may_have_all_subtasks)
{
    ck_assert_msg(parse("limits: {subtasks: 1001}"), "%s", problem.text);
    ck_assert_uint_eq(config.limits.subtasks_per_account, 501);
    ck_assert_msg(parse("limits: {subtasks: 1}"), "%s", problem.text);
    ck_assert_uint_eq(config.limits.subtasks_per_account, 1);
    ck_assert_msg(parse("limits: {subtasks_per_account: 7}"), "%s", problem.text);
    ck_assert_uint_eq(config.limits.subtasks_per_account, 7);
    ck_refused("limits: {subtasks_per_account: 0}", "subtasks_per_account");
}
END_TEST

START_TEST(every_key_is_read)
{
    uint8_t seed[32] = {1};
    char key[65];
    char text[1024];
    struct identity *identity = identity_create(seed);
    text_hex(identity_key(identity)->bytes, 32, key);
    identity_destroy(&identity);
    (void)snprintf(
        text, sizeof text,
        "origin: exchange.example/main\nlisten: tcp://0.0.0.0:4770\nblob_listen: "
        "tcp://0.0.0.0:4771\n"
        "advertise: tcp://a.example:4770\nblob_advertise: tcp://a.example:4771\nheartbeat: 500ms\n"
        "workers: 4\nsnapshot_every: 64\ngenesis:\n  fee_ppm: 20000\n  price_band: 50.00\n  "
        "accounts:\n"
        "    - {key: \"%s\", name: ops, roles: [operator, consumer], credits: \"2.5\"}\n"
        "limits: {rate: 7, jobs: 9, subtasks: 1000000, blob_quota: 1GiB}\n",
        key);
    ck_assert_msg(parse(text), "%s", problem.text);
    ck_assert_str_eq(config.origin, "exchange.example/main");
    ck_assert_str_eq(config.advertise, "tcp://a.example:4770");
    ck_assert_int_eq(config.heartbeat_ms, 500);
    ck_assert_uint_eq(config.workers, 4);
    ck_assert_uint_eq(config.snapshot_every, 64);
    ck_assert_uint_eq(config.genesis.fee_ppm, 20000);
    ck_assert_int_eq(config.genesis.price_band_micro, 50000000);
    ck_assert_uint_eq(config.genesis.account_count, 1);
    ck_assert_uint_eq(config.genesis.accounts[0].roles, ROLE_OPERATOR | ROLE_CONSUMER);
    ck_assert_int_eq(config.genesis.accounts[0].credits_micro, 2500000);
    ck_assert_uint_eq(config.rate, 7);
    ck_assert_uint_eq(config.limits.jobs, 9);
    ck_assert_uint_eq(config.limits.subtasks, 1000000);
    ck_assert_int_eq(config.blob_quota_bytes, 1 << 30);
}
END_TEST

START_TEST(addresses_list_the_brokers_of_the_market)
{
    static const char own[] = "listen: tcp://127.0.0.1:4770\nblob_listen: tcp://127.0.0.1:4771\n"
                              "advertise: tcp://a.example:4770\n";
    struct contact others[CONTACTS_MAX - 1];
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "%saddresses:\n"
                   "  - {control: tcp://a.example:4770, blobs: tcp://a.example:4771}\n"
                   "  - {control: tcp://b.example:4770, blobs: tcp://b.example:4771}\n",
                   own);
    ck_assert_msg(parse(text), "%s", problem.text);
    ck_assert_uint_eq(config.address_count, 2);
    ck_assert_uint_eq(config_others(&config, "tcp://a.example:4770", others), 1);
    ck_assert_str_eq(others[0].control, "tcp://b.example:4770");
    ck_assert_str_eq(others[0].blobs, "tcp://b.example:4771");
    ck_assert_uint_eq(config_others(&config, "tcp://c.example:4770", others), 2);
    ck_assert_msg(parse("workers: 2"), "%s", problem.text);
    ck_assert_uint_eq(config_others(&config, "", others), 0);
}
END_TEST

START_TEST(addresses_that_lead_nowhere_are_refused)
{
    static const struct {
        const char *list, *wanted;
    } wrong[] = {
        {"addresses: [{control: tcp://b:1}]", "blobs"},
        {"addresses: [{control: \"ipc:///b\", blobs: tcp://b:2}]", "tcp://HOST:PORT"},
        {"addresses: [{control: tcp://b:1, blobs: tcp://b:x}]", "tcp://HOST:PORT"},
        {"addresses: [{control: tcp://b:1, blobs: tcp://b:2, rank: 1}]", "rank"},
        {"addresses: [tcp://b:1]", "broker.yaml:3"},
        {"addresses: [{control: tcp://b:1, blobs: tcp://b:2}, {control: tcp://b:1, blobs: "
         "tcp://b:3}]",
         "same control port"},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(text, sizeof text,
                       "listen: tcp://127.0.0.1:4770\nblob_listen: tcp://127.0.0.1:4771\n%s\n",
                       wrong[i].list);
        ck_refused(text, wrong[i].wanted);
    }
    ck_refused("addresses: [{control: tcp://b:1, blobs: tcp://b:2}]", "set listen");
    int length = snprintf(text, sizeof text,
                          "listen: tcp://127.0.0.1:4770\nblob_listen: tcp://127.0.0.1:4771\n"
                          "addresses:\n");
    for (int i = 0; i < CONTACTS_MAX; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "  - {control: tcp://b%d:1, blobs: tcp://b%d:2}\n", i, i);
    }
    ck_refused(text, "at most 8 brokers");
}
END_TEST

START_TEST(mistakes_are_named_with_their_line)
{
    ck_refused("lisen: tcp://0.0.0.0:1", "did you mean \"listen\"");
    ck_refused("\nheartbeat: 10", "broker.yaml:2");
    ck_refused("listen: tcp://0.0.0.0:1", "blob_listen");
    ck_refused("listen: 0.0.0.0:1\nblob_listen: tcp://0.0.0.0:2", "tcp://ADDRESS:PORT");
    ck_refused("listen: tcp://0.0.0.0:1\nblob_listen: tcp://0.0.0.0:2", "needs advertise");
    static const char *const ports[] = {"76770", "0", "abc", "", "4770x", "-1", "99999999999"};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text,
                       "listen: \"tcp://127.0.0.1:%s\"\nblob_listen: tcp://127.0.0.1:2", ports[i]);
        ck_refused(text, "1 to 65535");
    }
    ck_refused("listen: tcp://:1\nblob_listen: tcp://127.0.0.1:2", "tcp://ADDRESS:PORT");
    ck_refused("listen: tcp://127.0.0.1:1\nblob_listen: tcp://127.0.0.1:1", "a port each");
    ck_refused("advertise: tcp://a.example:*", "1 to 65535");
    ck_assert_msg(parse("listen: \"tcp://127.0.0.1:*\"\nblob_listen: \"tcp://127.0.0.1:*\""), "%s",
                  problem.text);
    ck_refused("reserve: 1KiB", "set 1MiB or more, or 0 for none");
    ck_refused("origin: a b", "origin");
    ck_refused("genesis: {fee_ppm: 1000001}", "fee_ppm");
    ck_refused("genesis: {accounts: [{key: abc, roles: [consumer]}]}", "key");
    ck_refused("genesis: {accounts: [{roles: [consumer]}]}", "key");
    ck_refused("genesis: {accounts: [{key: "
               "\"0000000000000000000000000000000000000000000000000000000000000000\", roles: "
               "[consumer]}]}",
               "not a valid account key");
    ck_refused("limits: {rate: 0}", "rate");
    ck_refused("limits: {blob_quota: 12 apples}", "blob_quota");
}
END_TEST

START_TEST(accounts_that_nobody_could_mend_later_are_refused)
{
    uint8_t seed[32] = {2};
    char key[65];
    char text[512];
    struct identity *identity = identity_create(seed);
    text_hex(identity_key(identity)->bytes, 32, key);
    identity_destroy(&identity);
    (void)snprintf(text, sizeof text, "genesis: {accounts: [{key: \"%s\", roles: [consumer]}]}",
                   key);
    ck_refused(text, "role operator");
    ck_assert_msg(parse_of(text, false), "%s", problem.text); /* its genesis was made long ago */
    (void)snprintf(text, sizeof text,
                   "genesis: {accounts: [{key: \"%s\", roles: [operator]}, {key: \"%s\", roles: "
                   "[consumer]}]}",
                   key, key);
    ck_refused(text, "same key");
    ck_assert_msg(parse_of(text, false), "%s", problem.text);
    ck_assert_msg(parse("genesis: {accounts: []}"), "%s", problem.text);
}
END_TEST

/* The key of step 1 stands in place of its placeholder. */
START_TEST(the_config_of_the_page_is_read)
{
    static const char placeholder[] = "<the public key of step 1>";
    uint8_t seed[32] = {3};
    char key[65];
    char example[PAGE_EXAMPLE_SIZE];
    char text[PAGE_EXAMPLE_SIZE + sizeof key];
    struct identity *identity = identity_create(seed);
    text_hex(identity_key(identity)->bytes, 32, key);
    identity_destroy(&identity);
    char *page = page_read("docs/operator.md");
    ck_assert_ptr_nonnull(
        page_example(page, "cat > /var/lib/bourse/broker.yaml <<END", "END", example));
    free(page);
    const char *at = strstr(example, placeholder);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example), example, key,
                   at + strlen(placeholder));
    ck_assert_msg(parse(text), "%s in:\n%s", problem.text, text);
    ck_assert_str_eq(config.origin, "exchange.example/main");
    ck_assert_uint_eq(config.genesis.account_count, 1);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("broker config");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, an_empty_file_means_the_defaults);
    tcase_add_test(tests, the_journal_may_be_on_etcd);
    tcase_add_test(tests, a_broker_of_a_cluster_has_a_rank);
    tcase_add_test(tests, an_etcd_without_tls_or_files_is_refused);
    tcase_add_test(tests, by_default_no_account_may_have_all_subtasks);
    tcase_add_test(tests, every_key_is_read);
    tcase_add_test(tests, accounts_that_nobody_could_mend_later_are_refused);
    tcase_add_test(tests, addresses_list_the_brokers_of_the_market);
    tcase_add_test(tests, addresses_that_lead_nowhere_are_refused);
    tcase_add_test(tests, mistakes_are_named_with_their_line);
    tcase_add_test(tests, the_config_of_the_page_is_read);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
