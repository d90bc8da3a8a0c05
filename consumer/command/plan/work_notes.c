/* This file shows what a plan of work assumes, and what it does not know or count. */
#include "consumer/command/plan/work.h"

#include "base/text.h"
#include "consumer/command/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

uint32_t work_below_bound(const struct work *work, const struct plan_row *row)
{
    uint32_t count = 0;
    for (uint32_t s = row->first_step; s < row->first_step + row->step_count; s++) {
        const struct history_summary *history =
            &work->histories[s * work->plan->device_count + row->device];
        struct step_cost found;
        size_t part = 0;
        if (history->count == 0 || row->is_left_out ||
            steps_cost(&work->costs[row->device], &work->steps->steps[s], &found, &part) !=
                COST_OK) {
            continue;
        }
        struct cost learnt = {
            .bound_s = found.bound_s, .time_s = found.time_s, .p90_s = found.p90_s};
        cost_learn(history, &learnt);
        count += learnt.time_s.value < found.bound_s.value;
    }
    return count;
}

static unsigned lacks_of(const struct work *work, uint32_t first, uint32_t count, uint32_t device)
{
    unsigned lacks = 0;
    for (uint32_t s = first; s < first + count; s++) {
        struct step_cost found;
        size_t part = 0;
        enum cost_status status =
            steps_cost(&work->costs[device], &work->steps->steps[s], &found, &part);
        lacks |= status == COST_OK                  ? found.lacks
                 : status == COST_UNKNOWN_BANDWIDTH ? COST_LACKS_BANDWIDTH
                                                    : 0;
    }
    return lacks;
}

bool work_lacks_rate(const struct work *work, const struct plan_row *row)
{
    return !row->is_left_out &&
           (lacks_of(work, row->first_step, row->step_count, row->device) & COST_LACKS_RATE) != 0;
}

const char *work_lacks(const struct work *work, uint32_t device)
{
    unsigned lacks = lacks_of(work, 0, (uint32_t)work->steps->step_count, device);
    return work->plan->uses[device].row_count > 0 ? NULL
           : (lacks & COST_LACKS_MEMORY) != 0     ? "memory"
           : (lacks & COST_LACKS_BANDWIDTH) != 0  ? "bandwidth"
                                                  : NULL;
}

/* Lists devices without a figure that they would need; alike devices appear once. */
static void show_unknown(const struct work *work)
{
    for (uint32_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        const char *lacks = work_lacks(work, i);
        bool is_first = i == 0 || item->known == NULL || item->known != item[-1].known;
        if (lacks != NULL && is_first) {
            (void)printf("not known    the %s of %s, which so does nothing that needs it; --figure "
                         "says it\n",
                         lacks, cell_plain(item->name));
        }
    }
}

/* Lists figures that the user gave beside or against the catalogue, because the plan depends on
 * them. */
static void show_said(const struct work *work)
{
    for (size_t i = 0; i < work->request.figure_count; i++) {
        const struct plan_file_figure *said = &work->request.figures[i];
        (void)printf("said         %s: %s %s (--figure)\n", cell_plain(said->device), said->name,
                     said->text);
    }
}

/* A cache may be faster than the memory, or the samples may be of another operation. The bound uses
 * the samples in both cases. */
static void show_below_bound(const struct work *work)
{
    for (size_t i = 0; i < work->plan->row_count; i++) {
        const struct plan_row *row = &work->plan->rows[i];
        const uint32_t count = work_below_bound(work, row);
        if (count > 0) {
            char label[WORK_LABEL_SIZE];
            work_label(work, row, label);
            (void)printf("below bound  %s on %s was measured to take less than the device needs by "
                         "its figures. The samples may be of another operation; the lower bound "
                         "uses them\n",
                         cell_plain(label), work_device(work, row->device));
            return; /* one row is enough */
        }
    }
}

/* Shows the savings that cost no time. */
static void show_slack(const struct work *work)
{
    const struct plan_slack *slack = &work->plan->slack;
    const struct figure energy = {.value = fabs(slack->saved_j), .source = FIGURE_DECLARED};
    if (slack->moved == 0) {
        return;
    }
    (void)printf("slack        %" PRIu32 " step%s that nobody waits for %s elsewhere:",
                 slack->moved, text_plural(slack->moved), slack->moved == 1 ? "is" : "are");
    if (slack->saved_micro > 0) {
        (void)printf(" %s credits less", work_price(slack->saved_micro).text);
    }
    if (slack->saved_j != 0) {
        (void)printf("%s %s %s", slack->saved_micro > 0 ? "," : "", cell_joules(&energy),
                     slack->saved_j > 0 ? "less" : "more");
    }
    (void)printf(", and it ends no later\n");
}

/* Names the used devices that share one memory; the plan counts each as if alone. */
static void show_unified(const struct work *work)
{
    const struct plan_use *uses = work->plan->uses;
    for (size_t i = 0; i < work->set->count; i++) {
        size_t before = 0;
        size_t after = 0;
        for (size_t k = 0; k < work->set->count; k++) {
            const bool is_with = uses[k].row_count > 0 && device_set_are_unified(work->set, i, k);
            before += is_with && k < i;
            after += is_with && k > i;
        }
        if (uses[i].row_count > 0 && before == 0 && after > 0) {
            (void)printf(
                "one memory   %s and %zu more share one memory. Each is counted as if it had all "
                "of its size and bandwidth, so together they take longer\n",
                work_device(work, (uint32_t)i), after);
        }
    }
}

static bool is_same_risk(const struct spot_risk *a, const struct spot_risk *b)
{
    return a->per_hour == b->per_hour && a->restart_s == b->restart_s &&
           a->checkpoint_s == b->checkpoint_s;
}

/* Shows the assumed risk of devices that may be taken away; alike devices appear once. */
static void show_risks(const struct work *work)
{
    for (size_t i = 0; i < work->set->count; i++) {
        const struct spot_risk *risk = &work->devices[i].risk;
        const bool is_first = i == 0 || !is_same_risk(risk, &work->devices[i - 1].risk) ||
                              work->set->items[i].known != work->set->items[i - 1].known;
        if (!(risk->per_hour > 0) || !is_first) {
            continue;
        }
        (void)printf("taken away   %s: %.6g an hour, %s to begin again",
                     work_device(work, (uint32_t)i), risk->per_hour,
                     work_time(risk->restart_s).text);
        if (risk->interval_s > 0) {
            (void)printf(", a checkpoint of %s every %s", work_time(risk->checkpoint_s).text,
                         work_time(risk->interval_s).text);
        }
        (void)printf("; times and prices are those expected\n");
    }
}

/* Returns true when a step is left out because the speed of storage is unknown. */
static bool misses_storage(const struct work *work)
{
    for (size_t i = 0; i < work->plan->row_count; i++) {
        const struct plan_row *row = &work->plan->rows[i];
        for (uint32_t s = row->first_step; s < row->first_step + row->step_count; s++) {
            const struct step *step = &work->steps->steps[s];
            struct step_cost cost;
            size_t part = 0;
            if (steps_cost(&work->costs[row->device], step, &cost, &part) == COST_NO_STORAGE) {
                return true;
            }
        }
    }
    return false;
}

/* Shows when sums are exchanged, for split work whose parts depend on each other. */
static void show_sums(const struct work *work)
{
    if (work->plan->form == PLAN_SPLIT &&
        template_replicas(work->template) != TEMPLATE_NO_PARAMETER) {
        (void)printf("sums         %s\n",
                     work->plan->sums_behind
                         ? "behind what is computed after them, as far as that lasts"
                         : "after all that is computed: nothing is while parts are summed");
    }
}

static void show_left_out(const struct work *work)
{
    const struct plan *plan = work->plan;
    if (plan->left_out > 0) {
        (void)printf("not counted  %" PRIu32 " step%s whose time no figure tells%s\n",
                     plan->left_out, text_plural(plan->left_out),
                     misses_storage(work) ? "; --storage says how fast data is loaded" : "");
    }
    if (plan->fallen_back > 0) {
        (void)printf("fallen back  %" PRIu32 " step%s cannot run where placed, and %s elsewhere\n",
                     plan->fallen_back, text_plural(plan->fallen_back),
                     plan->fallen_back == 1 ? "is" : "are");
    }
}

/* Shows the links of this set; a machine with one device has none. */
static void show_links(const struct work *work)
{
    const struct device_set_links *links = &work->set->links;
    const struct device_set_link *fabric = &links->wires[DEVICE_SET_FABRIC];
    const struct device_set_link *pcie = &links->wires[DEVICE_SET_PCIE];
    const struct device_set_link *peer = &links->wires[DEVICE_SET_PEER];
    const struct device_set_link *network = &links->wires[DEVICE_SET_NETWORK];
    char fabric_text[4 * WORK_FIGURE_SIZE] = "none";
    if (fabric->bandwidth != 0) {
        char rate[WORK_FIGURE_SIZE] = "as catalogued";
        if (fabric->bandwidth > 0) {
            (void)snprintf(rate, sizeof rate, "%.4g GB/s", fabric->bandwidth / 1e9);
        }
        (void)snprintf(fabric_text, sizeof fabric_text, "%s, %s%s", rate,
                       work_time(fabric->latency_s).text,
                       work->request.fabric.has_latency ? "" : " (assumed)");
    }
    char peer_text[2 * WORK_FIGURE_SIZE] = "";
    if (peer->bandwidth > 0) {
        (void)snprintf(peer_text, sizeof peer_text, "; peer %.4g GB/s, %s", peer->bandwidth / 1e9,
                       work_time(peer->latency_s).text);
    }
    (void)printf("links        pcie %.4g GB/s, %s%s%s; fabric %s; network %.4g GB/s, %s%s\n",
                 pcie->bandwidth / 1e9, work_time(pcie->latency_s).text,
                 work->request.pcie.is_given ? "" : " (assumed)", peer_text, fabric_text,
                 network->bandwidth / 1e9, work_time(network->latency_s).text,
                 work->request.network.is_given ? "" : " (assumed)");
}

void work_show_notes(const struct work *work)
{
    show_sums(work);
    show_left_out(work);
    show_unknown(work);
    show_said(work);
    show_slack(work);
    show_below_bound(work);
    show_unified(work);
    show_risks(work);
    show_links(work);
}
