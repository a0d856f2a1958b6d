# How the tests of a room become one program and many CTest tests.
#
#   cleave_tests(graph LABEL core USES cleave_graph)
#
# compiles tests/graph/tst_*.cpp into the program tests/graph_tests. For each file the build folder has a symbolic link
# tests/tst_NAME to the program, which runs the test that it is called as, and there are a target tst_NAME and a CTest
# test tst_NAME. A test is still a process of its own.
#
# A test's headers take longer to compile than the test, so several tests of a room are one unit; see test-unit.

# All tests labelled core. They need neither LibTorch nor a display, and the sanitizers run them.
add_custom_target(core_tests)

set(testsPerUnit 8)
if(NOT CLEAVE_UNITY)
  set(testsPerUnit 1)
elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(testsPerUnit 3)
endif()
set(testMain ${CMAKE_SOURCE_DIR}/tests/support/main.cpp.in)

# Adds the sources to the program in units of `testsPerUnit`.
function(cleave_test_units program sources definitions)
  list(LENGTH sources count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST sources ${first} ${testsPerUnit} group)
    list(GET group 0 head)
    get_filename_component(head ${head} NAME_WE)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${program}/${head}.cpp)
    list(TRANSFORM group PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE files)
    add_custom_command(OUTPUT ${unit} DEPENDS ${CMAKE_SOURCE_DIR}/packaging/cmake/test-unit ${files}
      COMMAND ${CMAKE_SOURCE_DIR}/packaging/cmake/test-unit ${unit} ${group} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    target_sources(${program} PRIVATE ${unit})
    set_source_files_properties(${unit} PROPERTIES COMPILE_DEFINITIONS "${definitions}")
    math(EXPR first "${first} + ${testsPerUnit}")
  endwhile()
endfunction()

function(cleave_tests folder)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT;OUTPUT" "USES" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 1800)  # ends a test that hangs; a busy machine may need many times the usual seconds
  endif()
  if(NOT T_OUTPUT)
    set(T_OUTPUT ${CMAKE_BINARY_DIR}/tests)
  endif()
  set(kind TEST)
  if(T_LABEL STREQUAL "gui")
    set(kind GUI_TEST)
    list(APPEND T_USES Qt6::Widgets)  # for the precompiled headers; packaging/checks/rooms checks rooms without widgets
  elseif(T_LABEL STREQUAL "torch")
    set(kind LIBTORCH_TEST)
  endif()
  string(REPLACE "/" "_" program ${folder}_tests)
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/tst_*.cpp)
  set(mains "")
  set(names "")
  set(mocs "")
  set(plain "")
  set(placed "")
  set(placing "CLEAVE_(SOURCE_DIR|BIN_DIR|TEST_DATA|TORCH_PYTHON)")
  string(APPEND placing "|(cases|cli_process|cli_json|hub_server|simulated_run|shim_runs)\\.h")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    # Each test includes its own .moc. AUTOMOC would compile one more empty file per test.
    set(moc ${CMAKE_CURRENT_BINARY_DIR}/moc/${name}.moc)
    qt6_generate_moc(${CMAKE_SOURCE_DIR}/${source} ${moc})
    list(APPEND mocs ${moc})
    string(APPEND mains "namespace ${name} { int main(int, char**); }\n")
    string(APPEND names "    {\"${name}\", ${name}::main},\n")
    # A path in a definition makes objects differ between checkouts, so ccache misses. Only units with a path get them.
    file(STRINGS ${CMAKE_SOURCE_DIR}/${source} paths REGEX "${placing}")
    if(paths)
      list(APPEND placed ${source})
    else()
      list(APPEND plain ${source})
    endif()
    cleave_add_test(${name} ${program} ${T_OUTPUT} ${T_LABEL} ${T_TIMEOUT})
  endforeach()
  set_source_files_properties(${mocs} PROPERTIES HEADER_FILE_ONLY ON)
  set(main ${CMAKE_CURRENT_BINARY_DIR}/units/${program}/main.cpp)
  configure_file(${testMain} ${main} @ONLY)
  set_source_files_properties(${main} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  add_executable(${program} ${main} ${mocs})
  cleave_test_units(${program} "${plain}" "")
  cleave_test_units(${program} "${placed}" "CLEAVE_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\";\
CLEAVE_BIN_DIR=\"${CMAKE_BINARY_DIR}/bin\";CLEAVE_TEST_DATA=\"${CMAKE_SOURCE_DIR}/tests/data\";\
CLEAVE_TORCH_PYTHON=\"${CLEAVE_TORCH_PYTHON}\"")
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${T_OUTPUT})
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/moc)
  target_link_libraries(${program} PRIVATE ${T_USES} Qt6::Test fmt::fmt cleave_options)
  cleave_kind(${program} ${kind})
  set_target_properties(${program} PROPERTIES UNITY_BUILD OFF)  # the units are units
  # False alarms of g++ 12 on vectors of aggregates (GCC bug 105562).
  target_compile_options(${program} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endfunction()

# The link, the target and the CTest test of one file.
function(cleave_add_test name program output label timeout)
  file(MAKE_DIRECTORY ${output})
  file(CREATE_LINK ${program} ${output}/${name} SYMBOLIC)
  add_custom_target(${name} DEPENDS ${program})
  add_test(NAME ${name} COMMAND ${output}/${name})
  if(label STREQUAL "core")
    add_dependencies(core_tests ${name})
  endif()
  set(home ${CMAKE_CURRENT_BINARY_DIR}/home/${name})  # tests do not change the user's settings and runs
  # No SKIP_REGULAR_EXPRESSION: CTest would report a program with a skipped and a failed row as skipped.
  # packaging/test lists the skipped rows.
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${timeout}
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;QTEST_FUNCTION_TIMEOUT=1800000"
    ENVIRONMENT_MODIFICATION "XDG_CONFIG_HOME=set:${home}/config;XDG_DATA_HOME=set:${home}/data")
  if(label MATCHES "torch|cli|simulated-gpu")  # tests run beside each other, and idle threads of OpenMP spin
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "OMP_NUM_THREADS=1")
  endif()
endfunction()
