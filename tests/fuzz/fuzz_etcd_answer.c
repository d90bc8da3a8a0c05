/* Etcd sends an answer to each method, a message in its frame, and lines of headers. The first byte
 * says which of them is read. A good answer to a transaction goes through the rules of the journal,
 * too. */
#include "broker/storage/etcd/etcd_log.h"
#include "broker/storage/etcd/etcd_member.h"
#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/etcd/etcd_values.h"
#include "broker/storage/etcd/etcd_version.h"
#include "broker/storage/etcd/grpc.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct etcd_answer *answer)
{
    static const struct id128 market = {{1}};
    const struct journal_base none = {.index = 0};
    const struct journal_entry nothing = {.index = 0};
    struct journal_entry entry;
    struct etcd_log *log = etcd_log_create(&market);
    assert(log != NULL);
    etcd_log_open(log, &none, &nothing);
    (void)etcd_log_take(log, GRPC_ANSWERED, answer);
    etcd_log_read(log, 1);
    (void)etcd_log_take(log, GRPC_ANSWERED, answer);
    for (uint64_t index = 1; etcd_log_entry(log, index, &entry); index++) {
        assert(entry.index == index);
    }
    etcd_log_look(log);
    (void)etcd_log_take(log, GRPC_ANSWERED, answer);
    etcd_log_destroy(&log);
}

static void read_values(const uint8_t *data, size_t size)
{
    const struct etcd_bytes bytes = {.bytes = data, .length = size};
    struct etcd_leader value;
    struct journal_leader leader;
    struct journal_base base;
    uint8_t again[ETCD_BASE_BYTES];
    if (etcd_leader_read(bytes, &value, &leader)) {
        assert(etcd_bytes_equal(bytes, etcd_leader_bytes(&value)));
    }
    struct id128 successor;
    uint8_t ended[ETCD_ENDED_BYTES];
    if (etcd_ended_read(bytes, &successor)) {
        etcd_ended_write(&successor, ended);
        assert(size == sizeof ended && memcmp(ended, data, size) == 0);
    }
    struct etcd_member member;
    uint8_t record[ETCD_MEMBER_BYTES_MAX];
    if (etcd_member_read(bytes, &member)) {
        assert(size == etcd_member_write(&member, record) && memcmp(record, data, size) == 0);
    }
    if (etcd_base_read(bytes, &base)) {
        etcd_base_write(&base, again);
        assert(size == sizeof again && memcmp(again, data, size) == 0);
    }
}

static void read_status(const uint8_t *data, size_t size)
{
    struct grpc_status status = {.is_known = false};
    const char *advice;
    grpc_status_note(&status, (const char *)data, size);
    assert(memchr(status.text, 0, sizeof status.text) != NULL);
    (void)grpc_status_outcome(&status);
    (void)etcd_version_judge(status.text, &advice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etcd_answer answer;
    const uint8_t *message;
    size_t length;
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 16) {
    case ETCD_TXN:
    case ETCD_COMPACT:
    case ETCD_STATUS:
    case ETCD_ALARMS:
        if (etcd_answer_read((enum etcd_method)(data[0] % 16), data + 1, size - 1, &answer)) {
            judge(&answer);
        }
        break;
    case 8:
        (void)etcd_answer_read(ETCD_LEASE_GRANT, data + 1, size - 1, &answer);
        break;
    case 9:
        if (etcd_answer_read(ETCD_MEMBER_LIST, data + 1, size - 1, &answer)) {
            assert(answer.pair_count <= ETCD_PAIRS_MAX);
        }
        break;
    case 4:
        if (grpc_message_find(data + 1, size - 1, &message, &length)) {
            assert(length == size - 1 - GRPC_PREFIX_BYTES);
        }
        break;
    case 5:
        read_values(data + 1, size - 1);
        break;
    default:
        read_status(data + 1, size - 1);
        break;
    }
    return 0;
}
