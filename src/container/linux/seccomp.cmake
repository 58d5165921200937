# The system call filter. The table and the generator stay on the build host; the product links only
# the compiled arrays (glove_seccomp). `glove_seccomp_rules` is for the generator and the tests.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp>=2.5)

set(seccomp_source ${CMAKE_CURRENT_LIST_DIR})
set(GLOVE_SECCOMP_DATA ${PROJECT_BINARY_DIR}/generated/seccomp)
file(MAKE_DIRECTORY ${GLOVE_SECCOMP_DATA})

add_library(glove_seccomp_rules STATIC
  ${seccomp_source}/seccomp_rules.cpp ${seccomp_source}/seccomp_judge.cpp)
target_link_libraries(glove_seccomp_rules PUBLIC glove_flags glove_base)

add_executable(seccomp_generate ${seccomp_source}/seccomp_generate.cpp)
target_link_libraries(seccomp_generate PRIVATE glove_seccomp_rules PkgConfig::SECCOMP)
set_target_properties(seccomp_generate PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)

set(seccomp_data)
foreach(machine x86_64 arm64)
  set(file ${GLOVE_SECCOMP_DATA}/seccomp_bpf_${machine}.inc)
  add_custom_command(OUTPUT ${file}
    COMMAND seccomp_generate --bpf ${machine} ${file}
    DEPENDS seccomp_generate
    COMMENT "Compiling the system call table for ${machine}"
    VERBATIM)
  list(APPEND seccomp_data ${file})
endforeach()
# Two targets include the arrays; one rule writes them.
add_custom_target(glove_seccomp_data DEPENDS ${seccomp_data})

add_library(glove_seccomp STATIC ${seccomp_source}/seccomp_bpf.cpp)
add_dependencies(glove_seccomp glove_seccomp_data)
target_link_libraries(glove_seccomp PUBLIC glove_flags glove_base)
target_include_directories(glove_seccomp PRIVATE ${GLOVE_SECCOMP_DATA})

add_library(glove_seccomp_arrays INTERFACE) # both machines', for the tests
add_dependencies(glove_seccomp_arrays glove_seccomp_data)
target_include_directories(glove_seccomp_arrays INTERFACE ${GLOVE_SECCOMP_DATA})
