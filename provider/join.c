#include "provider/join.h"

#include "base/checked.h"
#include "formats/yaml.h"
#include "protocol/dialogue.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/files.h"
#include "runtime/invitation.h"
#include "runtime/keyfile.h"
#include "runtime/link.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <zmq.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, POLL_MS = 50, PENDING = 4, PENDING_BYTES = 65536 };
enum { ANSWER_WITHIN_MS = 15000 };

static bool path_in(const char *folder, const char *name, char ret_path[PATH_BYTES],
                    struct problem *problem)
{
    int written = snprintf(ret_path, PATH_BYTES, "%s/%s", folder, name);
    if (written < 0 || written >= PATH_BYTES) {
        problem_set(problem, "%.100s...: the path of the agent's folder is too long", folder);
        return false;
    }
    return true;
}

static bool own_key(const char *folder, struct identity **ret_identity, struct problem *problem)
{
    char path[PATH_BYTES];
    if (!private_folder(folder, true, problem) ||
        !path_in(folder, MARKET_PROVIDER_KEY, path, problem)) {
        return false;
    }
    return access(path, F_OK) == 0 ? keyfile_load(path, ret_identity, problem)
                                   : keyfile_create(path, ret_identity, problem);
}

/* Writes the config of a newcomer, never over an existing one. */
static bool first_config(const char *folder, const char *name, bool *ret_made,
                         struct problem *problem)
{
    char path[PATH_BYTES];
    char quoted[512];
    char line[600] = "# name: attic            # how lists call this machine\n";
    char text[2048];
    if (!path_in(folder, MARKET_PROVIDER_CONFIG, path, problem)) {
        return false;
    }
    if (access(path, F_OK) == 0) {
        return true;
    }
    if (name != NULL) {
        if (!yaml_quote(name, quoted, sizeof quoted)) {
            problem_set(problem, "the name is no text");
            return false;
        }
        (void)snprintf(line, sizeof line, "name: %s\n", quoted);
    }
    int length = snprintf(text, sizeof text,
                          "# What this machine offers; docs/provider.md explains every key.\n"
                          "market: %s\n"
                          "%s"
                          "price: 0.10              # credits per slot-hour; 0 gives it away\n"
                          "# slots: 4               # cores to offer; default all\n"
                          "# programs: [xz, gzip]   # what jobs may run; default common tools\n",
                          MARKET_FILE, line);
    *ret_made = file_write(path, text, (size_t)length, 0600, problem);
    return *ret_made;
}

struct joining {
    struct dialogue *dialogue;
    struct link *link;
    struct id128 request;
    bool asked, accepted, refused;
    bool was_provider; /* before this process asked */
    enum join_status status;
    bool settled;
    int64_t reconnect_ns; /* INT64_MAX: connected, or trying */
};

static void settle(struct joining *joining, enum join_status status)
{
    joining->status = status;
    joining->settled = true;
}

static void ask(struct joining *joining, const struct invitation *invitation,
                const struct identity *identity, const char *name)
{
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    struct key32 account = *identity_key(identity);
    struct id128 token = invitation->token;
    body.account.data = account.bytes;
    body.account.len = sizeof account.bytes;
    body.token.data = token.bytes;
    body.token.len = sizeof token.bytes;
    body.name = (char *)(uintptr_t)name;
    joining->request = invitation_join_id(invitation, &account);
    joining->asked = dialogue_request(joining->dialogue, clock_monotonic_ns(), MESSAGE_JOIN,
                                      &joining->request, &body.base) == DIALOGUE_OK;
}

static void reconnect(struct joining *joining, struct problem *problem)
{
    joining->reconnect_ns = INT64_MAX;
    if (link_reopen_at(joining->link, dialogue_address(joining->dialogue)->control, problem)) {
        dialogue_connected(joining->dialogue, clock_monotonic_ns(), entropy_u64());
    } else {
        settle(joining, JOIN_UNREACHABLE);
    }
}

static bool is_provider(const Bourse__V1__Welcome *welcome)
{
    return welcome->has_account && welcome->has_roles && (welcome->roles & ROLE_PROVIDER) != 0;
}

static const char not_known[] =
    "whether this invitation was redeemed for it is not known: the broker "
    "remembers a join for a day, with its --name";

static bool is_answer(const struct joining *joining, const struct dialogue_event *event)
{
    return (event->type == DIALOGUE_ACCEPTED || event->type == DIALOGUE_REJECTED) &&
           id128_equal(&event->id, &joining->request);
}

/* The Join of an earlier process hears the same answer again, and any other is refused. */
static void settle_known(struct joining *joining, const struct dialogue_event *event,
                         struct problem *problem)
{
    problem_set(problem, "%s",
                event->type == DIALOGUE_ACCEPTED ? "it has redeemed this invitation before"
                : event->reject == REJECT_EXISTS ? "this invitation was not redeemed for it"
                                                 : not_known);
    settle(joining, JOIN_ALREADY);
}

static void handle(struct joining *joining, const struct invitation *invitation,
                   const struct identity *identity, const char *name, struct dialogue_event *event,
                   struct problem *problem)
{
    if (event->type == DIALOGUE_READY && joining->accepted && is_provider(event->welcome)) {
        settle(joining, JOIN_OK);
    } else if (event->type == DIALOGUE_READY && joining->accepted) {
        problem_set(problem,
                    "the invitation was for another role: the key in this folder now has an "
                    "account that is no provider. Ask the operator for an invitation with "
                    "the role provider, and join with a new --dir");
        settle(joining, JOIN_REFUSED);
    } else if (event->type == DIALOGUE_READY && !joining->asked) {
        struct id128 cluster = codec_id(event->welcome->cluster);
        if (!id128_equal(&cluster, &invitation->market.cluster)) {
            problem_set(problem, "the broker there runs another market than the invitation's");
            settle(joining, JOIN_REFUSED);
        } else {
            joining->was_provider = is_provider(event->welcome);
            ask(joining, invitation, identity, name);
        }
    } else if (joining->was_provider && is_answer(joining, event)) {
        settle_known(joining, event, problem);
    } else if (event->type == DIALOGUE_ACCEPTED && id128_equal(&event->id, &joining->request)) {
        joining->accepted = true; /* the next Welcome says the role */
        reconnect(joining, problem);
    } else if (event->type == DIALOGUE_REJECTED && id128_equal(&event->id, &joining->request)) {
        problem_set(problem, "%s: %s", reject_name(event->reject), event->text);
        joining->refused = true;
        settle(joining, JOIN_REFUSED);
    } else if (event->type == DIALOGUE_BROKEN) {
        problem_set(problem, "the broker sent something wrong: %s", event->text);
        settle(joining, JOIN_UNREACHABLE);
    }
    codec_free(&event->body);
}

static bool has_choice(const struct joining *joining)
{
    return contacts_has_choice(dialogue_contacts(joining->dialogue));
}

/* Tells of a broker that cannot be used, and tries the next after the wait. */
static void lose(struct joining *joining, const struct dialogue_event *event,
                 join_silence *on_silence, int64_t until_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    joining->reconnect_ns = now_ns + event->wait_ns;
    if (has_choice(joining) && event->end != CONTACT_FOLLOWS && now_ns < until_ns) {
        on_silence(event->address, (int)((until_ns - now_ns) / NS_PER_MS));
    }
}

/* Sends what is due, and hears one message or the time. */
static void exchange_messages(struct joining *joining, struct dialogue_event *ret_event,
                              struct problem *problem)
{
    const uint8_t *message;
    size_t length;
    if (clock_monotonic_ns() >= joining->reconnect_ns) {
        reconnect(joining, problem);
    }
    while (joining->reconnect_ns == INT64_MAX &&
           dialogue_outgoing(joining->dialogue, &message, &length)) {
        if (!link_send(joining->link, message, length)) {
            dialogue_unsent(joining->dialogue);
            break;
        }
    }
    if (link_receive(joining->link, POLL_MS, &message, &length) == 1) {
        dialogue_incoming(joining->dialogue, clock_monotonic_ns(), message, length, ret_event);
    } else if (link_has_ended(joining->link)) {
        dialogue_unreachable(joining->dialogue, ret_event);
    } else {
        dialogue_tick(joining->dialogue, clock_monotonic_ns(), ret_event);
    }
}

static void converse(struct joining *joining, const struct invitation *invitation,
                     const struct identity *identity, const char *name, join_silence *on_silence,
                     struct problem *problem)
{
    const int64_t began_ns = clock_monotonic_ns();
    const int64_t until_ns = began_ns + ANSWER_WITHIN_MS * NS_PER_MS;
    bool told = has_choice(joining); /* of several brokers, each is told by itself */
    joining->reconnect_ns = INT64_MAX;
    dialogue_connected(joining->dialogue, clock_monotonic_ns(), entropy_u64());
    while (!joining->settled && clock_monotonic_ns() < until_ns) {
        if (!told && clock_monotonic_ns() - began_ns >= JOIN_SILENCE_MS * NS_PER_MS) {
            on_silence(invitation->market.control, ANSWER_WITHIN_MS - JOIN_SILENCE_MS);
            told = true;
        }
        struct dialogue_event event = {.type = DIALOGUE_NOTHING};
        exchange_messages(joining, &event, problem);
        if (event.type == DIALOGUE_LOST) {
            lose(joining, &event, on_silence, until_ns);
        } else {
            handle(joining, invitation, identity, name, &event, problem);
        }
    }
    if (!joining->settled && joining->was_provider) {
        problem_set(problem, "%s", not_known);
        settle(joining, JOIN_ALREADY); /* only the answer about this invitation is missing */
    }
    if (joining->settled) {
        const uint8_t *message;
        size_t length;
        (void)dialogue_goodbye(joining->dialogue, clock_monotonic_ns(), "joined");
        while (dialogue_outgoing(joining->dialogue, &message, &length) &&
               link_send(joining->link, message, length)) {
        }
    }
}

/* Redeems the invitation. *ret_spent means that the key has an account, or that the broker's answer
 * is not known. */
static enum join_status redeem(const struct invitation *invitation, const struct identity *identity,
                               const char *name, join_silence *on_silence, bool *ret_spent,
                               struct problem *problem)
{
    struct contact addresses[CONTACTS_MAX];
    struct dialogue_config config = {.identity = identity,
                                     .role = SESSION_PROVIDER,
                                     .program = "bourse-provider " BOURSE_VERSION,
                                     .pending_max = PENDING,
                                     .pending_bytes_max = PENDING_BYTES,
                                     .addresses = addresses,
                                     .address_count =
                                         market_addresses(&invitation->market, addresses)};
    struct joining joining = {.status = JOIN_UNREACHABLE};
    void *zmq = zmq_ctx_new();
    problem_set(problem,
                "no answer from %s within %d s; is a broker running there, and does the network "
                "reach that address?",
                invitation->market.control, ANSWER_WITHIN_MS / 1000);
    joining.dialogue = dialogue_create(&config);
    if (zmq != NULL && joining.dialogue != NULL &&
        link_open(zmq, invitation->market.control, &invitation->market.server, identity,
                  LIMIT_MESSAGE_BYTES, &joining.link, problem) &&
        (config.address_count == 1 || link_watch(joining.link, problem))) {
        converse(&joining, invitation, identity, name, on_silence, problem);
        if (!joining.settled && has_choice(&joining)) {
            char tried[400];
            contacts_explain(dialogue_contacts(joining.dialogue), tried, sizeof tried);
            problem_set(problem, "no broker of this market can be used: %s", tried);
        }
    }
    link_close(&joining.link);
    dialogue_destroy(&joining.dialogue);
    if (zmq != NULL) {
        zmq_ctx_term(zmq);
    }
    *ret_spent = joining.status == JOIN_OK || joining.status == JOIN_ALREADY ||
                 (joining.asked && !joining.refused);
    return joining.status;
}

/* This join has made these files, to remove when it fails. */
struct made {
    bool folder, key, config;
};

/* Removes a key without an account, and a folder that was made for the key. */
static void take_back(const char *folder, const struct made *made, bool is_spent)
{
    struct problem problem;
    char path[PATH_BYTES];
    if (path_in(folder, MARKET_FILE, path, &problem)) {
        market_unstage(path);
    }
    if (made->config && path_in(folder, MARKET_PROVIDER_CONFIG, path, &problem)) {
        (void)unlink(path);
    }
    if (!is_spent && made->key && path_in(folder, MARKET_PROVIDER_KEY, path, &problem)) {
        (void)unlink(path); /* the key may not have been made yet */
    }
    if (made->folder) {
        (void)rmdir(folder); /* fails when something is in the folder */
    }
}

/* Writes all files before the broker is asked. Then a redeemed invitation cannot be lost here. */
static bool prepare(const struct invitation *invitation, const char *folder, const char *name,
                    struct made *made, struct identity **ret_identity, struct problem *problem)
{
    char path[PATH_BYTES];
    return own_key(folder, ret_identity, problem) && path_in(folder, MARKET_FILE, path, problem) &&
           market_stage(path, &invitation->market, problem) &&
           first_config(folder, name, &made->config, problem);
}

enum join_status join_market(const char *text, const char *folder, const char *name,
                             join_silence *on_silence, struct problem *ret_problem)
{
    struct invitation invitation;
    struct identity *identity = NULL;
    char path[PATH_BYTES];
    if (!invitation_read(text, &invitation, ret_problem)) {
        return JOIN_BAD_INVITATION;
    }
    if (!path_in(folder, MARKET_PROVIDER_KEY, path, ret_problem)) {
        return JOIN_FILES;
    }
    struct made made = {.folder = access(folder, F_OK) != 0, .key = access(path, F_OK) != 0};
    bool is_spent = false;
    enum join_status status = JOIN_FILES;
    /* The broker decides whether the invitation has expired: it goes by log time, and our clock may
     * be wrong. */
    if (prepare(&invitation, folder, name, &made, &identity, ret_problem)) {
        status = redeem(&invitation, identity, name, on_silence, &is_spent, ret_problem);
    }
    if (status != JOIN_OK && status != JOIN_ALREADY) {
        take_back(folder, &made, is_spent);
    } else if (!path_in(folder, MARKET_FILE, path, ret_problem) ||
               !market_settle(path, ret_problem)) {
        status = JOIN_FILES; /* the account exists: another join finds it */
    }
    identity_destroy(&identity);
    return status;
}
