# How every target of the project is built: the language level, the warnings, where binaries go, and
# the two functions that the component and test folders call.
#
#   glove_component(NAME SOURCES ... [USES ...])   static library glove_NAME of src/NAME
#   glove_test(NAME SOURCES ... [USES ...])        GoogleTest program tests/NAME, registered with CTest

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
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
else()
  target_compile_definitions(glove_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

function(glove_component name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES" ${ARGN})
  add_library(glove_${name} STATIC ${arg_SOURCES})
  target_link_libraries(glove_${name} PUBLIC glove_flags ${arg_USES})
endfunction()

function(glove_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE glove_flags ${arg_USES} GTest::gmock_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
