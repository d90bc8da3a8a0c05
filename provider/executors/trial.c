#include "provider/executors/trial.h"

#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

ssize_t trial_ask(struct launcher *launcher, const struct jail_spec *spec, const char *helper,
                  const char *const *words, uint64_t wall_ns, char ret_said[TRIAL_SAID_BYTES],
                  struct problem *ret_problem)
{
    static struct jail_reply reply; /* large; trials are one after another */
    struct jail_request request = {
        .tensor_threads = 1, .argv = words, .stdin_fd = -1, .wall_ns = wall_ns};
    struct jail_spec bounded = *spec;
    struct jail *jail = NULL;
    bounded.limits = (struct jail_limits){
        .memory_bytes = 1024 * MIB, .disk_bytes = 64 * MIB, .processes = 64, .cpu_milli = 1000};
    if (!jail_open(launcher, &bounded, &jail, ret_problem)) {
        return -1;
    }
    jail_run(jail, &request, &reply);
    ssize_t length = -1;
    if (reply.outcome == OUTCOME_OK && reply.standard_output.fd >= 0) {
        const struct jail_output *output = &reply.standard_output; /* its file is longer */
        const size_t size =
            output->size < TRIAL_SAID_BYTES ? (size_t)output->size : TRIAL_SAID_BYTES;
        length = pread(output->fd, ret_said, size, 0);
    }
    if (length < 0 && reply.detail[0] != '\0') {
        problem_set(ret_problem, "%.400s", reply.detail);
    } else if (length < 0) {
        problem_set(ret_problem, "%s says nothing", helper);
    }
    jail_reply_fini(&reply);
    jail_close(&jail);
    return length;
}
