/* broker/answer/measuring.h - keeps broker/answer/measured.h up to date with the ledger, and across
 * restarts.
 *
 * It is a walk over the accepted results of the ledger, in their order, and where it stands is
 * stored with what it found (history.db, beside the ledger): so nothing is counted twice, a crash
 * loses nothing, and neither the exchange nor its log knows of it. What a result did is in its
 * job's manifest, which is read from the blobs. Left out are checks, and what went on from a
 * checkpoint: they did not do the whole work. A time is what the provider claims, as far as it was
 * paid.
 *
 * MEASURING_PAGE results are looked at each time, and of a market that has more than
 * MEASURING_BEHIND entries more the oldest are passed over: a median needs no more. A file that
 * cannot be read is begun anew, from the ledger. One thread. */
#ifndef BOURSE_BROKER_ANSWER_MEASURING_H
#define BOURSE_BROKER_ANSWER_MEASURING_H

#include "broker/answer/measured.h"
#include "broker/answer/paces.h"
#include "ledger/store/sqlite.h"

enum {
    MEASURING_PAGE = 1024,
    MEASURING_BEHIND = 1 << 16,
    MEASURING_JOBS = 8,                  /* manifests at hand */
    MEASURING_MANIFEST_BYTES = 16 << 20, /* of a larger one nothing is measured */
    MEASURING_SAVE_S = 60,
};

struct measuring;

/* `path`: history.db; `blobs`: the folder of blob_store.h. NULL without memory. */
struct measuring *measuring_open(const char *path, const char *blobs);
/* Writes what is new. */
void measuring_close(struct measuring **self);

/* Looks at the next page. True: there may be more. */
bool measuring_look(struct measuring *measuring, struct ledger_reader *ledger);
/* Writes what is new, if that is as old as MEASURING_SAVE_S. */
void measuring_save_if_due(struct measuring *measuring, int64_t now_ns);

const struct measured *measuring_rows(const struct measuring *measuring);    /* by class */
const struct measured *measuring_devices(const struct measuring *measuring); /* by device */
/* By all that was measured, or all but a sixteenth and at most some 1000 samples. NULL without
 * memory. It lives until the next that is looked at. */
const struct paces *measuring_paces(struct measuring *measuring);

#endif
