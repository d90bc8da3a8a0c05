/* This file holds the rules of every field of bourse.proto but those of manifests, and the table of
 * message types.
 * docs/protocol.md sections 5, 6 and 10 say the same in words. A new field of the schema needs its
 * rule here: a test compares the two. */
#include "base/energy.h"
#include "base/requirement.h"
#include "protocol/codec_check.h"
#include "protocol/codec_rules.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

/* ---- common ---- */

static bool check_attribute(const struct sighting *sighting, struct codec_error *ret_error)
{
    uint32_t values = sighting->counts[1] + sighting->counts[2];
    return values == 1 || codec_check_refuse(ret_error, "number", values, 1);
}

/* Predicates have a name, one value and no arity; `and` and `or` have an arity only; `not` has none
 * of them. */
static bool check_requirement_node(const struct sighting *sighting, struct codec_error *ret_error)
{
    int64_t op = sighting->numbers[0];
    bool is_predicate = op >= REQUIREMENT_EQ;
    bool has_arity = op == REQUIREMENT_AND || op == REQUIREMENT_OR;
    uint32_t names = sighting->counts[1];
    uint32_t values = sighting->counts[2] + sighting->counts[3];
    uint32_t arities = sighting->counts[4];
    if (names != is_predicate) {
        return codec_check_refuse(ret_error, "name", names, is_predicate);
    }
    if (values != is_predicate) {
        return codec_check_refuse(ret_error, "number", values, is_predicate);
    }
    return arities == has_arity || codec_check_refuse(ret_error, "arity", arities, has_arity);
}

static bool check_ask_account(const struct sighting *sighting, struct codec_error *ret_error)
{
    uint32_t said = sighting->counts[0] + sighting->counts[1];
    return said == 1 || codec_check_refuse(ret_error, "account", said, 1);
}

#define ATTRIBUTE_NAME NAME(1, ATTRIBUTE_NAME_SIZE - 1)
#define ATTRIBUTE_TEXT LINE(0, ATTRIBUTE_TEXT_SIZE - 1)

SHAPE_CHECKED(attribute, attribute, check_attribute, ATTRIBUTE_NAME, ANY, ATTRIBUTE_TEXT);
SHAPE_CHECKED(requirement_node, requirement_node, check_requirement_node,
              NUMBER(REQUIREMENT_AND, REQUIREMENT_GE), ATTRIBUTE_NAME, ANY, ATTRIBUTE_TEXT,
              NUMBER(2, LIMIT_REQUIREMENT_NODES));
RULES(requirement_rules, MANY(requirement_node, LIMIT_REQUIREMENT_NODES));
const struct shape codec_requirement_shape = {&bourse__v1__requirement__descriptor,
                                              requirement_rules, LENGTH(requirement_rules), NULL};

/* ---- session ---- */

#define VERSION NUMBER(1, UINT16_MAX)
#define ALL_ROLES                                                                                  \
    (ROLE_CONSUMER | ROLE_PROVIDER | ROLE_AUDITOR | ROLE_REPLICA | ROLE_RISK | ROLE_OPERATOR |     \
     ROLE_REFEREE)

SHAPE(hello, hello, VERSION, NAME(0, LIMIT_PROGRAM_BYTES),
      NUMBER(SESSION_CONSUMER, SESSION_PROVIDER), COUNT, COUNT, FLAG, FLAG, COUNT);
SHAPE(welcome, welcome, VERSION, ID, COUNT, NUMBER(1, LIMIT_HEARTBEAT_MS), MOMENT, COUNT,
      NAME(1, LIMIT_NAME_BYTES), HASH, HASH, NAME(0, LIMIT_NAME_BYTES), NUMBER(0, ALL_ROLES),
      LINE(0, LIMIT_ENDPOINT_BYTES), NUMBER(LIMIT_SMALL_BODY_BYTES, UINT32_MAX), COUNT, FLAG,
      NUMBER(0, UINT32_MAX), NUMBER(1, UINT16_MAX), NUMBER(0, LIMIT_SPREAD_MS), ANY, ANY, FLAG);
SHAPE(heartbeat, heartbeat, COUNT, NUMBER(0, LIMIT_SPREAD_MS), COUNT, ANY, ANY);
SHAPE(goodbye, goodbye, NOTE);
SHAPE(accepted, accepted, COUNT, FLAG);
/* Unknown codes are let through, because a newer broker may have more. */
SHAPE(reject, reject, NUMBER(1, UINT16_MAX), NOTE, LINE(0, LIMIT_NAME_BYTES), ANY, ANY, ENDPOINT);

/* ---- accounts and operator ---- */

SHAPE(join, join, HASH, ID, NAME(0, LIMIT_NAME_BYTES));
SHAPE(mint, mint, HASH, NUMBER(1, INT64_MAX), NOTE);
SHAPE(invite_create, invite_create, HASH, NUMBER(1, ALL_ROLES), MONEY, MOMENT,
      NAME(0, LIMIT_NAME_BYTES));
SHAPE(freeze, freeze, HASH, FLAG, NOTE);
SHAPE(halt, halt, FLAG, NOTE);

/* A command without any field is a mistake of the sender. */
static bool check_set_bands(const struct sighting *sighting, struct codec_error *ret_error)
{
    uint32_t said = sighting->counts[0] + sighting->counts[1] + sighting->counts[2];
    return said > 0 || codec_check_refuse(ret_error, "most_micro", said, 1);
}

SHAPE_CHECKED(set_bands, set_bands, check_set_bands, MONEY, NUMBER(1, INT64_MAX), MONEY, NOTE);
/* A command that names no account is a mistake of the sender. */
static bool check_set_owner(const struct sighting *sighting, struct codec_error *ret_error)
{
    return sighting->counts[0] > 0 || codec_check_refuse(ret_error, "accounts", 0, 1);
}

SHAPE_CHECKED(set_owner, set_owner, check_set_owner, MANY_SIZED(32, 32, LIMIT_OWNER_ACCOUNTS),
              NAME(0, LIMIT_NAME_BYTES), NOTE);
SHAPE(accounts_request, accounts_request, COUNT, NUMBER(1, LIMIT_ROWS));
/* Balances may be negative: an account with overdraft permission (the mint) is one. */
SHAPE(account_row, account_row, COUNT, HASH, NAME(0, LIMIT_NAME_BYTES), NUMBER(0, ALL_ROLES), ANY,
      ANY, FLAG, NAME(0, LIMIT_NAME_BYTES));
SHAPE(accounts_reply, accounts_reply, MANY(account_row, LIMIT_ROWS), COUNT, FLAG);

/* ---- provider ---- */

#define ORDER_TYPE NUMBER(ORDER_LIMIT, ORDER_MARKET)
#define LEASE NUMBER(1, INT64_MAX)
#define ATTEMPT COUNT

SHAPE(challenge_fact, challenge_fact, COUNT, MOMENT, COUNT, COUNT, COUNT, SPAN);
SHAPE(standing, standing, COUNT, COUNT, COUNT, COUNT, NAME(0, LIMIT_NAME_BYTES));
SHAPE(device, device, ID, NAME(1, LIMIT_INSTRUMENT_BYTES), SLOTS, MANY(attribute, LIMIT_ATTRIBUTES),
      NAME(0, LIMIT_NAME_BYTES));
SHAPE(advertise, advertise, MANY(device, LIMIT_DEVICES));
#define OFFSET_MIN NUMBER(INT32_MIN, INT32_MAX)
#define DAILY NUMBER(1, LIMIT_DAILY_MS)
SHAPE_CHECKED(ask_account, ask_account, check_ask_account, HASH, NAME(1, LIMIT_NAME_BYTES));
SHAPE(ask_hours, ask_hours, COUNT, COUNT, COUNT);
SHAPE(ask_place, ask_place, ID, SLOTS, MONEY, MOMENT, DURATION, ORDER_TYPE,
      MANY(ask_account, LIMIT_ASK_ACCOUNTS), MANY(ask_hours, LIMIT_ASK_HOURS), OFFSET_MIN, DAILY,
      FLAG, SPAN, SPAN);
SHAPE(order_cancel, order_cancel, ID);
SHAPE(ask_event, ask_event, ID, ID, FLAG, SLOTS, MONEY, MOMENT, DURATION, FLAG, SPAN, SPAN);
SHAPE(held_work, held_work, SUBTASK_INDEX, ATTEMPT);
SHAPE(held_lease, held_lease, LEASE, MANY(held_work, LIMIT_HELD));
SHAPE(statement, statement, MANY(held_lease, LIMIT_LEASES), COUNT);
SHAPE(lease_grant, lease_grant, LEASE, ID, HASH, ID, SLOTS, SLOTS, MONEY, DURATION, HASH, DURATION,
      ID, FLAG);
SHAPE(lease_renew, lease_renew, LEASE, DURATION);
SHAPE(output, output, LINE(1, LIMIT_PATH_BYTES), HASH, COUNT, FLAG);
SHAPE(saved, saved, MANY(output, LIMIT_CHECKPOINT_FILES), NUMBER(1, UINT32_MAX));
SHAPE(given, given, SUBTASK_INDEX, MANY(output, LIMIT_OUTPUTS));
SHAPE(work, work, SUBTASK_INDEX, ATTEMPT, NUMBER(0, LIMIT_SLOTS - 1), FLAG,
      MANY(given, LIMIT_GRAPH_SUBTASKS), HASH, SUBTASK_INDEX, NESTED(saved));
SHAPE(dispatch, dispatch, LEASE, MANY(work, LIMIT_DISPATCH));
SHAPE(withdraw, withdraw, LEASE, MANY(work, LIMIT_DISPATCH));
SHAPE(lease_end, lease_end, LEASE, NUMBER(LEASE_END_RETURNED, LEASE_END_PREEMPTED));
SHAPE(lease_notice, lease_notice, LEASE, SPAN);
enum { ISOLATION_MOST = 3 }; /* the highest level of isolation */
static const struct rule result_rules[] = {ID,
                                           ID,
                                           SUBTASK_INDEX,
                                           ATTEMPT,
                                           LEASE,
                                           HASH,
                                           ID,
                                           HASH,
                                           NUMBER(OUTCOME_OK, OUTCOME_COUNT - 1),
                                           MOMENT,
                                           COUNT,
                                           FLAG,
                                           NUMBER(0, 255),
                                           NUMBER(0, 255),
                                           MANY(output, LIMIT_OUTPUTS),
                                           NESTED(output),
                                           NESTED(output),
                                           NOTE,
                                           COUNT,
                                           COUNT,
                                           COUNT,
                                           NUMBER(VERDICT_NONE, VERDICT_UNSURE),
                                           HASH,
                                           NESTED(saved),
                                           NUMBER(1, UINT32_MAX),
                                           COUNT,
                                           FLAG,
                                           NUMBER(ENERGY_MEASURED, ENERGY_SOURCES - 1),
                                           COUNT,
                                           COUNT,
                                           COUNT,
                                           NUMBER(0, ISOLATION_MOST)};

/* An energy with a source is bounded. An energy without one stays as wide as older releases took
 * it, so that their logs read as before. */
static bool check_result(const struct sighting *sighting, struct codec_error *ret_error)
{
    enum { ENERGY_UJ = 25, SOURCE = 27 };
    if (sighting->counts[SOURCE] == 0) {
        return true;
    }
    if (sighting->counts[ENERGY_UJ] == 0) {
        return codec_check_refuse(ret_error, "energy_uj", 0, 1);
    }
    return sighting->numbers[ENERGY_UJ] <= LIMIT_ENERGY_UJ ||
           codec_check_refuse(ret_error, "energy_uj", sighting->numbers[ENERGY_UJ],
                              LIMIT_ENERGY_UJ);
}
const struct shape codec_result_shape = {&bourse__v1__result__descriptor, result_rules,
                                         LENGTH(result_rules), check_result};

static bool check_results(const struct sighting *sighting, struct codec_error *ret_error)
{
    return sighting->counts[1] > 0 || codec_check_refuse(ret_error, "results", 0, 1);
}
SHAPE_CHECKED(results, results, check_results, SIGNATURE,
              MANY_SIZED(1, LIMIT_RESULT_BYTES, LIMIT_RESULTS), FLAG);

/* ---- consumer ---- */

#define STATE NAME(0, LIMIT_WORD_BYTES)
#define ROWS_WANTED NUMBER(1, LIMIT_ROWS)

static bool check_order_replace(const struct sighting *sighting, struct codec_error *ret_error)
{
    const uint32_t said = sighting->counts[2] + sighting->counts[3] + sighting->counts[4] +
                          sighting->counts[5] + sighting->counts[6];
    return said > 0 || codec_check_refuse(ret_error, "price_micro", 0, 1); /* no field is given */
}
/* The exchange knows which rates exist. */
SHAPE(value, value, MONEY, NUMBER(1, UINT32_MAX));
SHAPE_CHECKED(order_replace, order_replace, check_order_replace, ID, NUMBER(0, LIMIT_PARTS),
              AT_MOST, MONEY, MONEY, NESTED(value), MOMENT);

/* The exchange checks whether the graph belongs to these subtasks. */
static bool check_graph(const struct sighting *sighting, struct codec_error *ret_error)
{
    int64_t announced = sighting->numbers[1];
    int64_t listed = sighting->counts[2];
    return announced == listed || codec_check_refuse(ret_error, "after", listed, announced);
}

SHAPE(part, part, SUBTASKS, NESTED(codec_requirement), SLOTS, AT_MOST, DURATION, DURATION, MONEY,
      DURATION, NESTED(value), DURATION_NS);
SHAPE_CHECKED(graph, graph, check_graph, PACKED(0, UINT32_MAX, LIMIT_GRAPH_SUBTASKS),
              PACKED(0, LIMIT_GRAPH_SUBTASKS - 1, LIMIT_GRAPH_SUBTASKS),
              PACKED(0, LIMIT_GRAPH_SUBTASKS - 1, LIMIT_GRAPH_EDGES),
              PACKED(0, UINT32_MAX, LIMIT_GRAPH_SUBTASKS));
SHAPE(submit_job, submit_job, NAME(1, LIMIT_NAME_BYTES), HASH, SUBTASKS, MONEY, MONEY,
      NESTED(codec_requirement), SLOTS, AT_MOST, DURATION, DURATION, NAME(1, LIMIT_WORD_BYTES),
      NUMBER(0, LIMIT_RETRIES), TALLY, DURATION, MANY(part, LIMIT_PARTS), NESTED(graph),
      NUMBER(0, LIMIT_RETRIES), MOMENT, ORDER_TYPE, NESTED(value), NUMBER(0, LIMIT_INTERRUPTIONS),
      FLAG, DURATION_NS, MOMENT, FLAG);
SHAPE(job_cancel, job_cancel, ID);
SHAPE(quote_request, quote_request, NESTED(codec_requirement), SUBTASKS, SLOTS, AT_MOST, MONEY,
      DURATION, DURATION, DURATION_NS, FLAG, NESTED(value), ORDER_TYPE,
      NUMBER(0, LIMIT_INTERRUPTIONS), MONEY);
SHAPE(why_request, why_request, NUMBER(0, LIMIT_DEVICES - 1));
SHAPE(why_refusal, why_refusal, LINE(0, LIMIT_TEXT_BYTES), COUNT, COUNT, MONEY, ANY);
SHAPE(paid_lately, paid_lately, MONEY, COUNT, MOMENT);
SHAPE(why_reply, why_reply, COUNT, NOTE, STATE, FLAG, FLAG, COUNT, ID, NAME(0, LIMIT_NAME_BYTES),
      NUMBER(0, LIMIT_SLOTS), NUMBER(0, LIMIT_SLOTS), NUMBER(0, LIMIT_SLOTS), MONEY, COUNT, COUNT,
      COUNT, COUNT, MONEY, MANY(why_refusal, LIMIT_PREDICATES), FLAG, MONEY, COUNT,
      NESTED(paid_lately), DAILY, COUNT, COUNT, NESTED(standing), NESTED(challenge_fact));
SHAPE(quote_level, quote_level, MONEY, COUNT, COUNT, ATTRIBUTE_TEXT, MONEY);
SHAPE(explain_predicate, explain_predicate, LINE(0, LIMIT_TEXT_BYTES), COUNT, ANY);
SHAPE(explain_change, explain_change, LINE(0, LIMIT_TEXT_BYTES), STATE, COUNT, COUNT);
SHAPE(explanation, explanation, COUNT, COUNT, COUNT, COUNT, COUNT,
      MANY(explain_predicate, LIMIT_PREDICATES), NOTE, MONEY, MANY(explain_change, LIMIT_CHANGES),
      NESTED(codec_requirement), MONEY, COUNT, FLAG, COUNT, COUNT, MONEY, COUNT, MONEY, FLAG, COUNT,
      COUNT, COUNT);
SHAPE(quote_reply, quote_reply, COUNT, COUNT, MONEY, MONEY, MONEY, MONEY, MONEY, COUNT,
      MANY(quote_level, LIMIT_ROWS), NESTED(explanation), HASH, MONEY, MONEY, COUNT, MOMENT, COUNT,
      MONEY, MONEY, MONEY, MONEY, MONEY, COUNT);
SHAPE(explain_request, explain_request, ID, COUNT, SUBTASK_INDEX);
SHAPE(explain_reply, explain_reply, NESTED(explanation), COUNT, STATE, COUNT, COUNT, COUNT, TALLY,
      TALLY, TALLY, TALLY, SUBTASK_INDEX, STATE, COUNT, COUNT, NAME(0, LIMIT_NAME_BYTES),
      NAME(0, LIMIT_NAME_BYTES), COUNT, TALLY, TALLY);
SHAPE(jobs_request, jobs_request, ID, ROWS_WANTED, FLAG, FLAG, COUNT);
SHAPE(lease_row, lease_row, LEASE, NAME(0, LIMIT_NAME_BYTES), NAME(0, LIMIT_NAME_BYTES), SLOTS,
      MONEY, TALLY, COUNT, MONEY, STATE, FLAG, FLAG, FLAG, COUNT, FLAG, NOTE);
SHAPE(job_row, job_row, ID, NAME(0, LIMIT_NAME_BYTES), NUMBER(JOB_OPEN, JOB_CANCELLED), SUBTASKS,
      TALLY, TALLY, TALLY, TALLY, TALLY, MONEY, MONEY, MONEY, MOMENT, MOMENT,
      NUMBER(JOB_REASON_NONE, JOB_REASON_LATE), HASH, MANY(lease_row, LIMIT_LEASES), COUNT, TALLY,
      SIZED(0, LIMIT_GRAPH_SUBTASKS), PACKED(0, UINT32_MAX, LIMIT_GRAPH_SUBTASKS), TALLY, MONEY,
      TALLY, COUNT, MONEY, MONEY, TALLY, MOMENT);
SHAPE(jobs_reply, jobs_reply, MANY(job_row, LIMIT_ROWS), COUNT, COUNT);
SHAPE(job_event, job_event, NESTED(job_row));
SHAPE(outcomes_request, outcomes_request, ID, TALLY, ROWS_WANTED, COUNT);
SHAPE(outcome_row, outcome_row, SUBTASK_INDEX, ATTEMPT, NUMBER(ATTEMPT_ACCEPTED, ATTEMPT_REFUTED),
      SIZED(0, LIMIT_RESULT_BYTES), MONEY, COUNT, COUNT, COUNT);
SHAPE(outcomes_reply, outcomes_reply, MANY(outcome_row, LIMIT_ROWS), TALLY, COUNT);
SHAPE(disputes_request, disputes_request, ID, SUBTASK_INDEX);
SHAPE(dispute_row, dispute_row, SUBTASK_INDEX, ATTEMPT, SIZED(0, LIMIT_RESULT_BYTES), HASH,
      NAME(0, LIMIT_NAME_BYTES), FLAG);
SHAPE(disputes_reply, disputes_reply, MANY(dispute_row, LIMIT_DISPUTES), TALLY, COUNT);
SHAPE(judge_result, judge_result, ID, SUBTASK_INDEX, ATTEMPT, HASH, HASH,
      NUMBER(VERDICT_ACCEPT, VERDICT_UNSURE));
SHAPE_EMPTY(balance_request, balance_request);
SHAPE(balance_reply, balance_reply, HASH, NAME(0, LIMIT_NAME_BYTES), ANY, ANY, COUNT, FLAG, NOTE,
      FLAG, NOTE);
SHAPE(statement_request, statement_request, COUNT, ROWS_WANTED, FLAG);
SHAPE(statement_row, statement_row, COUNT, COUNT, MOMENT, NUMBER(0, UINT16_MAX), ANY, ANY, ID,
      NAME(0, LIMIT_NAME_BYTES), SUBTASK_INDEX, ID, MONEY, COUNT, FLAG);
SHAPE(statement_reply, statement_reply, MANY(statement_row, LIMIT_ROWS), COUNT);
SHAPE(storage_request, storage_request, COUNT, ID);
SHAPE(storage_row, storage_row, ID, NAME(0, LIMIT_NAME_BYTES), COUNT, COUNT, MOMENT, MOMENT, MOMENT,
      FLAG);
SHAPE(storage_reply, storage_reply, COUNT, COUNT, SPAN, MANY(storage_row, LIMIT_STORAGE_ROWS),
      COUNT);
SHAPE(forget_request, forget_request, MANY_SIZED(16, 16, LIMIT_FORGET_JOBS), FLAG);
SHAPE(forget_row, forget_row, ID, NUMBER(FORGET_OUTCOME_NOW, FORGET_OUTCOME_UNKNOWN), COUNT, COUNT);
SHAPE(forget_reply, forget_reply, COUNT, COUNT, SPAN, MANY(forget_row, LIMIT_FORGET_JOBS));
SHAPE(receipt_request, receipt_request, ID, SUBTASK_INDEX);
SHAPE(receipt_reply, receipt_reply, SIZED(1, LIMIT_RECEIPT_BYTES));
SHAPE(receipts_request, receipts_request, ID, SUBTASK_INDEX);
SHAPE(receipt_row, receipt_row, SIZED(1, LIMIT_LEAF_BYTES), COUNT, SIZED(1, LIMIT_RESULT_BYTES),
      SIZED(64, 64), NUMBER(0, UINT8_MAX), NUMBER(0, LIMIT_BATCH_PATH),
      SIZED(0, 32 * LIMIT_BATCH_PATH), NUMBER(0, LIMIT_TREE_PATH), SIZED(0, 32 * LIMIT_TREE_PATH));
SHAPE(receipts_reply, receipts_reply, SIZED(1, LIMIT_NOTE_BYTES), MANY(receipt_row, LIMIT_ROWS),
      SUBTASK_INDEX);
SHAPE_EMPTY(checkpoint_request, checkpoint_request);
SHAPE(checkpoint_reply, checkpoint_reply, SIZED(1, LIMIT_NOTE_BYTES), COUNT);

/* ---- the market ---- */

/* Every advertised value must reach every reader, so these rules are as wide as those of
 * Advertise. */
enum { TERMS = 3 }; /* attributes that describe the leases of its ask */
SHAPE(device_place, device_place, COUNT, COUNT);
SHAPE(devices_request, devices_request, NESTED(codec_requirement), NESTED(device_place),
      ROWS_WANTED);
#define PERCENT NUMBER(0, 100)
#define CELSIUS NUMBER(0, LIMIT_CELSIUS)
SHAPE(device_figures, device_figures, ID, SPAN, COUNT, COUNT, PERCENT, COUNT, COUNT, CELSIUS, COUNT,
      COUNT, COUNT, COUNT);
SHAPE(figures_post, figures_post, MANY(device_figures, LIMIT_FIGURES));
SHAPE_EMPTY(figures_taken, figures_taken);
SHAPE(device_row, device_row, HASH, NAME(0, LIMIT_NAME_BYTES), STATE, ID, NAME(0, LIMIT_NAME_BYTES),
      ATTRIBUTE_TEXT, SLOTS, COUNT, COUNT, MONEY, DURATION,
      MANY(attribute, LIMIT_ATTRIBUTES + TERMS), NESTED(standing), NESTED(device_figures),
      NESTED(challenge_fact));
SHAPE(devices_reply, devices_reply, MANY(device_row, LIMIT_ROWS), NESTED(device_place), COUNT);

SHAPE(providers_request, providers_request, NUMBER(1, UINT32_MAX), ROWS_WANTED);
SHAPE(provider_row, provider_row, HASH, NAME(0, LIMIT_NAME_BYTES), STATE, COUNT, COUNT, COUNT,
      COUNT, NESTED(standing), FLAG);
SHAPE(providers_reply, providers_reply, MANY(provider_row, LIMIT_ROWS), COUNT, COUNT);
SHAPE(book_request, book_request, NESTED(codec_requirement), COUNT, ROWS_WANTED);
SHAPE(book_ask, book_ask, COUNT, ATTRIBUTE_TEXT, MONEY, SLOTS, COUNT, COUNT, FLAG,
      MANY(ask_hours, LIMIT_ASK_HOURS), OFFSET_MIN, DAILY, COUNT);
SHAPE(book_needs, book_needs, COUNT, NESTED(codec_requirement), COUNT);
SHAPE(book_bid, book_bid, COUNT, MONEY, COUNT);
SHAPE(book_reply, book_reply, MANY(book_ask, LIMIT_ROWS), MANY(book_needs, LIMIT_ROWS),
      MANY(book_bid, LIMIT_ROWS), COUNT, COUNT, MONEY, MONEY, MONEY);
SHAPE(trades_request, trades_request, COUNT, ROWS_WANTED);
SHAPE(trade_row, trade_row, COUNT, MOMENT, ATTRIBUTE_TEXT, COUNT, MONEY, COUNT);
SHAPE(trades_reply, trades_reply, MANY(trade_row, LIMIT_ROWS), COUNT);
SHAPE(market_request, market_request, COUNT, COUNT, COUNT, NUMBER(0, LIMIT_WAIT_MS));
SHAPE(market_asks, market_asks, ATTRIBUTE_TEXT, MONEY, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT);
SHAPE(market_bids, market_bids, COUNT, MONEY, COUNT, COUNT);
SHAPE(market_trade, market_trade, COUNT, MOMENT, ATTRIBUTE_TEXT, COUNT, MONEY, COUNT);
SHAPE(market_bar, market_bar, ATTRIBUTE_TEXT, MOMENT, MONEY, MONEY, MONEY, MONEY, COUNT, COUNT);
SHAPE(market_reply, market_reply, COUNT, COUNT, COUNT, FLAG, COUNT, FLAG, COUNT, MOMENT,
      MANY(market_asks, LIMIT_ROWS), MANY(book_needs, LIMIT_ROWS), MANY(market_bids, LIMIT_ROWS),
      MANY(market_trade, LIMIT_ROWS), MANY(market_bar, LIMIT_ROWS), MONEY, MONEY, MONEY);
SHAPE(prices_request, prices_request, ATTRIBUTE_TEXT, MOMENT);
SHAPE(prices_reply, prices_reply, MANY(market_bar, LIMIT_BARS), COUNT, MOMENT);
SHAPE(history_request, history_request, MANY_SIZED(32, 32, LIMIT_WORKS), COUNT);
SHAPE(history_row, history_row, HASH, NUMBER(0, 256), ATTRIBUTE_TEXT, COUNT, COUNT, COUNT, COUNT,
      MOMENT, HASH, ID, NUMBER(1, LIMIT_PACE));
SHAPE(history_reply, history_reply, MANY(history_row, LIMIT_ROWS), FLAG);
SHAPE(orders_request, orders_request, COUNT, ROWS_WANTED);
SHAPE(order_row, order_row, ID, FLAG, NAME(0, LIMIT_NAME_BYTES), ID, MONEY, COUNT, COUNT,
      NUMBER(1, UINT32_MAX), MOMENT, DURATION, ID, NUMBER(0, LIMIT_PARTS), ORDER_TYPE,
      NESTED(value), MANY_NAME(1, LIMIT_NAME_BYTES, LIMIT_ASK_ACCOUNTS),
      MANY(ask_hours, LIMIT_ASK_HOURS), OFFSET_MIN, FLAG, SPAN, SPAN, DAILY, COUNT);
SHAPE_EMPTY(donations_request, donations_request);
SHAPE(donations_reply, donations_reply, COUNT, COUNT, COUNT, COUNT, NUMBER(1, UINT32_MAX), COUNT);
SHAPE(orders_reply, orders_reply, MANY(order_row, LIMIT_ROWS), COUNT, COUNT);

/* ---- blobs ---- */

static bool check_blob_put(const struct sighting *sighting, struct codec_error *ret_error)
{
    int64_t size = sighting->numbers[1];
    int64_t offset = sighting->numbers[2];
    return offset <= size || codec_check_refuse(ret_error, "offset", offset, size);
}

SHAPE(blob_have, blob_have, MANY_SIZED(32, 32, LIMIT_BLOB_HASHES), ID, FLAG);
SHAPE(blob_missing, blob_missing, MANY_SIZED(32, 32, LIMIT_BLOB_HASHES));
SHAPE_CHECKED(blob_put, blob_put, check_blob_put, HASH, COUNT, COUNT,
              SIZED(0, LIMIT_BLOB_CHUNK_BYTES), ID, FLAG, ID);
SHAPE(blob_stored, blob_stored, HASH, COUNT, FLAG, ID);
SHAPE(blob_get, blob_get, HASH, COUNT, NUMBER(1, LIMIT_BLOB_CHUNK_BYTES), ID, FLAG, FLAG);
SHAPE(blob_data, blob_data, HASH, COUNT, COUNT, SIZED(0, LIMIT_BLOB_CHUNK_BYTES), ID);

/* ---- live output ---- */

#define STREAM NUMBER(OUTPUT_STREAM_OUT, OUTPUT_STREAM_ERROR)
SHAPE(output_piece, output_piece, COUNT, NUMBER(0, LIMIT_SUBTASKS), NUMBER(1, UINT32_MAX), STREAM,
      COUNT, SIZED(1, LIMIT_OUTPUT_BYTES));
SHAPE(output_post, output_post, MANY(output_piece, LIMIT_OUTPUT_PIECES));
SHAPE(output_lease, output_lease, COUNT);
SHAPE(output_wanted, output_wanted, MANY(output_lease, LIMIT_LEASES));
SHAPE(output_request, output_request, ID, COUNT, COUNT, NUMBER(0, LIMIT_WAIT_MS));
SHAPE(output_reply, output_reply, COUNT, COUNT, MANY(output_piece, LIMIT_OUTPUT_PIECES), FLAG);

/* ---- message types ---- */

enum {
    SMALL = LIMIT_SMALL_BODY_BYTES,
    MEDIUM = LIMIT_MEDIUM_BODY_BYTES,
    LARGE = LIMIT_LARGE_BODY_BYTES,
    BLOB = LIMIT_BLOB_MESSAGE_BYTES - ENVELOPE_HEAD_BYTES,
    BROKER = 0,
    TRADER = ROLE_CONSUMER | ROLE_PROVIDER,
    WARDEN = ROLE_RISK | ROLE_OPERATOR,
    MEMBER = ALL_ROLES & ~ROLE_REFEREE, /* a referee is a provider too */
};

_Static_assert(LIMIT_LARGE_BODY_BYTES + ENVELOPE_HEAD_BYTES == LIMIT_MESSAGE_BYTES,
               "the largest body fills a message");
_Static_assert(LIMIT_BLOB_CHUNK_BYTES + 256 <= BLOB, "a chunk fits a message of the blob port");

static const struct message_row rows[MESSAGE_TYPE_END] = {
    [MESSAGE_HELLO] = {"hello", &hello_shape, SMALL, false, ROLE_ANYONE, MESSAGE_WELCOME},
    [MESSAGE_WELCOME] = {"welcome", &welcome_shape, SMALL, false, BROKER, 0},
    [MESSAGE_HEARTBEAT] = {"heartbeat", &heartbeat_shape, SMALL, false, ROLE_ANYONE, 0},
    [MESSAGE_GOODBYE] = {"goodbye", &goodbye_shape, SMALL, false, ROLE_ANYONE, 0},
    [MESSAGE_ACCEPTED] = {"accepted", &accepted_shape, SMALL, false, BROKER, 0},
    [MESSAGE_REJECT] = {"reject", &reject_shape, SMALL, false, BROKER, 0},

    [MESSAGE_JOIN] = {"join", &join_shape, SMALL, true, ROLE_ANYONE, MESSAGE_ACCEPTED},
    [MESSAGE_MINT] = {"mint", &mint_shape, SMALL, true, ROLE_OPERATOR, MESSAGE_ACCEPTED},
    [MESSAGE_INVITE_CREATE] = {"invite-create", &invite_create_shape, SMALL, true, ROLE_OPERATOR,
                               MESSAGE_ACCEPTED},
    [MESSAGE_FREEZE] = {"freeze", &freeze_shape, SMALL, true, WARDEN, MESSAGE_ACCEPTED},
    [MESSAGE_HALT] = {"halt", &halt_shape, SMALL, true, WARDEN, MESSAGE_ACCEPTED},
    [MESSAGE_ACCOUNTS_REQUEST] = {"accounts-request", &accounts_request_shape, SMALL, false,
                                  ROLE_OPERATOR, MESSAGE_ACCOUNTS_REPLY},
    [MESSAGE_ACCOUNTS_REPLY] = {"accounts-reply", &accounts_reply_shape, LARGE, false, BROKER, 0},

    [MESSAGE_ADVERTISE] = {"advertise", &advertise_shape, LARGE, true, ROLE_PROVIDER,
                           MESSAGE_ACCEPTED},
    [MESSAGE_ASK_PLACE] = {"ask-place", &ask_place_shape, SMALL, true, ROLE_PROVIDER,
                           MESSAGE_ACCEPTED},
    [MESSAGE_ORDER_CANCEL] = {"order-cancel", &order_cancel_shape, SMALL, true, ROLE_PROVIDER,
                              MESSAGE_ACCEPTED},
    [MESSAGE_ASK_EVENT] = {"ask-event", &ask_event_shape, SMALL, false, BROKER, 0},
    [MESSAGE_STATEMENT_HELD] = {"statement-held", &statement_shape, LARGE, true, ROLE_PROVIDER,
                                MESSAGE_ACCEPTED},
    [MESSAGE_RESULTS] = {"results", &results_shape, LARGE, false, ROLE_PROVIDER, MESSAGE_ACCEPTED},
    [MESSAGE_WHY_REQUEST] = {"why-request", &why_request_shape, SMALL, false, ROLE_PROVIDER,
                             MESSAGE_WHY_REPLY},
    [MESSAGE_WHY_REPLY] = {"why-reply", &why_reply_shape, MEDIUM, false, BROKER, 0},
    [MESSAGE_LEASE_GRANT] = {"lease-grant", &lease_grant_shape, SMALL, false, BROKER, 0},
    [MESSAGE_LEASE_RENEW] = {"lease-renew", &lease_renew_shape, SMALL, false, BROKER, 0},
    [MESSAGE_DISPATCH] = {"dispatch", &dispatch_shape, LARGE, false, BROKER, 0},
    [MESSAGE_WITHDRAW] = {"withdraw", &withdraw_shape, MEDIUM, false, BROKER, 0},
    [MESSAGE_LEASE_END] = {"lease-end", &lease_end_shape, SMALL, false, BROKER, 0},
    [MESSAGE_OUTPUT_POST] = {"output-post", &output_post_shape, LARGE, false, ROLE_PROVIDER,
                             MESSAGE_OUTPUT_WANTED},
    [MESSAGE_OUTPUT_WANTED] = {"output-wanted", &output_wanted_shape, MEDIUM, false, BROKER, 0},
    [MESSAGE_TERMINAL_SEND] = {"terminal-send", &codec_terminal_send_shape, MEDIUM, false, TRADER,
                               MESSAGE_TERMINAL_TAKEN},
    [MESSAGE_TERMINAL_TAKEN] = {"terminal-taken", &codec_terminal_taken_shape, SMALL, false, BROKER,
                                0},
    [MESSAGE_TERMINAL_RECEIVE] = {"terminal-receive", &codec_terminal_receive_shape, SMALL, false,
                                  TRADER, MESSAGE_TERMINAL_BYTES},
    [MESSAGE_TERMINAL_BYTES] = {"terminal-bytes", &codec_terminal_bytes_shape, MEDIUM, false,
                                BROKER, 0},

    [MESSAGE_FIGURES_POST] = {"figures-post", &figures_post_shape, SMALL, false, ROLE_PROVIDER,
                              MESSAGE_FIGURES_TAKEN},
    [MESSAGE_FIGURES_TAKEN] = {"figures-taken", &figures_taken_shape, SMALL, false, BROKER, 0},
    [MESSAGE_CHALLENGE_READY] = {"challenge-ready", &codec_challenge_ready_shape, LARGE, false,
                                 ROLE_PROVIDER, MESSAGE_CHALLENGE},
    [MESSAGE_CHALLENGE] = {"challenge", &codec_challenge_shape, SMALL, false, BROKER, 0},

    [MESSAGE_SUBMIT_JOB] = {"submit-job", &submit_job_shape, LARGE, true, ROLE_CONSUMER,
                            MESSAGE_ACCEPTED},
    [MESSAGE_JOB_CANCEL] = {"job-cancel", &job_cancel_shape, SMALL, true, ROLE_CONSUMER,
                            MESSAGE_ACCEPTED},
    [MESSAGE_QUOTE_REQUEST] = {"quote-request", &quote_request_shape, MEDIUM, false, ROLE_CONSUMER,
                               MESSAGE_QUOTE_REPLY},
    [MESSAGE_QUOTE_REPLY] = {"quote-reply", &quote_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_EXPLAIN_REQUEST] = {"explain-request", &explain_request_shape, SMALL, false,
                                 ROLE_CONSUMER, MESSAGE_EXPLAIN_REPLY},
    [MESSAGE_EXPLAIN_REPLY] = {"explain-reply", &explain_reply_shape, MEDIUM, false, BROKER, 0},
    [MESSAGE_JOBS_REQUEST] = {"jobs-request", &jobs_request_shape, SMALL, false, ROLE_CONSUMER,
                              MESSAGE_JOBS_REPLY},
    [MESSAGE_JOBS_REPLY] = {"jobs-reply", &jobs_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_JOB_EVENT] = {"job-event", &job_event_shape, LARGE, false, BROKER, 0},
    [MESSAGE_OUTCOMES_REQUEST] = {"outcomes-request", &outcomes_request_shape, SMALL, false,
                                  ROLE_CONSUMER, MESSAGE_OUTCOMES_REPLY},
    [MESSAGE_OUTCOMES_REPLY] = {"outcomes-reply", &outcomes_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_BALANCE_REQUEST] = {"balance-request", &balance_request_shape, SMALL, false, TRADER,
                                 MESSAGE_BALANCE_REPLY},
    [MESSAGE_BALANCE_REPLY] = {"balance-reply", &balance_reply_shape, SMALL, false, BROKER, 0},
    [MESSAGE_STATEMENT_REQUEST] = {"statement-request", &statement_request_shape, SMALL, false,
                                   TRADER, MESSAGE_STATEMENT_REPLY},
    [MESSAGE_STATEMENT_REPLY] = {"statement-reply", &statement_reply_shape, LARGE, false, BROKER,
                                 0},
    [MESSAGE_STORAGE_REQUEST] = {"storage-request", &storage_request_shape, SMALL, false,
                                 ROLE_CONSUMER, MESSAGE_STORAGE_REPLY},
    [MESSAGE_STORAGE_REPLY] = {"storage-reply", &storage_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_FORGET_REQUEST] = {"forget-request", &forget_request_shape, SMALL, false,
                                ROLE_CONSUMER, MESSAGE_FORGET_REPLY},
    [MESSAGE_FORGET_REPLY] = {"forget-reply", &forget_reply_shape, MEDIUM, false, BROKER, 0},
    [MESSAGE_RECEIPT_REQUEST] = {"receipt-request", &receipt_request_shape, SMALL, false,
                                 ROLE_CONSUMER, MESSAGE_RECEIPT_REPLY},
    [MESSAGE_RECEIPT_REPLY] = {"receipt-reply", &receipt_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_RECEIPTS_REQUEST] = {"receipts-request", &receipts_request_shape, SMALL, false,
                                  ROLE_CONSUMER, MESSAGE_RECEIPTS_REPLY},
    [MESSAGE_RECEIPTS_REPLY] = {"receipts-reply", &receipts_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_CHECKPOINT_REQUEST] = {"checkpoint-request", &checkpoint_request_shape, SMALL, false,
                                    ROLE_ANYONE, MESSAGE_CHECKPOINT_REPLY},
    [MESSAGE_CHECKPOINT_REPLY] = {"checkpoint-reply", &checkpoint_reply_shape, MEDIUM, false,
                                  BROKER, 0},

    [MESSAGE_BOOK_REQUEST] = {"book-request", &book_request_shape, MEDIUM, false, MEMBER,
                              MESSAGE_BOOK_REPLY},
    [MESSAGE_BOOK_REPLY] = {"book-reply", &book_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_TRADES_REQUEST] = {"trades-request", &trades_request_shape, SMALL, false, MEMBER,
                                MESSAGE_TRADES_REPLY},
    [MESSAGE_TRADES_REPLY] = {"trades-reply", &trades_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_PROVIDERS_REQUEST] = {"providers-request", &providers_request_shape, SMALL, false,
                                   MEMBER, MESSAGE_PROVIDERS_REPLY},
    [MESSAGE_PROVIDERS_REPLY] = {"providers-reply", &providers_reply_shape, LARGE, false, BROKER,
                                 0},
    [MESSAGE_ORDERS_REQUEST] = {"orders-request", &orders_request_shape, SMALL, false, TRADER,
                                MESSAGE_ORDERS_REPLY},
    [MESSAGE_ORDERS_REPLY] = {"orders-reply", &orders_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_DONATIONS_REQUEST] = {"donations-request", &donations_request_shape, SMALL, false,
                                   TRADER, MESSAGE_DONATIONS_REPLY},
    [MESSAGE_DONATIONS_REPLY] = {"donations-reply", &donations_reply_shape, SMALL, false, BROKER,
                                 0},
    [MESSAGE_DEVICES_REQUEST] = {"devices-request", &devices_request_shape, MEDIUM, false, MEMBER,
                                 MESSAGE_DEVICES_REPLY},
    [MESSAGE_DEVICES_REPLY] = {"devices-reply", &devices_reply_shape, LARGE, false, BROKER, 0},

    [MESSAGE_MARKET_REQUEST] = {"market-request", &market_request_shape, SMALL, false, MEMBER,
                                MESSAGE_MARKET_REPLY},
    [MESSAGE_MARKET_REPLY] = {"market-reply", &market_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_PRICES_REQUEST] = {"prices-request", &prices_request_shape, SMALL, false, MEMBER,
                                MESSAGE_PRICES_REPLY},
    [MESSAGE_PRICES_REPLY] = {"prices-reply", &prices_reply_shape, LARGE, false, BROKER, 0},

    [MESSAGE_BLOB_HAVE] = {"blob-have", &blob_have_shape, LARGE, false, TRADER,
                           MESSAGE_BLOB_MISSING},
    [MESSAGE_BLOB_MISSING] = {"blob-missing", &blob_missing_shape, LARGE, false, BROKER, 0},
    [MESSAGE_BLOB_PUT] = {"blob-put", &blob_put_shape, BLOB, false, TRADER, MESSAGE_BLOB_STORED},
    [MESSAGE_BLOB_STORED] = {"blob-stored", &blob_stored_shape, SMALL, false, BROKER, 0},
    [MESSAGE_BLOB_GET] = {"blob-get", &blob_get_shape, SMALL, false, TRADER, MESSAGE_BLOB_DATA},
    [MESSAGE_BLOB_DATA] = {"blob-data", &blob_data_shape, BLOB, false, BROKER, 0},
    [MESSAGE_BLOB_FEED] = {"blob-feed", &codec_blob_feed_shape, MEDIUM, false, BROKER,
                           MESSAGE_BLOB_CHANGES},
    [MESSAGE_BLOB_CHANGES] = {"blob-changes", &codec_blob_changes_shape, BLOB, false, BROKER, 0},

    [MESSAGE_ORDER_REPLACE] = {"order-replace", &order_replace_shape, SMALL, true, TRADER,
                               MESSAGE_ACCEPTED},
    [MESSAGE_HISTORY_REQUEST] = {"history-request", &history_request_shape, MEDIUM, false, MEMBER,
                                 MESSAGE_HISTORY_REPLY},
    [MESSAGE_HISTORY_REPLY] = {"history-reply", &history_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_SET_BANDS] = {"set-bands", &set_bands_shape, SMALL, true, WARDEN, MESSAGE_ACCEPTED},
    [MESSAGE_SET_OWNER] = {"set-owner", &set_owner_shape, SMALL, true, ROLE_OPERATOR,
                           MESSAGE_ACCEPTED},
    [MESSAGE_JUDGE_RESULT] = {"judge-result", &judge_result_shape, SMALL, true, ROLE_CONSUMER,
                              MESSAGE_ACCEPTED},
    [MESSAGE_DISPUTES_REQUEST] = {"disputes-request", &disputes_request_shape, SMALL, false,
                                  ROLE_CONSUMER, MESSAGE_DISPUTES_REPLY},
    [MESSAGE_DISPUTES_REPLY] = {"disputes-reply", &disputes_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_OUTPUT_REQUEST] = {"output-request", &output_request_shape, SMALL, false,
                                ROLE_CONSUMER, MESSAGE_OUTPUT_REPLY},
    [MESSAGE_OUTPUT_REPLY] = {"output-reply", &output_reply_shape, LARGE, false, BROKER, 0},
    [MESSAGE_LEASE_NOTICE] = {"lease-notice", &lease_notice_shape, SMALL, false, BROKER, 0},
};

const struct message_row *codec_row(enum message_type type)
{
    unsigned number = (unsigned)type;
    return number < MESSAGE_TYPE_END && rows[number].name != NULL ? &rows[number] : NULL;
}

bool message_must_be_signed(enum message_type type)
{
    const struct message_row *row = codec_row(type);
    return row != NULL && row->is_signed;
}

unsigned message_roles(enum message_type type)
{
    const struct message_row *row = codec_row(type);
    return row == NULL ? 0 : row->roles;
}

enum message_type message_answer(enum message_type type)
{
    const struct message_row *row = codec_row(type);
    return row == NULL ? 0 : row->answer;
}

uint32_t message_body_cap(enum message_type type)
{
    const struct message_row *row = codec_row(type);
    return row == NULL ? 0 : row->body_cap;
}

const char *message_name(enum message_type type)
{
    const struct message_row *row = codec_row(type);
    return row == NULL ? "unknown" : row->name;
}
