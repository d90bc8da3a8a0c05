/* This file runs `bourse plan TEMPLATE` and `plan --file` (work.h). It has the work planned and
 * the plan shown. */
#include "consumer/command/plan/work.h"

#include "base/checked.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/plan/plan_model.h"
#include "consumer/command/plan/work_devices.h"
#include "consumer/command/plan/work_refusal.h"
#include "consumer/command/plan/work_request.h"
#include "consumer/command/plan/work_steps.h"
#include "consumer/command/show.h"
#include "planner/templates/template_list.h"

#include <stdlib.h>

static void work_fini(struct work *work)
{
    steps_destroy(&work->steps);
    device_set_destroy(&work->set);
    plan_destroy(&work->plan);
    plan_model_destroy(&work->model);
    free(work->placed);
    free(work->classes);
    free(work->calibrations);
    free(work->histories);
}

static int make_plan(struct work *work)
{
    const struct plan_input input = {.steps = work->steps,
                                     .template = work->model == NULL ? work->template : NULL,
                                     .values = work->values,
                                     .devices = work->devices,
                                     .device_count = work->set->count,
                                     .topology = work->set->topology,
                                     .objective = work->objective,
                                     .deadline_s = (double)work->request.deadline_ns / NS_PER_S,
                                     .budget_micro = work->request.budget_micro,
                                     .worth_micro = work->request.worth_micro,
                                     .placed = work->placed,
                                     .histories = work->histories,
                                     .may_fall_back = option_given(work->invocation, "fall-back"),
                                     .may_leave_out = true,
                                     .effort = PLAN_EFFORT};
    struct plan_fault fault = {.step = PLAN_ANYWHERE};
    enum plan_status status = plan_make(&(struct plan_work){.steps = &input}, &work->plan, &fault);
    if (status == PLAN_OK) {
        return BOURSE_OK;
    }
    if (status == PLAN_NO_MEMORY) {
        return work_no_memory(work);
    }
    return work_refuse(work, status == PLAN_BAD_INPUT ? BOURSE_USAGE : BOURSE_NO_MATCH, "PLAN_",
                       plan_status_name(status), fault.problem.text);
}

bool work_is_requested(const struct invocation *invocation)
{
    static const char *const of_work[] = {"file", "devices", "templates"};
    if (invocation->word_count == 0 && option_given(invocation, "on-offer")) {
        return true;
    }
    for (size_t i = 0; i < sizeof of_work / sizeof of_work[0]; i++) {
        if (option_given(invocation, of_work[i])) {
            return true;
        }
    }
    return invocation->word_count > 0 && (template_named(invocation->words[0]) != NULL ||
                                          plan_model_is_named(invocation->words[0]));
}

static int make_work(struct work *work)
{
    int status = work_request_read(work);
    status = status == BOURSE_OK ? work_steps_make(work) : status;
    status = status == BOURSE_OK ? work_devices_make(work) : status;
    status = status == BOURSE_OK ? work_devices_interrupt(work) : status;
    status = status == BOURSE_OK ? work_devices_place(work) : status;
    status = status == BOURSE_OK ? work_learn(work) : status;
    return status == BOURSE_OK ? make_plan(work) : status;
}

int plan_work(struct invocation *invocation)
{
    if (option_given(invocation, "templates")) {
        return plan_templates(invocation);
    }
    if (option_given(invocation, "file") && invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "plan takes a template or --file FILE, which names one, not both");
    }
    if (!option_given(invocation, "file") && invocation->word_count == 0) {
        return complain(invocation, BOURSE_USAGE,
                        "what is to be planned? a template, as in `bourse plan llm --devices "
                        "h100:2`; `bourse plan --templates` lists them");
    }
    struct work work = {.invocation = invocation};
    unsigned width = 0;
    const char *svg = NULL;
    int status = BOURSE_USAGE;
    if (picture_width(invocation, &width) && picture_path(invocation, &svg, &status)) {
        status = make_work(&work);
    }
    if (status == BOURSE_OK && svg != NULL) {
        (void)picture_write(invocation, svg, work_draw(&work, NULL), &status);
    }
    if (status == BOURSE_OK && invocation->json) {
        status = work_show_json(&work);
    } else if (status == BOURSE_OK && invocation->quiet) {
        (void)printf("%.9g\n", work.plan->total.makespan_s.value);
    } else if (status == BOURSE_OK) {
        work_show(&work, width);
    }
    work_fini(&work);
    return status;
}
