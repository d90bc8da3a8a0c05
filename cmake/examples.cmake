# docs-examples: every C example of README.md and docs/, as one program, so that each compiles with our warnings.
# tests/integration/test_examples.sh runs it on a market.

file(GLOB example_pages CONFIGURE_DEPENDS README.md docs/*.md)
set(EXAMPLES ${CMAKE_BINARY_DIR}/generated/examples/examples.c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/examples)
add_custom_command(
  OUTPUT ${EXAMPLES}
  COMMAND ${AWK} -f ${CMAKE_SOURCE_DIR}/tests/support/c_examples.awk ${example_pages} > ${EXAMPLES}.new
  COMMAND ${CMAKE_COMMAND} -E rename ${EXAMPLES}.new ${EXAMPLES}
  DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/c_examples.awk ${example_pages} VERBATIM)
add_executable(docs-examples ${EXAMPLES})
target_link_libraries(docs-examples PRIVATE bourse_flags consumer)
