/* This file redeems an invitation and writes the account's key and its market.yaml. It also tells
 * who the caller is, and of which state of the market answers were. */
#include "consumer/client/client.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "ledger/checkpoint.h"
#include "protocol/identity.h"
#include "runtime/clock.h"
#include "runtime/invitation.h"
#include "runtime/keyfile.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <libgen.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool private_parent(const char *path, struct bourse_error *error)
{
    char *copy = strdup(path);
    if (copy == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct problem problem = {.text = ""};
    bool ok = private_folder(dirname(copy), true, &problem);
    free(copy);
    return ok ? true : client_fail(error, BOURSE_LOCAL, "%s", problem.text);
}

static bool load_or_create(const char *path, struct identity **ret_identity,
                           struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    struct stat status;
    bool exists = lstat(path, &status) == 0 || errno != ENOENT;
    bool ok = exists ? keyfile_load(path, ret_identity, &problem)
                     : private_parent(path, error) && keyfile_create(path, ret_identity, &problem);
    if (!ok && problem.text[0] != '\0') {
        return client_fail(error, BOURSE_LOCAL, "%s", problem.text);
    }
    return ok;
}

/* The broker may know an account of this key from an earlier Join whose answer was lost. */
static bool has_account(const struct bourse *client)
{
    const Bourse__V1__Welcome *welcome = consumer_session_welcome(client->session);
    return welcome->has_account && welcome->has_roles && welcome->roles != 0;
}

/* Says whether an account that was there has what the invitation gives. The Join of an earlier call
 * hears the same answer again, and any other Join is refused. */
static int redeemed_by(bool is_accepted, const struct bourse_error *error)
{
    return is_accepted ? 1 : error->reject == REJECT_EXISTS ? 0 : -1;
}

static bool redeem(struct bourse *client, const struct invitation *invitation, const char *name,
                   struct bourse_account *ret_account, struct bourse_error *error)
{
    struct key32 account = *identity_key(client->identity);
    struct id128 token = invitation->token;
    const struct id128 id = invitation_join_id(invitation, &account);
    char copy[LIMIT_NAME_BYTES + 1];
    if (!client_ready(client, error)) {
        return false;
    }
    const bool is_known = has_account(client);
    client_copy(copy, sizeof copy, name);
    Bourse__V1__Join body = BOURSE__V1__JOIN__INIT;
    body.account = client_bytes(account.bytes, sizeof account.bytes);
    body.token = client_bytes(token.bytes, sizeof token.bytes);
    body.name = copy[0] != '\0' ? copy : NULL;
    bool ok = client_call_as(client, &id, MESSAGE_JOIN, &body.base, 0, NULL, error);
    sodium_memzero(&token, sizeof token);
    *ret_account = (struct bourse_account){.was_known = is_known,
                                           .redeemed = is_known ? redeemed_by(ok, error) : 1};
    return ok || is_known;
}

/* The key and the market's file are on the disk before the broker is asked, so that a redeemed
 * invitation cannot be lost here. */
static bool prepare(const struct invitation *invitation, const char *key_path,
                    const char *market_path, struct identity **ret_identity,
                    struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    if (!private_parent(market_path, error) || !load_or_create(key_path, ret_identity, error)) {
        return false;
    }
    if (!market_stage(market_path, &invitation->market, &problem)) {
        identity_destroy(ret_identity);
        return client_fail(error, BOURSE_LOCAL, "%s; nothing was redeemed", problem.text);
    }
    return true;
}

bool bourse_join(const char *invitation, const struct bourse_options *options, const char *name,
                 struct bourse_account *ret_account, struct bourse_error *ret_error)
{
    const char *market_path = options->market;
    struct problem problem = {.text = ""};
    struct invitation read;
    struct identity *identity = NULL;
    struct bourse_account how = {.was_known = false};
    if (sodium_init() < 0) {
        return client_fail(ret_error, BOURSE_LOCAL,
                           "libsodium cannot be initialised on this machine");
    }
    if (!invitation_read(invitation, &read, &problem)) {
        return client_fail(ret_error, BOURSE_USAGE, "%s", problem.text);
    }
    if (!client_name_fits(name, ret_error) ||
        !prepare(&read, options->key, market_path, &identity, ret_error)) {
        return false;
    }
    CLEANUP(bourse_close) struct bourse *client = NULL;
    bool joined = client_open(&read.market, identity, options, &client, ret_error) &&
                  redeem(client, &read, name, &how, ret_error);
    sodium_memzero(&read.token, sizeof read.token);
    if (!joined) {
        market_unstage(market_path);
        return false;
    }
    if (!market_settle(market_path, &problem)) {
        return client_fail(ret_error, BOURSE_LOCAL,
                           "%s; the account is made: join again with the same invitation",
                           problem.text);
    }
    bourse_close(&client); /* a new session, which now has an account */
    if (!bourse_open(options, &client, ret_error) ||
        !bourse_whoami(client, ret_account, ret_error)) {
        return false;
    }
    ret_account->was_known = how.was_known;
    ret_account->redeemed = how.redeemed;
    return true;
}

void bourse_state(struct bourse *bourse, struct bourse_state *ret_state)
{
    const struct dialogue_state now = consumer_session_state(bourse->session);
    const struct dialogue_state state = bourse->has_answers ? bourse->answers : now;
    bourse->has_answers = false;
    *ret_state = (struct bourse_state){.follows = state.follows,
                                       .index = state.index,
                                       .log_time_ms = state.log_ns / NS_PER_MS,
                                       .stale_ms = state.stale_ms,
                                       .newest = now.newest};
}

bool bourse_whoami(struct bourse *bourse, struct bourse_account *ret_account,
                   struct bourse_error *ret_error)
{
    if (!client_ready(bourse, ret_error)) {
        return false;
    }
    const Bourse__V1__Welcome *welcome = consumer_session_welcome(bourse->session);
    *ret_account =
        (struct bourse_account){.roles = welcome->has_roles ? welcome->roles : 0,
                                .behind_ms = welcome->has_behind_ms ? welcome->behind_ms : 0,
                                .stale_ms = welcome->has_stale_ms ? welcome->stale_ms : 0,
                                .follows = welcome->has_follows && welcome->follows};
    text_hex(identity_key(bourse->identity)->bytes, 32, ret_account->key);
    text_hex(bourse->market.cluster.bytes, 16, ret_account->cluster);
    client_copy(ret_account->name, sizeof ret_account->name, welcome->account_name);
    client_copy(ret_account->origin, sizeof ret_account->origin, bourse->market.origin);
    char verifier[CHECKPOINT_TEXT_SIZE];
    checkpoint_verifier(bourse->market.origin, &bourse->market.log_key, verifier);
    client_copy(ret_account->verifier, sizeof ret_account->verifier, verifier);
    ret_account->log_time_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    return true;
}
