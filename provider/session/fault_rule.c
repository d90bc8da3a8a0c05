#include "provider/session/fault_rule.h"

#include <assert.h>
#include <stdio.h>

static void keep_cause(struct fault_rule *rule, const char *cause)
{
    (void)snprintf(rule->cause, sizeof rule->cause, "%s", cause); /* cut, never overrun */
}

static void wait_longer(struct fault_rule *rule, int64_t now_ns)
{
    const int64_t next_ns = rule->wait_ns == 0 ? FAULT_RULE_FIRST_NS : 2 * rule->wait_ns;
    rule->wait_ns = next_ns < FAULT_RULE_LONGEST_NS ? next_ns : FAULT_RULE_LONGEST_NS;
    rule->trial_ns = now_ns + rule->wait_ns;
}

bool fault_rule_fail(struct fault_rule *rule, int64_t now_ns, enum device_fault fault,
                     const char *cause)
{
    assert(fault != DEVICE_FAULT_NONE);
    if (rule->is_withheld) {
        return false;
    }
    rule->failures++;
    rule->fault = fault;
    keep_cause(rule, cause);
    if (rule->failures < FAULT_RULE_MOST) {
        return false;
    }
    rule->is_withheld = true;
    rule->trials = 0;
    wait_longer(rule, now_ns);
    return true;
}

void fault_rule_work(struct fault_rule *rule)
{
    if (!rule->is_withheld) { /* work that ran on beside the failures proves too little */
        *rule = (struct fault_rule){.failures = 0};
    }
}

int64_t fault_rule_due_ns(const struct fault_rule *rule)
{
    return rule->is_withheld && !rule->is_trying ? rule->trial_ns : INT64_MAX;
}

void fault_rule_try(struct fault_rule *rule)
{
    assert(rule->is_withheld);
    assert(!rule->is_trying);
    rule->is_trying = true;
}

bool fault_rule_tried(struct fault_rule *rule, int64_t now_ns, bool has_passed, const char *cause)
{
    assert(rule->is_trying);
    rule->is_trying = false;
    if (has_passed) {
        const int64_t wait_ns = rule->wait_ns;
        *rule = (struct fault_rule){.wait_ns = wait_ns};
        return true;
    }
    rule->trials++;
    keep_cause(rule, cause);
    wait_longer(rule, now_ns);
    return false;
}

const char *fault_rule_word(enum device_fault fault)
{
    static const char *const words[DEVICE_FAULTS] = {
        [DEVICE_FAULT_NONE] = "none", [DEVICE_FAULT_OTHER] = "other",
        [DEVICE_FAULT_LOST] = "lost", [DEVICE_FAULT_MEMORY] = "memory",
        [DEVICE_FAULT_HANG] = "hang", [DEVICE_FAULT_DRIVER] = "driver",
    };
    return words[fault];
}

const char *fault_rule_advice(enum device_fault fault)
{
    static const char *const advice[DEVICE_FAULTS] = {
        [DEVICE_FAULT_NONE] = "nothing is to be done",
        [DEVICE_FAULT_OTHER] = "see the agent's log for the first failure, and try the device with "
                               "`bourse-provider probe`",
        [DEVICE_FAULT_LOST] = "reset the device or start the machine again, and look for its "
                              "errors in the kernel's log",
        [DEVICE_FAULT_MEMORY] = "end the programs that fill the device's memory",
        [DEVICE_FAULT_HANG] = "end the programs that use the device; if that does not help, reset "
                              "the device or start the machine again",
        [DEVICE_FAULT_DRIVER] = "install the driver of the device anew, or start the machine again "
                                "after an upgrade of the driver",
    };
    return advice[fault];
}
