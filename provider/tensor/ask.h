/* provider/tensor/ask.h defines the messages between process 1 of a jail and bourse-tensor. They
 * travel over a SOCK_SEQPACKET pair that is bourse-tensor's standard input. There is one ASK at a
 * time, and one ANSWER to each. Fields go through base/cursor.h. Output of an operation goes to
 * standard output and standard error before its answer.
 *
 *     ASK      u64 memory that the operation may allocate, u32 count, for each argument u32 length
 *              with its NUL and the bytes, u32 count, for each input that comes as a descriptor its
 *              name likewise
 *     ANSWER   u32 operation_status, u32 verdict (enum result_verdict), u64 peak memory of the
 *              program so far, u32 length, the problem's text */
#ifndef BOURSE_PROVIDER_TENSOR_ASK_H
#define BOURSE_PROVIDER_TENSOR_ASK_H

enum {
    ASK_BYTES = 32768, /* arguments are a few names */
    ASK_ARGUMENTS = 16,
    ANSWER_BYTES = 1024,
};

#define TENSOR_PROGRAM "/.bourse-tensor" /* its name in a jail that has it */
/* The agent's own argument asks for the speed of one thread: {"engine":..,"mflops":..}. */
#define TENSOR_MEASURE "measure"

#endif
