#include "tests/crash/day_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/checked.h"
#include "base/random.h"
#include "base/sha256.h"
#include "broker/blob/blob_store.h"
#include "broker/broker.h"
#include "broker/core/group.h"
#include "broker/core/privileged_acts.h"
#include "broker/storage/replay.h"
#include "broker/storage/snapshot/snapshot_file.h"
#include "broker/storage/storage.h"
#include "protocol/codec.h"
#include "protocol/results.h"
#include "runtime/entropy.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"
#include "tests/crash/disk.h"

/* ---- endings */

void day_end(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
    exit(status); /* not _exit: a leak on the way here is to be seen */
}

static void close_all(struct day *day)
{
    blob_store_close(&day->blobs);
    exchange_destroy(&day->exchange);
    storage_close(&day->store);
    for (size_t i = 0; i < GROUPS; i++) {
        group_destroy(&day->groups[i]);
    }
    identity_destroy(&day->owner);
    identity_destroy(&day->provider);
}

/* The broker does the same when its start fails: it says why and closes what is open. */
static _Noreturn void stop(struct day *day, const struct problem *problem)
{
    MUST(problem->text[0] != '\0', "a failure without a word");
    close_all(day);
    day_end(DAY_STOPPED, "stopped: %s", problem->text);
}

/* ---- commits */

static void note_effects(struct day *day)
{
    for (size_t i = 0; i < day->group->effects.count; i++) {
        const struct exchange_effect *effect = &day->group->effects.items[i];
        MUST(effect->type != EFFECT_REJECT, "the day was refused a command: code %u, field %s",
             effect->reject.code, effect->reject.field);
        if (effect->type == EFFECT_DISPATCH && day->work_count < WORK_MAX) {
            day->work[day->work_count++] = (struct work){.lease = effect->work.lease,
                                                         .index = effect->work.index,
                                                         .attempt = effect->work.attempt};
        } else if (effect->type == EFFECT_LEASE_GRANT && day->lease_count < WORK_MAX) {
            day->leases[day->lease_count++] = (struct lease){.lease = effect->grant.lease,
                                                             .job = effect->grant.job,
                                                             .device = effect->grant.device,
                                                             .manifest = effect->grant.manifest};
        }
    }
}

static void note_commit(struct day *day)
{
    struct diary *diary = day->diary;
    MUST(diary->commit_count < DIARY_COMMITS_MAX, "the diary is full");
    diary->commits[diary->commit_count] =
        (struct diary_commit){.changes = disk_change_count(),
                              .entry = day->store.last.index,
                              .chain = day->store.last.chain,
                              .state = exchange_state_hash(day->exchange)};
    diary->commit_count++;
}

/* Notes the tree of the newest commit, which the tables now have. */
static void note_tree(struct day *day)
{
    struct diary *diary = day->diary;
    const struct merkle *tree = ledger_store_tree(day->store.ledger);
    struct diary_commit *newest = &diary->commits[diary->commit_count - 1];
    MUST(newest->entry == day->store.table.index, "the tables are not where the journal is");
    newest->root = merkle_root(tree);
    newest->tree_size = tree->size;
}

static void wait_for_room(int *tries)
{
    MUST(disk_has_failed(), "a commit was put off without a reason");
    if (++*tries == FULL_TRIES) {
        day_end(DAY_STOPPED, "stopped: no room for a commit");
    }
}

/* The follower does the same: all groups that wait are one transaction. */
static void apply_waiting(struct day *day)
{
    int tries = 0;
    if (day->waiting_count == 0) {
        return;
    }
    while (storage_apply(&day->store, day->waiting, day->waiting_count) == STORAGE_FULL) {
        wait_for_room(&tries);
    }
    note_tree(day);
    for (size_t i = 0; i < day->waiting_count; i++) {
        group_clear(day->waiting[i]);
    }
    day->waiting_count = 0;
}

/* The group joins those that wait for the tables, and the next is one that does not wait. */
static void turn_group(struct day *day)
{
    day->waiting[day->waiting_count++] = day->group;
    if (day->waiting_count == GROUPS - 1) {
        apply_waiting(day);
    }
    for (size_t i = 0; i < GROUPS; i++) {
        if (day->groups[i]->command_count == 0) {
            day->group = day->groups[i];
        }
    }
}

/* The follower does the same with a direct group, and a start with its own commands. */
static void commit_to_tables(struct day *day)
{
    int tries = 0;
    while (storage_commit(&day->store, day->group) == STORAGE_FULL) {
        wait_for_room(&tries);
    }
    note_commit(day);
    note_tree(day);
    note_effects(day);
    group_clear(day->group);
}

/* The committer does the same: a full disk is waited out. */
static void commit(struct day *day)
{
    int tries = 0;
    if (privileged_acts_in(day->group) || storage_has_notes(&day->store)) {
        apply_waiting(day);
        commit_to_tables(day);
        return;
    }
    while (storage_append(&day->store, day->group) == STORAGE_FULL) {
        wait_for_room(&tries);
    }
    note_commit(day);
    note_effects(day);
    turn_group(day);
}

/* ---- commands */

static void apply(struct day *day, struct exchange_command *command,
                  const struct group_command *entry)
{
    struct group *group = day->group;
    day->now_ns += NS_PER_MS;
    command->index = exchange_index(day->exchange) + 1;
    command->log_time_ns = day->now_ns;
    switch (exchange_step(day->exchange, command, &group->effects)) {
    case EXCHANGE_OK:
        break;
    case EXCHANGE_OUT_OF_ORDER:
        day_end(DAY_WRONG, "WRONG: the exchange is out of order");
    case EXCHANGE_OUT_OF_MEMORY:
        day_end(DAY_STOPPED, "stopped: out of memory in a command");
    }
    if (group->command_count == 0) {
        group->first_command = command->index;
    }
    struct group_command *kept = &group->commands[group->command_count++];
    *kept = *entry;
    kept->entry.log_time_ns = day->now_ns;
    if (kept->request == NULL) {
        kept->entry.payload = kept->own;
    }
}

static void apply_own(struct day *day, enum entry_command_kind kind,
                      enum exchange_command_type type, uint32_t provider)
{
    struct exchange_command command = {
        .type = type, .account = EXCHANGE_NO_ACCOUNT, .provider = provider};
    struct group_command entry = {.entry = {.account = EXCHANGE_NO_ACCOUNT, .kind = kind}};
    if (kind != ENTRY_TICK) {
        translate_presence(provider, entry.own);
        entry.entry.payload_length = TRANSLATE_PRESENCE_BYTES;
    }
    apply(day, &command, &entry);
}

/* Makes the request as it would have come over a socket. */
static struct request *make_request(struct day *day, enum message_type type,
                                    const struct identity *signer, const ProtobufCMessage *body)
{
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .session = 1,
                                .sequence = ++day->serial,
                                .created_ms = day->now_ns / NS_PER_MS,
                                .id = entropy_id()};
    size_t body_length = 0;
    uint8_t *bytes = codec_encode(body, &body_length);
    struct request *request = request_create();
    if (bytes == NULL || request == NULL) {
        day_end(DAY_STOPPED, "stopped: out of memory for a request");
    }
    envelope.body = bytes;
    envelope.body_length = (uint32_t)body_length;
    if (signer != NULL && !identity_sign_envelope(signer, &day->store.genesis.cluster, &envelope)) {
        day_end(DAY_STOPPED, "stopped: out of memory for a signature");
    }
    request->length = envelope_size(&envelope);
    request->message = malloc(request->length);
    if (request->message == NULL) {
        day_end(DAY_STOPPED, "stopped: out of memory for a message");
    }
    envelope_write(&envelope, request->message, request->length);
    free(bytes);
    return request;
}

static struct id128 send(struct day *day, enum message_type type, const struct identity *signer,
                         uint32_t account, const ProtobufCMessage *body)
{
    struct request *request = make_request(day, type, signer, body);
    request->account = account;
    MUST(envelope_read(request->message, request->length, LIMIT_MESSAGE_BYTES,
                       &request->envelope) == ENVELOPE_OK,
         "an envelope of our own does not read");
    struct codec_error error = {0};
    enum reject_code code = translate_message(&request->envelope, &day->store.genesis.cluster,
                                              &request->translation, &error);
    if (code != REJECT_NONE) {
        request_destroy(&request);
        MUST(disk_has_failed(), "message %d does not translate: %d, %s", (int)type, (int)code,
             error.field);
        day_end(DAY_STOPPED, "stopped: a message was refused with code %d", (int)code);
    }
    struct exchange_command *command = &request->translation.command;
    command->account = account;
    struct group_command entry = {
        .entry = {.account = account,
                  .kind = type == MESSAGE_RESULTS ? ENTRY_RESULTS : ENTRY_MESSAGE,
                  .verdict = 1,
                  .payload = request->message,
                  .payload_length = (uint32_t)request->length},
        .request = request};
    struct id128 id = request->envelope.id;
    apply(day, command, &entry);
    return id;
}

static ProtobufCBinaryData data_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

/* ---- opening */

static void make_config(struct day *day)
{
    config_default(&day->config);
    day->config.genesis.price_band_micro = 10 * PRICE_MICRO;
    day->config.genesis.account_count = 1;
    struct genesis_account *founder = &day->config.genesis.accounts[0];
    founder->key = *identity_key(day->owner);
    founder->roles = ROLE_CONSUMER | ROLE_OPERATOR;
    founder->credits_micro = INT64_C(1000) * 1000000;
    strcpy(founder->name, "owner");
}

static void commit_genesis(struct day *day)
{
    static uint8_t payload[GENESIS_BYTES_MAX];
    struct translation translation = {0};
    const struct id128 no_cluster = {0};
    struct entry_command entry = {
        .log_time_ns = ++day->now_ns,
        .account = EXCHANGE_NO_ACCOUNT,
        .kind = ENTRY_GENESIS,
        .payload = payload,
        .payload_length = (uint32_t)storage_genesis(&day->store, payload, sizeof payload)};
    if (!translate_entry(&entry, 1, &no_cluster, &translation)) {
        day_end(DAY_STOPPED, "stopped: out of memory for the genesis");
    }
    if (exchange_step(day->exchange, &translation.command, &day->group->effects) != EXCHANGE_OK) {
        day_end(DAY_STOPPED, "stopped: out of memory in the genesis");
    }
    day->group->first_command = 1;
    day->group->command_count = 1;
    day->group->commands[0].entry = entry;
    commit_to_tables(day);
    translation_fini(&translation);
}

/* The order of broker_run, without threads and sockets. */
static void open_all(struct day *day)
{
    struct problem problem = {.text = ""};
    if (!storage_open(day->market, &day->config, false, &day->store, &day->is_new, &problem)) {
        stop(day, &problem);
    }
    ledger_store_checkpoint_every(day->store.ledger, CHECKPOINT_PAGES);
    day->store.turn_bytes = TURN_BYTES;
    day->store.sync_bytes = SYNC_BYTES;
    day->exchange = day->is_new ? exchange_create(&day->config.limits)
                                : broker_rebuild(&day->store, &day->config, &problem);
    if (day->exchange == NULL) {
        problem_set(&problem, "no exchange");
        stop(day, &problem);
    }
    if (!storage_lead(&day->store, exchange_log_time_ns(day->exchange), &problem) ||
        !storage_catch_up(&day->store, day->exchange, &problem)) {
        stop(day, &problem);
    }
    if (day->is_new) {
        commit_genesis(day);
    }
    day->now_ns = exchange_log_time_ns(day->exchange);
    if (!private_folder(day->snapshots, true, &problem)) {
        stop(day, &problem);
    }
    const struct blob_store_config blobs = {.folder = day->blobs_folder,
                                            .quota_bytes = BLOB_QUOTA_BYTES,
                                            .size_bytes = BLOB_QUOTA_BYTES,
                                            .checkpoint_pages = BLOB_CHECKPOINT_PAGES};
    if (!blob_store_open(&blobs, &day->blobs, &problem)) {
        stop(day, &problem);
    }
}

static void begin(struct day *day, const char *market, struct diary *diary)
{
    static const uint8_t owner_seed[32] = {1};
    static const uint8_t provider_seed[32] = {2};
    *day = (struct day){
        .diary = diary, .store = {.lock = -1}, .now_ns = INT64_C(1700000000) * NS_PER_S};
    (void)snprintf(day->market, sizeof day->market, "%s", market);
    MUST(snprintf(day->snapshots, PATH_MAX, "%s/%s", market, MARKET_SNAPSHOTS) < PATH_MAX &&
             snprintf(day->blobs_folder, PATH_MAX, "%s/%s", market, MARKET_BLOBS) < PATH_MAX,
         "the path of the market is too long");
    day->owner = identity_create(owner_seed);
    day->provider = identity_create(provider_seed);
    bool has_groups = true;
    for (size_t i = 0; i < GROUPS; i++) {
        day->groups[i] = group_create();
        has_groups = has_groups && day->groups[i] != NULL;
    }
    day->group = day->groups[0];
    if (day->owner == NULL || day->provider == NULL || !has_groups) {
        close_all(day);
        day_end(DAY_STOPPED, "stopped: out of memory");
    }
    make_config(day);
    open_all(day);
}

/* ---- what happens in a day */

static void mint(struct day *day, int64_t amount_micro)
{
    Bourse__V1__Mint body = BOURSE__V1__MINT__INIT;
    body.account = data_of(identity_key(day->owner)->bytes, 32);
    body.amount_micro = amount_micro;
    send(day, MESSAGE_MINT, day->owner, OWNER, &body.base);
}

static void invite_provider(struct day *day)
{
    static const uint8_t token[16] = {7, 7, 7};
    struct hash32 token_hash = sha256_of(token, sizeof token);
    Bourse__V1__InviteCreate create = BOURSE__V1__INVITE_CREATE__INIT;
    create.token_hash = data_of(token_hash.bytes, 32);
    create.roles = ROLE_PROVIDER;
    create.credits_micro = 7000000;
    create.expires_ms = day->now_ns / NS_PER_MS + 3600000;
    send(day, MESSAGE_INVITE_CREATE, day->owner, OWNER, &create.base);
    commit(day);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = data_of(identity_key(day->provider)->bytes, 32);
    join.token = data_of(token, sizeof token);
    send(day, MESSAGE_JOIN, day->provider, EXCHANGE_NO_ACCOUNT, &join.base);
    commit(day);
}

static struct id128 place_ask(struct day *day, const struct id128 *device, int64_t good_till_ms)
{
    Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
    body.device = data_of(device->bytes, 16);
    body.slots = 1;
    body.price_micro = PRICE_MICRO;
    body.has_good_till_ms = good_till_ms != 0;
    body.good_till_ms = good_till_ms;
    return send(day, MESSAGE_ASK_PLACE, day->provider, PROVIDER, &body.base);
}

static void offer(struct day *day, struct id128 *ret_ask)
{
    const struct id128 ids[3] = {{.bytes = {1}}, {.bytes = {2}}, {.bytes = {3}}};
    Bourse__V1__Device three[3] = {BOURSE__V1__DEVICE__INIT, BOURSE__V1__DEVICE__INIT,
                                   BOURSE__V1__DEVICE__INIT};
    Bourse__V1__Device *devices[] = {&three[0], &three[1], &three[2]};
    for (size_t i = 0; i < 3; i++) {
        three[i].device = data_of(ids[i].bytes, 16);
        three[i].instrument = (char *)(uintptr_t) "cpu.x86_64.avx2";
        three[i].slots = 2;
    }
    Bourse__V1__Advertise body = BOURSE__V1__ADVERTISE__INIT;
    body.n_devices = 3;
    body.devices = devices;
    send(day, MESSAGE_ADVERTISE, day->provider, PROVIDER, &body.base);
    place_ask(day, &ids[0], 0);
    *ret_ask = place_ask(day, &ids[1], 0);
    place_ask(day, &ids[2],
              day->now_ns / NS_PER_MS + 60000); /* expires with the afternoon's tick */
    commit(day);
}

static struct id128 submit(struct day *day, const struct hash32 *manifest, uint32_t subtasks)
{
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    body.name = (char *)(uintptr_t) "a day's work";
    body.manifest = data_of(manifest->bytes, 32);
    body.subtasks = subtasks;
    body.budget_micro = 300 * 1000000;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 10000;
    body.term_ms = 60000;
    body.verify = (char *)(uintptr_t) "none";
    struct id128 job = send(day, MESSAGE_SUBMIT_JOB, day->owner, OWNER, &body.base);
    commit(day);
    return job;
}

static const struct lease *lease_of(const struct day *day, uint64_t number)
{
    for (size_t i = 0; i < day->lease_count; i++) {
        if (day->leases[i].lease == number) {
            return &day->leases[i];
        }
    }
    MUST(false, "work of lease %" PRIu64 " that was never granted", number);
    return NULL;
}

static uint8_t *make_result(const struct day *day, const struct work *work, uint32_t outcome,
                            size_t *ret_length)
{
    const struct lease *lease = lease_of(day, work->lease);
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = data_of(day->store.genesis.cluster.bytes, 16);
    result.job = data_of(lease->job.bytes, 16);
    result.index = work->index;
    result.attempt = work->attempt;
    result.lease = work->lease;
    result.provider = data_of(identity_key(day->provider)->bytes, 32);
    result.device = data_of(lease->device.bytes, 16);
    result.manifest = data_of(lease->manifest.bytes, 32);
    result.outcome = outcome;
    result.started_ms = 1700000000000;
    result.busy_ns = NS_PER_S / 3;
    uint8_t *bytes = codec_encode(&result.base, ret_length);
    if (bytes == NULL) {
        day_end(DAY_STOPPED, "stopped: out of memory for a result");
    }
    return bytes;
}

/* Answers up to `most` of the subtasks that were dispatched, in one signed batch. */
static void answer(struct day *day, size_t most, uint32_t outcome)
{
    size_t count = day->work_count < most ? day->work_count : most;
    uint8_t *bytes[WORK_MAX];
    struct hash32 leaves[WORK_MAX];
    ProtobufCBinaryData encoded[WORK_MAX];
    MUST(count > 0, "no work was dispatched");
    day->now_ns += NS_PER_S;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        bytes[i] = make_result(day, &day->work[i], outcome, &length);
        leaves[i] = results_leaf(bytes[i], length);
        encoded[i] = data_of(bytes[i], length);
    }
    struct hash32 root = results_root(leaves, count);
    struct signature64 signature = results_sign(day->provider, &day->store.genesis.cluster, &root);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = data_of(signature.bytes, 64);
    body.n_results = count;
    body.results = encoded;
    send(day, MESSAGE_RESULTS, NULL, PROVIDER, &body.base);
    for (size_t i = 0; i < count; i++) {
        free(bytes[i]);
    }
    day->work_count -= count;
    memmove(day->work, day->work + count, day->work_count * sizeof day->work[0]);
    commit(day);
}

static void cancel_job(struct day *day, const struct id128 *job)
{
    Bourse__V1__JobCancel body = BOURSE__V1__JOB_CANCEL__INIT;
    body.job = data_of(job->bytes, 16);
    send(day, MESSAGE_JOB_CANCEL, day->owner, OWNER, &body.base);
    commit(day);
}

static void cancel_ask(struct day *day, const struct id128 *ask)
{
    Bourse__V1__OrderCancel body = BOURSE__V1__ORDER_CANCEL__INIT;
    body.order = data_of(ask->bytes, 16);
    send(day, MESSAGE_ORDER_CANCEL, day->provider, PROVIDER, &body.base);
    commit(day);
}

static void tick(struct day *day, int64_t after_ns)
{
    day->now_ns += after_ns;
    apply_own(day, ENTRY_TICK, EXCHANGE_TICK, 0);
    commit(day);
}

static void go_silent(struct day *day)
{
    apply_own(day, ENTRY_SUSPECT, EXCHANGE_SUSPECT, PROVIDER);
    commit(day);
    apply_own(day, ENTRY_RETURNED, EXCHANGE_RETURNED, PROVIDER);
    commit(day);
}

/* Writes one as snapshots.c does; a failure costs the next start only time. */
static void snapshot(struct day *day)
{
    struct problem problem = {.text = ""};
    apply_waiting(day);
    storage_sync_tables(&day->store); /* as the follower does */
    const struct journal_last *last = &day->store.last;
    struct snapshot_mark mark = {.command = last->next_command - 1,
                                 .entry = last->index,
                                 .chain = last->chain,
                                 .state = exchange_state_hash(day->exchange)};
    bool written = snapshot_write(day->snapshots, day->exchange, &mark, &problem);
    MUST(written || (disk_has_failed() && problem.text[0] != '\0'), "a snapshot failed: %s",
         problem.text);
}

/* ---- the day */

void day_morning(const char *market, struct diary *diary)
{
    struct day day;
    struct id128 ask;
    begin(&day, market, diary);
    mint(&day, 5000000);
    mint(&day, 6000000);
    commit(&day);
    invite_provider(&day);
    offer(&day, &ask);
    struct hash32 manifest = day_put(&day, OWNER, 1, BLOB_SMALL);
    day_put(&day, OWNER, 2, BLOB_LARGE);
    day_put(&day, PROVIDER, 1, BLOB_SMALL);
    submit(&day, &manifest, 4);
    answer(&day, 1, OUTCOME_OK);
    snapshot(&day);
    day_put(&day, OWNER, 3, BLOB_LARGE);
    answer(&day, 1, OUTCOME_PROGRAM_FAILED);
    cancel_ask(&day, &ask);
    go_silent(&day);
    day_check_blob(&day, &diary->blobs[1]);
    snapshot(&day);
    apply_waiting(&day);
    close_all(&day);
}

void day_evening(const char *market, struct diary *diary)
{
    struct day day;
    begin(&day, market, diary);
    struct hash32 manifest = day_put(&day, OWNER, 4, BLOB_SMALL);
    struct id128 job = submit(&day, &manifest, 2);
    tick(&day, 100 * NS_PER_MS);
    cancel_job(&day, &job);
    for (int i = 0; i < QUIET_TICKS; i++) { /* the tail's files turn, and the tables follow */
        tick(&day, 100 * NS_PER_MS);
    }
    snapshot(&day);
    tick(&day, 3600 * NS_PER_S);
    mint(&day, 1000000);
    commit(&day);
    day_put(&day, OWNER, 5, BLOB_LARGE);
    apply_waiting(&day);
    close_all(&day);
}

/* ---- after a cut */

static size_t acknowledged(const struct diary *diary, size_t changes)
{
    size_t count = 0;
    while (count < diary->commit_count && diary->commits[count].changes <= changes) {
        count++;
    }
    return count;
}

static void check_head(const struct day *day, uint64_t least)
{
    char path[PATH_MAX];
    struct problem problem = {.text = ""};
    struct head head = {.index = 0};
    MUST(snprintf(path, sizeof path, "%s/%s", day->market, MARKET_HEAD) < PATH_MAX, "a long path");
    enum head_status status = head_read(path, &head, &problem);
    MUST(status == HEAD_OK || (least == 0 && status == HEAD_MISSING), "HEAD: %d %s", (int)status,
         problem.text);
    MUST(head.index >= least, "HEAD has seen entry %" PRIu64 ", %" PRIu64 " was acknowledged",
         head.index, least);
}

/* The market as it stands is one that the diary knows, and not an older one than was
 * acknowledged. */
static void check_market(struct day *day, uint64_t least)
{
    const struct diary *diary = day->diary;
    uint64_t index = day->store.last.index;
    MUST(index >= least, "the journal ends at %" PRIu64 ", %" PRIu64 " was acknowledged", index,
         least);
    for (size_t i = 0; i < diary->commit_count; i++) {
        const struct diary_commit *commit = &diary->commits[i];
        if (commit->entry != index) {
            continue;
        }
        const struct merkle *tree = ledger_store_tree(day->store.ledger);
        struct hash32 state = exchange_state_hash(day->exchange);
        struct hash32 root = merkle_root(tree);
        MUST(hash32_equal(&day->store.last.chain, &commit->chain), "another history");
        MUST(hash32_equal(&state, &commit->state), "another state at entry %" PRIu64, index);
        MUST(commit->tree_size == 0 ||
                 (tree->size == commit->tree_size && hash32_equal(&root, &commit->root)),
             "another tree");
    }
}

static void check_proofs(const struct day *day)
{
    struct problem problem = {.text = ""};
    MUST(replay_verify(day->market, true, &problem) == REPLAY_OK, "replay: %s", problem.text);
    struct audit_report report;
    audit_run(day->market, &report);
    MUST(report.verdict == AUDIT_OK, "audit: %s %" PRIu64 ": %s, expected %s, found %s",
         report.table, report.entry, report.what, report.expected, report.found);
}

void day_recover(const char *market, struct diary *diary, size_t changes)
{
    struct day day = {.diary = diary};
    size_t count = acknowledged(diary, changes);
    uint64_t least = count == 0 ? 0 : diary->commits[count - 1].entry;
    (void)snprintf(day.market, sizeof day.market, "%s", market);
    check_head(&day, least);
    begin(&day, market, diary);
    MUST(!day.is_new || least == 0, "a market with entries began anew");
    if (!day.is_new) {
        check_market(&day, least);
    }
    for (size_t i = 0; i < diary->blob_count; i++) {
        if (diary->blobs[i].changes <= changes) {
            day_check_blob(&day, &diary->blobs[i]);
        }
    }
    mint(&day, 1);
    commit(&day);
    day_put(&day, OWNER, 6, BLOB_SMALL);
    day_put(&day, OWNER, 7, BLOB_LARGE);
    day_check_usage(&day, OWNER);
    day_check_usage(&day, PROVIDER);
    check_proofs(&day);
    apply_waiting(&day);
    check_proofs(&day);
    close_all(&day);
}
