#include "provider/executors/copy_ahead.h"

#include "base/cursor.h"
#include "runtime/files.h"
#include "runtime/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 128 << 10 };

struct copy_ahead {
    struct copy_ahead_config config;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* The mutex guards the next members. */
    bool stops;
    int connection; /* our end of that of the run under way, of which nothing is used; -1: none */
    const Bourse__V1__Manifest *manifest;
    uint32_t running;
    bool is_announced;
    uint32_t next;
    struct dispatch_inputs dispatch; /* of the announced subtask */
    bool is_serving;
    uint32_t served; /* the subtask whose inputs are being sent */

    atomic_bool is_late;        /* the subtask whose inputs are being sent begins by itself */
    uint8_t piece[PIECE_BYTES]; /* the thread's own */
};

/* An errand brings the inputs of `next` to the jail at the other end. */
struct errand {
    int connection;
    const Bourse__V1__Manifest *manifest;
    uint32_t running, next;
    struct dispatch_inputs dispatch;
};

/* ---------------------------------------------------------------- the thread */

static bool send_all(int connection, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(connection, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool send_list(int connection, const struct program_ahead *items, size_t count)
{
    uint8_t bytes[AHEAD_LIST_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        writer_bytes(&out, items[i].input.hash.bytes, sizeof items[i].input.hash.bytes);
        writer_u64(&out, items[i].input.size);
        writer_u8(&out, (uint8_t)items[i].input.kind);
    }
    return !out.failed && send_all(connection, bytes, out.position);
}

/* Sends a file, and says whether it had its hash all the time. */
static bool send_file(struct copy_ahead *ahead, int connection, const struct program_ahead *item)
{
    const uint8_t good = AHEAD_GOOD;
    for (uint64_t done = 0; done < item->input.size;) {
        const uint64_t rest = item->input.size - done;
        const size_t size = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
        if (!file_read_at(item->fd, ahead->piece, size, done) ||
            !send_all(connection, ahead->piece, size)) {
            return false;
        }
        done += size;
    }
    return !(item->stamp.is_known && stamp_has_changed(&item->stamp, item->fd)) &&
           send_all(connection, &good, 1);
}

static bool read_answer(int connection, uint8_t *ret_word)
{
    ssize_t got;
    do {
        got = recv(connection, ret_word, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1 && (*ret_word == AHEAD_SEND || *ret_word == AHEAD_SKIP);
}

static void send_inputs(struct copy_ahead *ahead, const struct errand *errand,
                        struct store_blob *inputs)
{
    const struct program program = {.manifest = errand->manifest,
                                    .config = ahead->config.config,
                                    .index = errand->next,
                                    .seed =
                                        errand->dispatch.has_seed ? &errand->dispatch.seed : NULL,
                                    .inputs = inputs,
                                    .dispatch = &errand->dispatch,
                                    .kernel_device = ahead->config.device};
    struct program_ahead items[AHEAD_INPUTS];
    const size_t count = program_list_ahead(&program, items);
    bool good = count > 0 && send_list(errand->connection, items, count);
    for (size_t i = 0; good && i < count; i++) {
        uint8_t word = 0;
        good = read_answer(errand->connection, &word) && !atomic_load(&ahead->is_late) &&
               (word == AHEAD_SKIP || send_file(ahead, errand->connection, &items[i]));
    }
}

static void serve(struct copy_ahead *ahead, const struct errand *errand)
{
    const struct agent_work work = {.index = errand->next};
    struct outcome *outcome = outcome_create(&work, &ahead->config.job); /* nobody reads it */
    const struct program_source source = {.manifest = errand->manifest,
                                          .index = errand->next,
                                          .dispatch = &errand->dispatch,
                                          .store = ahead->config.store,
                                          .job = &ahead->config.job,
                                          .give_up = &ahead->is_late};
    struct store_blob *inputs = NULL;
    size_t count = 0;
    if (outcome != NULL && errand->next < errand->manifest->subtask_count &&
        ahead->config.shares_jail(ahead->config.context, errand->running, errand->next) &&
        program_take_inputs(&source, outcome, &inputs, &count)) {
        send_inputs(ahead, errand, inputs);
        program_release_inputs(ahead->config.store, inputs, count);
    }
    outcome_destroy(&outcome);
}

/* Waits for a run and for the subtask after it. Returns false when the thread is to stop. The mutex
 * is held. */
static bool take(struct copy_ahead *ahead, struct errand *ret_errand)
{
    while (!ahead->stops && (ahead->connection < 0 || !ahead->is_announced)) {
        pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    if (ahead->stops) {
        return false;
    }
    *ret_errand = (struct errand){.connection = ahead->connection,
                                  .manifest = ahead->manifest,
                                  .running = ahead->running,
                                  .next = ahead->next,
                                  .dispatch = ahead->dispatch};
    ahead->dispatch = (struct dispatch_inputs){.files = NULL};
    ahead->connection = -1;
    ahead->is_announced = false;
    ahead->is_serving = true;
    ahead->served = ret_errand->next;
    atomic_store(&ahead->is_late, false);
    return true;
}

static void *serve_all(void *argument)
{
    struct copy_ahead *ahead = argument;
    struct errand errand;
    process_name_thread("copy ahead");
    pthread_mutex_lock(&ahead->mutex);
    while (take(ahead, &errand)) {
        pthread_mutex_unlock(&ahead->mutex);
        serve(ahead, &errand);
        (void)close(errand.connection);
        dispatch_inputs_fini(&errand.dispatch);
        pthread_mutex_lock(&ahead->mutex);
        ahead->is_serving = false;
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* ---------------------------------------------------------------- the other threads */

struct copy_ahead *copy_ahead_create(const struct copy_ahead_config *config)
{
    struct copy_ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return NULL;
    }
    ahead->config = *config;
    ahead->connection = -1;
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (pthread_create(&ahead->thread, NULL, serve_all, ahead) != 0) {
        pthread_cond_destroy(&ahead->changed);
        pthread_mutex_destroy(&ahead->mutex);
        free(ahead);
        return NULL;
    }
    return ahead;
}

/* The mutex is held. */
static void drop_connection(struct copy_ahead *ahead)
{
    if (ahead->connection >= 0) {
        (void)close(ahead->connection);
        ahead->connection = -1;
    }
}

void copy_ahead_destroy(struct copy_ahead **self)
{
    struct copy_ahead *ahead = *self;
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&ahead->mutex);
    ahead->stops = true;
    atomic_store(&ahead->is_late, true);
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->mutex);
    pthread_join(ahead->thread, NULL);
    drop_connection(ahead);
    dispatch_inputs_fini(&ahead->dispatch);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
    *self = NULL;
}

void copy_ahead_announce(struct copy_ahead *ahead, uint32_t next, const Bourse__V1__Work *inputs)
{
    struct dispatch_inputs dispatch;
    if (!dispatch_inputs_copy(inputs, &dispatch)) {
        return; /* without memory, nothing is copied ahead */
    }
    pthread_mutex_lock(&ahead->mutex);
    dispatch_inputs_fini(&ahead->dispatch);
    ahead->dispatch = dispatch;
    ahead->next = next;
    ahead->is_announced = true;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->mutex);
}

bool copy_ahead_begin(struct copy_ahead *ahead, const Bourse__V1__Manifest *manifest,
                      uint32_t index, int *ret_end)
{
    int ends[2] = {-1, -1};
    const bool good = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
    pthread_mutex_lock(&ahead->mutex);
    if (ahead->is_serving && ahead->served == index) {
        atomic_store(&ahead->is_late, true);
    }
    ahead->is_announced = ahead->is_announced && ahead->next != index;
    drop_connection(ahead);
    ahead->connection = ends[0];
    ahead->manifest = manifest;
    ahead->running = index;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->mutex);
    *ret_end = ends[1];
    return good;
}

void copy_ahead_end(struct copy_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    drop_connection(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}
