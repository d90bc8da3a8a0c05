/* consumer/client/bourse_connection.h opens a connection to the market, and tells why a call
 * failed. Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_CONNECTION_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- errors */

/* The status says how a call ended. bourse_exit_status() turns a status into a command's exit
 * status. */
enum bourse_status {
    BOURSE_OK = 0,
    BOURSE_JOB_FAILED = 1,
    BOURSE_USAGE = 2,
    BOURSE_NOT_FOUND = 3,
    BOURSE_REFUSED = 4,     /* rights, quota or funds */
    BOURSE_NO_MATCH = 5,    /* nothing on the market fits, or the job expired */
    BOURSE_UNREACHABLE = 6, /* no broker, or an unexpected one */
    BOURSE_UNVERIFIED = 7,  /* a hash, a signature or a proof is wrong */
    BOURSE_TIMED_OUT = 8,
    BOURSE_CANCELLED = 9,
    BOURSE_LOCAL = 10, /* a fault of this machine: a file, memory */
    BOURSE_INTERRUPTED = 130,
};

struct bourse_error {
    enum bourse_status status;
    int reject;           /* number of the broker's refusal (docs/errors.md), or 0 */
    char name[40];        /* stable name of the refusal, else of `status` */
    char text[640];       /* one printable line: the fault, the limit, the next step */
    char field[64];       /* field that the broker refused, or "" */
    int64_t value, limit; /* the field's value and its limit; both 0 without one */
};

const char *bourse_status_name(enum bourse_status status);
int bourse_exit_status(enum bourse_status status);
const char *bourse_version(void);
/* Copies `text` for a terminal: every control character and bidirectional mark becomes '?'. */
void bourse_printable(const char *text, char *ret_text, size_t capacity);

/* ---------------------------------------------------------------- connection */

enum {
    BOURSE_ID_SIZE = 33,
    BOURSE_HEX32_SIZE = 65,
    BOURSE_NAME_SIZE = 129,
    BOURSE_TEXT_SIZE = 513
};

struct bourse;

/* Is called once in a call that has waited for BOURSE_SILENCE_MS, from that call's thread. The
 * call goes on waiting for `left_ms`, and connects again by itself. `endpoint` is the broker's
 * address. */
typedef void bourse_silence(void *context, const char *endpoint, int left_ms);
enum { BOURSE_SILENCE_MS = 3000 };

/* Is called when a broker of a market with several cannot be used, from the thread of the call.
 * `endpoint` is its address, and `what` says what came back, as in "no answer". The call goes on
 * for `left_ms` with the next broker. A call tells at most BOURSE_MOVES_TOLD times. It tells a
 * broker that only names the leader when the call has waited for BOURSE_MOVE_QUIET_MS. */
typedef void bourse_moved(void *context, const char *endpoint, const char *what, int left_ms);
enum { BOURSE_MOVES_TOLD = 8, BOURSE_MOVE_QUIET_MS = 1000 };

/* Is called once in a call whose request waits, because the broker's journal has no quorum. `what`
 * is the broker's sentence about that. The call goes on for `left_ms`, and sends the request
 * again. */
typedef void bourse_stalled(void *context, const char *endpoint, const char *what, int left_ms);

struct bourse_options {
    const char *market;  /* path of a market.yaml */
    const char *key;     /* path of the account's key file */
    const char *program; /* "bourse 0.1.0", for the broker's log; NULL: the library's name */
    int timeout_ms;      /* for each call; 0: 30 s */
    int64_t most_ms;     /* calls end this long after the opening, with TIMED_OUT; 0: no such end */
    bourse_silence *on_silence; /* NULL: nobody is told */
    void *silence_context;
    bourse_moved *on_moved;     /* NULL: nobody is told; the context is silence_context */
    bourse_stalled *on_stalled; /* likewise */
    /* A broker that follows the one that leads may answer what only reads. Its state may be older
     * than the leader's: bourse_state() says of which state an answer is. What changes something
     * goes to the leader all the same. */
    bool read_from_any;
    /* The answers have this command at least, as of another connection's bourse_state(). The field
     * counts with `read_from_any` alone. 0: any state will do. */
    uint64_t least_index;
};

/* Opens a connection, which the caller closes with bourse_close. */
bool bourse_open(const struct bourse_options *options, struct bourse **ret_bourse,
                 struct bourse_error *ret_error);
void bourse_close(struct bourse **self);
/* Returns the address of the broker's control port, which lives as long as the connection. */
const char *bourse_endpoint(const struct bourse *bourse);
/* Asks the running call to end with INTERRUPTED. A signal handler may call this function. */
void bourse_interrupt(struct bourse *bourse);

/* The state of the market that answers were made from. */
struct bourse_state {
    bool follows;        /* a broker that follows another one gave an answer */
    uint64_t index;      /* its state had this command of the journal at least ... */
    int64_t log_time_ms; /* ... of this log time */
    /* The state may have been so old: the broker heard nothing newer for so long. 0: it did. */
    int64_t stale_ms;
    /* The newest command that the connection was told of, for `least_index` of another one. */
    uint64_t newest;
};
/* Fills the oldest state that an answer was made from since the last call of this function. When
 * nothing was asked since, the state is that of the connection. */
void bourse_state(struct bourse *bourse, struct bourse_state *ret_state);

enum { BOURSE_ROLE_PROVIDER = 2 };
struct bourse_account {
    char key[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    /* 1 consumer, 2 provider, 4 auditor, 8 replica, 16 risk, 32 operator; 0: unknown here. */
    unsigned roles;
    char cluster[BOURSE_ID_SIZE];
    char origin[BOURSE_NAME_SIZE];
    char verifier[256]; /* the log's public key in C2SP form, for bourse_verify */
    int64_t log_time_ms;
    int64_t behind_ms; /* log time was so much behind the broker's own clock at the connection */
    /* The broker showed the state of so long ago at the connection, because its journal took no
     * entry. 0: it showed the present state. */
    int64_t stale_ms;
    bool follows;   /* the broker of the connection follows another one, and answers reads alone */
    bool was_known; /* bourse_join found the account */
    int redeemed;   /* 1: by this key, now or before; 0: not by it; -1: unknown */
};
bool bourse_whoami(struct bourse *bourse, struct bourse_account *ret_account,
                   struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
