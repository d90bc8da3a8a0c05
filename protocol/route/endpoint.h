/* protocol/route/endpoint.h says which texts are addresses that a broker may name to others.
 *
 * Such an address is tcp://HOST:PORT. A path (ipc://) means something on one machine only, so no
 * broker names one. */
#ifndef BOURSE_PROTOCOL_ROUTE_ENDPOINT_H
#define BOURSE_PROTOCOL_ROUTE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true for tcp://HOST:PORT of at most LIMIT_ENDPOINT_BYTES, with a port of 1 to 65535. HOST
 * is a name or an IPv4 address (letters, digits, '.', '-', '_'), or an IPv6 address in brackets.
 * No wildcard and no source address passes: ZeroMQ would give them a meaning. */
bool endpoint_is_tcp(const char *text, size_t length);

#endif
