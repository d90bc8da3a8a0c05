# bench/X.c: one program each, printing JSON; bench/X/ holds its further parts.

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  file(GLOB parts CONFIGURE_DEPENDS bench/${name}/*.c)
  add_executable(bench_${name} ${source} ${parts})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_link_libraries(bench_${name} PRIVATE bourse_flags consumer broker provider provider_session tensor)
endforeach()
