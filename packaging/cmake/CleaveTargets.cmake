# How Cleave's rooms, programs and tests become targets.
#
#   cleave_room(base)                                     core/base/*.cpp -> static library cleave_base
#   cleave_room(graph USES cleave_base)                   its link line is the dependency rule: only rooms below
#   cleave_room(solve/cost USES cleave_solve_problem)     core/solve/cost/*.cpp -> cleave_solve_cost; no folder below it
#   cleave_room(plan KIND PLAN USES cleave_program)       one of the kinds of code below (default: CORE)

find_program(CLEAVE_CCACHE ccache)
if(CLEAVE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/cached-compile ${CMAKE_SOURCE_DIR} ${CLEAVE_CCACHE})
endif()
find_program(CLEAVE_LLD ld.lld)
if(CLEAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(cleave_options INTERFACE)
target_compile_options(cleave_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -fno-plt)
# A unit holds several files. A program keeps only the functions that it can reach.
target_compile_options(cleave_options INTERFACE -ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Messages name files relative to the source tree, so objects are equal in every checkout.
  target_compile_options(cleave_options INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
  # The last four: false alarms of g++ 12 on std::string (GCC bugs 105651, 105329).
  target_compile_options(cleave_options INTERFACE -fpch-preprocess -Wno-restrict -Wno-stringop-overflow
                         -Wno-stringop-overread -Wno-array-bounds)
  # A precompiled header fills g++'s heap past the size at which it collects garbage. There is no garbage yet, and the
  # collection takes 10 % of the time. The limit is in KiB; no file of Cleave reaches it.
  target_compile_options(cleave_options INTERFACE "SHELL:--param ggc-min-heapsize=524288")
endif()
# Warnings are errors only with the tested compiler. Other compilers and sanitizers may print more warnings.
set(isKnownCompiler OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
   AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT CLEAVE_SANITIZE)
  set(isKnownCompiler ON)
endif()
option(CLEAVE_WERROR "Warnings are errors" ${isKnownCompiler})
if(CLEAVE_WERROR)
  target_compile_options(cleave_options INTERFACE -Werror)
endif()
if(CLEAVE_SANITIZE)
  add_compile_options(-fsanitize=${CLEAVE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CLEAVE_SANITIZE MATCHES "address")
    # Checks as calls: inline checks take a fifth of the compile time.
    add_compile_options("SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  add_link_options(-fsanitize=${CLEAVE_SANITIZE})
endif()

# Kinds of code. Headers that nearly every file of a kind includes are parsed once, also Cleave's own. nlohmann/json is
# not among them: a file that does not use it loses more time than others save. Files still include what they use,
# because clang-tidy reads them without precompiled headers. The optimizer takes a third of the compile time, so hot
# code (rules, searches, traces: CORE) gets -O3, and code that calls, writes, draws and explains gets -O1. g++ inlines
# less in a unit with more than large-unit-insns: at its default of 10,000 units of eight files search 7 % slower.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CLEAVE_CORE_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <functional> <limits> <map>
  <memory> <mutex> <numeric> <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <tl/expected.hpp>)
set(CLEAVE_PLAN_HEADERS ${CLEAVE_CORE_HEADERS} <plan/plan.h>)
set(CLEAVE_LIBTORCH_HEADERS <ATen/ATen.h> <torch/library.h> <ATen/core/dispatch/Dispatcher.h> ${CLEAVE_CORE_HEADERS})
set(CLEAVE_GUI_HEADERS ${CLEAVE_PLAN_HEADERS} <QAbstractTableModel> <QKeyEvent> <QMouseEvent> <QPainter> <QPainterPath>
  <QString> <QStringList> <QTimer>)
set(CLEAVE_WIDGETS_HEADERS ${CLEAVE_GUI_HEADERS} <QApplication> <QComboBox> <QHBoxLayout> <QLabel> <QLineEdit> <QMenu>
  <QPushButton> <QScrollArea> <QToolButton> <QVBoxLayout> <QWidget> <views/base/text.h> <views/base/theme.h>)
set(CLEAVE_TEST_HEADERS ${CLEAVE_CORE_HEADERS} <QJsonArray> <QJsonDocument> <QJsonObject> <QProcess> <QTemporaryDir>
  <QTest> <graph/graph.h>)
set(CLEAVE_GUI_TEST_HEADERS ${CLEAVE_WIDGETS_HEADERS} <QtTest>)
# LibTorch's headers come first, because they use Qt's keywords as names.
set(CLEAVE_LIBTORCH_TEST_HEADERS ${CLEAVE_LIBTORCH_HEADERS} <QTest> <QTemporaryDir> <nlohmann/json.hpp>
  <pipeline/source/open.h> <pipeline/solve/solve.h>)

# Shared headers take longer than most files, so eight files of a room are one unit, three in a debug build, which is
# built after every change, and with sanitizers a whole room: their core code takes less than half the time then. Names
# local to a file must therefore differ within a room. OFF makes each file a unit.
option(CLEAVE_UNITY "Compile some files of a room at a time" ON)
set(filesPerUnit 8)
if(CLEAVE_SANITIZE)
  set(filesPerUnit 0)  # no limit
elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(filesPerUnit 3)
endif()

# The first target of a kind precompiles the headers, and later targets reuse the result.
function(cleave_kind target kind)
  if(kind STREQUAL "CORE")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>
      "SHELL:$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:--param large-unit-insns=30000>")
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(CLEAVE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${filesPerUnit})
    # g++ treats the sources of a unity unit as headers.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  get_property(first GLOBAL PROPERTY CLEAVE_FIRST_${kind})
  if(NOT CLEAVE_${kind}_HEADERS)
    return()  # CLI: compiling CLI11's templates takes longer than parsing its headers
  elseif(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY CLEAVE_FIRST_${kind} ${target})
    target_precompile_headers(${target} PRIVATE ${CLEAVE_${kind}_HEADERS})
  endif()
endfunction()

function(cleave_room folder)
  cmake_parse_arguments(ROOM "" "KIND" "USES" ${ARGN})
  if(NOT ROOM_KIND)
    set(ROOM_KIND CORE)
  endif()
  string(REPLACE "/" "_" name ${folder})
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${path}/*.cpp ${path}/*.h)
  if(NOT sources MATCHES "\\.cpp")  # data rooms: headers alone
    add_library(cleave_${name} INTERFACE)
    target_include_directories(cleave_${name} INTERFACE ${CMAKE_SOURCE_DIR}/core)
    target_link_libraries(cleave_${name} INTERFACE ${ROOM_USES})
    return()
  endif()
  add_library(cleave_${name} STATIC ${sources})
  set_target_properties(cleave_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(cleave_${name} PUBLIC ${CMAKE_SOURCE_DIR}/core)
  target_link_libraries(cleave_${name} PUBLIC ${ROOM_USES} PRIVATE cleave_options)
  cleave_kind(cleave_${name} ${ROOM_KIND})
endfunction()

include(CleaveTests)
