# Programs that tests of real processes use: a client that remembers, and a bad line. Where tests are off they
# are built on request only (scripts/soak runs the release build).

function(helper name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE bourse_flags consumer consumer_session formats protocol runtime base)
  if(NOT BOURSE_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

helper(market-client tests/programs/market_client.c tests/programs/market_judge.c tests/programs/record.c)
helper(market-proxy tests/programs/market_proxy.c)
helper(junk-storer tests/programs/junk_storer.c)
helper(follower tests/programs/follower.c)
helper(terminal-user tests/programs/terminal_user.c)

# The example of a plug-in, as its owner would build it.
add_executable(vector-add docs/plugins/vector_add.c)
target_compile_definitions(vector-add PRIVATE _GNU_SOURCE)
target_compile_options(vector-add PRIVATE -O2 -Wall -Wextra -Wshadow -Wconversion $<$<BOOL:${BOURSE_WERROR}>:-Werror>)
target_link_libraries(vector-add PRIVATE PkgConfig::JANSSON)
if(NOT BOURSE_TESTS)
  set_target_properties(vector-add PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

# An agent's tensor program that lies, for tests; never installed.
tensor_program(lying-tensor tests/programs/lying_tensor.c)
target_link_options(lying-tensor PRIVATE -Wl,--wrap=operation_run)
# The same of an agent whose results are lies.
add_executable(lying-provider provider/main.c tests/programs/lying_provider.c)
target_link_libraries(lying-provider PRIVATE bourse_flags owner provider)
target_link_options(lying-provider PRIVATE -Wl,--wrap=agent_session_finished,--wrap=agent_session_create,--wrap=agent_session_challenged)
# The broker as the program of the release before, whose rules have the numbers before.
program(broker-before SOURCES broker/main.c broker/gateway/accept_guard.c broker/rules_known.c LINKS broker)
target_compile_definitions(broker-before PRIVATE BOURSE_RULES_BEHIND=1)
if(NOT BOURSE_TESTS)
  set_target_properties(lying-tensor lying-provider broker-before PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
