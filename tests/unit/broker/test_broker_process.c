/* A real bourse-broker, spoken to over its socket: what a client can rely on. */
#include "tests/support/broker_process.h"

#include "base/sha256.h"
#include "protocol/envelope.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <zmq.h>

static ProtobufCBinaryData bytes_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

static struct identity *new_identity(void)
{
    uint8_t seed[32];
    entropy_bytes(seed, sizeof seed);
    struct identity *identity = identity_create(seed);
    ck_assert_ptr_nonnull(identity);
    return identity;
}

static int64_t available(struct broker_client *client)
{
    Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct dialogue_event event =
        broker_client_ask(client, MESSAGE_BALANCE_REQUEST, NULL, &body.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    int64_t micro = ((Bourse__V1__BalanceReply *)(void *)event.body)->available_micro;
    codec_free(&event.body);
    return micro;
}

static struct dialogue_event mint(struct broker_client *client, const struct identity *to,
                                  int64_t micro, const struct id128 *id)
{
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    body.account = bytes_of(identity_key(to)->bytes, 32);
    body.amount_micro = micro;
    return broker_client_ask(client, MESSAGE_MINT, id, &body.base);
}

static void invite(struct broker_client *operator_client, const struct id128 *token, uint32_t roles,
                   int64_t credits)
{
    Bourse__V1__InviteCreate body = BOURSE__V1__INVITE_CREATE__INIT;
    struct hash32 hash = sha256_of(token->bytes, sizeof token->bytes);
    body.token_hash = bytes_of(hash.bytes, 32);
    body.roles = roles;
    body.credits_micro = credits;
    body.expires_ms = dialogue_log_time_ms(operator_client->dialogue, clock_monotonic_ns()) + 60000;
    struct dialogue_event event =
        broker_client_ask(operator_client, MESSAGE_INVITE_CREATE, NULL, &body.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
}

static struct dialogue_event join(struct broker_client *client, const struct identity *identity,
                                  const struct id128 *token)
{
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    body.account = bytes_of(identity_key(identity)->bytes, 32);
    body.token = bytes_of(token->bytes, 16);
    body.name = (char *)(uintptr_t) "newcomer";
    return broker_client_ask(client, MESSAGE_JOIN, NULL, &body.base);
}

static struct dialogue_event submit(struct broker_client *client, int64_t budget_micro,
                                    const struct id128 *id)
{
    static const uint8_t manifest[32] = {1};
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    body.name = (char *)(uintptr_t) "job";
    body.manifest = bytes_of(manifest, sizeof manifest);
    body.subtasks = 3;
    body.budget_micro = budget_micro;
    body.has_cap_micro = true;
    body.cap_micro = 1000000;
    body.needs = &needs;
    body.slots = 1;
    body.at_most = 1;
    body.limit_ms = 60000;
    body.term_ms = 600000;
    body.verify = (char *)(uintptr_t) "none";
    return broker_client_ask(client, MESSAGE_SUBMIT_JOB, id, &body.base);
}

START_TEST(an_operator_is_known_and_has_what_the_genesis_gave)
{
    struct broker_process broker;
    struct broker_client client;
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&client, &broker, broker.owner, SESSION_CONSUMER);

    const Bourse__V1__Welcome *welcome = dialogue_welcome(client.dialogue);
    ck_assert(welcome->has_roles);
    ck_assert_uint_eq(welcome->roles, ROLE_CONSUMER | ROLE_OPERATOR);
    ck_assert_str_eq(welcome->account_name, "owner");
    ck_assert_int_eq(available(&client), 100000000);

    broker_client_close(&client);
    ck_assert(WIFEXITED(broker_process_stop(&broker, SIGTERM)));
    broker_process_fini(&broker);
}
END_TEST

START_TEST(an_unknown_key_can_only_join_and_only_once)
{
    struct broker_process broker;
    struct broker_client owner;
    struct broker_client newcomer;
    struct identity *identity = new_identity();
    struct identity *other = new_identity();
    struct id128 token = entropy_id();
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&owner, &broker, broker.owner, SESSION_CONSUMER);
    broker_client_open(&newcomer, &broker, identity, SESSION_CONSUMER);
    ck_assert(!dialogue_welcome(newcomer.dialogue)->has_roles);

    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct dialogue_event event =
        broker_client_ask(&newcomer, MESSAGE_BALANCE_REQUEST, NULL, &balance.base);
    ck_assert_int_eq(event.type, DIALOGUE_REJECTED);
    ck_assert_int_eq(event.reject, REJECT_ROLE);

    event = join(&newcomer, identity, &token);
    ck_assert_int_eq(event.reject, REJECT_INVITATION);
    invite(&owner, &token, ROLE_CONSUMER, 5000000);
    event = join(&newcomer, other, &token); /* signed, but not by whom it names */
    ck_assert_int_eq(event.reject, REJECT_BAD_SIGNATURE);
    event = join(&newcomer, identity, &token);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    ck_assert_int_eq(available(&newcomer), 5000000);

    event = mint(&newcomer, identity, 1000000, NULL);
    ck_assert_int_eq(event.reject, REJECT_ROLE);

    broker_client_close(&newcomer);
    broker_client_close(&owner);
    broker_process_fini(&broker);
    identity_destroy(&identity);
    identity_destroy(&other);
}
END_TEST

START_TEST(a_budget_beyond_the_funds_is_refused_with_the_numbers)
{
    struct broker_process broker;
    struct broker_client client;
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&client, &broker, broker.owner, SESSION_CONSUMER);

    struct dialogue_event event = submit(&client, 100000001, NULL);
    ck_assert_int_eq(event.type, DIALOGUE_REJECTED);
    ck_assert_int_eq(event.reject, REJECT_FUNDS);
    ck_assert_int_eq(event.limit, 100000000);
    ck_assert_int_eq(available(&client), 100000000);

    broker_client_close(&client);
    broker_process_fini(&broker);
}
END_TEST

START_TEST(what_was_accepted_survives_a_kill_and_the_same_id_is_answered_again)
{
    struct broker_process broker;
    struct broker_client client;
    struct id128 mint_id = entropy_id();
    struct id128 job_id = entropy_id();
    broker_process_init(&broker, "snapshot_every: 16");
    broker_process_start(&broker);
    broker_client_open(&client, &broker, broker.owner, SESSION_CONSUMER);
    for (int i = 0; i < 40; i++) { /* enough for snapshots */
        ck_assert_int_eq(mint(&client, broker.owner, 1000000, NULL).type, DIALOGUE_ACCEPTED);
    }
    ck_assert_int_eq(mint(&client, broker.owner, 7000000, &mint_id).type, DIALOGUE_ACCEPTED);
    struct dialogue_event event = submit(&client, 9000000, &job_id);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    ck_assert_int_eq(available(&client), 138000000);
    broker_client_close(&client);
    ck_assert(WIFSIGNALED(broker_process_stop(&broker, SIGKILL)));

    const char *verify[] = {"bourse-broker", "replay", "--verify", broker.folder, NULL};
    char output[1024];
    ck_assert_msg(broker_process_run(verify, output, sizeof output) == 0, "%s", output);
    ck_assert_ptr_nonnull(strstr(output, "replay ok"));

    broker_process_start(&broker);
    broker_client_open(&client, &broker, broker.owner, SESSION_CONSUMER);
    ck_assert_int_eq(mint(&client, broker.owner, 7000000, &mint_id).type, DIALOGUE_ACCEPTED);
    ck_assert_int_eq(available(&client), 138000000); /* not minted twice */
    ck_assert_int_eq(mint(&client, broker.owner, 8000000, &mint_id).reject, REJECT_ID_REUSED);
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    jobs.has_job = true;
    jobs.job = bytes_of(job_id.bytes, 16);
    event = broker_client_ask(&client, MESSAGE_JOBS_REQUEST, NULL, &jobs.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    const Bourse__V1__JobsReply *reply = (const void *)event.body;
    ck_assert_uint_eq(reply->n_jobs, 1);
    ck_assert_int_eq(reply->jobs[0]->budget_micro, 9000000);
    codec_free(&event.body);

    broker_client_close(&client);
    ck_assert_int_eq(WEXITSTATUS(broker_process_stop(&broker, SIGTERM)), 0);
    broker_process_fini(&broker);
}
END_TEST

START_TEST(a_watcher_hears_of_its_job_and_others_do_not_find_it)
{
    struct broker_process broker;
    struct broker_client owner;
    struct broker_client stranger;
    struct identity *identity = new_identity();
    struct id128 token = entropy_id();
    struct id128 job_id = entropy_id();
    struct id128 no_job = entropy_id();
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&owner, &broker, broker.owner, SESSION_CONSUMER);
    invite(&owner, &token, ROLE_CONSUMER, 0);
    broker_client_open(&stranger, &broker, identity, SESSION_CONSUMER);
    ck_assert_int_eq(join(&stranger, identity, &token).type, DIALOGUE_ACCEPTED);

    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    jobs.has_watch = jobs.watch = true;
    struct dialogue_event event = broker_client_ask(&owner, MESSAGE_JOBS_REQUEST, NULL, &jobs.base);
    codec_free(&event.body);
    event = submit(&owner, 9000000, &job_id);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    event = broker_client_push(&owner, MESSAGE_JOB_EVENT);
    ck_assert_int_eq(
        memcmp(((Bourse__V1__JobEvent *)(void *)event.body)->job->job.data, job_id.bytes, 16), 0);
    codec_free(&event.body);

    Bourse__V1__JobsRequest one = BOURSE__V1__JOBS_REQUEST__INIT;
    one.has_job = true;
    one.job = bytes_of(job_id.bytes, 16);
    struct dialogue_event foreign =
        broker_client_ask(&stranger, MESSAGE_JOBS_REQUEST, NULL, &one.base);
    one.job = bytes_of(no_job.bytes, 16);
    struct dialogue_event missing =
        broker_client_ask(&stranger, MESSAGE_JOBS_REQUEST, NULL, &one.base);
    ck_assert_int_eq(foreign.reject, REJECT_NOT_FOUND);
    ck_assert_int_eq(missing.reject, REJECT_NOT_FOUND);
    ck_assert_str_eq(foreign.text, missing.text);

    Bourse__V1__ExplainRequest why = BOURSE__V1__EXPLAIN_REQUEST__INIT;
    why.job = bytes_of(job_id.bytes, 16);
    event = broker_client_ask(&owner, MESSAGE_EXPLAIN_REQUEST, NULL, &why.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    ck_assert_uint_gt(strlen(((Bourse__V1__ExplainReply *)(void *)event.body)->explanation->text),
                      0);
    codec_free(&event.body);

    Bourse__V1__CheckpointRequest checkpoint = BOURSE__V1__CHECKPOINT_REQUEST__INIT;
    event = broker_client_ask(&owner, MESSAGE_CHECKPOINT_REQUEST, NULL, &checkpoint.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    codec_free(&event.body);
    Bourse__V1__StatementRequest statement = BOURSE__V1__STATEMENT_REQUEST__INIT;
    event = broker_client_ask(&owner, MESSAGE_STATEMENT_REQUEST, NULL, &statement.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    ck_assert_uint_ge(((Bourse__V1__StatementReply *)(void *)event.body)->n_rows,
                      2); /* minted, held */
    codec_free(&event.body);

    broker_client_close(&stranger);
    broker_client_close(&owner);
    broker_process_fini(&broker);
    identity_destroy(&identity);
}
END_TEST

static void request(struct broker_client *client, enum message_type type, const struct id128 *id,
                    const ProtobufCMessage *body)
{
    ck_assert_int_eq(dialogue_request(client->dialogue, clock_monotonic_ns(), type, id, body),
                     DIALOGUE_OK);
}

START_TEST(the_end_of_a_job_is_told_before_what_is_asked_later_is_answered)
{
    struct broker_process broker;
    struct broker_client owner;
    struct id128 job_id = entropy_id();
    struct id128 end_id = entropy_id();
    struct id128 later_id = entropy_id();
    bool has_ended = false;
    bool is_answered = false;
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&owner, &broker, broker.owner, SESSION_CONSUMER);
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    jobs.has_watch = jobs.watch = true;
    struct dialogue_event event = broker_client_ask(&owner, MESSAGE_JOBS_REQUEST, NULL, &jobs.base);
    codec_free(&event.body);

    Bourse__V1__JobCancel end = BOURSE__V1__JOB_CANCEL__INIT;
    end.job = bytes_of(job_id.bytes, 16);
    jobs.has_watch = false;
    event = submit(&owner, 9000000, &job_id);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    request(&owner, MESSAGE_JOB_CANCEL, &end_id, &end.base);
    request(&owner, MESSAGE_JOBS_REQUEST, &later_id, &jobs.base);
    while (!is_answered) {
        event = broker_client_hear(&owner);
        if (event.type == DIALOGUE_PUSH && event.message_type == MESSAGE_JOB_EVENT) {
            const Bourse__V1__JobEvent *told = (const void *)event.body;
            has_ended = has_ended || told->job->state == JOB_CANCELLED;
        }
        is_answered = event.type == DIALOGUE_REPLY && id128_equal(&event.id, &later_id);
        codec_free(&event.body);
    }
    ck_assert(has_ended);

    broker_client_close(&owner);
    broker_process_fini(&broker);
}
END_TEST

START_TEST(a_second_broker_on_the_folder_is_told_so)
{
    struct broker_process broker;
    broker_process_init(&broker, "");
    broker_process_start(&broker);

    const char *again[] = {"bourse-broker", "--dir", broker.folder, NULL};
    char output[1024];
    ck_assert_int_ne(broker_process_run(again, output, sizeof output), 0);
    ck_assert_msg(strstr(output, "LOCKED") != NULL, "%s", output);

    broker_process_fini(&broker);
}
END_TEST

START_TEST(a_journal_without_head_is_refused_until_it_is_adopted)
{
    struct broker_process broker;
    char head[256];
    char output[1024];
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    ck_assert_int_eq(WEXITSTATUS(broker_process_stop(&broker, SIGTERM)), 0);
    (void)snprintf(head, sizeof head, "%s/HEAD", broker.folder);
    ck_assert_int_eq(remove(head), 0);

    const char *again[] = {"bourse-broker", "--dir", broker.folder, NULL};
    ck_assert_int_ne(broker_process_run(again, output, sizeof output), 0);
    ck_assert_msg(strstr(output, "HEAD") != NULL, "%s", output);

    broker_process_fini(&broker);
}
END_TEST

/* Sends `count` messages past the dialogue, and hears no answer. */
static void shout(struct broker_client *client, enum message_type type, uint64_t session,
                  const ProtobufCMessage *body, int count)
{
    uint8_t message[512];
    size_t length;
    uint8_t *bytes = codec_encode(body, &length);
    ck_assert_ptr_nonnull(bytes);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = session,
                                .body = bytes,
                                .body_length = (uint32_t)length};
    ck_assert_uint_le(envelope_size(&envelope), sizeof message);
    for (int i = 0; i < count; i++) {
        envelope.id = entropy_id();
        envelope.sequence = (uint64_t)i + 1000;
        envelope_write(&envelope, message, sizeof message);
        zmq_pollitem_t item = {.socket = link_socket(client->link), .events = ZMQ_POLLOUT};
        ck_assert_int_eq(zmq_poll(&item, 1, 60000), 1); /* the broker goes on reading */
        ck_assert(link_send(client->link, message, envelope_size(&envelope)));
    }
    free(bytes);
}

START_TEST(who_asks_and_never_reads_holds_up_nobody)
{
    struct broker_process broker;
    struct broker_client deaf;
    struct broker_client other;
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&deaf, &broker, broker.owner, SESSION_CONSUMER);
    broker_client_open(&other, &broker, broker.owner, SESSION_CONSUMER);

    uint64_t session = dialogue_welcome(deaf.dialogue)->session;
    for (int i = 0; i < 20; i++) {
        shout(&deaf, MESSAGE_JOBS_REQUEST, session, &jobs.base, 400);
        ck_assert_int_eq(available(&other), 100000000);
    }
    broker_client_close(&deaf);
    ck_assert_int_eq(available(&other), 100000000);

    broker_client_close(&other);
    ck_assert_int_eq(WEXITSTATUS(broker_process_stop(&broker, SIGTERM)), 0);
    broker_process_fini(&broker);
}
END_TEST

START_TEST(strangers_who_greet_without_end_do_not_keep_members_out)
{
    struct broker_process broker;
    struct broker_client stranger;
    struct broker_client member;
    struct identity *identity = new_identity();
    Bourse__V1__Hello hello = BOURSE__V1__HELLO__INIT;
    hello.version = ENVELOPE_VERSION;
    hello.program = (char *)(uintptr_t) "test 1";
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&stranger, &broker, identity, SESSION_CONSUMER);

    broker_client_open(&member, &broker, broker.owner, SESSION_CONSUMER);
    shout(&stranger, MESSAGE_HELLO, 0, &hello.base, 20000);
    dialogue_connected(member.dialogue, clock_monotonic_ns(), 2); /* it greets anew */
    ck_assert_int_eq(available(&member), 100000000);

    broker_client_close(&member);
    broker_client_close(&stranger);
    broker_process_fini(&broker);
    identity_destroy(&identity);
}
END_TEST

/* The niceness of the broker's thread of that name. */
static int niceness(const struct broker_process *broker, const char *name)
{
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/proc/%d/task", (int)broker->pid);
    DIR *tasks = opendir(folder);
    ck_assert_ptr_nonnull(tasks);
    int found = INT_MIN;
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[128];
        char line[512] = "";
        (void)snprintf(path, sizeof path, "%s/%.20s/comm", folder, task->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            if (strcmp(line, name) == 0) {
                found = getpriority(PRIO_PROCESS, (id_t)strtoul(task->d_name, NULL, 10));
            }
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    (void)closedir(tasks);
    ck_assert_msg(found != INT_MIN, "no thread is called %s", name);
    return found;
}

START_TEST(bytes_leave_the_processors_to_orders)
{
    struct broker_process broker;
    struct broker_client member;
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&member, &broker, broker.owner, SESSION_CONSUMER); /* all threads run */
    int usual = niceness(&broker, "core");
    ck_assert_int_eq(niceness(&broker, "gateway"), usual);
    ck_assert_int_eq(niceness(&broker, "committer"), usual);
    /* Once both run, which the first second may be too early for. */
    const struct timespec pause = {.tv_nsec = 20000000};
    while (niceness(&broker, "blobs") == usual || niceness(&broker, "ZMQbg/IO/1") == usual) {
        (void)nanosleep(&pause, NULL);
    }
    ck_assert_int_eq(niceness(&broker, "ZMQbg/IO/0"), usual);
    broker_client_close(&member);
    broker_process_fini(&broker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("broker process");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, an_operator_is_known_and_has_what_the_genesis_gave);
    tcase_add_test(tests, an_unknown_key_can_only_join_and_only_once);
    tcase_add_test(tests, a_budget_beyond_the_funds_is_refused_with_the_numbers);
    tcase_add_test(tests, what_was_accepted_survives_a_kill_and_the_same_id_is_answered_again);
    tcase_add_test(tests, a_watcher_hears_of_its_job_and_others_do_not_find_it);
    tcase_add_test(tests, the_end_of_a_job_is_told_before_what_is_asked_later_is_answered);
    tcase_add_test(tests, a_second_broker_on_the_folder_is_told_so);
    tcase_add_test(tests, a_journal_without_head_is_refused_until_it_is_adopted);
    tcase_add_test(tests, who_asks_and_never_reads_holds_up_nobody);
    tcase_add_test(tests, strangers_who_greet_without_end_do_not_keep_members_out);
    tcase_add_test(tests, bytes_leave_the_processors_to_orders);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
