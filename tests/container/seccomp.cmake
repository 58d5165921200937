glove_test(seccomp_rules_test SOURCES seccomp_rules_test.cpp USES glove_seccomp_rules)
target_compile_definitions(seccomp_rules_test PRIVATE
  GLOVE_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")

glove_test(seccomp_bpf_test SOURCES seccomp_bpf_test.cpp
  USES glove_seccomp glove_seccomp_rules glove_seccomp_arrays)

glove_test(seccomp_kernel_test SOURCES seccomp_kernel_test.cpp USES glove_seccomp)
glove_test(seccomp_peers_test SOURCES seccomp_peers_test.cpp USES glove_seccomp)
foreach(test seccomp_bpf_test seccomp_kernel_test seccomp_peers_test)
  target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endforeach()
