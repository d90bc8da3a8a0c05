/* provider/idle/idle_watch.h looks at the machine as often as needed, and says whether its devices
 * may work. The sensors of this folder look, and provider/session/idle_rule.h decides. */
#ifndef BOURSE_PROVIDER_IDLE_IDLE_WATCH_H
#define BOURSE_PROVIDER_IDLE_IDLE_WATCH_H

#include "base/problem.h"
#include "provider/session/idle_rule.h"

#include <jansson.h>

struct idle_watch;

/* A look is due every IDLE_LOOK_NS while the devices work, and half as often while they do not. */
#define IDLE_LOOK_NS INT64_C(400000000)
/* A look is due this often while no work of others is there, so that nothing has to stop at
 * once. */
#define IDLE_REST_NS INT64_C(2000000000)
/* Reading the battery, the temperature and the power may ask a slow controller. */
#define IDLE_POWER_NS INT64_C(1600000000)
/* The load and the programs are read this often while the devices work, and less often while they
 * do not. A walk over 400 processes takes some 2 ms. */
#define IDLE_PROCESSES_NS INT64_C(800000000)
#define IDLE_PROCESSES_REST_NS INT64_C(2000000000)

enum { IDLE_SEES_SIZE = 512 };

/* Makes a watch over the machine whose files are below `root`, "" for this machine. `self` is the
 * process of the agent, whose programs are not those of others. Returns NULL when memory is
 * short. */
struct idle_watch *idle_watch_create(const struct idle_terms *terms, const char *root, pid_t self,
                                     int64_t now_ns);
void idle_watch_destroy(struct idle_watch **self);
/* Obeys other terms from the next look on, which is due now. */
void idle_watch_change(struct idle_watch *watch, const struct idle_terms *terms, int64_t now_ns);
/* Looks at the machine when a look is due, and returns the order that holds now. */
enum idle_order idle_watch_look(struct idle_watch *watch, int64_t now_ns);
int64_t idle_watch_due_ns(const struct idle_watch *watch);
/* Says whether work of others is there, as a new watch supposes. When the first work comes, a look
 * is due at once: the owner may have come back since the last one. */
void idle_watch_has_work(struct idle_watch *watch, int64_t now_ns, bool has_work);
/* Carries out the owner's `resume`: see idle_rule_override. */
void idle_watch_override(struct idle_watch *watch);
/* Returns true while such a `resume` holds. */
bool idle_watch_is_overridden(const struct idle_watch *watch);
void idle_watch_reason(const struct idle_watch *watch, int64_t now_ns,
                       char ret_text[IDLE_REASON_SIZE]);
/* Lists what the sensors watch. When no sensor can see a thing that the owner wants watched, the
 * text names this thing instead. */
void idle_watch_sees(const struct idle_watch *watch, char ret_text[IDLE_SEES_SIZE]);
/* Returns the state for `status`, or NULL when memory is short. */
json_t *idle_watch_json(const struct idle_watch *watch, int64_t now_ns);

/* Looks at the machine once. Returns true when the sensors see everything that the owner wants
 * watched. Otherwise the problem says what is missing, and which key of `idle` turns that watch
 * off. */
bool idle_watch_check(const struct idle_terms *terms, const char *root,
                      struct problem *ret_problem);

#endif
