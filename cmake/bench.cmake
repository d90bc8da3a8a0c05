# bench/X.c: one program each, printing JSON; bench/X/ holds its further parts.

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  file(GLOB parts CONFIGURE_DEPENDS bench/${name}/*.c)
  add_executable(bench_${name} ${source} ${parts})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_link_libraries(bench_${name} PRIVATE bourse_flags consumer broker provider provider_session kernel tensor)
endforeach()
target_link_libraries(bench_gpu PRIVATE kernel)
# The loop of bench/llm.sh without a market.
add_executable(llm-direct bench/llm/direct.c)
set_target_properties(llm-direct PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
target_link_libraries(llm-direct PRIVATE bourse_flags onnx)
target_sources(bench_journal PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/etcd_cluster.c) # three members of etcd

# bourse-provider that signs every result apart, for endtoend --sign-each; never installed.
add_executable(signs-each-provider EXCLUDE_FROM_ALL provider/main.c bench/agents/signs_each.c)
target_link_libraries(signs-each-provider PRIVATE bourse_flags owner provider)
target_link_options(signs-each-provider PRIVATE -Wl,--wrap=agent_session_create)
add_dependencies(bench_endtoend signs-each-provider)

# The book behind the interface of a public harness, where FLASH1_DIR (variable or environment) names a checkout of it:
# docs/bench.md. Sources of the book are compiled again, as they have to be for a shared object.
if(NOT FLASH1_DIR AND DEFINED ENV{FLASH1_DIR})
  set(FLASH1_DIR $ENV{FLASH1_DIR})
endif()
if(FLASH1_DIR)
  file(GLOB book_sources CONFIGURE_DEPENDS matching/*.c)
  add_library(bench_flash1 MODULE bench/flash1/adapter.c ${book_sources})
  set_target_properties(bench_flash1 PROPERTIES PREFIX "" OUTPUT_NAME bourse_adapter
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_include_directories(bench_flash1 SYSTEM PRIVATE ${FLASH1_DIR})
  target_link_libraries(bench_flash1 PRIVATE bourse_flags base)
endif()
