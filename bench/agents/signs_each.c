/* signs-each-provider is bourse-provider that signs each result by itself, for bench/endtoend.
 *
 * The benchmark shows with it what batches of results under one signature save. The program is
 * linked with --wrap=agent_session_create. No setting of bourse-provider does the same. */
#include "provider/session/agent_session.h"

struct agent_session *__real_agent_session_create(const struct agent_session_config *config);
struct agent_session *__wrap_agent_session_create(const struct agent_session_config *config);

struct agent_session *__wrap_agent_session_create(const struct agent_session_config *config)
{
    struct agent_session_config told = *config;
    told.results_per_signature = 1;
    return __real_agent_session_create(&told);
}
