/* Random graphs run on devices with memory of their own. Results come in any order, fail, and are
 * lost with their provider. A slow model keeps what each lane was sent and made, and says which
 * ready subtask a lane takes first. Every first attempt must be the one that the model says. */
#include "base/random.h"
#include "tests/support/property_seed.h"
#include "tests/support/resident_market.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

enum { GRAPHS = 120, SUBTASKS_MOST = 120, EDGES_MOST = 4 * SUBTASKS_MOST, WORKS_MOST = 4096 };

/* A lane was sent or made this, newest last; an entry may be there twice. */
struct told {
    uint64_t lease;
    uint32_t lane;
    uint32_t index;
};

struct play {
    struct random random;
    struct id128 job;
    uint32_t subtasks;
    uint32_t rank[SUBTASKS_MOST], after_count[SUBTASKS_MOST], first_after[SUBTASKS_MOST + 1];
    uint32_t after[EDGES_MOST];
    uint64_t bytes[SUBTASKS_MOST]; /* of the outputs */
    bool was_sent[SUBTASKS_MOST], is_accepted[SUBTASKS_MOST], is_handed_on[SUBTASKS_MOST];
    uint64_t held_most;
    struct told told[WORKS_MOST];
    size_t told_count;
    struct {
        struct exchange_work work;
        uint32_t provider;
        bool is_withdrawn;
    } out[WORKS_MOST]; /* in flight */
    size_t out_count;
    uint64_t choices, by_memory; /* first attempts; those that the rank alone would not choose */
};

static uint64_t below(struct play *play, uint64_t bound)
{
    return random_below(&play->random, bound);
}

/* ---------------------------------------------------------------- the model */

static bool counts(const struct play *play, uint32_t index)
{
    return play->bytes[index] >= RESIDENT_LEAST_BYTES && play->bytes[index] <= play->held_most;
}

/* Returns true when the lane holds the outputs of `index`: it used them, and what it used since
 * then, with them, has no more entries and bytes than it can hold. */
static bool holds(const struct play *play, uint64_t lease, uint32_t lane, uint32_t index)
{
    bool seen[SUBTASKS_MOST] = {false};
    uint64_t bytes = 0;
    uint32_t entries = 0;
    for (size_t i = play->told_count; i-- > 0;) {
        const struct told *told = &play->told[i];
        if (told->lease != lease || told->lane != lane || seen[told->index]) {
            continue;
        }
        seen[told->index] = true;
        bytes += play->bytes[told->index];
        entries++;
        if (bytes > play->held_most || entries > RESIDENTS_MOST) {
            return false;
        }
        if (told->index == index) {
            return true;
        }
    }
    return false;
}

static uint64_t held_bytes(const struct play *play, uint64_t lease, uint32_t lane, uint32_t index)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < play->after_count[index] && k < RESIDENT_INPUTS_MOST; k++) {
        const uint32_t from = play->after[play->first_after[index] + k];
        bytes += holds(play, lease, lane, from) ? play->bytes[from] : 0;
    }
    return bytes;
}

static bool is_ready(const struct play *play, uint32_t index)
{
    bool is = !play->was_sent[index];
    for (uint32_t k = 0; k < play->after_count[index]; k++) {
        is = is && play->is_accepted[play->after[play->first_after[index] + k]];
    }
    return is;
}

/* Returns the ready subtask with so many others before it by rank; NO_SUBTASK: none. */
static uint32_t ready_after(const struct play *play, uint32_t before)
{
    for (uint32_t i = 0; i < play->subtasks; i++) {
        uint32_t first = 0;
        for (uint32_t k = 0; k < play->subtasks; k++) {
            first += is_ready(play, k) &&
                     (play->rank[k] > play->rank[i] || (play->rank[k] == play->rank[i] && k < i));
        }
        if (is_ready(play, i) && first == before) {
            return i;
        }
    }
    return NO_SUBTASK;
}

static uint32_t expected(const struct play *play, uint64_t lease, uint32_t lane)
{
    uint32_t best = NO_SUBTASK;
    uint64_t best_bytes = 0;
    const uint32_t first = ready_after(play, 0);
    for (uint32_t i = 0; i < RESIDENT_READY_MOST; i++) {
        const uint32_t index = ready_after(play, i);
        if (index == NO_SUBTASK) {
            break;
        }
        const uint64_t bytes = held_bytes(play, lease, lane, index);
        const double behind = play->rank[first] - play->rank[index];
        const bool may = behind <= play->rank[first] * 0.2 || behind <= floor((double)bytes / 1e5);
        if (best == NO_SUBTASK || (may && bytes > best_bytes)) {
            best = index;
            best_bytes = bytes;
        }
    }
    return best;
}

static void tell(struct play *play, uint64_t lease, uint32_t lane, uint32_t index)
{
    if (counts(play, index)) {
        ck_assert_uint_lt(play->told_count, WORKS_MOST);
        play->told[play->told_count++] = (struct told){lease, lane, index};
    }
}

/* ---------------------------------------------------------------- the play */

static size_t in_lane(const struct play *play, const struct exchange_work *work)
{
    size_t count = 0;
    for (size_t i = 0; i < play->out_count; i++) {
        count += play->out[i].work.lease == work->lease && play->out[i].work.lane == work->lane;
    }
    return count;
}

static void on_dispatch(struct play *play, uint32_t provider, const struct exchange_work *work)
{
    const uint32_t index = work->index;
    if (!play->was_sent[index]) {
        const uint32_t first = ready_after(play, 0);
        const uint32_t best = expected(play, work->lease, work->lane);
        /* A subtask that waits for a busy lane is the first by rank. */
        const bool may_be_first = in_lane(play, work) > 0;
        ck_assert_msg(index == best || (may_be_first && index == first),
                      "lane %u of lease %u got %u instead of %u", work->lane, (unsigned)work->lease,
                      index, best);
        play->choices++;
        play->by_memory += index != first;
    }
    play->was_sent[index] = true;
    for (uint32_t k = 0; k < play->after_count[index] && k < RESIDENT_INPUTS_MOST; k++) {
        tell(play, work->lease, work->lane, play->after[play->first_after[index] + k]);
    }
    ck_assert_uint_lt(play->out_count, WORKS_MOST);
    play->out[play->out_count].work = *work;
    play->out[play->out_count].provider = provider;
    play->out[play->out_count].is_withdrawn = false;
    play->out_count++;
}

static void on_withdraw(struct play *play, const struct exchange_work *work)
{
    for (size_t i = 0; i < play->out_count; i++) {
        const struct exchange_work *other = &play->out[i].work;
        if (other->index == work->index && other->attempt == work->attempt) {
            play->out[i].is_withdrawn = true;
        }
    }
}

static void listen(struct play *play)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH) {
            on_dispatch(play, effect->account, &effect->work);
        } else if (effect->type == EFFECT_WITHDRAW) {
            on_withdraw(play, &effect->work);
        }
    }
}

static void answer(struct play *play)
{
    const size_t at = below(play, play->out_count);
    const struct exchange_work work = play->out[at].work;
    const uint32_t provider = play->out[at].provider;
    const bool fails = below(play, 20) == 0;
    const uint8_t outcome = play->out[at].is_withdrawn ? OUTCOME_CANCELLED
                            : fails                    ? OUTCOME_PROGRAM_FAILED
                                                       : OUTCOME_OK;
    play->out[at] = play->out[--play->out_count];
    if (outcome == OUTCOME_OK && !play->is_accepted[work.index]) {
        play->is_accepted[work.index] = true;
        if (play->is_handed_on[work.index]) {
            tell(play, work.lease, work.lane, work.index);
        }
    }
    market.now_ns += (int64_t)below(play, 20) * NS_PER_MS;
    leave(provider, play->job, work, outcome, (int64_t)play->bytes[work.index]);
    listen(play);
}

/* The provider goes, with all that it had, and comes back. */
static void lose(struct play *play, uint32_t provider, uint32_t slots)
{
    size_t kept = 0;
    presence(EXCHANGE_GOODBYE, provider);
    for (size_t i = 0; i < play->out_count; i++) {
        if (play->out[i].provider != provider) {
            play->out[kept++] = play->out[i];
        }
    }
    play->out_count = kept;
    listen(play);
    offer_device(provider, slots, (int64_t)play->held_most * RESIDENT_MEMORY_SHARE, true);
    listen(play);
}

static void draw_graph(struct play *play)
{
    uint32_t edges = 0;
    play->subtasks = 2 + (uint32_t)below(play, SUBTASKS_MOST - 2);
    for (uint32_t i = 0; i < play->subtasks; i++) {
        play->first_after[i] = edges;
        play->rank[i] = 400 + (uint32_t)below(play, 10) * 25;
        play->bytes[i] = below(play, 4) == 0 ? below(play, 2 * RESIDENT_LEAST_BYTES)
                                             : below(play, 40 * (uint64_t)MIB);
        const uint32_t wanted = i < 8 ? 0 : (uint32_t)below(play, 4);
        play->after_count[i] = wanted;
        for (uint32_t k = 0; k < wanted; k++) {
            const uint32_t from = i - 1 - (uint32_t)below(play, i < 16 ? i : 16);
            play->after[edges++] = from;
            play->is_handed_on[from] = true;
        }
    }
    play->first_after[play->subtasks] = edges;
}

static void run_graph(struct play *play)
{
    static const uint64_t sizes[] = {8, 64, 256, 4096};
    const uint32_t slots = 1 + (uint32_t)below(play, 3);
    play->held_most = sizes[below(play, 4)] * (uint64_t)MIB;
    draw_graph(play);
    const struct exchange_graph graph = {.rank = play->rank,
                                         .rank_count = play->subtasks,
                                         .after_count = play->after_count,
                                         .after_count_count = play->subtasks,
                                         .after = play->after,
                                         .after_length = play->first_after[play->subtasks]};
    for (uint32_t provider = PROVIDER; provider <= OTHER_PROVIDER; provider++) {
        offer_device(provider, slots, (int64_t)play->held_most * RESIDENT_MEMORY_SHARE, true);
    }
    play->job = submit_graph(play->subtasks, &graph);
    listen(play);
    for (int turn = 0; job_row(play->job).state == JOB_OPEN && turn < WORKS_MOST; turn++) {
        if (play->out_count > 0) {
            answer(play);
        } else { /* a provider that went is avoided for a while */
            market.now_ns += NS_PER_S;
            tick();
            listen(play);
        }
        if (below(play, 40) == 0) {
            lose(play, below(play, 2) == 0 ? PROVIDER : OTHER_PROVIDER, slots);
        }
        if (below(play, 10) == 0) {
            check_hash();
            reload();
        }
    }
    ck_assert_uint_ne(job_row(play->job).state, JOB_OPEN);
}

START_TEST(every_first_attempt_is_the_one_that_the_model_says)
{
    const uint64_t seed = property_seed(22);
    uint64_t choices = 0;
    uint64_t by_memory = 0;
    for (uint64_t i = 0; i < GRAPHS; i++) {
        struct play *play = calloc(1, sizeof *play);
        ck_assert_ptr_nonnull(play);
        play->random = random_seeded(seed + i);
        begin();
        run_graph(play);
        tear_down();
        choices += play->choices;
        by_memory += play->by_memory;
        free(play);
    }
    printf("%llu choices, %llu by memory\n", (unsigned long long)choices,
           (unsigned long long)by_memory);
    ck_assert_uint_gt(by_memory, choices / 20); /* the test meets what it is about */
}
END_TEST

SUITE("residency_model", NULL, NULL, TEST(every_first_attempt_is_the_one_that_the_model_says))
