/* This file judges results on the side of the client. They are results of a job with cheap checks
 * that a referee rejects and no referee of another owner can judge. The client computes the check
 * from the seed and sends the verdict. The seed is the referee's, so an honest referee finds the
 * same verdict. */
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/result_checks.h"
#include "formats/npy.h"
#include "formats/template.h"
#include "formats/tensor_op.h"
#include "numeric/seeded_check.h"
#include "protocol/results.h"
#include "protocol/subtask.h"

#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

/* Larger matrices are not checked here, because a check holds them whole in memory. */
#define JUDGE_BYTES_MOST (UINT64_C(16) << 30)

/* ---------------------------------------------------------------- what is checked */

struct words { /* arguments of a check, with filled templates */
    char *items[LIMIT_ARGUMENTS];
    size_t count;
    struct tensor_op op;
};

static void words_fini(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->items[i]);
    }
}

static bool read_check(const Bourse__V1__Manifest *manifest, uint32_t index, struct words *words,
                       struct bourse_error *error)
{
    const struct subtask_terms terms = subtask_terms(manifest, index);
    const struct template_values values = {
        .in = terms.input, .value = terms.value, .index = terms.number};
    struct problem problem = {.text = ""};
    for (size_t i = 0; i < terms.argument_count && i < LIMIT_ARGUMENTS; i++) {
        words->items[words->count] =
            template_filled(terms.arguments[i], &values, LIMIT_ARGUMENT_BYTES, NULL);
        if (words->items[words->count] == NULL) {
            return client_fail(error, BOURSE_LOCAL, "out of memory");
        }
        words->count++;
    }
    return (tensor_op_read((const char *const *)words->items, words->count, false, &words->op,
                           &problem) &&
            words->op.verb == TENSOR_FREIVALDS) ||
           client_fail(
               error, BOURSE_UNVERIFIED,
               "the manifest's check of subtask %u is none: %s; the job cannot be judged here",
               index - (manifest->subtask_count - result_checks_count(manifest)), problem.text);
}

static const Bourse__V1__ManifestInput *input_named(const Bourse__V1__Manifest *manifest,
                                                    uint32_t index, const char *name)
{
    const Bourse__V1__ManifestSubtask *subtask = subtask_at(manifest, index);
    for (size_t i = 0; subtask != NULL && i < subtask->n_inputs; i++) {
        if (strcmp(subtask->inputs[i]->name, name) == 0) {
            return subtask->inputs[i];
        }
    }
    for (size_t i = 0; i < manifest->n_shared; i++) {
        if (strcmp(manifest->shared[i]->name, name) == 0) {
            return manifest->shared[i];
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- matrices in memory */

struct operand {
    uint8_t *bytes;
    size_t length;
    struct npy npy;
};

static void operand_fini(struct operand *operand)
{
    free(operand->bytes);
}

enum got { GOT, GOT_NO_MATRIX, GOT_NOTHING, GOT_ERROR };

/* NOTHING: the broker does not have the blob. NO_MATRIX: a check cannot read the blob. */
static enum got get_operand(struct bourse *bourse, ProtobufCBinaryData name, uint64_t size,
                            struct operand *operand, struct bourse_error *error)
{
    const struct hash32 hash = codec_hash(name);
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    if (size > JUDGE_BYTES_MOST) {
        (void)client_fail(error, BOURSE_LOCAL, "a matrix of %llu bytes is too large to check here",
                          (unsigned long long)size);
        return GOT_ERROR;
    }
    struct blob_client *blobs = client_blobs_begin(bourse, error);
    if (blobs == NULL) {
        return GOT_ERROR;
    }
    const bool ok = blob_client_get_bytes(blobs, &hash, NULL, size, &operand->bytes,
                                          &operand->length, &reject, &problem);
    client_blobs_end(bourse);
    client_breathe(bourse);
    if (!ok && reject == REJECT_NOT_FOUND) {
        return GOT_NOTHING;
    }
    if (!ok) {
        (void)client_blob_failed(bourse, error, reject, &problem);
        return GOT_ERROR;
    }
    return npy_read(operand->bytes, operand->length, operand->length, &operand->npy, &problem) &&
                   npy_is_matrix(&operand->npy, &problem)
               ? GOT
               : GOT_NO_MATRIX;
}

/* npy_is_matrix has checked that the floats are whole. */
static const float *elements_of(const struct operand *operand)
{
    return (const float *)(const void *)(operand->bytes + operand->npy.data_offset);
}

/* ---------------------------------------------------------------- one verdict */

struct dispute {
    struct bourse *bourse;
    const Bourse__V1__Manifest *manifest;
    const Bourse__V1__DisputeRow *row;
    struct id128 job;
};

static bool compute(const struct operand *a, const struct operand *b, const struct operand *c,
                    const struct words *words, const Bourse__V1__DisputeRow *row,
                    enum result_verdict *ret_verdict, struct bourse_error *error)
{
    struct seeded_check check = {.rows = a->npy.shape[0],
                                 .inner = a->npy.shape[1],
                                 .columns = b->npy.shape[1],
                                 .a = elements_of(a),
                                 .b = elements_of(b),
                                 .c = elements_of(c),
                                 .rounds = words->op.rounds};
    struct seeded_result result;
    if (b->npy.shape[0] != check.inner) {
        return client_fail(error, BOURSE_UNVERIFIED, "the factors of subtask %u do not fit",
                           row->index);
    }
    if (c->npy.shape[0] != check.rows || c->npy.shape[1] != check.columns) {
        *ret_verdict = VERDICT_REJECT;
        return true;
    }
    memcpy(check.seed, row->seed.data, sizeof check.seed);
    if (!seeded_check_run(&check, &result)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory for the check of subtask %u",
                           row->index);
    }
    *ret_verdict = result.verdict;
    return true;
}

/* A product that is no matrix is wrong. Nobody can judge a product that the broker has lost. */
static bool judge_product(const struct dispute *dispute, const Bourse__V1__Output *output,
                          enum result_verdict *ret_verdict, struct bourse_error *error)
{
    CLEANUP(words_fini) struct words words = {.count = 0};
    CLEANUP(operand_fini) struct operand a = {.bytes = NULL};
    CLEANUP(operand_fini) struct operand b = {.bytes = NULL};
    CLEANUP(operand_fini) struct operand c = {.bytes = NULL};
    const Bourse__V1__Manifest *manifest = dispute->manifest;
    const uint32_t check =
        manifest->subtask_count - result_checks_count(manifest) + dispute->row->index;
    if (!read_check(manifest, check, &words, error)) {
        return false;
    }
    const Bourse__V1__ManifestInput *left = input_named(manifest, check, words.op.a);
    const Bourse__V1__ManifestInput *right = input_named(manifest, check, words.op.b);
    if (left == NULL || right == NULL) {
        return client_fail(
            error, BOURSE_UNVERIFIED,
            "the check of subtask %u names no files to check by; the job cannot be judged "
            "here",
            dispute->row->index);
    }
    const enum got got = get_operand(dispute->bourse, output->hash, output->size, &c, error);
    if (got == GOT_NO_MATRIX || got == GOT_NOTHING) {
        *ret_verdict = got == GOT_NO_MATRIX ? VERDICT_REJECT : VERDICT_UNSURE;
        return true;
    }
    if (got != GOT || get_operand(dispute->bourse, left->hash, left->size, &a, error) != GOT ||
        get_operand(dispute->bourse, right->hash, right->size, &b, error) != GOT) {
        return got != GOT ? false
                          : client_fail(error, BOURSE_LOCAL,
                                        "the factors of subtask %u cannot be read from the broker",
                                        dispute->row->index);
    }
    return compute(&a, &b, &c, &words, dispute->row, ret_verdict, error);
}

static bool send_verdict(const struct dispute *dispute, enum result_verdict verdict,
                         struct bourse_error *error)
{
    const Bourse__V1__DisputeRow *row = dispute->row;
    struct id128 job = dispute->job;
    struct hash32 hash = sha256_of(row->result.data, row->result.len);
    Bourse__V1__JudgeResult body = BOURSE__V1__JUDGE_RESULT__INIT;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    body.index = row->index;
    body.attempt = row->attempt;
    body.result = client_bytes(hash.bytes, sizeof hash.bytes);
    body.seed = row->seed;
    body.verdict = verdict;
    return client_call(dispute->bourse, MESSAGE_JUDGE_RESULT, &body.base, 0, NULL, error);
}

static bool judge_one(const struct dispute *dispute, enum result_verdict *ret_verdict,
                      struct bourse_error *error)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(dispute->row->result.data, dispute->row->result.len, &result, NULL) !=
        CODEC_OK) {
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker holds a result of subtask %u "
                           "that does not decode",
                           dispute->row->index);
    }
    *ret_verdict = VERDICT_REJECT; /* for a result with another output than the product */
    const bool ok =
        result->n_outputs != 1 || judge_product(dispute, result->outputs[0], ret_verdict, error);
    codec_result_free(&result);
    return ok && send_verdict(dispute, *ret_verdict, error);
}

/* ---------------------------------------------------------------- all of a job */

static void count(struct bourse_judged *judged, enum result_verdict verdict)
{
    judged->accepted += verdict == VERDICT_ACCEPT;
    judged->rejected += verdict == VERDICT_REJECT;
    judged->unsure += verdict == VERDICT_UNSURE;
}

static bool judge_page(struct dispute *dispute, const Bourse__V1__DisputesReply *reply,
                       struct bourse_judged *judged, struct bourse_error *error)
{
    for (size_t i = 0; i < reply->n_rows; i++) {
        enum result_verdict verdict;
        dispute->row = reply->rows[i];
        if (dispute->row->has_referee && dispute->row->referee) {
            judged->left++;
            continue;
        }
        if (judge_one(dispute, &verdict, error)) {
            count(judged, verdict);
        } else if (error->reject == REJECT_STATE || error->reject == REJECT_VERIFY) {
            judged->left++; /* a referee has judged meanwhile */
        } else {
            return false;
        }
    }
    return true;
}

bool bourse_judge(struct bourse *bourse, const char *id, struct bourse_judged *ret_judged,
                  struct bourse_error *ret_error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    struct dispute dispute = {.bourse = bourse};
    Bourse__V1__DisputesRequest body = BOURSE__V1__DISPUTES_REQUEST__INIT;
    *ret_judged = (struct bourse_judged){.accepted = 0};
    if (!client_id_read(id, &dispute.job, ret_error)) {
        return false;
    }
    body.job = client_bytes(dispute.job.bytes, sizeof dispute.job.bytes);
    for (;;) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_DISPUTES_REQUEST, &body.base, MESSAGE_DISPUTES_REPLY,
                         &answer, ret_error)) {
            return false;
        }
        const Bourse__V1__DisputesReply *reply = (const void *)answer;
        if (reply->n_rows > 0 && manifest == NULL &&
            !client_manifest(bourse, id, &manifest, ret_error)) {
            return false;
        }
        dispute.manifest = manifest;
        if (!judge_page(&dispute, reply, ret_judged, ret_error)) {
            return false;
        }
        if (!reply->has_next || reply->next <= body.from) {
            return true;
        }
        body.has_from = true;
        body.from = reply->next;
    }
}
