/* Jobs whose subtasks wait for one another: none starts before all that it waits for were accepted,
 * of those that may start the higher rank goes first, or without ranks the longer expected, each
 * runs under its own part's lease, and is given what was accepted of those before it. */
#include "tests/sim/oracle_models.h"

#include "protocol/codec.h"

#include <inttypes.h>
#include <stdlib.h>

void oracle_keep_graph(struct seen_job *job, const struct exchange_graph *graph)
{
    struct seen_graph *seen = sim_grow(NULL, sizeof *seen);
    seen->subtasks = sim_grow(NULL, job->subtasks * sizeof *seen->subtasks);
    seen->after = sim_grow(NULL, (graph->after_length + 1) * sizeof *seen->after);
    memset(seen->subtasks, 0, job->subtasks * sizeof *seen->subtasks);
    uint32_t edges = 0;
    for (uint32_t i = 0; i < job->subtasks; i++) {
        struct seen_subtask *subtask = &seen->subtasks[i];
        subtask->rank = graph->rank_count > 0     ? graph->rank[i]
                        : graph->expect_count > 0 ? graph->expect_ms[i]
                                                  : 0;
        subtask->first_after = edges;
        subtask->after_count = graph->after_count_count > 0 ? graph->after_count[i] : 0;
        for (uint32_t k = 0; k < subtask->after_count; k++) {
            seen->after[edges] = graph->after[edges];
            edges++;
        }
    }
    job->graph = seen;
}

/* A check: what it is about is held. Others: what they wait for was accepted. */
static bool may_start(const struct seen_graph *graph, const struct seen_bid *bid, uint32_t index)
{
    const struct seen_subtask *subtask = &graph->subtasks[index];
    for (uint32_t k = 0; k < subtask->after_count; k++) {
        const struct seen_subtask *from = &graph->subtasks[graph->after[subtask->first_after + k]];
        if (!(bid->is_checks ? from->is_held : from->is_accepted)) {
            return false;
        }
    }
    return true;
}

struct seen_subtask *oracle_subtask_of(const struct ledger_record *record)
{
    const struct seen_job *job = oracle_job_of(&record->job);
    return job->graph == NULL ? NULL : &job->graph->subtasks[record->index];
}

/* Checks the rank of a subtask that was never started before: one that comes back goes first of
 * all. */
static void check_rank(const struct seen_graph *graph, const struct seen_bid *bid, uint32_t index)
{
    const struct seen_subtask *chosen = &graph->subtasks[index];
    for (uint32_t i = bid->first; i < bid->end; i++) {
        const struct seen_subtask *other = &graph->subtasks[i];
        bool is_before = other->rank > chosen->rank || (other->rank == chosen->rank && i < index);
        if (is_before && !other->is_started && may_start(graph, bid, i)) {
            sim_fail("command %" PRIu64 ": subtask %u, rank %u, starts before %u, rank %u",
                     oracle.command, index, chosen->rank, i, other->rank);
        }
    }
}

static void check_given(const struct seen_graph *graph, const struct exchange_work *work)
{
    const struct seen_subtask *subtask = &graph->subtasks[work->index];
    if (work->given_count != subtask->after_count) {
        sim_fail("command %" PRIu64 ": subtask %u waits for %u and is given %u", oracle.command,
                 work->index, subtask->after_count, work->given_count);
    }
    for (uint32_t k = 0; k < work->given_count; k++) {
        const struct seen_subtask *from = &graph->subtasks[graph->after[subtask->first_after + k]];
        const struct exchange_given *given = &work->given[k];
        if (given->length != from->left_length ||
            memcmp(given->bytes, from->left, given->length) != 0) {
            sim_fail("command %" PRIu64 ": subtask %u is not given what was accepted",
                     oracle.command, work->index);
        }
    }
}

void oracle_check_start(const struct seen_lease *lease, const struct exchange_work *work)
{
    const struct seen_bid *bid = &oracle.bids.items[lease->bid];
    const struct seen_job *job = &oracle.jobs.items[bid->job];
    if (work->index < bid->first || work->index >= bid->end) {
        sim_fail("command %" PRIu64 ": subtask %u runs under the lease of another part",
                 oracle.command, work->index);
    }
    if (job->graph == NULL) {
        return;
    }
    struct seen_subtask *subtask = &job->graph->subtasks[work->index];
    if (!may_start(job->graph, bid, work->index)) {
        sim_fail("command %" PRIu64 ": subtask %u starts before what it waits for", oracle.command,
                 work->index);
    }
    /* Checks go as the results came, and what would be late is passed over. */
    if (!subtask->is_started && !bid->is_checks && job->deadline_ns == 0) {
        check_rank(job->graph, bid, work->index);
    }
    subtask->is_started = true;
    check_given(job->graph, work);
    oracle.counts.given += work->given_count;
}

void oracle_keep_left(struct seen_job *job, const struct ledger_record *record)
{
    Bourse__V1__Result *result = NULL;
    if (job->graph == NULL) {
        return;
    }
    if (codec_decode_result(record->result, record->result_length, &result, NULL) != CODEC_OK) {
        sim_fail("command %" PRIu64 " accepts a result that cannot be read", oracle.command);
    }
    struct seen_subtask *subtask = &job->graph->subtasks[record->index];
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    given.index = record->index;
    given.n_outputs = result->n_outputs;
    given.outputs = result->outputs;
    subtask->left_length = bourse__v1__given__get_packed_size(&given);
    subtask->left = sim_grow(NULL, subtask->left_length);
    (void)bourse__v1__given__pack(&given, subtask->left);
    codec_result_free(&result);
}
