# What `cmake --install` puts where. The programs find Cleave's own library beside themselves, LibTorch where this build
# did, and their resources in ../share/cleave. packaging/bundle makes of it what brings its own LibTorch.
include(GNUInstallDirs)
foreach(program cleave cleave-cli cleave-rank)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME)
  endif()
endforeach()
if(TARGET cleave_nccl)
  install(TARGETS cleave_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})  # cleave-rank looks beside itself
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
# Pages and completions are what the programs say of themselves.
install(CODE "
  set(cli \"$<TARGET_FILE:cleave-cli>\")
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  function(said file)
    get_filename_component(folder \"\${share}/\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"\${cli}\" \${ARGN} OUTPUT_FILE \"\${share}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS \"Installing: \${share}/\${file}\")
  endfunction()
  said(zsh/vendor-completions/_cleave completion zsh)
  # bash and fish look for a file by the name of the program.
  foreach(program cleave cleave-cli cleave-rank)
    said(man/man1/\${program}.1 reference --format man --program \${program})
    said(bash-completion/completions/\${program} completion bash)
    said(fish/vendor_completions.d/\${program}.fish completion fish)
  endforeach()
")
