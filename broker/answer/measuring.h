/* broker/answer/measuring.h fills broker/answer/measured.h from the ledger, also across restarts.
 *
 * The walk visits the accepted results of the ledger in their order. Its position is stored with
 * the times (history.db, beside the ledger). So no result counts twice, a crash loses nothing, and
 * the exchange and its log know nothing of it. A job's manifest, read from the blobs, says what a
 * result did. Checks and attempts that went on from a checkpoint are left out: they did not do the
 * whole work. A time is the provider's claim, as far as it was paid.
 *
 * Each step reads MEASURING_PAGE results. If the market has more than MEASURING_BEHIND further
 * entries, the oldest are skipped: a median needs no more. A damaged file is made anew from the
 * ledger. A file that the machine did not open or read stays, if need be under another name. One
 * thread uses the measurements. */
#ifndef BOURSE_BROKER_ANSWER_MEASURING_H
#define BOURSE_BROKER_ANSWER_MEASURING_H

#include "broker/answer/measured.h"
#include "broker/answer/paces.h"
#include "ledger/store/sqlite.h"

enum {
    MEASURING_PAGE = 1024,
    MEASURING_BEHIND = 1 << 16,
    MEASURING_JOBS = 8,                  /* manifests kept in memory */
    MEASURING_MANIFEST_BYTES = 16 << 20, /* a larger manifest is not measured */
    MEASURING_SAVE_S = 60,
};

struct measuring;

/* Opens the measurements. `path` names history.db, and `blobs` the folder of the blob store.
 * Returns NULL when memory is short. */
struct measuring *measuring_open(const char *path, const char *blobs);
/* Writes new times and frees everything. */
void measuring_close(struct measuring **self);

/* Reads the next page. Returns true when there may be more. */
bool measuring_look(struct measuring *measuring, struct ledger_reader *ledger);
/* Returns true when the last write is MEASURING_SAVE_S ago. */
bool measuring_is_due(const struct measuring *measuring, int64_t now_ns);
/* Writes new times when they are due. The ledger on the disk has what was measured. */
void measuring_save_if_due(struct measuring *measuring, int64_t now_ns);

/* Returns the rows by class. */
const struct measured *measuring_rows(const struct measuring *measuring);
/* Returns the rows by device. */
const struct measured *measuring_devices(const struct measuring *measuring);
/* Returns the paces, or NULL when memory is short. They may leave out the newest samples, a
 * sixteenth of all samples and about 1000 at most. The paces live until the next call of
 * measuring_look. */
const struct paces *measuring_paces(struct measuring *measuring);

#endif
