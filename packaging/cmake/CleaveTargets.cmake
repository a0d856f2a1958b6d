# How Cleave's rooms, programs and tests become targets.
#
#   cleave_room(base)                               core/base/*.cpp -> static library cleave_base
#   cleave_room(graph USES cleave_base)             its link line is the dependency rule: only rooms below
#   cleave_room(solve PARTS cost USES cleave_rules) core/solve/cost/*.cpp belong to it too
#   cleave_tests(graph LABEL core USES cleave_graph) tests/graph/tst_*.cpp -> one CTest program each

find_program(CLEAVE_CCACHE ccache)
if(CLEAVE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CLEAVE_CCACHE})
endif()
find_program(CLEAVE_LLD ld.lld)
if(CLEAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(cleave_options INTERFACE)
target_compile_options(cleave_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -fno-plt)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict: false alarms of g++ 12 on std::string (GCC bug 105651).
  target_compile_options(cleave_options INTERFACE -fpch-preprocess -Wno-restrict)
endif()
if(CLEAVE_SANITIZE)
  add_compile_options(-fsanitize=${CLEAVE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${CLEAVE_SANITIZE})
endif()

function(cleave_room name)
  cmake_parse_arguments(ROOM "" "FOLDER" "PARTS;USES" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${name})
  endif()
  set(folders ${ROOM_FOLDER})
  foreach(part ${ROOM_PARTS})
    list(APPEND folders ${ROOM_FOLDER}/${part})
  endforeach()
  list(TRANSFORM folders PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM folders APPEND "/*.cpp" OUTPUT_VARIABLE units)
  list(TRANSFORM folders APPEND "/*.h" OUTPUT_VARIABLE headers)
  file(GLOB sources CONFIGURE_DEPENDS ${units} ${headers})
  add_library(cleave_${name} STATIC ${sources})
  set_target_properties(cleave_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(cleave_${name} PUBLIC ${CMAKE_SOURCE_DIR}/core)
  target_link_libraries(cleave_${name} PUBLIC ${ROOM_USES} PRIVATE cleave_options)
endfunction()

# Everything labelled core: needs neither LibTorch nor a display; what the sanitizers run over.
add_custom_target(core_tests)

function(cleave_tests folder)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT;REUSE_PCH" "USES" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/tst_*.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES AUTOMOC ON AUTOMOC_COMPILER_PREDEFINES OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    # A path makes the object another one in each checkout, so that ccache misses: only units that name one get them.
    file(STRINGS ${source} paths REGEX "CLEAVE_(SOURCE_DIR|BIN_DIR|TEST_DATA)|golden\\.h|cli_process\\.h")
    if(paths)
      target_compile_definitions(${name} PRIVATE CLEAVE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" CLEAVE_BIN_DIR="${CMAKE_BINARY_DIR}/bin"
        CLEAVE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    endif()
    target_link_libraries(${name} PRIVATE ${T_USES} Qt6::Test cleave_options)
    if(T_REUSE_PCH)
      target_precompile_headers(${name} REUSE_FROM ${T_REUSE_PCH})
    endif()
    add_test(NAME ${name} COMMAND ${name})
    if(T_LABEL STREQUAL "core")
      add_dependencies(core_tests ${name})
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABEL}" TIMEOUT ${T_TIMEOUT}
      SKIP_REGULAR_EXPRESSION "^SKIP_WHOLE_TEST" ENVIRONMENT "QT_QPA_PLATFORM=offscreen")
  endforeach()
endfunction()
