/* provider/pjrt/pjrt_client.h opens a PJRT library's client and one of its devices. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_CLIENT_H
#define BOURSE_PROVIDER_PJRT_PJRT_CLIENT_H

#include "provider/pjrt/pjrt_api.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PJRT_CREATE_MAX = 16, /* options of a client */
    PJRT_NAME_SIZE = 64,
};

/* The owner's words on the command line; they outlive the client. */
struct pjrt_options {
    const char *library; /* a path; NULL: the library is in the program itself */
    size_t device;       /* place in the client's list of devices that it can use */
    const char *kind;    /* the market's kind of the device; NULL: by the library's platform */
    const char *create[PJRT_CREATE_MAX]; /* NAME=VALUE, handed to the library at its start */
    size_t create_count;
};

struct pjrt_client {
    const struct pjrt_api *api;
    void *library;
    struct PJRT_Client *client;
    struct PJRT_Device *device;
    int device_id;
    size_t device_count;
    char platform[PJRT_NAME_SIZE]; /* as the library names it: "tpu", "cuda", ...; printable */
    char kind[PJRT_NAME_SIZE];     /* the device's model, such as "TPU v5 lite"; printable */
};

/* Returns true when the text is NAME=VALUE. */
bool pjrt_client_is_option(const char *text);

/* Loads the library, starts its client and finds the device. Returns false with the failure; then
 * nothing is open. */
bool pjrt_client_open(const struct pjrt_options *options, struct pjrt_client *ret_client,
                      struct pjrt_failure *ret_failure);
/* Turns the client to another of its devices. Returns false with the failure. */
bool pjrt_client_choose(struct pjrt_client *client, size_t place, struct pjrt_failure *ret_failure);
/* Ends the client. The library stays loaded, because such libraries seldom bear to be unloaded. */
void pjrt_client_close(struct pjrt_client *client);

/* The bytes of the device's memory that programs may take, and those in use. -1: not told. */
struct pjrt_memory {
    int64_t limit_bytes, used_bytes;
};
struct pjrt_memory pjrt_client_memory(const struct pjrt_client *client);

#endif
