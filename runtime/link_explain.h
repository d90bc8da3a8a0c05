/* runtime/link_explain.h finds out why nobody answers at an endpoint. */
#ifndef BOURSE_RUNTIME_LINK_EXPLAIN_H
#define BOURSE_RUNTIME_LINK_EXPLAIN_H

#include <stddef.h>

/* Writes why nobody answers at a libzmq endpoint. The name does not resolve, the port
 * cannot be reached, nobody listens at the socket, or this user may not use the socket. The text is
 * "" when no such reason is found. The call takes at most four seconds. */
void link_explain(const char *endpoint, char *ret_text, size_t capacity);

#endif
