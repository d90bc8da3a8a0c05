#include "broker/storage/etcd/grpc_member.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CONNECT_MS = 500,
    /* A peer that acknowledges nothing for so long is gone. HTTP/2's own pings would make etcd
     * close a connection that pings often. */
    UNACKNOWLEDGED_MS = 2000,
    ERROR_SIZE = GRPC_TEXT_SIZE + CURL_ERROR_SIZE + 64
};

struct grpc_member {
    const struct etcd_config *config; /* borrowed */
    size_t number;
    CURL *curl;
    struct curl_slist *headers;
    uint8_t *request; /* prefix and message */
    size_t request_capacity, request_length;
    uint8_t *answer;
    size_t answer_capacity, answer_length;
    struct grpc_status status;
    char curl_error[CURL_ERROR_SIZE];
    char error[ERROR_SIZE];
};

static bool has_started;

static void begin(void)
{
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
    has_started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
                  (version->features & CURL_VERSION_HTTP2) != 0 &&
                  (version->features & CURL_VERSION_SSL) != 0;
}

bool grpc_member_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, begin);
    return has_started;
}

/* ---- what libcurl calls */

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct grpc_member *member = context;
    const size_t length = size * count;
    if (length > GRPC_ANSWER_BYTES_MAX - member->answer_length) {
        return 0; /* ends the call */
    }
    if (member->answer_length + length > member->answer_capacity) {
        const size_t capacity = 2 * (member->answer_length + length);
        uint8_t *answer = realloc(member->answer, capacity);
        if (answer == NULL) {
            return 0;
        }
        member->answer = answer;
        member->answer_capacity = capacity;
    }
    memcpy(member->answer + member->answer_length, bytes, length);
    member->answer_length += length;
    return length;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct grpc_member *member = context;
    grpc_status_note(&member->status, bytes, size * count);
    return size * count;
}

static int set_socket(void *context, curl_socket_t socket, curlsocktype purpose)
{
    const unsigned patience = UNACKNOWLEDGED_MS;
    const int on = 1;
    (void)context;
    (void)purpose;
    /* A failure of these options only means that a dead peer is noticed later. */
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return CURL_SOCKOPT_OK;
}

/* ---- the member */

static bool set_headers(struct grpc_member *member)
{
    /* An `Expect` would cost a round trip. */
    static const char *const headers[] = {"Content-Type: application/grpc", "TE: trailers",
                                          "User-Agent: bourse-broker", "Expect:"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        struct curl_slist *list = curl_slist_append(member->headers, headers[i]);
        if (list == NULL) {
            return false;
        }
        member->headers = list;
    }
    return curl_easy_setopt(member->curl, CURLOPT_HTTPHEADER, member->headers) == CURLE_OK;
}

static bool set_texts(struct grpc_member *member)
{
    const struct {
        CURLoption option;
        const char *text;
    } texts[] = {
        {CURLOPT_CAINFO, member->config->ca},
        {CURLOPT_SSLCERT, member->config->certificate},
        {CURLOPT_SSLKEY, member->config->key},
        {CURLOPT_PROTOCOLS_STR, "https"},
        {CURLOPT_NOPROXY, "*"}, /* a proxy of the environment is for web pages */
    };
    bool good = true;
    for (size_t i = 0; good && i < sizeof texts / sizeof texts[0]; i++) {
        good = curl_easy_setopt(member->curl, texts[i].option, texts[i].text) == CURLE_OK;
    }
    return good;
}

static bool set_numbers(struct grpc_member *member)
{
    const struct {
        CURLoption option;
        long number;
    } numbers[] = {
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
        {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS},
        {CURLOPT_POST, 1},
        {CURLOPT_NOPROGRESS, 1},
    };
    bool good = true;
    for (size_t i = 0; good && i < sizeof numbers / sizeof numbers[0]; i++) {
        good = curl_easy_setopt(member->curl, numbers[i].option, numbers[i].number) == CURLE_OK;
    }
    return good;
}

static bool set_callbacks(struct grpc_member *member)
{
    return curl_easy_setopt(member->curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_WRITEDATA, (void *)member) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_HEADERDATA, (void *)member) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_SOCKOPTFUNCTION, set_socket) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_ERRORBUFFER, member->curl_error) == CURLE_OK;
}

struct grpc_member *grpc_member_create(const struct etcd_config *config, size_t number)
{
    struct grpc_member *member = grpc_member_begin() ? calloc(1, sizeof *member) : NULL;
    if (member == NULL) {
        return NULL;
    }
    member->config = config;
    member->number = number;
    member->curl = curl_easy_init();
    if (member->curl == NULL || !set_headers(member) || !set_texts(member) ||
        !set_numbers(member) || !set_callbacks(member)) {
        grpc_member_destroy(&member);
    }
    return member;
}

void grpc_member_destroy(struct grpc_member **self)
{
    struct grpc_member *member = *self;
    if (member != NULL) {
        curl_easy_cleanup(member->curl);
        curl_slist_free_all(member->headers);
        free(member->request);
        free(member->answer);
        free(member);
        *self = NULL;
    }
}

const char *grpc_member_url(const struct grpc_member *member)
{
    return member->config->members[member->number];
}

const char *grpc_member_error(const struct grpc_member *member)
{
    return member->error;
}

/* ---- a call */

static bool frame(struct grpc_member *member, const uint8_t *message, size_t length)
{
    const size_t needed = GRPC_PREFIX_BYTES + length;
    if (needed > member->request_capacity) {
        uint8_t *request = realloc(member->request, needed);
        if (request == NULL) {
            return false;
        }
        member->request = request;
        member->request_capacity = needed;
    }
    grpc_prefix_write(length, member->request);
    if (length > 0) {
        memcpy(member->request + GRPC_PREFIX_BYTES, message, length);
    }
    member->request_length = needed;
    return true;
}

static bool aim(struct grpc_member *member, const char *path, long timeout_ms)
{
    char url[ETCD_URL_SIZE + 64];
    const int length = snprintf(url, sizeof url, "%s%s", grpc_member_url(member), path);
    return length > 0 && (size_t)length < sizeof url &&
           curl_easy_setopt(member->curl, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_POSTFIELDS, (void *)member->request) ==
               CURLE_OK &&
           curl_easy_setopt(member->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                            (curl_off_t)member->request_length) == CURLE_OK;
}

/* Returns true when the call was still making its connection. A connection that was kept has no
 * such time. */
static bool was_connecting(struct grpc_member *member)
{
    long connections = 0;
    curl_off_t secured_us = 0;
    return curl_easy_getinfo(member->curl, CURLINFO_NUM_CONNECTS, &connections) == CURLE_OK &&
           curl_easy_getinfo(member->curl, CURLINFO_APPCONNECT_TIME_T, &secured_us) == CURLE_OK &&
           connections > 0 && secured_us == 0;
}

/* Returns true when not a byte of the request can have reached the member. */
static bool is_unsent(struct grpc_member *member, CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return true;
    case CURLE_OPERATION_TIMEDOUT:
        return was_connecting(member);
    default:
        return false;
    }
}

/* Returns true when a new connection broke before an answer. */
static bool was_hung_up(struct grpc_member *member, CURLcode code)
{
    long connections = 0;
    return (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
            code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM) &&
           curl_easy_getinfo(member->curl, CURLINFO_NUM_CONNECTS, &connections) == CURLE_OK &&
           connections > 0;
}

/* A member refuses a certificate after the handshake of TLS 1.3, and its reason is often lost with
 * the connection. The handshake of TLS 1.2 ends with the reason. */
static void ask_why(struct grpc_member *member)
{
    CURL *curl = curl_easy_init();
    char why[CURL_ERROR_SIZE] = "";
    if (curl == NULL) {
        return;
    }
    if (curl_easy_setopt(curl, CURLOPT_URL, grpc_member_url(member)) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_CAINFO, member->config->ca) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_SSLCERT, member->config->certificate) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_SSLKEY, member->config->key) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_SSLVERSION,
                         (long)CURL_SSLVERSION_TLSv1_2 | (long)CURL_SSLVERSION_MAX_TLSv1_2) ==
            CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why) == CURLE_OK &&
        curl_easy_perform(curl) == CURLE_SSL_CONNECT_ERROR && why[0] != '\0') {
        (void)snprintf(member->error, sizeof member->error, "%s", why);
    }
    curl_easy_cleanup(curl);
}

static enum grpc_outcome failed(struct grpc_member *member, CURLcode code)
{
    const enum grpc_outcome outcome = is_unsent(member, code) ? GRPC_UNSENT : GRPC_LOST;
    (void)snprintf(member->error, sizeof member->error, "%s",
                   member->curl_error[0] != '\0' ? member->curl_error : curl_easy_strerror(code));
    if (was_hung_up(member, code)) {
        ask_why(member);
    }
    return outcome;
}

/* A proxy or a web server in the member's place answers in HTTP, without a status of gRPC. */
static enum grpc_outcome finished(struct grpc_member *member, struct grpc_reply *reply)
{
    long http = 0;
    (void)curl_easy_getinfo(member->curl, CURLINFO_RESPONSE_CODE, &http); /* 0 when it fails */
    const enum grpc_outcome outcome = grpc_status_outcome(&member->status);
    if (outcome == GRPC_ANSWERED) {
        if (grpc_message_find(member->answer, member->answer_length, &reply->message,
                              &reply->length)) {
            member->error[0] = '\0';
            return GRPC_ANSWERED;
        }
        (void)snprintf(member->error, sizeof member->error, "the answer is not one message");
        return GRPC_LOST;
    }
    if (!member->status.is_known) {
        (void)snprintf(member->error, sizeof member->error,
                       "HTTP status %ld without a status of gRPC: this is no etcd", http);
    } else {
        (void)snprintf(member->error, sizeof member->error, "%s (gRPC status %u)",
                       member->status.text, member->status.code);
    }
    return outcome;
}

struct grpc_reply grpc_member_call(struct grpc_member *member, const char *path,
                                   const uint8_t *message, size_t length, long timeout_ms)
{
    struct grpc_reply reply = {.outcome = GRPC_UNSENT};
    member->answer_length = 0;
    member->status = (struct grpc_status){.is_known = false};
    member->curl_error[0] = '\0';
    if (!frame(member, message, length) || !aim(member, path, timeout_ms)) {
        (void)snprintf(member->error, sizeof member->error, "out of memory");
        return reply;
    }
    const CURLcode code = curl_easy_perform(member->curl);
    reply.outcome = code == CURLE_OK ? finished(member, &reply) : failed(member, code);
    return reply;
}
