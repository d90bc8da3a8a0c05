#include "exchange/snapshot/snapshot_put.h"

#include "base/cursor.h"
#include "exchange/state/residency.h"

static void put_bool(struct writer *out, bool value)
{
    writer_u8(out, value ? 1 : 0);
}
#define PUT_ID(out, id) writer_bytes((out), (id).bytes, sizeof(id).bytes)

/* A state without a reason keeps the bytes that it had under earlier rules. */
static void put_marked(struct writer *out, bool holds, const char *reason)
{
    writer_u8(out, (uint8_t)(holds | (reason != NULL) << 1));
}

static void put_reason(struct writer *out, const char *reason)
{
    if (reason != NULL) {
        writer_u8(out, (uint8_t)strlen(reason));
        writer_bytes(out, reason, strlen(reason));
    }
}

static void put_attribute(struct writer *out, const struct attribute *attribute)
{
    writer_bytes(out, attribute->name, sizeof attribute->name);
    put_bool(out, attribute->is_text);
    if (attribute->is_text) {
        writer_bytes(out, attribute->text, sizeof attribute->text);
    } else {
        writer_i64(out, attribute->number);
    }
}

static void put_market(struct writer *out, const struct exchange *exchange)
{
    put_bool(out, exchange->has_genesis);
    put_marked(out, exchange->is_halted, exchange->halted_why);
    PUT_ID(out, exchange->cluster);
    writer_u32(out, exchange->fee_ppm);
    writer_i64(out, exchange->price_band_micro);
    writer_i64(out, exchange->price_least_micro);
    writer_i64(out, exchange->notional_most_micro);
    writer_u64(out, exchange->index);
    writer_u64(out, exchange->sequence);
    writer_u64(out, exchange->next_lease);
    writer_u64(out, exchange->next_order);
    writer_i64(out, exchange->now_ns);
    writer_u64(out, exchange->epochs);
    PUT_ID(out, exchange->commitment);
    put_reason(out, exchange->halted_why);
}

static void put_limits(struct writer *out, const struct exchange *exchange)
{
    const struct exchange_limits *limits = &exchange->limits;
    const uint32_t numbers[] = {exchange->rules,
                                limits->accounts,
                                limits->invitations,
                                limits->ids_per_account,
                                limits->devices_per_provider,
                                limits->asks,
                                limits->jobs,
                                limits->jobs_per_account,
                                limits->leases,
                                limits->attempts,
                                limits->cells_per_account,
                                limits->classes_per_account};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        writer_u32(out, numbers[i]);
    }
    writer_u64(out, limits->subtasks);
    writer_u64(out, limits->subtasks_per_account);
}

static void put_member(struct writer *out, const struct exchange *exchange,
                       const struct member *member)
{
    struct account_balance balance = accounts_balance(exchange->accounts, member->number);
    PUT_ID(out, member->key);
    writer_u32(out, member->number);
    writer_u32(out, member->roles);
    put_marked(out, member->is_frozen, member->frozen_why);
    writer_u32(out, member->ids);
    writer_u32(out, member->open_jobs);
    writer_bytes(out, member->name, sizeof member->name);
    writer_i64(out, balance.available_micro);
    writer_i64(out, balance.held_micro);
    writer_i64(out, member->donated_ns);
    writer_i64(out, member->donated_day);
    writer_i64(out, member->given_ns);
    put_reason(out, member->frozen_why);
}

static void put_invitation(struct writer *out, const struct invitation *invitation)
{
    PUT_ID(out, invitation->token_hash);
    writer_u32(out, invitation->roles);
    writer_i64(out, invitation->credits_micro);
    writer_i64(out, invitation->expires_ns);
    writer_u32(out, invitation->issuer);
    writer_bytes(out, invitation->name, sizeof invitation->name);
}

static void put_id_entry(struct writer *out, const struct id_entry *entry)
{
    PUT_ID(out, entry->key.id);
    writer_u32(out, entry->key.account);
    PUT_ID(out, entry->body);
    writer_u64(out, entry->index);
    writer_i64(out, entry->log_time_ns);
    put_bool(out, entry->is_refused);
    if (entry->is_refused) {
        const struct exchange_reject *why = &((const struct refused_id *)entry)->why;
        writer_u32(out, why->code);
        writer_bytes(out, why->field, sizeof why->field);
        writer_i64(out, why->value);
        writer_i64(out, why->limit);
    }
}

static void put_provider(struct writer *out, const struct provider *provider)
{
    writer_u32(out, provider->number);
    writer_u8(out, provider->state);
    writer_u64(out, provider->order);
    writer_u32(out, provider->day_use_count);
    for (const struct list_link *at = provider->day_uses.next; at != &provider->day_uses;
         at = at->next) {
        const struct day_use *use = LIST_ELEMENT(at, struct day_use, of_provider);
        PUT_ID(out, use->device);
        writer_i64(out, use->offset_min);
        writer_i64(out, use->day);
        writer_i64(out, use->used_ns);
    }
}

static void put_device(struct writer *out, const struct device *device)
{
    PUT_ID(out, device->key.device);
    writer_u32(out, device->key.provider);
    writer_u64(out, device->order);
    writer_u32(out, device->slots);
    writer_u32(out, device->leased);
    writer_u32(out, device->cell);
    put_bool(out, device->is_advertised);
    writer_bytes(out, device->label, sizeof device->label);
}

static void put_ask(struct writer *out, const struct ask *ask)
{
    PUT_ID(out, ask->order);
    PUT_ID(out, ask->device->key.device);
    writer_u32(out, ask->device->key.provider);
    writer_u32(out, ask->slots);
    writer_i64(out, ask->price_micro);
    writer_i64(out, ask->good_till_ns);
    writer_i64(out, ask->max_term_ns);
    writer_u8(out, ask->type);
    writer_u64(out, ask->sequence);
    writer_u8(out, (uint8_t)ask->to_count);
    for (uint32_t i = 0; i < ask->to_count; i++) {
        writer_u32(out, ask->to[i]);
    }
    writer_u8(out, (uint8_t)ask->hours.count);
    writer_i64(out, ask->hours.offset_min);
    for (uint32_t i = 0; i < ask->hours.count; i++) {
        writer_u8(out, ask->hours.windows[i].days);
        writer_u16(out, ask->hours.windows[i].from_min);
        writer_u16(out, ask->hours.windows[i].till_min);
    }
    writer_i64(out, ask->daily_ns);
}

static void put_part(struct writer *out, const struct part *part)
{
    const uint32_t numbers[] = {
        part->end - part->first, part->width,      part->at_most, part->class_id, part->fresh,
        part->retry_head,        part->retry_tail, part->waiting, part->running,  part->checking};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        writer_u32(out, numbers[i]);
    }
    writer_i64(out, part->cap_micro);
    writer_i64(out, part->bid_micro);
    writer_u8(out, part->rate);
    writer_i64(out, part->limit_ns);
    writer_i64(out, part->term_ns);
    writer_i64(out, part->expect_ns);
    writer_u64(out, part->sequence);
    writer_i64(out, part->straggler_ns);
}

static void put_job(struct writer *out, const struct job *job)
{
    PUT_ID(out, job->id);
    writer_u64(out, job->order);
    writer_u32(out, job->owner);
    writer_bytes(out, job->name, sizeof job->name);
    PUT_ID(out, job->manifest);
    const uint32_t numbers[] = {job->subtasks, job->retries,   job->error_limit, job->crash_limit,
                                job->waiting,  job->running,   job->checking,    job->accepted,
                                job->failed,   job->cancelled, job->unjudged};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        writer_u32(out, numbers[i]);
    }
    writer_u8(out, job->phase);
    writer_u8(out, job->type);
    writer_u8(out, job->reason);
    put_bool(out, job->is_closing);
    put_bool(out, job->is_checked);
    writer_u8(out, job->ends_as);
    writer_i64(out, job->closing_ns);
    writer_i64(out, job->hold.amount_micro);
    writer_i64(out, job->hold.captured_micro);
    put_bool(out, job->hold.is_open);
    writer_i64(out, job->reserved_micro);
    writer_i64(out, job->submitted_ns);
    writer_i64(out, job->ended_ns);
    writer_i64(out, job->good_till_ns);
    writer_u32(out, job->avoided_count);
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        writer_u32(out, job->avoided[i].provider);
        writer_i64(out, job->avoided[i].until_ns);
    }
    writer_u32(out, job->interruptions_left);
    put_bool(out, job->has_checkpoints);
    writer_u32(out, job->part_count);
    for (uint32_t i = 0; i < job->part_count; i++) {
        put_part(out, &job->parts[i]);
    }
    if (job->deadline_ns != 0) { /* absent without one, as in snapshots from before deadlines */
        writer_i64(out, job->deadline_ns);
    }
    if (job->is_expectation_stated) { /* absent otherwise, as under rules before 22 */
        put_bool(out, true);
    }
}

static void put_graph(struct writer *out, const struct graph *graph)
{
    const uint32_t subtasks = graph->job->subtasks;
    PUT_ID(out, graph->job->id);
    put_bool(out, graph->rank != NULL);
    put_bool(out, graph->expect_ms != NULL);
    for (uint32_t i = 0; graph->rank != NULL && i < subtasks; i++) {
        writer_u32(out, graph->rank[i]);
    }
    for (uint32_t i = 0; graph->expect_ms != NULL && i < subtasks; i++) {
        writer_u32(out, graph->expect_ms[i]);
    }
    for (uint32_t i = 0; i < subtasks; i++) {
        writer_u32(out, graph->first_after[i + 1] - graph->first_after[i]);
    }
    for (uint32_t i = 0; i < graph->first_after[subtasks]; i++) {
        writer_u32(out, graph->after[i]);
    }
}

/* Outputs of unknown size keep the bytes that they had under earlier rules. */
static void put_given(struct writer *out, const struct given *given)
{
    PUT_ID(out, given->job->id);
    writer_u32(out, given->index | (given->file_bytes > 0 ? SNAPSHOT_GIVEN_SIZE : 0));
    if (given->file_bytes > 0) {
        writer_u64(out, given->file_bytes);
    }
    writer_bytes(out, given->bytes, given->length);
}

static void put_saved(struct writer *out, const struct saved *saved)
{
    PUT_ID(out, saved->job->id);
    writer_u32(out, saved->index);
    writer_u32(out, saved->attempt);
    writer_u8(out, saved->missing);
    writer_bytes(out, saved->bytes, saved->length);
}

static void put_held(struct writer *out, const struct held *held)
{
    PUT_ID(out, held->lease->job->id);
    writer_u64(out, held->lease->id);
    writer_u32(out, held->index);
    writer_u32(out, held->attempt);
    writer_u64(out, held->batch_index);
    writer_u32(out, held->position);
    writer_i64(out, held->paid_ns);
    PUT_ID(out, held->hash);
    PUT_ID(out, held->dice);
    writer_u8(out, held->unsure);
    writer_u8(out, held->missing);
    writer_u32(out, held->shy_of);
    writer_bytes(out, held->bytes, held->length);
}

static void put_standing(struct writer *out, const struct standing *standing)
{
    writer_u32(out, standing->member->number);
    writer_u64(out, standing->group);
    writer_bytes(out, standing->owner, sizeof standing->owner);
    writer_u32(out, standing->refuted);
    writer_u32(out, standing->refuted_ever);
    writer_u32(out, standing->overruled);
    writer_i64(out, standing->proved_ns);
    writer_i64(out, standing->withdrawn_until_ns);
}

static void put_accusation(struct writer *out, const struct accusation *accusation)
{
    PUT_ID(out, accusation->held->lease->job->id);
    writer_u32(out, accusation->held->index);
    writer_u32(out, accusation->referee);
    writer_u32(out, accusation->attempt);
    PUT_ID(out, accusation->check);
}

static void put_jury(struct writer *out, const struct jury *jury)
{
    PUT_ID(out, jury->job->id);
    writer_u32(out, jury->index);
    writer_i64(out, jury->look_ns);
    writer_u32(out, jury->unmade);
    for (uint32_t i = 0; i < jury->count; i++) {
        writer_u32(out, jury->accounts[i]);
    }
}

static void put_page(struct writer *out, const struct page *page)
{
    PUT_ID(out, page->job->id);
    writer_u32(out, page->number);
    for (uint32_t i = 0; i < page->count; i++) {
        const struct subtask *subtask = &page->subtasks[i];
        writer_u8(out, subtask->state);
        writer_u8(out, subtask->live);
        writer_u8(out, subtask->failures);
        writer_u8(out, subtask->crashes);
        writer_u16(out, subtask->attempts);
        writer_u16(out, subtask->queued);
        writer_u32(out, subtask->next);
    }
}

static void put_outage(struct writer *out, const struct lease *lease)
{
    writer_i64(out, lease->outage_ns);
    writer_i64(out, lease->outage_at_ns);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        writer_i64(out, lease->lanes[i].outage_ns);
    }
}

static bool has_residents(const struct lease *lease)
{
    bool has_some = false;
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        has_some = has_some || lease->lanes[i].residents != NULL;
    }
    return has_some;
}

static void put_residents(struct writer *out, const struct lease *lease)
{
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        const struct residents *residents = lease->lanes[i].residents;
        const uint32_t count = residents == NULL ? 0 : residents->count;
        writer_u8(out, (uint8_t)count);
        for (uint32_t k = 0; k < count; k++) {
            writer_u32(out, residents->items[k].index);
            writer_u64(out, residents->items[k].bytes);
        }
    }
}

/* A lease that met no outage, and whose devices hold nothing, keeps the bytes that it had under
 * earlier rules. */
static void put_lease(struct writer *out, const struct lease *lease)
{
    const bool holds = has_residents(lease);
    writer_u64(out, lease->id);
    PUT_ID(out, lease->job->id);
    writer_u32(out, lease->part->number);
    PUT_ID(out, lease->device_id);
    PUT_ID(out, lease->ask);
    writer_bytes(out, lease->label, sizeof lease->label);
    writer_u32(out, lease->provider);
    writer_u32(out, lease->slots);
    writer_u32(out, lease->lane_count);
    writer_i64(out, lease->price_micro);
    writer_i64(out, lease->granted_ns);
    writer_i64(out, lease->term_end_ns);
    writer_i64(out, lease->ended_ns);
    writer_u8(out, lease->state);
    writer_u8(out, lease->end_reason);
    put_bool(out, lease->is_simulated);
    put_bool(out, lease->terms.is_interruptible);
    writer_i64(out, lease->terms.notice_ns);
    writer_i64(out, lease->terms.minimum_run_ns);
    const bool met_outage = lease->outage_at_ns != 0;
    const bool has_quickest = lease->quickest_ns != 0;
    writer_u8(out, (uint8_t)(lease->is_noticed | met_outage << 1 | holds << 2 | has_quickest << 3));
    writer_u64(out, lease->former);
    writer_u32(out, lease->accepted);
    writer_u32(out, lease->failures_in_row);
    writer_i64(out, lease->paid_ns);
    writer_i64(out, lease->charged_micro);
    writer_i64(out, lease->reserved_micro);
    writer_i64(out, lease->promised_ns);
    writer_i64(out, lease->idle_since_ns);
    writer_u32(out, lease->live);
    writer_i64(out, lease->mean_ns);
    writer_i64(out, lease->said_ns);
    writer_i64(out, lease->took_ns);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        writer_u32(out, lease->lanes[i].in_flight);
        writer_i64(out, lease->lanes[i].seen_until_ns);
        writer_i64(out, lease->lanes[i].seen_ns);
        writer_i64(out, lease->lanes[i].paid_ns);
    }
    if (met_outage) {
        put_outage(out, lease);
    }
    if (holds) {
        put_residents(out, lease);
    }
    if (has_quickest) {
        writer_i64(out, lease->quickest_ns);
    }
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        writer_u32(out, attempt->key.index);
        writer_u32(out, attempt->key.attempt);
        writer_u32(out, attempt->lane);
        writer_i64(out, attempt->dispatched_ns);
        put_bool(out, attempt->is_doubted);
        put_bool(out, attempt->is_fenced);
        put_bool(out, attempt->is_withdrawn);
        writer_u32(out, attempt->restored);
    }
}

static void put_cell(struct writer *out, const struct exchange *exchange, const struct kind *cell)
{
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, cell->number, &count);
    writer_u32(out, cell->number);
    for (size_t i = 0; i < count; i++) {
        put_attribute(out, &attributes[i]);
    }
}

static void put_class(struct writer *out, const struct exchange *exchange, const struct kind *kind)
{
    const struct requirement *requirement = book_class_requirement(exchange->book, kind->number);
    writer_u32(out, kind->number);
    writer_u8(out, (uint8_t)book_class_rate(exchange->book, kind->number));
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        writer_u8(out, (uint8_t)node->op);
        if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            writer_u32(out, node->arity);
        } else if (node->op != REQUIREMENT_NOT) {
            put_attribute(out, &node->attribute);
        }
    }
}

void snapshot_put_entity(struct writer *out, const struct exchange *exchange,
                         const struct tracked *tracked)
{
    const void *entity = tracked;
    switch ((enum record_type)tracked->type) {
    case RECORD_MARKET:
        put_market(out, exchange);
        break;
    case RECORD_LIMITS:
        put_limits(out, exchange);
        break;
    case RECORD_MEMBER:
        put_member(out, exchange, entity);
        break;
    case RECORD_INVITATION:
        put_invitation(out, entity);
        break;
    case RECORD_ID:
        put_id_entry(out, entity);
        break;
    case RECORD_PROVIDER:
        put_provider(out, entity);
        break;
    case RECORD_DEVICE:
        put_device(out, entity);
        break;
    case RECORD_ASK:
        put_ask(out, entity);
        break;
    case RECORD_JOB:
        put_job(out, entity);
        break;
    case RECORD_GRAPH:
        put_graph(out, entity);
        break;
    case RECORD_GIVEN:
        put_given(out, entity);
        break;
    case RECORD_SAVED:
        put_saved(out, entity);
        break;
    case RECORD_HELD:
        put_held(out, entity);
        break;
    case RECORD_STANDING:
        put_standing(out, entity);
        break;
    case RECORD_ACCUSATION:
        put_accusation(out, entity);
        break;
    case RECORD_JURY:
        put_jury(out, entity);
        break;
    case RECORD_PAGE:
        put_page(out, entity);
        break;
    case RECORD_LEASE:
        put_lease(out, entity);
        break;
    case RECORD_CELL:
        put_cell(out, exchange, entity);
        break;
    case RECORD_CLASS:
        put_class(out, exchange, entity);
        break;
    }
}
