# The simulator (tests/sim) compiles the production rooms once more, optimised and without
# sanitizers, since it has millions of commands to run. sim-sanitized is linked to the rooms as
# every other test has them.

# The other compiler's simulator (tests/sim/other_compiler.sh) is compiled with other options, and only of what it links.
set(BOURSE_FAST_OPTIONS -O2 -g1 CACHE STRING "how the rooms without sanitizers are compiled, for the simulator and searching tests")
set(BOURSE_FAST_NAMES "" CACHE STRING "the rooms without sanitizers are compiled of the files of these names alone; empty: of all")
set(fast_options ${BOURSE_FAST_OPTIONS})

function(fast_room name)
  cmake_parse_arguments(PARSE_ARGV 1 ROOM "" "" "SOURCES;LINKS")
  if(BOURSE_FAST_NAMES)
    foreach(source ${ROOM_SOURCES})
      get_filename_component(file ${source} NAME)
      if(file IN_LIST BOURSE_FAST_NAMES)
        list(APPEND linked ${source})
      endif()
    endforeach()
  endif()
  if(linked) # a room of which nothing is linked stays whole, and is not built
    set(ROOM_SOURCES ${linked})
  endif()
  add_library(fast_${name} STATIC ${ROOM_SOURCES})
  set_target_properties(fast_${name} PROPERTIES OUTPUT_NAME ${name}
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sim/lib)
  target_include_directories(fast_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_definitions(fast_${name} PRIVATE _GNU_SOURCE BOURSE_VERSION="${PROJECT_VERSION}")
  target_compile_options(fast_${name} PRIVATE ${fast_options} -fno-omit-frame-pointer)
  target_link_libraries(fast_${name} PUBLIC ${ROOM_LINKS})
endfunction()

add_library(fast_schema STATIC ${SCHEMA}.c ${SCHEMA}.h)
set_target_properties(fast_schema PROPERTIES OUTPUT_NAME schema ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sim/lib)
target_link_libraries(fast_schema PUBLIC PkgConfig::PROTOBUFC)
target_include_directories(fast_schema SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_compile_options(fast_schema PRIVATE ${fast_options})

fast_room(base SOURCES ${base_sources} LINKS PkgConfig::CRYPTO)
fast_room(protocol SOURCES ${protocol_sources} LINKS fast_base fast_schema PkgConfig::SODIUM)
fast_room(formats SOURCES ${formats_sources} LINKS fast_base PkgConfig::YAML)
fast_room(matching SOURCES ${matching_sources} LINKS fast_base)
fast_room(ledger SOURCES ${ledger_sources} LINKS fast_base PkgConfig::SODIUM)
fast_room(ledger_sqlite SOURCES ${ledger_sqlite_sources} LINKS fast_ledger PkgConfig::SQLITE)
# The exchange calls one file of the planner, so the simulator is built without the others.
fast_room(dispatch SOURCES planner/schedule/online.c LINKS fast_base)
set(further_planner_sources ${planner_sources})
list(FILTER further_planner_sources EXCLUDE REGEX "planner/schedule/online[.]c$")
fast_room(planner SOURCES ${further_planner_sources} LINKS fast_dispatch fast_base)
fast_room(exchange SOURCES ${exchange_sources} LINKS fast_matching fast_ledger fast_dispatch fast_base)
fast_room(broker SOURCES ${broker_sources} LINKS fast_exchange fast_ledger_sqlite fast_protocol fast_formats PkgConfig::ZMQ PkgConfig::SQLITE)
fast_room(provider_session SOURCES ${provider_session_sources} LINKS fast_protocol fast_base)
fast_room(consumer_session SOURCES ${consumer_session_sources} LINKS fast_protocol fast_base)

file(GLOB sim_sources CONFIGURE_DEPENDS tests/sim/*.c)
list(APPEND sim_sources tests/support/checks_model.c)
set(sim_wraps malloc calloc realloc free pthread_create pthread_join nanosleep zmq_poll)
list(TRANSFORM sim_wraps PREPEND "-Wl,--wrap=")

add_executable(sim ${sim_sources})
target_link_libraries(sim PRIVATE fast_broker fast_provider_session fast_consumer_session fast_exchange
  fast_ledger fast_protocol fast_base)
target_compile_definitions(sim PRIVATE _GNU_SOURCE)
target_compile_options(sim PRIVATE ${fast_options} -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
  $<$<BOOL:${BOURSE_WERROR}>:-Werror>)
target_link_options(sim PRIVATE ${sim_wraps} -Wl,--wrap=crypto_sign_detached -Wl,--wrap=crypto_sign_verify_detached
  -Wl,-Map=${CMAKE_BINARY_DIR}/sim/sim.map) # the map names the files that tests/sim/other_compiler.sh compiles

set(sanitized_sources ${sim_sources})
list(FILTER sanitized_sources EXCLUDE REGEX "/signatures\\.c$")
add_executable(sim-sanitized ${sanitized_sources})
target_link_libraries(sim-sanitized PRIVATE bourse_flags broker provider_session consumer_session exchange ledger protocol base)
target_link_options(sim-sanitized PRIVATE ${sim_wraps})

# Three brokers on one journal: the same people and oracle, another broker, market and etcd.
file(GLOB cluster_sources CONFIGURE_DEPENDS tests/sim/cluster/*.c)
set(shared_sources ${sim_sources})
list(FILTER shared_sources EXCLUDE REGEX "/sim/(broker|market)\\.c$")
set(cluster_wraps ${sim_wraps} -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_unlock
  -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_timedwait -Wl,--wrap=pthread_cond_broadcast
  -Wl,--wrap=pthread_cond_signal -Wl,--wrap=gethostname -Wl,--wrap=getpid -Wl,--wrap=group_write_entry)
add_executable(sim-cluster ${shared_sources} ${cluster_sources})
target_link_libraries(sim-cluster PRIVATE fast_broker fast_provider_session fast_consumer_session fast_exchange
  fast_ledger fast_protocol fast_base)
target_compile_definitions(sim-cluster PRIVATE _GNU_SOURCE)
target_compile_options(sim-cluster PRIVATE ${fast_options} -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
  $<$<BOOL:${BOURSE_WERROR}>:-Werror>)
target_link_options(sim-cluster PRIVATE ${cluster_wraps} -Wl,--wrap=crypto_sign_detached -Wl,--wrap=crypto_sign_verify_detached)

# A link that optimises the whole program keeps no names to look for.
if(NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  foreach(program sim sim-sanitized sim-cluster)
    set(rooms ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY})
    if(NOT program STREQUAL sim-sanitized)
      set(rooms ${CMAKE_BINARY_DIR}/sim/lib)
    endif()
    add_custom_command(TARGET ${program} POST_BUILD
      COMMAND bash ${CMAKE_SOURCE_DIR}/tests/sim/check_link.sh $<TARGET_FILE:${program}> ${rooms} $<TARGET_OBJECTS:${program}>
      COMMAND_EXPAND_LISTS VERBATIM)
  endforeach()
endif()

# The same simulator by another compiler, which is compiled by one processor.
add_test(NAME sim_compilers COMMAND bash ${CMAKE_SOURCE_DIR}/tests/sim/compilers.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(sim_compilers PROPERTIES TIMEOUT 9000 SKIP_RETURN_CODE 77)

foreach(test seeds replay sanitized cluster)
  add_test(NAME sim_${test} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/sim/run.sh ${test} ${CMAKE_BINARY_DIR}/bin)
  # Large tables are most of what a seed touches first.
  set_tests_properties(sim_${test} PROPERTIES TIMEOUT 9000 ENVIRONMENT GLIBC_TUNABLES=glibc.malloc.hugetlb=1)
endforeach()
