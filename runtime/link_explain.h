/* runtime/link_explain.h finds out why nobody answers at an endpoint. */
#ifndef BOURSE_RUNTIME_LINK_EXPLAIN_H
#define BOURSE_RUNTIME_LINK_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes why nobody answers at a libzmq endpoint. The name does not resolve, the port
 * cannot be reached, nobody listens at the socket, or this user may not use the socket. The text is
 * "" when no such reason is found. The call takes at most four seconds. */
void link_explain(const char *endpoint, char *ret_text, size_t capacity);

/* An absence tells the log why nobody answers. To find the reason takes up to four seconds, so a
 * thread does it, and the caller's loop goes on meanwhile. */
enum {
    LINK_ABSENCE_TOLD_MS = 2000,    /* the first word comes after so long without a session, */
    LINK_ABSENCE_AGAIN_MS = 300000, /* and further ones come after so long each */
};

struct link_absence;
/* Returns NULL when memory is short. */
struct link_absence *link_absence_create(void);
/* Waits for a thread that still looks for a reason. */
void link_absence_destroy(struct link_absence **self);
/* Is called in each turn of a loop. `endpoint` is the address that is tried. */
void link_absence_look(struct link_absence *absence, bool is_connected, const char *endpoint,
                       int64_t now_ns);

#endif
