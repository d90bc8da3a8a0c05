/* The program bourse-kernel reaches OpenCL and CUDA devices, so that no other program loads their
 * libraries.
 *
 *     bourse-kernel list    prints the devices of each interface as one line of JSON
 *     bourse-kernel watch PLACE...
 *                           answers each line on descriptor 3 with figures of the NVIDIA devices at
 *                           these places of the PCI bus, also of JSON
 *     bourse-kernel         inside a jail: runs kernels of one job, subtask after subtask
 *
 * In a jail the program is the resident of provider/worker/resident.c, with the messages of
 * provider/tensor/ask.h. The agent gives the first seven words of an ASK. They are the interface,
 * the id and name of the device, the bytes of its memory that the launch may take, the bytes that
 * it may hold for the next launches, whether results are among these, and whether a library by the
 * device's maker may compute products. After them come the
 * words of formats/kernel/kernel_op.h, or the one word `measure`, or the word `tensor` and the
 * words of formats/tensor_op.h, or those of a challenge (provider/tensor/challenge_answer.h). An
 * ASK with the words `list` and an interface prints the devices of that interface. */
#include "provider/kernel/cuda.h"
#include "provider/kernel/measure.h"
#include "provider/kernel/mig.h"
#include "provider/kernel/nvml.h"
#include "provider/kernel/opencl.h"
#include "provider/kernel/product/chain.h"
#include "provider/kernel/product/product.h"
#include "provider/kernel/product/product_trial.h"
#include "provider/tensor/ask.h"
#include "provider/tensor/challenge_answer.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A test builds this program with libraries of its own inside. */
#ifndef KERNEL_CUDA_LIBRARY
#define KERNEL_CUDA_LIBRARY CUDA_LIBRARY
#define KERNEL_NVML_LIBRARY NVML_LIBRARY
#define KERNEL_CUBLASLT_LIBRARIES                                                                  \
    "libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",           \
        "/usr/local/cuda/lib64/libcublasLt.so.12"
#endif

/* The functions of the loaded libraries, and the devices of one of them. */
struct found {
    struct opencl_api opencl;
    struct cuda_api cuda;
    struct devices devices;
};

/* The device that this process has opened. A process serves one device of one job. */
struct session {
    struct found found;
    struct engine engine;
    bool is_open;
    bool is_wiped;                          /* nothing of earlier jobs is in the device's memory */
    char library[KERNEL_LIBRARY_NAME_SIZE]; /* that computes products; "": none is open */
    struct problem no_library;
};

static bool find_api(const char *word, enum kernel_api *ret_api)
{
    for (enum kernel_api api = 0; api < KERNEL_APIS; api++) {
        if (strcmp(kernel_op_api_word(api), word) == 0) {
            *ret_api = api;
            return true;
        }
    }
    return false;
}

static bool find_devices(enum kernel_api api, struct found *ret_found, struct problem *ret_problem)
{
    ret_found->devices = (struct devices){.fault = DEVICE_FAULT_DRIVER};
    if (api == KERNEL_CUDA) {
        return cuda_api_load(KERNEL_CUDA_LIBRARY, &ret_found->cuda, ret_problem) &&
               cuda_find_devices(&ret_found->cuda, &ret_found->devices, ret_problem);
    }
    return opencl_api_load(OPENCL_LIBRARY, &ret_found->opencl, ret_problem) &&
           opencl_find_devices(&ret_found->opencl, &ret_found->devices, ret_problem);
}

/* Lists the instances of devices that are split by MIG in place of these devices. OpenCL knows no
 * instances, so its split devices are marked. */
static void settle_split(enum kernel_api api, struct devices *devices)
{
    struct nvml_api nvml;
    struct problem problem;
    if (!nvml_api_load(KERNEL_NVML_LIBRARY, &nvml, &problem)) {
        return;
    }
    if (api == KERNEL_CUDA) {
        mig_replace(&nvml, &cuda_interface, devices);
    } else {
        mig_mark_split(&nvml, devices);
    }
}

static bool list(enum kernel_api api)
{
    static struct found found;
    struct problem problem = {""};
    (void)find_devices(api, &found, &problem);
    settle_split(api, &found.devices);
    const bool has_some = found.devices.count > 0;
    return devices_print(stdout, api, &found.devices, has_some ? "" : problem.text) &&
           fflush(stdout) == 0;
}

static const struct device_facts *find_device(const struct devices *devices, const char *id,
                                              const char *name)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (strcmp(devices->items[i].id, id) == 0 && strcmp(devices->items[i].name, name) == 0) {
            return &devices->items[i];
        }
    }
    return NULL;
}

static enum operation_status open_device(struct session *session, const struct ask *ask,
                                         struct problem *problem)
{
    enum kernel_api api;
    if (session->is_open) {
        return OPERATION_OK;
    }
    if (!find_api(ask->words[0], &api)) {
        problem_set(problem, "an ASK for another interface");
        return OPERATION_FAILED;
    }
    if (!mig_show_only(ask->words[1])) {
        problem_set(problem, "no memory to name the instance");
        return OPERATION_DEVICE;
    }
    if (!find_devices(api, &session->found, problem)) {
        return OPERATION_DEVICE;
    }
    const struct device_facts *device =
        find_device(&session->found.devices, ask->words[1], ask->words[2]);
    if (device == NULL) {
        problem_set(problem, "the %s device %s, %s, is not there any more", kernel_op_api_name(api),
                    ask->words[1], ask->words[2]);
        session->found.devices.fault = DEVICE_FAULT_LOST;
        return OPERATION_DEVICE;
    }
    session->found.devices.fault = DEVICE_FAULT_OTHER; /* unless opening the device tells another */
    session->is_open = engine_open(device, &session->engine, problem);
    return session->is_open ? OPERATION_OK : OPERATION_DEVICE;
}

/* Opens the first library of products that can be used, once. Without one, bourse's own kernel
 * computes, and the problem is that of the first library tried. */
static void open_library(struct session *session, uint64_t memory_bytes)
{
    static const char *const libraries[] = {KERNEL_CUBLASLT_LIBRARIES};
    const struct kernel_interface *interface = session->engine.device->interface;
    bool is_open = session->engine.has_library || interface->open_library == NULL;
    for (size_t i = 0; !is_open && i < sizeof libraries / sizeof libraries[0]; i++) {
        struct problem problem = {""};
        is_open = interface->open_library(&session->engine, libraries[i], memory_bytes,
                                          session->library, &problem);
        session->no_library = i == 0 && !is_open ? problem : session->no_library;
    }
    if (is_open) {
        session->no_library = (struct problem){""};
    }
}

/* Measures products in float32: by the library, and by the kernel when there is none or it is
 * wrong. Returns zeros with the problem when the device computes none. */
static struct product_figures measure_gemm(struct session *session, uint64_t memory_bytes,
                                           struct problem *ret_problem)
{
    struct product_figures figures = {.mflops = 0};
    struct problem *problem = session->engine.has_library ? &session->no_library : ret_problem;
    if (!product_trial(&session->engine, TENSOR_FP32, memory_bytes, &figures, problem) &&
        session->engine.has_library && !session->engine.is_spent) {
        session->engine.shuns_library = true;
        session->library[0] = '\0';
        (void)product_trial(&session->engine, TENSOR_FP32, memory_bytes, &figures, ret_problem);
    }
    return figures;
}

/* Measures products whose factors are rounded. Returns zeros when the device computes none. */
static struct product_figures measure_rounded(struct session *session, enum tensor_compute compute,
                                              uint64_t memory_bytes)
{
    struct product_figures figures = {.mflops = 0};
    if (session->library[0] != '\0' && !session->engine.is_spent) {
        (void)product_trial(&session->engine, compute, memory_bytes, &figures,
                            &session->no_library);
    }
    return figures;
}

/* A device that computes no products still runs kernels. */
static enum operation_status measure(struct session *session, uint64_t memory_bytes,
                                     struct problem *problem)
{
    struct measure figures;
    struct problem no_gemm = {""};
    if (!measure_run(&session->engine, memory_bytes, &figures, problem)) {
        return OPERATION_DEVICE;
    }
    const struct product_figures gemm = measure_gemm(session, memory_bytes, &no_gemm);
    const struct product_figures tf32 = measure_rounded(session, TENSOR_TF32, memory_bytes);
    const struct product_figures bf16 = measure_rounded(session, TENSOR_BF16, memory_bytes);
    json_t *root = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s}", "mflops",
        (json_int_t)figures.mflops, "bandwidth", (json_int_t)figures.bandwidth, "gemm",
        (json_int_t)gemm.mflops, "gemm_held", (json_int_t)gemm.held_mflops, "tf32",
        (json_int_t)tf32.mflops, "tf32_held", (json_int_t)tf32.held_mflops, "bf16",
        (json_int_t)bf16.mflops, "bf16_held", (json_int_t)bf16.held_mflops, "no_gemm", no_gemm.text,
        "library", session->library, "no_library", session->no_library.text);
    const bool good = root != NULL && json_dumpf(root, stdout, JSON_COMPACT) == 0;
    (void)fputc('\n', stdout);
    json_decref(root);
    return good ? OPERATION_OK : OPERATION_DEVICE;
}

/* A product on the session's device, which is open. */
struct device_product {
    struct engine *engine;
    const struct operation_contents *contents;
    uint64_t memory_bytes;
};

static struct held_part part_of(const struct operation_place *place, uint64_t values)
{
    return (struct held_part){
        .file_bytes = place->file_bytes, .at = place->at, .bytes = values * sizeof(float)};
}

/* Returns the part of its file that a factor of so many values is, or NULL when the content is not
 * known. */
static const struct held_part *find_part(const struct device_product *product,
                                         const struct operation_place *place, uint64_t values,
                                         struct held_part *ret_part)
{
    const struct hash32 *hash = operation_contents_find(product->contents, place->name);
    if (hash == NULL) {
        return NULL;
    }
    *ret_part = part_of(place, values);
    ret_part->hash = *hash;
    return ret_part;
}

static enum operation_status multiply(void *context, const struct gemm *gemm,
                                      const struct operation_places *places,
                                      struct problem *ret_problem)
{
    const struct device_product *product = context;
    struct held_part parts[2];
    const struct product_parts known = {
        .a = find_part(product, &places->a, gemm->rows * gemm->inner, &parts[0]),
        .b = find_part(product, &places->b, gemm->inner * gemm->columns, &parts[1]),
        .result_name = places->result.name,
        .result = part_of(&places->result, gemm->rows * gemm->columns)};
    return product_run(product->engine, gemm, known, product->memory_bytes, ret_problem);
}

/* Carries out an operation on matrices. The device computes products. Checks are computed here, on
 * the core of the slot, in double precision. */
static enum operation_status run_tensor(struct session *session, const struct ask *ask,
                                        uint64_t memory_bytes, struct ask_result *ret_result,
                                        struct problem *problem)
{
    const size_t first = KERNEL_DEVICE_WORDS + 1;
    struct operation_answer answer;
    const struct operation_contents contents = {.items = ask->contents,
                                                .count = ask->content_count};
    struct device_product product = {
        .engine = &session->engine, .contents = &contents, .memory_bytes = memory_bytes};
    const struct operation_multiplier multiplier = {.multiply = multiply, .context = &product};
    const struct operation_files files = {
        .folder = AT_FDCWD, .given = ask->given, .given_count = ask->given_count};
    const enum operation_status status =
        operation_run(&files, &multiplier, ask->words + first, ask->count - first,
                      ask->memory_bytes, &answer, problem);
    (void)fputs(answer.line, stdout);
    ret_result->verdict = answer.verdict;
    return status;
}

/* Computes the products of a challenge by the device. */
static enum operation_status run_challenge(struct session *session, const struct ask *ask,
                                           uint64_t memory_bytes, struct problem *problem)
{
    const struct operation_contents nothing = {.items = NULL};
    struct device_product product = {
        .engine = &session->engine, .contents = &nothing, .memory_bytes = memory_bytes};
    const struct operation_multiplier multiplier = {.multiply = multiply, .context = &product};
    const char *const *words = ask->words + KERNEL_DEVICE_WORDS;
    const size_t count = ask->count - KERNEL_DEVICE_WORDS;
    return count == CHAIN_WORDS
               ? chain_run(&session->engine, words, count, memory_bytes, stdout, problem)
               : challenge_answer_run(words, count, &multiplier, problem);
}

/* Buffers of a processor are this process's memory. Other devices have their own, of which each
 * slot has a share. */
static uint64_t buffer_memory(const struct session *session, const struct ask *ask)
{
    return strcmp(session->engine.device->kind, "cpu") == 0 ? ask->memory_bytes
                                                            : strtoull(ask->words[3], NULL, 10);
}

static void close_given(const struct ask *ask)
{
    for (size_t i = 0; i < ask->given_count; i++) {
        (void)close(ask->given[i].file);
    }
}

/* Carries out the words after those of the device. */
static enum operation_status run_words(struct session *session, const struct ask *ask,
                                       struct ask_result *ret_result, struct problem *problem)
{
    struct kernel_op op;
    const char *const *words = ask->words + KERNEL_DEVICE_WORDS;
    const size_t count = ask->count - KERNEL_DEVICE_WORDS;
    const bool measures = count == 1 && strcmp(words[0], KERNEL_MEASURE) == 0;
    const bool is_tensor = count > 1 && strcmp(words[0], KERNEL_TENSOR) == 0;
    const bool is_challenge = count > 1 && strcmp(words[0], TENSOR_CHALLENGE) == 0;
    if (!measures && !is_tensor && !is_challenge &&
        !kernel_op_read(words, count, false, &op, problem)) {
        close_given(ask);
        return OPERATION_FAILED;
    }
    session->engine.fault = DEVICE_FAULT_NONE;
    enum operation_status status = open_device(session, ask, problem);
    if (status == OPERATION_OK && !measures && !is_challenge && !session->is_wiped) {
        status = engine_buffers_wipe(&session->engine, problem);
        session->is_wiped = status == OPERATION_OK;
    }
    if (status != OPERATION_OK || !is_tensor) {
        close_given(ask);
    }
    if (status != OPERATION_OK) {
        ret_result->fault = session->engine.fault != DEVICE_FAULT_NONE
                                ? session->engine.fault
                                : session->found.devices.fault;
        return status;
    }
    if ((is_tensor || measures || is_challenge) && strcmp(ask->words[6], KERNEL_LIBRARY) == 0) {
        open_library(session, buffer_memory(session, ask));
    }
    const uint64_t memory_bytes = buffer_memory(session, ask) - session->engine.library_bytes;
    const struct operation_contents contents = {.items = ask->contents,
                                                .count = ask->content_count};
    const struct engine_terms terms = {.cap_bytes = strtoull(ask->words[4], NULL, 10),
                                       .keeps_results = strcmp(ask->words[5], KERNEL_KEEP) == 0,
                                       .made = {.items = ask->made, .count = ask->made_count}};
    engine_buffers_begin(&session->engine, &terms);
    if (ask->ahead >= 0) {
        ret_result->has_taken_ahead = true;
        engine_ahead_take(&session->engine, ask->ahead);
    }
    const enum operation_status result =
        is_tensor      ? run_tensor(session, ask, memory_bytes, ret_result, problem)
        : is_challenge ? run_challenge(session, ask, memory_bytes, problem)
        : measures     ? measure(session, memory_bytes, problem)
                       : engine_launch(&session->engine, &op, &contents, memory_bytes, problem);
    ret_result->held = engine_buffers_figures(&session->engine);
    ret_result->fault = session->engine.fault;
    return result;
}

static enum operation_status carry_out(void *context, const struct ask *ask,
                                       struct ask_result *ret_result, struct problem *problem)
{
    enum kernel_api api;
    if (ask->count == 2 && strcmp(ask->words[0], KERNEL_LIST) == 0 &&
        find_api(ask->words[1], &api)) {
        close_given(ask);
        return list(api) ? OPERATION_OK : OPERATION_DEVICE;
    }
    if (ask->count <= KERNEL_DEVICE_WORDS) {
        close_given(ask);
        problem_set(problem, "an ASK without a launch");
        return OPERATION_FAILED;
    }
    return run_words(context, ask, ret_result, problem);
}

/* Starts the program anew, because no call of this process works any more. The next ASK waits in
 * the socket. */
static int start_again(void)
{
    static char program[] = "/proc/self/exe";
    char *const words[] = {program, NULL};
    (void)execv(program, words);
    return 1;
}

int main(int count, char **words)
{
    static struct session session;
    if (count == 2 && strcmp(words[1], KERNEL_LIST) == 0) {
        bool good = true;
        for (enum kernel_api api = 0; api < KERNEL_APIS; api++) {
            good = list(api) && good;
        }
        return good ? 0 : 1;
    }
    if (count > 2 && strcmp(words[1], KERNEL_WATCH) == 0) {
        return nvml_serve(KERNEL_NVML_LIBRARY, KERNEL_WATCH_SOCKET,
                          (const char *const *)(words + 2), (size_t)count - 2);
    }
    if (count > 1) {
        (void)fputs("usage: bourse-kernel " KERNEL_LIST "\n"
                    "       bourse-kernel " KERNEL_WATCH " PLACE...\n",
                    stderr);
        return 2;
    }
    const int status = ask_serve(carry_out, &session, &session.engine.is_spent);
    if (session.engine.is_spent) {
        return start_again();
    }
    engine_ahead_close(&session.engine);
    return status;
}
