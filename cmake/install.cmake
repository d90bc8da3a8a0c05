# `cmake --install` puts programs, libbourse, man pages, completions, units and docs where GNUInstallDirs says. Debian's
# packages are made of the same files (packaging/debian, scripts/package).

include(GNUInstallDirs)
set(BOURSE_UNIT_DIR lib/systemd/system CACHE STRING "where the units of the system go, below the prefix or absolute")

# The programs look for their helpers in ../libexec/bourse (runtime/process.h).
install(TARGETS bourse bourse-broker bourse-provider bourse-audit RUNTIME DESTINATION bin)
install(TARGETS bourse-worker bourse-tensor bourse-kernel bourse-plugin bourse-pjrt bourse-wasm bourse-onnx RUNTIME DESTINATION libexec/bourse)
install(FILES provider/executors/wasm_host.cjs DESTINATION libexec/bourse RENAME bourse-wasm.cjs)

# The public headers, which name one another by <bourse/...> once they are installed.
install(TARGETS libbourse LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
file(GLOB public_headers CONFIGURE_DEPENDS consumer/client/bourse.h consumer/client/bourse_*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})
foreach(header ${public_headers})
  get_filename_component(name ${header} NAME)
  file(READ ${header} text)
  string(REGEX REPLACE "#include \"consumer/client/([a-z_]+[.]h)\"" "#include <bourse/\\1>" text "${text}")
  string(REPLACE "consumer/client/" "bourse/" text "${text}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/installed/bourse/${name} CONTENT "${text}" @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/installed/bourse/${name} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bourse)
endforeach()

# Files that name the prefix are made when it is known for good: `cmake --install` may get another one.
# installed_text(SOURCE NAME FOLDER): /usr/bin in the source stands for the folder of the programs.
function(installed_text source name folder)
  install(CODE "
    set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/${source}\" \"${CMAKE_BINARY_DIR}/installed/${name}\" @ONLY)
    file(READ \"${CMAKE_BINARY_DIR}/installed/${name}\" text)
    string(REPLACE \"/usr/bin/\" \"\${CMAKE_INSTALL_PREFIX}/bin/\" text \"\${text}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/installed/${name}\" \"\${text}\")
    set(folder \"${folder}\")
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\" NORMALIZE)
    file(INSTALL DESTINATION \"\${folder}\" TYPE FILE FILES \"${CMAKE_BINARY_DIR}/installed/${name}\")")
endfunction()

installed_text(packaging/libbourse.pc.in libbourse.pc ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(daemon bourse-broker bourse-provider)
  installed_text(packaging/${daemon}.service ${daemon}.service ${BOURSE_UNIT_DIR})
  install(FILES packaging/${daemon}.sysusers DESTINATION lib/sysusers.d RENAME ${daemon}.conf)
  install(FILES packaging/${daemon}.tmpfiles DESTINATION lib/tmpfiles.d RENAME ${daemon}.conf)
endforeach()
installed_text(packaging/bourse-provider.user.service user/bourse-provider.service lib/systemd/user)

# Each program writes its own completions. Zsh wants a file named after its function, which has no dashes.
set(BOURSE_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING
  "where the completions of zsh go, below the prefix or absolute")
function(installed_completion program shell name folder)
  set(completion ${CMAKE_BINARY_DIR}/completions/${shell}/${name})
  add_custom_command(
    OUTPUT ${completion}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completions/${shell}
    COMMAND $<TARGET_FILE:${program}> completion ${shell} > ${completion}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${completion}.new ${completion}
    DEPENDS ${program} VERBATIM)
  install(FILES ${completion} DESTINATION ${folder})
  set(completions ${completions} ${completion} PARENT_SCOPE)
endfunction()
foreach(program bourse bourse-broker bourse-provider)
  string(REPLACE - _ function _${program})
  installed_completion(${program} bash ${program} ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  installed_completion(${program} zsh ${function} ${BOURSE_ZSH_DIR})
  installed_completion(${program} fish ${program}.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})
add_dependencies(programs completions)

file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.[1-8])
foreach(page ${man_pages})
  string(REGEX REPLACE "^.*[.]([1-8])$" "\\1" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN man EXCLUDE)
