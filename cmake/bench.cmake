# bench/X.c: one program each, printing JSON; bench/X/ holds its further parts, bench/shared/ what several need.

file(GLOB bench_shared_sources CONFIGURE_DEPENDS bench/shared/*.c)
add_library(bench_shared STATIC ${bench_shared_sources})
target_link_libraries(bench_shared PRIVATE bourse_flags consumer)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  file(GLOB parts CONFIGURE_DEPENDS bench/${name}/*.c)
  add_executable(bench_${name} ${source} ${parts})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_link_libraries(bench_${name} PRIVATE bourse_flags bench_shared consumer broker provider provider_session kernel tensor)
endforeach()
target_link_libraries(bench_gpu PRIVATE kernel)
foreach(name journal cluster) # three members of etcd
  target_sources(bench_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/etcd_cluster.c)
endforeach()
target_sources(bench_onnx_direct PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/onnx_models.c ${CMAKE_SOURCE_DIR}/tests/support/onnx_writer.c)
target_link_libraries(bench_onnx_direct PRIVATE onnx)
# A market with many agents in one process.
target_sources(bench_cluster PRIVATE ${CMAKE_SOURCE_DIR}/bench/scale/agents.c ${CMAKE_SOURCE_DIR}/bench/scale/market.c)
# The loop of bench/llm.sh without a market.
add_executable(llm-direct bench/llm/direct.c)
set_target_properties(llm-direct PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
target_link_libraries(llm-direct PRIVATE bourse_flags onnx)

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
