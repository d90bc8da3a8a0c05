# One libFuzzer target per decoder: tests/fuzz/fuzz_X.c, corpus in tests/fuzz/corpus/X. The normal builds run the
# same targets over their corpora without a fuzzer (fuzz_replay, cmake/tests.cmake). Each target searches for a minute.

file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" subject ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE bourse_flags broker audit provider owner command consumer onnx matching exchange runtime formats protocol
    ledger_sqlite ledger base)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  set(dictionary ${CMAKE_SOURCE_DIR}/tests/fuzz/${subject}.dict)
  if(EXISTS ${dictionary})
    set(dictionary -dict=${dictionary})
  else()
    set(dictionary "")
  endif()
  add_test(NAME ${name} COMMAND ${name} -max_total_time=60 -timeout=5 ${dictionary}
    ${CMAKE_BINARY_DIR}/fuzz/corpus-${subject} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${subject})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz/corpus-${subject})
endforeach()

target_sources(fuzz_dag PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/schedule_verify.c) # it judges the schedules
