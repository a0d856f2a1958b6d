# Files of `cmake --install`. The programs find Cleave's own library in their folder, LibTorch at this build's path,
# and their resources in ../share/cleave. packaging/bundle makes packages with LibTorch from it.
include(GNUInstallDirs)
foreach(program cleave cleave-cli cleave-rank)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME)
  endif()
endforeach()
if(TARGET cleave_nccl)
  install(TARGETS cleave_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})  # cleave-rank loads it from its own folder
endif()
if(CLEAVE_RANK_ONLY)
  return()
endif()
install(DIRECTORY resources/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cleave
        PATTERN screenshots EXCLUDE PATTERN icons EXCLUDE PATTERN __pycache__ EXCLUDE)
install(FILES resources/icons/cleave.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
install(FILES packaging/desktop/cleave.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
install(FILES packaging/desktop/cleave.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages)
install(FILES packaging/desktop/cleave.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo
        RENAME org.cleave.cleave.metainfo.xml)
# cleave-cli writes the man pages and completions.
install(CODE "
  set(cli \"$<TARGET_FILE:cleave-cli>\")
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  function(write_output file)
    get_filename_component(folder \"\${share}/\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"\${cli}\" \${ARGN} OUTPUT_FILE \"\${share}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS \"Installing: \${share}/\${file}\")
  endfunction()
  write_output(zsh/vendor-completions/_cleave completion zsh)
  # bash and fish look for a file named after the program.
  foreach(program cleave cleave-cli cleave-rank)
    write_output(man/man1/\${program}.1 manual --format man --program \${program})
    write_output(bash-completion/completions/\${program} completion bash)
    write_output(fish/vendor_completions.d/\${program}.fish completion fish)
  endforeach()
")
