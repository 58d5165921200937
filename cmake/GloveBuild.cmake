# How every target of the project is built: the language level, the warnings, where binaries go, and
# the two functions that the component and test folders call.
#
#   glove_component(NAME SOURCES ... [USES ...])   static library glove_NAME of src/NAME
#   glove_test(NAME SOURCES ... [USES ...] [LABELS ...] [AS_USER] [TIRELESS])
#       GoogleTest program tests/NAME, registered with CTest; TIRELESS: it runs for longer than it
#       takes to compile, so it is optimized
#   glove_command_test(NAME COMMAND ... [LABELS ...] [AS_USER])
#       any other command as a test
#
# A label is a lane of scripts/test; without one it is "unit". AS_USER registers the test a second time
# as NAME.as_user, run by an ordinary user when CTest itself runs as root. Each test finds the program
# under test in GLOVE_BIN and the pinned Node.js in GLOVE_NODE. None has a time limit of its own: the
# lane sets it, because the long forms of the same tests need a longer one.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

set(GLOVE_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address,undefined")

add_library(glove_flags INTERFACE)
target_compile_options(glove_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fstack-protector-strong)
target_include_directories(glove_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
# GCC 12 reports an impossible overlap inside std::string for literal + string.
target_compile_options(glove_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(GLOVE_SANITIZE)
  target_compile_options(glove_flags INTERFACE
    -fsanitize=${GLOVE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(glove_flags INTERFACE -fsanitize=${GLOVE_SANITIZE})
  # The two compilers tell it in different ways.
  target_compile_definitions(glove_flags INTERFACE GLOVE_SANITIZED)
else()
  target_compile_definitions(glove_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

function(glove_component name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES" ${ARGN})
  add_library(glove_${name} STATIC ${arg_SOURCES})
  target_link_libraries(glove_${name} PUBLIC glove_flags ${arg_USES})
endfunction()

add_custom_target(unit_tests)

function(glove_command_test name)
  cmake_parse_arguments(arg "AS_USER" "" "COMMAND;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  set(names ${name})
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  if(arg_AS_USER)
    list(APPEND names ${name}.as_user)
    add_test(NAME ${name}.as_user COMMAND ${PROJECT_SOURCE_DIR}/scripts/as-test-user ${arg_COMMAND})
  endif()
  set_tests_properties(${names} PROPERTIES
    LABELS "${arg_LABELS}"
    ENVIRONMENT "GLOVE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/glove;GLOVE_NODE=${PROJECT_SOURCE_DIR}/build/tools/node/bin/node")
endfunction()

function(glove_test name)
  cmake_parse_arguments(arg "AS_USER;TIRELESS" "" "SOURCES;USES;LABELS" ${ARGN})
  set(as_user)
  if(arg_AS_USER)
    set(as_user AS_USER)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE glove_flags ${arg_USES} GTest::gmock_main)
  # What is tested is optimized as ever. The tests themselves are most of what there is to compile.
  if(NOT arg_TIRELESS)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0 -U_FORTIFY_SOURCE>)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  glove_command_test(${name} COMMAND $<TARGET_FILE:${name}> LABELS ${arg_LABELS} ${as_user})
  if(NOT arg_LABELS OR "unit" IN_LIST arg_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()
