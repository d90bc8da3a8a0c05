#include "broker/core/translate.h"

#include "base/energy.h"
#include "base/sha256.h"
#include "broker/core/release.h"
#include "broker/gateway/verify.h"
#include "broker/storage/replay.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/results.h"
#include "tests/support/signed_request.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void fill_limited(const char *verify, const int64_t *cap_micro, Bourse__V1__Value *value)
{
    Bourse__V1__SubmitJob body = submit_body(verify);
    body.has_cap_micro = cap_micro != NULL;
    body.cap_micro = cap_micro != NULL ? *cap_micro : 0;
    body.value = value;
    fill(MESSAGE_SUBMIT_JOB, &body.base);
}

static void fill_submit_with(const char *verify)
{
    fill_limited(verify, NULL, NULL);
}

static void fill_submit(void)
{
    fill_submit_with("none");
}

START_TEST(levels_of_verification_are_told_apart)
{
    static const struct {
        const char *text;
        enum exchange_verify level;
    } levels[] = {{"none", EXCHANGE_VERIFY_NONE},
                  {"cheap", EXCHANGE_VERIFY_CHEAP},
                  {"cheaper", EXCHANGE_VERIFY_UNKNOWN},
                  {"adaptive", EXCHANGE_VERIFY_UNKNOWN}};
    struct codec_error error;
    fill_submit_with(levels[_i].text);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    ck_assert_int_eq(request->translation.command.submit.verify, levels[_i].level);
}
END_TEST

static const struct {
    bool has_cap, has_value;
    int64_t micro;
    uint32_t rate;
    bool is_taken;
} bounds[] = {
    {true, false, 7, RATE_NONE, true},
    {false, true, 7, RATE_BF16, true},
    {false, true, INT64_MAX, UINT32_MAX, true}, /* which rates there are is the exchange's to say */
    {true, true, 7, RATE_BF16, false},
    {false, true, 7, RATE_NONE, false}, /* it would be a cap */
    {false, true, -1, RATE_BF16, false},
};

START_TEST(a_limit_is_a_cap_or_a_value_and_not_both)
{
    struct codec_error error;
    Bourse__V1__Value value = BOURSE__V1__VALUE__INIT;
    value.micro = bounds[_i].micro;
    value.rate = bounds[_i].rate;
    fill_limited("none", bounds[_i].has_cap ? &bounds[_i].micro : NULL,
                 bounds[_i].has_value ? &value : NULL);
    bool is_taken = verify_request(request, &cluster, &error) == REJECT_NONE;
    ck_assert(is_taken == bounds[_i].is_taken);
    if (is_taken) {
        ck_assert(request->translation.command.submit.cap_micro == bounds[_i].micro);
        ck_assert_uint_eq(request->translation.command.submit.rate, bounds[_i].rate);
    }
}
END_TEST

START_TEST(a_job_becomes_a_command_in_the_units_of_the_exchange)
{
    struct codec_error error;
    fill_submit();
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct exchange_command *command = &request->translation.command;
    ck_assert_int_eq(command->type, EXCHANGE_SUBMIT);
    ck_assert_int_eq(command->submit.limit_ns, INT64_C(1500000000));
    ck_assert_int_eq(command->submit.cap_micro, -1);
    ck_assert_int_eq(command->submit.verify, EXCHANGE_VERIFY_NONE);
    ck_assert_uint_eq(command->submit.needs->count, 0);
    ck_assert_int_eq(command->created_ms, 99);
    ck_assert_uint_eq(command->id.bytes[0], 7);
}
END_TEST

START_TEST(parts_and_a_graph_become_the_exchanges)
{
    static const uint8_t manifest[32] = {1};
    uint32_t ranks[] = {7, 5, 5, 9};
    uint32_t after_counts[] = {0, 1, 1, 2};
    uint32_t after[] = {0, 0, 1, 2};
    uint32_t expect_ms[] = {100, 0, 300, 8000};
    struct codec_error error;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__Part part = BOURSE__V1__PART__INIT;
    Bourse__V1__Part *parts[] = {&part};
    Bourse__V1__Graph graph = BOURSE__V1__GRAPH__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    part.subtasks = 3;
    part.needs = &needs;
    part.slots = 2;
    part.limit_ms = 1500;
    part.term_ms = 60000;
    graph.n_rank = graph.n_expect_ms = graph.n_after_count = graph.n_after = 4;
    graph.expect_ms = expect_ms;
    graph.rank = ranks;
    graph.after_count = after_counts;
    graph.after = after;
    body.name = (char *)(uintptr_t) "n";
    body.manifest = bytes_of(manifest, sizeof manifest);
    body.subtasks = 4;
    body.budget_micro = 5;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 1500;
    body.term_ms = 60000;
    body.verify = (char *)(uintptr_t) "none";
    body.n_parts = 1;
    body.parts = parts;
    body.graph = &graph;
    fill(MESSAGE_SUBMIT_JOB, &body.base);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct exchange_submit *submit = &request->translation.command.submit;
    ck_assert_uint_eq(submit->crash_limit, EXCHANGE_CRASH_LIMIT);
    ck_assert_uint_eq(submit->part_count, 1);
    ck_assert_uint_eq(submit->parts[0].subtasks, 3);
    ck_assert_int_eq(submit->parts[0].cap_micro, -1);
    ck_assert_int_eq(submit->parts[0].limit_ns, INT64_C(1500000000));
    ck_assert_uint_eq(submit->graph->rank_count, 4);
    ck_assert_uint_eq(submit->graph->rank[3], 9);
    ck_assert_uint_eq(submit->graph->expect_count, 4);
    ck_assert_uint_eq(submit->graph->expect_ms[3], 8000);
    ck_assert_uint_eq(submit->graph->after_count[3], 2);
    ck_assert_uint_eq(submit->graph->after_length, 4);
}
END_TEST

START_TEST(the_journal_gives_the_same_command_again)
{
    struct codec_error error;
    struct translation again = {0};
    fill_submit();
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    const struct entry_command entry = {.log_time_ns = 1234,
                                        .account = 8,
                                        .kind = ENTRY_MESSAGE,
                                        .verdict = 1,
                                        .payload = request->message,
                                        .payload_length = (uint32_t)request->length};
    ck_assert(translate_entry(&entry, 17, &cluster, &again));
    ck_assert_uint_eq(again.command.index, 17);
    ck_assert_int_eq(again.command.log_time_ns, 1234);
    ck_assert_uint_eq(again.command.account, 8);
    ck_assert(hash32_equal(&again.command.body, &request->translation.command.body));
    ck_assert_int_eq(again.command.submit.budget_micro, 5);
    ck_assert_int_eq(memcmp(again.command.submit.needs, request->translation.command.submit.needs,
                            sizeof(struct requirement)),
                     0);
    translation_fini(&again);
}
END_TEST

START_TEST(presence_and_damage_in_a_journal_are_told_apart)
{
    uint8_t payload[TRANSLATE_PRESENCE_BYTES];
    struct translation translation = {0};
    struct entry_command entry = {.kind = ENTRY_SUSPECT,
                                  .payload = payload,
                                  .payload_length = sizeof payload,
                                  .account = UINT32_MAX};
    translate_presence(77, payload);
    ck_assert(translate_entry(&entry, 1, &cluster, &translation));
    ck_assert_uint_eq(translation.command.provider, 77);
    entry.payload_length = 3;
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    entry.kind = ENTRY_MESSAGE;
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    translation_fini(&translation);
}
END_TEST

/* An entry that sets limits under `rules`, and then one command more, a tick, as a journal has
 * them. */
static size_t entry_under(uint32_t rules, bool has_tick, uint8_t *ret_bytes, size_t capacity)
{
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    const struct exchange_set_limits set = {.rules = rules, .limits = exchange_limits_default()};
    translate_limits(&set, payload);
    const struct entry_command commands[] = {
        {.account = UINT32_MAX,
         .kind = ENTRY_LIMITS,
         .payload = payload,
         .payload_length = sizeof payload},
        {.account = UINT32_MAX, .kind = ENTRY_TICK},
    };
    const struct entry_head head = {.count = has_tick ? 2 : 1, .index = 1, .first_command = 1};
    return entry_write(&head, commands, ret_bytes, capacity);
}

static bool replays_under(uint32_t rules, bool has_tick, struct problem *ret_problem)
{
    uint8_t bytes[512];
    struct exchange_limits limits = exchange_limits_default();
    limits.jobs = 3; /* the entry's count */
    struct exchange *exchange = exchange_create(&limits);
    ck_assert_ptr_nonnull(exchange);
    size_t length = entry_under(rules, has_tick, bytes, sizeof bytes);
    bool good = replay_entry(exchange, bytes, length, NULL, NULL, ret_problem) == REPLAY_OK;
    if (good) {
        limits = exchange_limits_default();
        ck_assert_uint_eq(exchange_rules(exchange), rules);
        const struct exchange_set_limits set = {.rules = rules, .limits = limits};
        ck_assert(exchange_holds_limits(exchange, &set));
    }
    exchange_destroy(&exchange);
    return good;
}

START_TEST(commands_under_other_rules_are_not_replayed)
{
    struct problem problem = {.text = ""};
    char says[128];
    ck_assert(replay_knows_rules(0)); /* the genesis comes before the first limits */
    ck_assert(replay_knows_rules(EXCHANGE_RULES));
    ck_assert(replay_knows_rules(EXCHANGE_RULES - 1)); /* the rules before go on as they were */
    ck_assert(!replay_knows_rules(EXCHANGE_RULES - 2));
    ck_assert(!replay_knows_rules(EXCHANGE_RULES + 1));
    ck_assert(replays_under(EXCHANGE_RULES, true, &problem));
    ck_assert(replays_under(EXCHANGE_RULES - 1, true, &problem));

    ck_assert(!replays_under(EXCHANGE_RULES + 1, false, &problem)); /* nothing is applied */
    (void)snprintf(says, sizeof says,
                   "RULES: the journal is from command 1 on under rules %d, and this "
                   "bourse-broker, release %s, knows rules %d to %d: start a newer release",
                   EXCHANGE_RULES + 1, BOURSE_VERSION, EXCHANGE_RULES - 1, EXCHANGE_RULES);
    ck_assert_msg(strstr(problem.text, says) != NULL, "%s", problem.text);
    ck_assert(!replays_under(EXCHANGE_RULES - 2, false, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "the release before this one"));
}
END_TEST

static void store_entry(sqlite3 *database, uint64_t index, const void *bytes, size_t length)
{
    sqlite3_stmt *insert;
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "INSERT INTO journal VALUES(?1, ?2)", -1, &insert, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_bind_int64(insert, 1, (sqlite3_int64)index), SQLITE_OK);
    ck_assert_int_eq(sqlite3_bind_blob(insert, 2, bytes, (int)length, SQLITE_STATIC), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
}

/* A journal older than the entries that set limits: one entry without, then the first with. */
START_TEST(what_came_before_the_first_limits_is_replayed_under_them)
{
    const struct entry_command tick = {.account = UINT32_MAX, .kind = ENTRY_TICK};
    const struct entry_head head = {.count = 1, .index = 1, .first_command = 1};
    uint8_t old[256];
    uint8_t first[512];
    struct exchange_limits limits = exchange_limits_default();
    const uint32_t jobs = limits.jobs;
    sqlite3 *database;
    limits.jobs = 3; /* broker.yaml's of today */
    struct exchange *exchange = exchange_create(&limits);
    ck_assert_int_eq(sqlite3_open(":memory:", &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "CREATE TABLE journal(idx, bytes)", NULL, NULL, NULL),
                     SQLITE_OK);
    store_entry(database, 1, old, entry_write(&head, &tick, old, sizeof old));
    replay_presume_limits(database, exchange, 1);
    ck_assert_uint_eq(exchange_limits_now(exchange).jobs, 3);
    store_entry(database, 2, first, entry_under(1, true, first, sizeof first));
    struct hash32 before = exchange_state_hash(exchange);
    replay_presume_limits(database, exchange, 1);
    struct hash32 after = exchange_state_hash(exchange);
    ck_assert_uint_eq(exchange_limits_now(exchange).jobs, jobs);
    ck_assert_uint_eq(exchange_rules(exchange), 0);
    ck_assert(hash32_equal(&before, &after)); /* presumed, not state */
    exchange_destroy(&exchange);
    sqlite3_close(database);
}
END_TEST

START_TEST(limits_in_a_journal_are_whole_and_above_zero)
{
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    struct translation translation = {0};
    struct exchange_set_limits set = {.rules = 1, .limits = exchange_limits_default()};
    struct entry_command entry = {
        .kind = ENTRY_LIMITS, .payload = payload, .payload_length = sizeof payload};
    translate_limits(&set, payload);
    ck_assert(translate_entry(&entry, 1, &cluster, &translation));
    ck_assert_uint_eq(translation.command.set_limits.limits.subtasks_per_account,
                      set.limits.subtasks_per_account);
    entry.payload_length--;
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    entry.payload_length -= 7; /* as programs wrote it that had no cap for one account */
    ck_assert(translate_entry(&entry, 1, &cluster, &translation));
    ck_assert_uint_eq(translation.command.set_limits.limits.subtasks, set.limits.subtasks);
    ck_assert_uint_eq(translation.command.set_limits.limits.subtasks_per_account, 0);
    entry.payload_length = sizeof payload;
    set.limits.subtasks_per_account = 0;
    translate_limits(&set, payload);
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    set.limits = exchange_limits_default();
    set.limits.leases = 0;
    translate_limits(&set, payload);
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    translation_fini(&translation);
}
END_TEST

START_TEST(a_signature_counts_for_its_key_cluster_and_bytes_only)
{
    struct codec_error error;
    const struct id128 other_cluster = {{9}};
    fill_submit();
    ck_assert_int_eq(verify_request(request, &other_cluster, &error), REJECT_BAD_SIGNATURE);
    translation_fini(&request->translation);
    request->translation = (struct translation){0};
    request->key.bytes[0] ^= 1;
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_BAD_SIGNATURE);
    translation_fini(&request->translation);
    request->translation = (struct translation){0};
    request->key = *identity_key(identity);
    request->message[ENVELOPE_HEAD_BYTES + 2] ^= 1; /* the job's name */
    ck_assert_int_ne(verify_request(request, &cluster, &error), REJECT_NONE);
}
END_TEST

START_TEST(only_the_owner_of_the_connection_may_join_with_its_key)
{
    struct codec_error error;
    static const uint8_t token[16] = {4};
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    body.account = bytes_of(identity_key(identity)->bytes, 32);
    body.token = bytes_of(token, sizeof token);
    fill(MESSAGE_JOIN, &body.base);
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_NONE);
    struct hash32 hash = sha256_of(token, sizeof token);
    ck_assert(hash32_equal(&request->translation.command.join.token_hash, &hash));
    translation_fini(&request->translation);
    request->translation = (struct translation){0};
    request->transport.bytes[3] ^= 1;
    ck_assert_int_eq(verify_request(request, &cluster, &error), REJECT_BAD_SIGNATURE);
}
END_TEST

/* Names of the files of the checkpoint that a result has left; NULL: none. */
static const char *saved_names[2];
static int64_t stated_uj; /* the energy; 0: none */

static uint8_t *encode_result(const struct key32 *provider, const struct id128 *of_cluster,
                              size_t *ret_length)
{
    Bourse__V1__Output files[2] = {BOURSE__V1__OUTPUT__INIT, BOURSE__V1__OUTPUT__INIT};
    Bourse__V1__Output *all_files[2] = {&files[0], &files[1]};
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    static const uint8_t id[16] = {1};
    static const uint8_t hash[32] = {2};
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = bytes_of(of_cluster->bytes, 16);
    result.job = bytes_of(id, 16);
    result.attempt = 1;
    result.lease = 6;
    result.provider = bytes_of(provider->bytes, 32);
    result.device = bytes_of(id, 16);
    result.manifest = bytes_of(hash, 32);
    result.busy_ns = 10;
    result.has_verdict = true;
    result.verdict = VERDICT_UNSURE;
    result.has_seed = true;
    result.seed = bytes_of(hash, 32);
    result.has_energy_uj = result.has_energy_source = stated_uj > 0;
    result.energy_uj = stated_uj;
    result.energy_source = stated_uj > 0 ? ENERGY_MEASURED : ENERGY_UNSTATED;
    for (; saved.n_files < 2 && saved_names[saved.n_files] != NULL; saved.n_files++) {
        files[saved.n_files].name = (char *)(uintptr_t)saved_names[saved.n_files];
        files[saved.n_files].hash = bytes_of(hash, 32);
    }
    saved.files = all_files;
    result.saved = saved.n_files > 0 ? &saved : NULL;
    uint8_t *bytes = codec_encode(&result.base, ret_length);
    ck_assert_ptr_nonnull(bytes);
    return bytes;
}

static enum reject_code send_result(const struct key32 *provider, const struct id128 *of_cluster,
                                    bool spoil)
{
    size_t length = 0;
    uint8_t *bytes = encode_result(provider, of_cluster, &length);
    struct hash32 leaf = results_leaf(bytes, length);
    struct hash32 root = results_root(&leaf, 1);
    struct signature64 signature = results_sign(identity, &cluster, &root);
    signature.bytes[5] ^= spoil ? 1 : 0;
    ProtobufCBinaryData one = bytes_of(bytes, length);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = bytes_of(signature.bytes, sizeof signature.bytes);
    body.n_results = 1;
    body.results = &one;
    fill(MESSAGE_RESULTS, &body.base);
    free(bytes);
    struct codec_error error;
    enum reject_code code = verify_request(request, &cluster, &error);
    if (code == REJECT_NONE) {
        const struct exchange_results *results = &request->translation.command.results;
        ck_assert_uint_eq(results->count, 1);
        ck_assert_uint_eq(results->results[0].lease, 6);
        ck_assert_uint_eq(results->results[0].length, length);
        ck_assert_uint_eq(results->results[0].verdict, VERDICT_UNSURE);
        ck_assert_uint_eq(results->results[0].seed.bytes[0], 2);
        ck_assert(hash32_equal(&request->translation.results_leaves[0], &leaf));
    }
    request_destroy(&request);
    teardown();
    setup();
    return code;
}

START_TEST(results_count_when_their_own_provider_signed_them_for_this_market)
{
    const struct id128 elsewhere = {{8}};
    const struct key32 somebody = {{8}};
    ck_assert_int_eq(send_result(identity_key(identity), &cluster, false), REJECT_NONE);
    ck_assert_int_eq(send_result(identity_key(identity), &cluster, true), REJECT_BAD_SIGNATURE);
    ck_assert_int_eq(send_result(identity_key(identity), &elsewhere, false), REJECT_MALFORMED);
    ck_assert_int_eq(send_result(&somebody, &cluster, false), REJECT_BAD_SIGNATURE);
    stated_uj = LIMIT_ENERGY_UJ;
    ck_assert_int_eq(send_result(identity_key(identity), &cluster, false), REJECT_NONE);
    stated_uj++;
    ck_assert_int_eq(send_result(identity_key(identity), &cluster, false), REJECT_MALFORMED);
    stated_uj = 0;
}
END_TEST

/* The same files under the same names in another order would be another checkpoint. */
START_TEST(the_files_of_a_checkpoint_are_in_order)
{
    static const struct {
        const char *names[2];
        enum reject_code code;
    } cases[] = {
        {{"b", "c"}, REJECT_NONE},
        {{"B", "b"}, REJECT_NONE},
        {{"b", "b/c"}, REJECT_NONE},
        {{"z", "\xc3\xa4"}, REJECT_NONE}, /* by bytes, without a sign */
        {{"c", "b"}, REJECT_MALFORMED},
        {{"b", "b"}, REJECT_MALFORMED},
        {{"b", "B"}, REJECT_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(saved_names, cases[i].names, sizeof saved_names);
        ck_assert_int_eq(send_result(identity_key(identity), &cluster, false), cases[i].code);
    }
    saved_names[0] = NULL;
}
END_TEST

struct sent {
    enum message_type types[16];
    size_t work[16];
    size_t count;
};

static void note(void *context, struct outgoing *outgoing)
{
    struct sent *sent = context;
    if (outgoing->kind == OUTGOING_PUSH) {
        sent->types[sent->count] = outgoing->type;
        if (outgoing->type == MESSAGE_DISPATCH) {
            ProtobufCMessage *body = NULL;
            ck_assert_int_eq(
                codec_decode(outgoing->type, outgoing->body, outgoing->length, &body, NULL),
                CODEC_OK);
            sent->work[sent->count] = ((Bourse__V1__Dispatch *)(void *)body)->n_work;
            codec_free(&body);
        }
        sent->count++;
    }
    outgoing_destroy(&outgoing);
}

START_TEST(neighbouring_work_of_one_lease_travels_in_one_message)
{
    struct exchange_effect items[6] = {0};
    for (size_t i = 0; i < 6; i++) {
        items[i].type = EFFECT_DISPATCH;
        items[i].account = 4;
        items[i].work =
            (struct exchange_work){.lease = i < 4 ? 1 : 2, .index = (uint32_t)i, .attempt = 1};
    }
    items[1].type = EFFECT_JOB; /* between them, but of no provider's concern */
    items[3].type = EFFECT_LEASE_RENEW;
    items[3].lease.lease = 1;
    const struct exchange_effects effects = {.items = items, .count = 6};
    struct sent sent = {.count = 0};
    ck_assert(release_effects(&effects, note, &sent));
    ck_assert_uint_eq(sent.count, 3);
    ck_assert_int_eq(sent.types[0], MESSAGE_DISPATCH);
    ck_assert_uint_eq(sent.work[0], 2);
    ck_assert_int_eq(sent.types[1], MESSAGE_LEASE_RENEW);
    ck_assert_uint_eq(sent.work[2], 2);
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("translate");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_limit_is_a_cap_or_a_value_and_not_both, 0,
                        sizeof bounds / sizeof bounds[0]);
    tcase_add_test(tests, a_job_becomes_a_command_in_the_units_of_the_exchange);
    tcase_add_loop_test(tests, levels_of_verification_are_told_apart, 0, 4);
    tcase_add_test(tests, parts_and_a_graph_become_the_exchanges);
    tcase_add_test(tests, the_journal_gives_the_same_command_again);
    tcase_add_test(tests, presence_and_damage_in_a_journal_are_told_apart);
    tcase_add_test(tests, commands_under_other_rules_are_not_replayed);
    tcase_add_test(tests, limits_in_a_journal_are_whole_and_above_zero);
    tcase_add_test(tests, what_came_before_the_first_limits_is_replayed_under_them);
    tcase_add_test(tests, a_signature_counts_for_its_key_cluster_and_bytes_only);
    tcase_add_test(tests, only_the_owner_of_the_connection_may_join_with_its_key);
    tcase_add_test(tests, results_count_when_their_own_provider_signed_them_for_this_market);
    tcase_add_test(tests, the_files_of_a_checkpoint_are_in_order);
    tcase_add_test(tests, neighbouring_work_of_one_lease_travels_in_one_message);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
