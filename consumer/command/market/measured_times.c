/* This file runs history, which shows the measured times of a job's work on this market. */
#include "consumer/command/command.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACE_SIZE = BOURSE_NAME_SIZE + BOURSE_ID_SIZE };

struct rows {
    json_t *list, *pace_list; /* NULL: rows go to tables */
    struct grid table, paces;
    bool quiet;
    size_t count, pace_count;
};

/* Writes the class, and the first digits of the id of a single device. */
static const char *devices_text(const struct bourse_measured *measured, char ret_text[PLACE_SIZE])
{
    const char *of_class = measured->device_class[0] != '\0' ? measured->device_class : "-";
    (void)snprintf(ret_text, PLACE_SIZE, measured->device[0] != '\0' ? "%s %.8s" : "%s", of_class,
                   measured->device);
    return cell_plain(ret_text);
}

static bool add_pace(struct rows *rows, const struct bourse_measured *measured)
{
    const double pace = measured->pace / 1000.0;
    char devices[PLACE_SIZE];
    char times[32];
    rows->pace_count++;
    if (rows->pace_list != NULL) {
        (void)json_array_append_new(rows->pace_list,
                                    json_pack("{s:s, s:s, s:s, s:f}", "device_class",
                                              measured->device_class, "provider", measured->account,
                                              "device", measured->device, "pace", pace));
    } else {
        (void)snprintf(times, sizeof times, "%.2f", pace);
        const char *cells[] = {devices_text(measured, devices), times};
        grid_add(&rows->paces, cells);
    }
    return true;
}

static bool add_row(void *context, const struct bourse_measured *measured)
{
    struct rows *rows = context;
    char devices[PLACE_SIZE];
    if (measured->pace > 0) {
        return add_pace(rows, measured);
    }
    rows->count++;
    if (rows->list != NULL) {
        json_t *row = json_pack(
            "{s:I, s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:I}", "index",
            (json_int_t)measured->index, "task", measured->task, "bytes",
            (json_int_t)measured->bytes, "device_class", measured->device_class, "provider",
            measured->account, "device", measured->device, "samples", (json_int_t)measured->samples,
            "outliers", (json_int_t)measured->outliers, "median_ns",
            (json_int_t)measured->median_ns, "p90_ns",
            measured->p90_ns < 0 ? json_null() : json_integer((json_int_t)measured->p90_ns),
            "at_ms", (json_int_t)measured->at_ms);
        (void)json_array_append_new(rows->list, row);
    } else if (rows->quiet) {
        (void)printf("%lld\n", (long long)measured->median_ns);
    } else {
        const char *cells[] = {measured->task[0] != '\0' ? cell_plain(measured->task)
                                                         : cell_count(measured->index),
                               cell_bytes(measured->bytes),
                               devices_text(measured, devices),
                               cell_count(measured->samples),
                               cell_count(measured->outliers),
                               cell_duration_ns(measured->median_ns),
                               measured->p90_ns < 0 ? "-" : cell_duration_ns(measured->p90_ns)};
        grid_add(&rows->table, cells);
    }
    return true;
}

/* Returns false after a message. */
static bool read_rows(struct invocation *invocation, struct rows *rows, int *ret_status)
{
    const char *word = invocation->words[0];
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    bool is_file = access(word, F_OK) == 0;
    if (!is_file && !command_resolve_job(invocation, word, id, ret_status)) {
        return false;
    }
    bool is_good = is_file ? bourse_job_load(word, &job, &error) &&
                                 bourse_history_of(invocation->bourse, job, add_row, rows, &error)
                           : bourse_history(invocation->bourse, id, add_row, rows, &error);
    if (!is_good) {
        *ret_status = complain_with(invocation, &error);
    }
    return is_good;
}

static void show(struct rows *rows, bool color)
{
    grid_print(&rows->table, stdout, color);
    if (rows->pace_count > 0) {
        (void)puts(
            "\nRows of a class say what its fastest device takes. These take longer, at all work "
            "that was measured on them and on others:");
        grid_print(&rows->paces, stdout, color);
    }
}

int command_history(struct invocation *invocation)
{
    static const char *const titles[] = {"WORK",     "INPUTS", "DEVICES", "MEASURED",
                                         "OUTLIERS", "MEDIAN", "P90"};
    static const char *const pace_titles[] = {"DEVICE", "TIMES AS LONG"};
    int status = 0;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct rows rows = {.list = invocation->json ? json_array() : NULL,
                        .pace_list = invocation->json ? json_array() : NULL,
                        .table = grid_of(7, titles, "lrlrrrr"),
                        .paces = grid_of(2, pace_titles, "lr"),
                        .quiet = invocation->quiet};
    if (!read_rows(invocation, &rows, &status)) {
        json_decref(rows.list);
        json_decref(rows.pace_list);
    } else if (invocation->json) {
        status = json_print(json_pack("{s:o, s:o}", "rows", rows.list, "paces", rows.pace_list),
                            BOURSE_OK);
    } else if (rows.count == 0 && !rows.quiet) {
        (void)fputs("bourse: nothing of its work was measured on this market yet\n", stderr);
    } else if (!rows.quiet) {
        show(&rows, invocation->color);
    }
    grid_fini(&rows.table);
    grid_fini(&rows.paces);
    return status;
}
