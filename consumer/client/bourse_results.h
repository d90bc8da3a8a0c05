/* consumer/client/bourse_results.h reads and fetches what subtasks left, and names subtasks.
 * Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_RESULTS_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_RESULTS_H

#include "consumer/client/bourse_connection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- results */

struct bourse_output {
    char name[1025];
    char hash[BOURSE_HEX32_SIZE];
    uint64_t size;
};
enum { BOURSE_OUTPUTS_MAX = 64 };
struct bourse_outcome {
    uint32_t index, attempt;
    /* 0 accepted, 1 failed and paid, 2 failed and not paid, 3 late, 4 refuted and not paid. */
    int status;
    const char *status_text;
    int outcome;
    const char *outcome_text; /* "ok", "program failed", "memory limit" ... */
    bool has_exit_code;
    int exit_code;
    int signal; /* 0: none */
    char detail[BOURSE_TEXT_SIZE];
    char provider[BOURSE_HEX32_SIZE];
    bool simulated;
    int64_t started_ms, busy_ns, paid_ns, charge_micro;
    uint64_t log_index;
    bool has_standard_output, has_standard_error;
    struct bourse_output standard_output, standard_error;
    size_t output_count;
    struct bourse_output outputs[BOURSE_OUTPUTS_MAX];
    uint64_t lease; /* started_ms above is in the agent's own clock */
    char device[BOURSE_ID_SIZE];
    bool has_energy;
    int64_t energy_uj;
    const char *verdict_text; /* a check's: "accept", "reject" or "unsure"; else NULL */
    bool checked;             /* a referee's check decided the result */
    uint32_t restored;        /* attempt whose checkpoint this attempt continued; 0: none */
    uint32_t saved_files;     /* files of the checkpoint that this attempt left; 0: none */
    uint64_t saved_bytes;
    /* The source of energy_uj: 1 measured, 2 estimated by the power that the owner states, 3
     * estimated by the catalogue's power; 0: the result does not say. The text is NULL then. */
    int energy_source;
    const char *energy_source_text;
    uint64_t executable; /* bit i: outputs[i] is a file that the program's user could execute */
    /* The most memory of one process of the attempt, and the greatest power that was read of the
     * whole device meanwhile; 0: the result does not say. */
    int64_t peak_memory_bytes, peak_power_mw;
    /* Bytes of inputs that the device's memory had already, and of those copied to it. Both are 0
     * for a device without such a memory. */
    uint64_t held_bytes, copied_bytes;
    /* Level of the jail in which the attempt ran, 0 to 3, as its agent signed; -1: the result does
     * not say, or says no level that there is. */
    int isolation;
};
/* Visits one result of each subtask that has any, by index: the result that counts, else the last
 * result. The visitor returns false to stop. */
typedef bool bourse_outcome_visitor(void *context, const struct bourse_outcome *outcome);
bool bourse_outcomes(struct bourse *bourse, const char *id, uint32_t from,
                     bourse_outcome_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* Writes an output to a descriptor after its hash was found right. `what` names the output in
 * errors. */
bool bourse_copy_output(struct bourse *bourse, const struct bourse_output *output, const char *what,
                        int fd, struct bourse_error *ret_error);

/* Writes the program's standard output or standard error to a descriptor. Fails with NOT_FOUND when
 * the subtask has no result; the error's text says whether one may still come. */
bool bourse_log(struct bourse *bourse, const char *id, uint32_t index, bool standard_error, int fd,
                struct bourse_error *ret_error);

struct bourse_fetched {
    uint64_t subtasks;  /* accepted ones, which have outputs */
    uint64_t simulated; /* accepted subtasks with results of simulated devices */
    uint64_t files;     /* all files that belong in the folder */
    uint64_t written;
    uint64_t present;      /* files found there with the right content */
    uint64_t bytes;        /* bytes written */
    bool declares_outputs; /* the job says which outputs its subtasks leave */
    /* Subtasks that left something out of a folder: a link, a device, a pipe or a socket. The text
     * is of the first such subtask, and comes from its provider. */
    uint64_t left_out;
    uint32_t left_out_index;
    char left_out_text[BOURSE_TEXT_SIZE];
};
/* Fetches the outputs of every accepted subtask into `folder`, and makes the folder when there are
 * any. docs/consumer.md says where each lands. The call touches nothing outside the folder, follows
 * no symbolic link and overwrites no file. Every byte is checked against the hash in the provider's
 * signed result. Another call fetches only missing files. */
typedef void bourse_fetch_progress(void *context, const struct bourse_fetched *fetched);
bool bourse_fetch(struct bourse *bourse, const char *id, const char *folder,
                  bourse_fetch_progress *progress, void *context,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);

/* Fetches like bourse_fetch, but only the `count` subtasks of `indices`, which rise. */
bool bourse_fetch_some(struct bourse *bourse, const char *id, const uint32_t *indices, size_t count,
                       const char *folder, bourse_fetch_progress *progress, void *context,
                       struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- tasks */

/* A job's manifest gives the names of its subtasks and their dependencies. */
struct bourse_tasks;
bool bourse_tasks(struct bourse *bourse, const char *id, struct bourse_tasks **ret_tasks,
                  struct bourse_error *ret_error);
void bourse_tasks_destroy(struct bourse_tasks **self);
uint32_t bourse_tasks_count(const struct bourse_tasks *tasks); /* all subtasks, named or not */
/* Returns the name as sent, or NULL when the subtask has none. `tasks` owns the text. */
const char *bourse_task_name(const struct bourse_tasks *tasks, uint32_t index);
/* Returns the number by which people know a subtask: the number that the user wrote in `array:`,
 * else the index. */
uint64_t bourse_task_number(const struct bourse_tasks *tasks, uint32_t index);
/* Returns true when the numbers of subtasks may differ from their indices. */
bool bourse_tasks_are_numbered(const struct bourse_tasks *tasks);
/* Finds a subtask by its name, or in an array by its number. Returns false when none has it. */
bool bourse_task_find(const struct bourse_tasks *tasks, const char *name, uint32_t *ret_index);
/* Return the number of tasks that a subtask waits for, and the index of one of them. A pair of
 * tasks may be there more than once. */
size_t bourse_task_waits(const struct bourse_tasks *tasks, uint32_t index);
uint32_t bourse_task_wait(const struct bourse_tasks *tasks, uint32_t index, size_t position);
/* Returns the number of checks N, which are the last subtasks. With M other subtasks, number M + k
 * checks number k. */
uint32_t bourse_tasks_checks(const struct bourse_tasks *tasks);
/* Returns true and the id of the job whose remaining work this one runs, or false. */
bool bourse_tasks_continues(const struct bourse_tasks *tasks, char ret_id[BOURSE_ID_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
