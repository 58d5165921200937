# What `cmake --install` puts in place: the program, those that it starts itself, its manual pages
# and its completions.
#
# The completions come from the installed build's own program, so they name exactly its options. A
# program built for another machine cannot be asked: -DGLOVE_COMPLETIONS=OFF leaves them out.

include(GNUInstallDirs)
# Packing must not build the tests and benchmarks too.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
option(GLOVE_COMPLETIONS "Install shell completions" ON)

set(commands glove gloved)
set(helpers glove-control glove-egress glove-image glove-mcp glove-mediator glove-ssh-agent)
add_custom_target(programs DEPENDS ${commands} ${helpers})
install(TARGETS ${commands} RUNTIME)
install(TARGETS ${helpers} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/glove)
install(FILES docs/man/glove.1 docs/man/glove-daemon.1 docs/man/glove-doctor.1 docs/man/glove-exec.1 docs/man/glove-exposure.1 docs/man/glove-home.1
  docs/man/glove-journal.1 docs/man/glove-log.1
  docs/man/glove-mcp.1 docs/man/glove-profile.1 docs/man/glove-quarantine.1 docs/man/glove-run.1 docs/man/glove-session.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/man/glove.toml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES docs/man/gloved.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)

# glove_install_completion(SHELL DIRECTORY FILE)
function(glove_install_completion shell directory file)
  set(made ${PROJECT_BINARY_DIR}/generated/completions/${file})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:glove>\" completion ${shell}
    OUTPUT_FILE \"${made}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory})
endfunction()

if(GLOVE_COMPLETIONS)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/completions)
  glove_install_completion(bash bash-completion/completions glove)
  glove_install_completion(zsh zsh/site-functions _glove)
  glove_install_completion(fish fish/vendor_completions.d glove.fish)
endif()
