#include "broker/copies/copy_peers.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_present(const struct copy_peer *peer, int64_t now_ns)
{
    return now_ns - peer->heard_ns < COPY_SILENT_MS * NS_PER_MS;
}

static bool has(const struct copy_peer *peer, uint64_t version)
{
    return version <= peer->position || (version > peer->from && version <= peer->to);
}

/* Returns the place of the name, else a free one, else that of the follower silent longest. */
static size_t place_of(struct copy_peers *peers, const char *name, bool *ret_is_known)
{
    size_t longest = 0;
    for (size_t i = 0; i < peers->count; i++) {
        if (strcmp(peers->list[i].name, name) == 0) {
            *ret_is_known = true;
            return i;
        }
        longest = peers->list[i].heard_ns < peers->list[longest].heard_ns ? i : longest;
    }
    *ret_is_known = false;
    return peers->count < COPY_PEERS_MAX ? peers->count++ : longest;
}

size_t copy_peers_hear(struct copy_peers *peers, const char *name, uint64_t position, uint64_t from,
                       uint64_t to, int64_t now_ns, bool *ret_is_new)
{
    bool is_known;
    const size_t place = place_of(peers, name, &is_known);
    struct copy_peer *peer = &peers->list[place];
    if (!is_known) {
        *peer = (struct copy_peer){.position = 0};
        (void)snprintf(peer->name, sizeof peer->name, "%s", name);
    }
    *ret_is_new = !is_known || !is_present(peer, now_ns);
    if (*ret_is_new) { /* it may have found since then what it lacked */
        peer->lacks_count = peer->lacks_next = 0;
    }
    peer->position = position;
    peer->from = from;
    peer->to = to;
    peer->heard_ns = now_ns;
    return place;
}

void copy_peers_lack(struct copy_peers *peers, size_t place, const struct hash32 *hash)
{
    struct copy_peer *peer = &peers->list[place];
    peer->lacks[peer->lacks_next] = *hash;
    peer->lacks_next = (peer->lacks_next + 1) % COPY_PEER_LACKS_MAX;
    peer->lacks_count += peer->lacks_count < COPY_PEER_LACKS_MAX;
}

bool copy_peers_have(const struct copy_peers *peers, uint64_t version, unsigned needed)
{
    unsigned count = 0;
    for (size_t i = 0; i < peers->count; i++) {
        count += has(&peers->list[i], version);
    }
    return count >= needed;
}

bool copy_peers_may_have(const struct copy_peers *peers, const struct hash32 *hash, int64_t now_ns)
{
    for (size_t i = 0; i < peers->count; i++) {
        const struct copy_peer *peer = &peers->list[i];
        bool lacks = !is_present(peer, now_ns);
        for (size_t j = 0; j < peer->lacks_count && !lacks; j++) {
            lacks = hash32_equal(&peer->lacks[j], hash);
        }
        if (!lacks) {
            return true;
        }
    }
    return false;
}

void copy_peers_text(const struct copy_peers *peers, uint64_t version, int64_t now_ns,
                     char *ret_text, size_t capacity)
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < peers->count && length + 1 < capacity; i++) {
        const struct copy_peer *peer = &peers->list[i];
        if (has(peer, version)) {
            continue;
        }
        const int written =
            snprintf(ret_text + length, capacity - length, "%s%s was silent for %" PRId64 " s",
                     length > 0 ? ", " : "", peer->name, (now_ns - peer->heard_ns) / NS_PER_S);
        length += written > 0 ? (size_t)written : 0;
    }
    if (ret_text[0] == '\0') {
        (void)snprintf(ret_text, capacity, "no broker follows this one");
    }
}
