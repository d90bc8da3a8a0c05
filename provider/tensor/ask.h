/* provider/tensor/ask.h defines the messages between process 1 of a jail and the jail's resident,
 * which is bourse-tensor, bourse-kernel, bourse-plugin or bourse-onnx. They travel over a
 * SOCK_SEQPACKET pair that is the resident's standard input. There is one ASK at a time, and one
 * ANSWER to each. Fields go through base/cursor.h. Output of an operation goes to standard output
 * and standard error before its answer.
 *
 *     ASK      u64 memory that the operation may allocate, u32 count, for each argument u32 length
 *              with its NUL and the bytes, u32 count, for each input that comes as a descriptor its
 *              name likewise, u32 count, for each input whose content is known its name likewise
 *              and 32 bytes of hash, u32 count, for each file that the last ASK left the same, u8
 *              whether a further descriptor is the connection of provider/tensor/ahead.h
 *     ANSWER   u32 operation_status, u32 verdict (enum result_verdict), u32 exit code, u32 fault of
 *              the device (enum device_fault), u32 process
 *              that stays with the resident or 0, u64 peak memory of the program so far, the
 *              seven u64 of struct held_figures, u32 length, the problem's text */
#ifndef BOURSE_PROVIDER_TENSOR_ASK_H
#define BOURSE_PROVIDER_TENSOR_ASK_H

#include "base/problem.h"
#include "provider/session/device_fault.h"
#include "provider/tensor/held_figures.h"
#include "provider/tensor/operation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ASK_BYTES = 65536, /* prompts (GENERATE_PROMPT_BYTES), and names and numbers beside them */
    ASK_ARGUMENTS = 256,
    ANSWER_BYTES = 1024,
    ASK_CONTENTS = 64, /* inputs whose content is known */
    /* Words before those of a launch: the device's interface, its id, its name, how many bytes of
     * the device's own memory the launch may take, how many bytes the device may hold for the next
     * launches, KERNEL_KEEP when results are among these, or another word, and KERNEL_LIBRARY when
     * a library by the device's maker may compute products, or another word. */
    KERNEL_DEVICE_WORDS = 7,
    ASK_MADE = 8, /* results of the last ASK whose content is known */
    /* bourse-plugin has this time to answer an ASK that was cancelled by SIGTERM. */
    ASK_CANCEL_MS = 3000,
};

#define TENSOR_PROGRAM "/.bourse-tensor" /* its name in a jail that has it */
/* The agent's own argument asks for the speed of one thread: {"engine":..,"mflops":..}. */
#define TENSOR_MEASURE "measure"
/* The agent's own word asks for the answer to a challenge (provider/tensor/challenge_answer.h). */
#define TENSOR_CHALLENGE "challenge"

#define KERNEL_PROGRAM "/.bourse-kernel" /* its name in a jail that has it */
/* The agent's own word, after the words of a device, asks for the speed of the device:
 * {"mflops":..,"bandwidth":..,"gemm":..,"tf32":..,"bf16":..,"no_gemm":"..","library":"..",
 * "no_library":".."}. The figure `gemm` is Mflop/s of products in float32; 0 means that the device
 * computes none, for the reason in `no_gemm`. The figures `tf32` and `bf16` are those of products
 * whose factors are rounded; 0 means that the device computes none. `library` is the name of the
 * library that computes the products; "" means that bourse's own kernel does, and `no_library` says
 * why. */
#define KERNEL_MEASURE "measure"
/* The agent's own word, after the words of a device, says that an operation on matrices follows
 * (formats/tensor_op.h). */
#define KERNEL_TENSOR "tensor"
/* The agent's own word says that later launches take results of this one. */
#define KERNEL_KEEP "keep"
/* The agent's own word says that a library by the device's maker computes products. */
#define KERNEL_LIBRARY "library"
/* The agent's own word, with an interface, asks for its list of devices, as one line of JSON. */
#define KERNEL_LIST "list"
/* The id of an instance of MIG begins so. */
#define KERNEL_MIG "MIG-"
/* The word comes before the places of NVIDIA devices on the PCI bus, or the ids of instances of
 * MIG. The program then answers each
 * line on the descriptor KERNEL_WATCH_SOCKET with figures of them (provider/kernel/nvml.h). */
#define KERNEL_WATCH "watch"
#define KERNEL_WATCH_SOCKET 3
/* The variable of the worker that says which devices pocl makes; absent: pocl's default. */
#define KERNEL_POCL_DEVICES "POCL_DEVICES"

#define PLUGIN_HELPER "/.bourse-plugin" /* its name in a jail that has it */
#define PLUGIN_PROGRAM "/.plugin"       /* the owner's program, in the same jail */
/* The agent's own word asks the plug-in for all that it says of the device, as three lines: the
 * answers to `describe`, `probe` and `figures`. No operation has such a name. */
#define PLUGIN_LOOK "--look"
/* The agent's own word lets the plug-in's device answer a challenge. */
#define PLUGIN_CHALLENGE "--challenge"

#define ONNX_PROGRAM "/.bourse-onnx" /* its name in a jail that has it */
/* ONNX Runtime's library in the same jail, where the owner's machine has one. */
#define ONNX_LIBRARY "/.onnxruntime.so"
/* The settings of an execution provider in the same jail (provider/onnx/runtime/ort_provider.h);
 * absent: processor cores compute. */
#define ONNX_SETTINGS "/.onnx-provider"
/* The agent's own word asks for the name of what computes models, as one line, and then for what
 * the trial says (provider/onnx/onnx_trial.h). No model has such a name. */
#define ONNX_LOOK "--look"

/* The script that runs WASM modules, in a jail that has it. The script is no resident, and gets no
 * ASK: the jail's programs are an engine of the host with this script. */
#define WASM_HOST "/.bourse-wasm.cjs"
/* Our program that runs WASM modules by wasmtime's library, in a jail that has it. It is no
 * resident, either. */
#define WASM_RUNNER "/.bourse-wasm"

/* One ASK as the resident reads it. The words and names point into the message. */
struct ask {
    uint64_t memory_bytes;
    const char *words[ASK_ARGUMENTS];
    size_t count;
    struct operation_given given[OPERATION_GIVEN_MOST];
    size_t given_count;
    struct operation_content contents[ASK_CONTENTS];
    size_t content_count;
    struct operation_content made[ASK_MADE];
    size_t made_count;
    int ahead; /* the agent sends inputs of the next subtask over it; -1: it sends none */
};

/* An answer says this beside the status. */
struct ask_result {
    enum result_verdict verdict;
    int exit_code;           /* of OPERATION_FAILED */
    enum device_fault fault; /* of OPERATION_DEVICE; NONE counts as OTHER */
    /* A child of the resident that stays for the next ASK, and the most memory that it had. 0:
     * there is none, and every other process is killed after the answer. */
    pid_t companion;
    uint64_t companion_bytes;
    struct held_figures held; /* of bourse-kernel; else zeros */
    bool has_taken_ahead;     /* ask->ahead is the resident's now; else ask_serve closes it */
};

/* Carries out one ASK. The files of ask->given become the function's, which closes them. Before the
 * call the result has no verdict, no companion, and the exit code 1. For any status but
 * OPERATION_OK the problem is a line for the job's owner. The names of the contents live as long as
 * the ASK. */
typedef enum operation_status ask_carry_out(void *context, const struct ask *ask,
                                            struct ask_result *ret_result,
                                            struct problem *ret_problem);

/* Answers one ASK after another, which come on standard input, until the other end closes it, or
 * *is_spent is true after an answer; NULL: never. Returns the program's exit status: 0, or 1 when
 * an ASK does not decode or cannot be answered. */
int ask_serve(ask_carry_out *carry_out, void *context, const bool *is_spent);

#endif
