/* formats/staging/staged_link.h decides which symbolic links may travel within a folder.
 *
 * A link that travels is relative, and its ".." come before any other part of its target. The
 * folder that holds a link is always a real folder, since no entry lies below a link. So each ".."
 * leads from a real folder to the real one above, and the other parts only lead down. Each further
 * link on the way obeys the same rule. So no chain of such links leads out of the folder, which a
 * rule about the text alone could not promise for ".." behind the name of a link. Pure. */
#ifndef BOURSE_FORMATS_STAGING_STAGED_LINK_H
#define BOURSE_FORMATS_STAGING_STAGED_LINK_H

enum { STAGED_LINK_BYTES = 1023 };

/* Returns NULL for a link `name` that stays in the folder, where `name` is a plain path below the
 * folder. Otherwise returns the reason, as in "x leads out of the folder". The target may lead to
 * nothing, to the folder itself, or to a link that leads back. */
const char *staged_link_problem(const char *name, const char *target);

#endif
