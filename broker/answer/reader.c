#include "broker/answer/reader.h"

#include "base/checked.h"
#include "broker/answer/measuring.h"
#include "broker/answer/proofs.h"
#include "broker/core/outgoing.h"
#include "broker/core/queue.h"
#include "broker/core/request.h"
#include "broker/fatal.h"
#include "broker/storage/journal_sqlite.h"
#include "ledger/store/sqlite.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/reject.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OUTCOMES_BYTES = 512 << 10 }; /* results in one reply, which then fits a message */
/* Interval between looks whether a full disk keeps the tables back. */
#define LOOK_NS (100 * NS_PER_MS)

struct reader_thread {
    struct reader_config config;
    struct ledger_reader *ledger;
    struct measuring *measuring;
    uint64_t visits; /* rows of measured work that the answer visited */
    uint64_t seen;   /* no later entry was measured */
    pthread_t thread;
};

static struct outgoing *refuse(const struct request *request, enum reject_code code,
                               const char *field)
{
    return outgoing_refuse(request, code, field, 0, 0);
}

static struct outgoing *failed(const struct request *request, enum ledger_store_status status,
                               const char *field)
{
    if (status == LEDGER_STORE_NOT_FOUND) {
        return refuse(request, REJECT_NOT_FOUND, field);
    }
    log_error("the ledger could not be read (%d)", (int)status);
    return refuse(request, REJECT_UNAVAILABLE, "");
}

static size_t row_limit(bool has_limit, uint32_t limit)
{
    return has_limit && limit > 0 && limit < LIMIT_ROWS ? limit : LIMIT_ROWS;
}

/* ---------------------------------------------------------------- statement */

static void statement_row(const struct reader_thread *reader,
                          const struct ledger_statement_row *row,
                          Bourse__V1__StatementRow *ret_wire)
{
    bourse__v1__statement_row__init(ret_wire);
    ret_wire->entry = row->entry;
    ret_wire->log_index = row->log_index;
    ret_wire->time_ms = row->log_time_ns / NS_PER_MS;
    ret_wire->kind = (uint32_t)row->kind;
    ret_wire->amount_micro = row->amount_micro;
    ret_wire->held_micro = row->held_micro;
    if (!id128_is_zero(&row->job)) {
        ret_wire->has_job = true;
        ret_wire->job =
            (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)row->job.bytes, .len = 16};
    }
    const struct directory_account *other =
        directory_number(reader->config.directory, row->counterparty);
    if (other != NULL) {
        ret_wire->counterparty = (char *)(uintptr_t)other->name; /* packed, never written */
    }
    ret_wire->has_subtask = row->has_index;
    ret_wire->subtask = row->index;
    ret_wire->has_device = !id128_is_zero(&row->device);
    ret_wire->device =
        (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)row->device.bytes, .len = 16};
    ret_wire->has_fee_micro = row->fee_micro > 0;
    ret_wire->fee_micro = row->fee_micro;
    ret_wire->has_given_ns = row->given_ns > 0;
    ret_wire->given_ns = row->given_ns;
    ret_wire->has_failed = row->is_failed;
    ret_wire->failed = row->is_failed;
}

static enum ledger_store_status statement_page(struct reader_thread *reader, uint32_t account,
                                               uint64_t before, size_t limit,
                                               struct ledger_statement_row *ret_rows,
                                               size_t *ret_count, uint64_t *ret_next)
{
    enum ledger_store_status status =
        ledger_reader_statement(reader->ledger, account, before, limit, ret_rows, ret_count);
    *ret_next = status == LEDGER_STORE_OK && *ret_count == limit ? ret_rows[limit - 1].entry : 0;
    return status;
}

static struct outgoing *statement(struct reader_thread *reader, const struct request *request)
{
    const Bourse__V1__StatementRequest *body = (const void *)request->translation.body;
    size_t limit = row_limit(body->has_limit, body->limit);
    struct ledger_statement_row *rows = calloc(limit, sizeof *rows);
    Bourse__V1__StatementRow *wires = calloc(limit, sizeof *wires);
    Bourse__V1__StatementRow **pointers = calloc(limit, sizeof(Bourse__V1__StatementRow *));
    struct outgoing *outgoing = NULL;
    if (rows != NULL && wires != NULL && pointers != NULL) {
        size_t count = 0;
        uint64_t next = 0;
        uint64_t before = body->has_before ? body->before : 0;
        enum ledger_store_status status =
            body->has_results && body->results
                ? ledger_reader_results(reader->ledger, request->account, before, LEDGER_WALK,
                                        limit, rows, &count, &next)
                : statement_page(reader, request->account, before, limit, rows, &count, &next);
        if (status != LEDGER_STORE_OK) {
            outgoing = failed(request, status, "account");
        } else {
            Bourse__V1__StatementReply answer = BOURSE__V1__STATEMENT_REPLY__INIT;
            for (size_t i = 0; i < count; i++) {
                statement_row(reader, &rows[i], &wires[i]);
                pointers[i] = &wires[i];
            }
            answer.n_rows = count;
            answer.rows = pointers;
            answer.has_next_before = next > 1;
            answer.next_before = next;
            outgoing = outgoing_reply(request, MESSAGE_STATEMENT_REPLY, &answer.base);
        }
    }
    free(rows);
    free(wires);
    free(pointers);
    return outgoing;
}

/* ---------------------------------------------------------------- trades */

static struct outgoing *trades_reply(const struct request *request,
                                     const struct ledger_trade_row *rows, size_t count, bool more)
{
    Bourse__V1__TradeRow *wires = calloc(count + 1, sizeof *wires);
    Bourse__V1__TradeRow **pointers = calloc(count + 1, sizeof(Bourse__V1__TradeRow *));
    struct outgoing *outgoing = NULL;
    if (wires != NULL && pointers != NULL) {
        for (size_t i = 0; i < count; i++) {
            bourse__v1__trade_row__init(&wires[i]);
            wires[i].entry = rows[i].entry;
            wires[i].has_index = true;
            wires[i].index = rows[i].log_index;
            wires[i].time_ms = rows[i].log_time_ns / NS_PER_MS;
            wires[i].instrument = (char *)(uintptr_t)rows[i].instrument; /* packed, never written */
            wires[i].slots = rows[i].slots;
            wires[i].price_micro = rows[i].price_micro;
            pointers[i] = &wires[i];
        }
        Bourse__V1__TradesReply answer = BOURSE__V1__TRADES_REPLY__INIT;
        answer.n_rows = count;
        answer.rows = pointers;
        answer.has_next_before = more;
        answer.next_before = more ? rows[count - 1].entry : 0;
        outgoing = outgoing_reply(request, MESSAGE_TRADES_REPLY, &answer.base);
    }
    free(wires);
    free(pointers);
    return outgoing;
}

static struct outgoing *trades(struct reader_thread *reader, const struct request *request)
{
    const Bourse__V1__TradesRequest *body = (const void *)request->translation.body;
    size_t limit = row_limit(body->has_limit, body->limit);
    struct ledger_trade_row *rows = calloc(limit, sizeof *rows);
    if (rows == NULL) {
        return NULL;
    }
    size_t count = 0;
    enum ledger_store_status status = ledger_reader_trades(
        reader->ledger, body->has_before ? body->before : 0, limit, rows, &count);
    struct outgoing *outgoing = status == LEDGER_STORE_OK
                                    ? trades_reply(request, rows, count, count == limit)
                                    : failed(request, status, "before");
    free(rows);
    return outgoing;
}

/* ---------------------------------------------------------------- outcomes */

static struct outgoing *outcomes_reply(const struct request *request,
                                       const struct ledger_outcome_row *rows, size_t count)
{
    const Bourse__V1__OutcomesRequest *body = (const void *)request->translation.body;
    /* A short page may be full by bytes, not at the end: only an empty page is surely the last. */
    bool more = count > 0;
    Bourse__V1__OutcomeRow *wires = calloc(count + 1, sizeof *wires);
    Bourse__V1__OutcomeRow **pointers = calloc(count + 1, sizeof(Bourse__V1__OutcomeRow *));
    struct outgoing *outgoing = NULL;
    if (wires != NULL && pointers != NULL) {
        for (size_t i = 0; i < count; i++) {
            bourse__v1__outcome_row__init(&wires[i]);
            wires[i].index = rows[i].index;
            wires[i].attempt = rows[i].attempt;
            wires[i].status = rows[i].status;
            wires[i].result =
                (ProtobufCBinaryData){.data = rows[i].result, .len = rows[i].result_length};
            wires[i].charge_micro = rows[i].charge_micro;
            wires[i].paid_ns = rows[i].paid_ns;
            wires[i].log_index = rows[i].log_index;
            wires[i].has_level = rows[i].level != CHECK_NONE;
            wires[i].level = rows[i].level;
            pointers[i] = &wires[i];
        }
        Bourse__V1__OutcomesReply answer = BOURSE__V1__OUTCOMES_REPLY__INIT;
        answer.n_rows = count;
        answer.rows = pointers;
        answer.has_next = more && !body->has_others_from;
        answer.next = more ? rows[count - 1].index + 1 : 0;
        answer.has_next_entry = more && body->has_others_from;
        answer.next_entry = more ? rows[count - 1].entry + 1 : 0;
        outgoing = outgoing_reply(request, MESSAGE_OUTCOMES_REPLY, &answer.base);
    }
    free(wires);
    free(pointers);
    return outgoing;
}

static struct outgoing *outcomes(struct reader_thread *reader, const struct request *request)
{
    const Bourse__V1__OutcomesRequest *body = (const void *)request->translation.body;
    struct id128 job = codec_id(body->job);
    size_t limit = row_limit(true, body->limit);
    struct ledger_outcome_row *rows = calloc(limit, sizeof *rows);
    if (rows == NULL) {
        return NULL;
    }
    size_t count = 0;
    enum ledger_store_status status =
        body->has_others_from ? ledger_reader_others(reader->ledger, &job, body->others_from, limit,
                                                     OUTCOMES_BYTES, rows, &count)
                              : ledger_reader_outcomes(reader->ledger, &job, body->from, limit,
                                                       OUTCOMES_BYTES, rows, &count);
    struct outgoing *outgoing = NULL;
    if (status != LEDGER_STORE_OK && status != LEDGER_STORE_NOT_FOUND) {
        outgoing = failed(request, status, "job");
    } else {
        outgoing = outcomes_reply(request, rows, count);
    }
    for (size_t i = 0; i < count; i++) {
        free(rows[i].result);
    }
    free(rows);
    return outgoing;
}

/* ---------------------------------------------------------------- measured work */

/* Pages of results that are read before an answer. */
enum { HISTORY_PAGES = 4 };

struct history_page {
    Bourse__V1__HistoryRow wires[LIMIT_ROWS];
    Bourse__V1__HistoryRow *pointers[LIMIT_ROWS];
    const struct measured *classes;
    const Bourse__V1__HistoryRequest *asked;
    uint64_t *visits;
    /* Class of the last device that is not at pace 1; `is_last_asked` says whether its class is
     * asked about. */
    const char *last_class;
    bool is_last_asked;
    uint32_t skip;
    size_t count;
};

static ProtobufCBinaryData borrowed(const uint8_t *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

static bool is_skipped(struct history_page *page)
{
    const bool is_had = page->skip > 0;
    page->skip -= is_had;
    return is_had;
}

static Bourse__V1__HistoryRow *next_row(struct history_page *page, const char *device_class,
                                        const struct measured_device *device)
{
    Bourse__V1__HistoryRow *wire = &page->wires[page->count];
    bourse__v1__history_row__init(wire);
    wire->device_class = (char *)(uintptr_t)device_class; /* packed, never written */
    wire->has_provider = wire->has_device = !id128_is_zero(&device->device);
    wire->provider = borrowed(device->provider.bytes, sizeof device->provider.bytes);
    wire->device = borrowed(device->device.bytes, sizeof device->device.bytes);
    page->pointers[page->count++] = wire;
    return wire;
}

static bool add_history(void *context, const struct measured_row *row,
                        const struct history_summary *took)
{
    struct history_page *page = context;
    ++*page->visits;
    if (is_skipped(page)) {
        return true;
    }
    if (page->count == LIMIT_ROWS) {
        return false;
    }
    Bourse__V1__HistoryRow *wire = next_row(page, row->device_class, &row->device);
    wire->work = borrowed(row->work.name.bytes, sizeof row->work.name.bytes);
    wire->size = row->work.size;
    wire->samples = took->count;
    wire->outliers = took->outliers;
    wire->median_ns = took->median;
    wire->has_p90_ns = took->p90 > 0;
    wire->p90_ns = took->p90;
    wire->at_ms = row->at_ns / NS_PER_MS;
    return true;
}

struct same_class {
    const char *device_class;
    bool is_found;
};

static bool find_class(void *context, const struct measured_row *row)
{
    struct same_class *same = context;
    same->is_found = strcmp(row->device_class, same->device_class) == 0;
    return !same->is_found;
}

/* Devices come class by class, so the last result is kept. */
static bool is_asked_about(struct history_page *page, const char *device_class)
{
    struct same_class same = {.device_class = device_class};
    if (page->last_class != NULL && strcmp(page->last_class, device_class) == 0) {
        return page->is_last_asked;
    }
    for (size_t i = 0; i < page->asked->n_works && !same.is_found; i++) {
        ++*page->visits;
        const struct hash32 name = codec_hash(page->asked->works[i]);
        (void)measured_each(page->classes, &name, find_class, &same);
    }
    page->last_class = device_class;
    page->is_last_asked = same.is_found;
    return same.is_found;
}

/* Adds the pace of a device whose class has the work that is asked about. */
static bool add_pace(void *context, const struct paced *paced)
{
    struct history_page *page = context;
    ++*page->visits;
    if (!is_asked_about(page, paced->device_class)) {
        return true;
    }
    if (is_skipped(page)) {
        return true;
    }
    if (page->count == LIMIT_ROWS) {
        return false;
    }
    Bourse__V1__HistoryRow *wire = next_row(page, paced->device_class, &paced->device);
    wire->work = page->asked->works[0];
    wire->has_pace = 1;
    wire->pace = paced->pace;
    return true;
}

/* Measures the next page. What is visible to readers was durable in the journal before. */
static bool look(struct reader_thread *reader)
{
    const bool is_more = measuring_look(reader->measuring, reader->ledger);
    reader->seen = watermark_value(reader->config.durable);
    return is_more;
}

static struct outgoing *history(struct reader_thread *reader, const struct request *request)
{
    const Bourse__V1__HistoryRequest *body = (const void *)request->translation.body;
    for (int i = 0; i < HISTORY_PAGES && look(reader); i++) {
    }
    struct history_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    page->skip = body->has_skip ? body->skip : 0;
    page->classes = measuring_rows(reader->measuring);
    page->asked = body;
    page->visits = &reader->visits;
    const struct paces *paces = measuring_paces(reader->measuring);
    bool all = paces_each(paces, add_pace, page);
    for (size_t i = 0; i < body->n_works && all; i++) {
        const struct hash32 name = codec_hash(body->works[i]);
        all = paces_tell(paces, page->classes, measuring_devices(reader->measuring), &name,
                         add_history, page);
    }
    Bourse__V1__HistoryReply answer = BOURSE__V1__HISTORY_REPLY__INIT;
    answer.n_rows = page->count;
    answer.rows = page->pointers;
    answer.has_more = !all;
    answer.more = !all;
    struct outgoing *outgoing = outgoing_reply(request, MESSAGE_HISTORY_REPLY, &answer.base);
    free(page);
    return outgoing;
}

static struct outgoing *proof(struct reader_thread *reader, const struct request *request,
                              proofs_answer *make, const char *field)
{
    struct outgoing *outgoing = NULL;
    enum ledger_store_status status =
        make(reader->ledger, &reader->config.cluster, request, &outgoing);
    return status == LEDGER_STORE_OK ? outgoing : failed(request, status, field);
}

static struct outgoing *answer(struct reader_thread *reader, const struct request *request)
{
    switch ((int)request->envelope.type) {
    case MESSAGE_STATEMENT_REQUEST:
        return statement(reader, request);
    case MESSAGE_TRADES_REQUEST:
        return trades(reader, request);
    case MESSAGE_OUTCOMES_REQUEST:
        return outcomes(reader, request);
    case MESSAGE_RECEIPT_REQUEST:
        return proof(reader, request, proofs_receipt, "index");
    case MESSAGE_RECEIPTS_REQUEST:
        return proof(reader, request, proofs_receipts, "checkpoint");
    case MESSAGE_CHECKPOINT_REQUEST:
        return proof(reader, request, proofs_checkpoint, "checkpoint");
    case MESSAGE_HISTORY_REQUEST:
        return history(reader, request);
    default:
        return refuse(request, REJECT_TYPE, "type");
    }
}

/* ---------------------------------------------------------------- the loop */

/* Waits until the tables have what was acknowledged. The asker may know all of that. Returns false
 * when the disk has no space for the tables, so that they stay behind. */
static bool wait_for_tables(struct reader_thread *reader)
{
    const uint64_t wanted = watermark_value(reader->config.durable);
    const struct disk_reserve *reserve = reader->config.reserve;
    while (!watermark_wait_for(reader->config.applied, wanted, LOOK_NS)) {
        if (reserve != NULL && disk_reserve_state(reserve) == DISK_RESERVE_STUCK) {
            return false;
        }
    }
    return true;
}

/* Waits until HEAD knows of the newest entry in the tables. The entry is read after the answer is
 * made, so the answer was made from no later one. */
static void wait_for_head(struct reader_thread *reader)
{
    uint64_t entry = 0;
    if (!journal_sqlite_last_entry(ledger_reader_database(reader->ledger), &entry)) {
        fatal("the reader cannot tell where the journal stands");
    }
    watermark_wait(reader->config.applied, entry);
}

static void learn_names(struct reader_thread *reader)
{
    for (struct queue_link *link; (link = queue_pop(reader->config.names, 0)) != NULL;) {
        struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
        if (!directory_put(reader->config.directory, &outgoing->opened)) {
            fatal("out of memory");
        }
        outgoing_destroy(&outgoing);
    }
}

/* Charges the steps beyond BUDGET_LEDGER_STEPS, which the core has charged before. */
static void charge(struct reader_thread *reader, const struct request *request,
                   const struct outgoing *outgoing)
{
    const struct budget_asker asker = {
        .account = request->account, .session = request->session, .kind = BUDGET_READS};
    const uint64_t steps =
        ledger_reader_steps(reader->ledger) + reader->visits * (uint64_t)BUDGET_VISIT_STEPS;
    reader->visits = 0;
    if (reader->config.budget != NULL) {
        budget_charge(reader->config.budget, &asker,
                      budget_of_answer(BUDGET_LEDGER_LEAST + steps, outgoing->length) -
                          BUDGET_LEDGER_STEPS,
                      clock_monotonic_ns());
    }
}

static void serve(struct reader_thread *reader, struct request *request)
{
    (void)ledger_reader_steps(reader->ledger); /* drops steps that no request caused */
    struct outgoing *outgoing = wait_for_tables(reader) ? answer(reader, request)
                                                        : refuse(request, REJECT_STORAGE_FULL, "");
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    outgoing->index = request->state_index;
    outgoing->log_time_ns = request->state_ns;
    charge(reader, request, outgoing);
    wait_for_head(reader);
    if (!queue_push(reader->config.releases, &outgoing->link)) {
        outgoing_destroy(&outgoing);
    }
}

/* A history.db that is ahead of the ledger means that entries are lost. So what was measured waits,
 * and nothing more is measured, until the ledger has it after a power cut, too. */
static void measure_and_save(struct reader_thread *reader)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (!measuring_is_due(reader->measuring, now_ns)) {
        (void)look(reader);
    } else if (watermark_wait_for(reader->config.synced, reader->seen, LOOK_NS)) {
        measuring_save_if_due(reader->measuring, now_ns);
    }
}

static void *run(void *argument)
{
    struct reader_thread *reader = argument;
    process_name_thread("reader");
    while (!queue_finished(reader->config.inbound)) {
        struct queue_link *link = queue_pop(reader->config.inbound, NS_PER_S);
        /* Learning at least once a second keeps the committer from waiting for long. */
        learn_names(reader);
        if (link == NULL) {
            measure_and_save(reader);
            continue;
        }
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        serve(reader, request);
        request_destroy(&request);
    }
    return NULL;
}

struct reader_thread *reader_start(const struct reader_config *config)
{
    struct reader_thread *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        fatal("the reader cannot start: out of memory");
    }
    reader->config = *config;
    if (ledger_reader_open(config->database, &reader->ledger) != LEDGER_STORE_OK) {
        fatal("the reader cannot open %s: there is no memory, or the disk did not give "
              "it. " PROBLEM_TRY_AGAIN,
              config->database);
    }
    reader->measuring = measuring_open(config->history, config->blobs);
    if (reader->measuring == NULL) {
        fatal("the reader cannot start: out of memory");
    }
    if (pthread_create(&reader->thread, NULL, run, reader) != 0) {
        fatal("the reader cannot start: no thread");
    }
    return reader;
}

void reader_stop(struct reader_thread **self)
{
    struct reader_thread *reader = *self;
    if (reader != NULL) {
        queue_close(reader->config.inbound);
        pthread_join(reader->thread, NULL);
        learn_names(reader);
        measuring_close(&reader->measuring);
        ledger_reader_close(&reader->ledger);
        directory_destroy(&reader->config.directory);
        free(reader);
        *self = NULL;
    }
}
