/* A jury lists the owners that judged a subtask of a job with checks. */
#ifndef BOURSE_EXCHANGE_WORK_JURIES_H
#define BOURSE_EXCHANGE_WORK_JURIES_H

#include "exchange/state/records.h"

/* Returns the jury whose look is due first; NULL: none. */
struct jury *jury_first_look(const struct job *job);
/* Drops the jury of a subtask that is decided. */
void jury_dismiss(struct exchange *exchange, struct job *job, uint32_t index);
void juries_drop(struct exchange *exchange, struct job *job); /* drops all juries of the job */
/* Returns the subtask's jury, perhaps a new one; NULL: memory is short. */
struct jury *jury_put(struct exchange *exchange, struct job *job, uint32_t index);
/* Returns true when the account's owner is among the judges. */
bool jury_has_member(const struct exchange *exchange, const struct jury *jury, uint32_t account);
/* Adds the referee to the judges of the subtask. */
void jury_add(struct exchange *exchange, struct job *job, uint32_t index, uint32_t referee);
bool jury_is_full(const struct job *job, uint32_t index);
/* Overrules a referee that rejected an accepted result; the job asks its owner no more. */
void jury_overrule(struct exchange *exchange, struct job *job, uint32_t referee);
bool jury_has_overruled(const struct job *job);
bool jury_overruled(const struct exchange *exchange, const struct job *job, uint32_t referee);
/* Returns true when the judged subtask waits. */
bool jury_subtask_waits(const struct jury *jury);
/* Regroups by changed owners. The cost is a look at each judged subtask. */
void juries_regroup(struct exchange *exchange, struct job *job);
/* Returns how many waiting subtasks of the part the provider's owner has judged. */
uint32_t jury_barred(const struct exchange *exchange, const struct part *part, uint32_t provider);
/* jury_passed_retries returns the last retry that the provider is known to pass over, with all
 * before it, or NO_SUBTASK. jury_pass_retries records it. */
uint32_t jury_passed_retries(const struct exchange *exchange, const struct part *part,
                             uint32_t provider);
void jury_pass_retries(const struct exchange *exchange, const struct part *part, uint32_t provider,
                       uint32_t last);
/* `index` left the part's queue of retries, where it followed `before`. */
void jury_retry_unlinked(const struct part *part, uint32_t index, uint32_t before);
void jury_forget_look(struct exchange *exchange, struct jury *jury);
/* Gives the jury its next look. */
void jury_look_later(struct exchange *exchange, struct jury *jury);
/* The subtask starts or stops waiting. A judged one gets a later look, which tells if anybody can
 * make it. */
void jury_waits(struct exchange *exchange, struct job *job, uint32_t index);
void jury_waits_no_more(struct exchange *exchange, struct job *job, uint32_t index);
bool jury_lacks_maker(const struct job *job); /* a subtask failed because nobody may make it */
bool juries_await(const struct job *job, int64_t at_ns);
/* Gives a look to subtasks that wait without one, as under rules before 19. */
void juries_resume(struct exchange *exchange, struct job *job);
/* Rebuilds after a snapshot all that follows from the records. */
void juries_restore(struct exchange *exchange, struct job *job);
void juries_free(struct job *job); /* memory alone */

#endif
