# The tests of the module. Each suite runs with each server that the set-up fetches. A server that
# is missing is a failure.
#
# Labels: `valkey` all, `valkey-quick` some of these once more, `valkey-asan` those of the module
# with sanitizers.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_dependencies(tests-valkey perdix_valkey perdix-tool)

add_library(perdix_failing_device MODULE ${CMAKE_CURRENT_LIST_DIR}/failing_device.cc)
set_target_properties(perdix_failing_device PROPERTIES OUTPUT_NAME failing_device PREFIX "")
target_link_libraries(perdix_failing_device PRIVATE perdix_options)
add_dependencies(tests-valkey perdix_failing_device)

perdix_unit_test(catalogue_test LABEL valkey DEPS util
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/catalogue_test.cc module/catalogue.cc)
target_include_directories(catalogue_test SYSTEM PRIVATE "${PERDIX_VALKEY_SERVERS}/include")
target_include_directories(catalogue_test PRIVATE module)

# perdix_valkey_test(suite server LABEL label MODULE target [ENVIRONMENT name=value...]
#                    [CASES case...])
# Without CASES, which are names as unittest has them, all of the suite.
function(perdix_valkey_test suite server)
  cmake_parse_arguments(ARG "" "LABEL;MODULE" "ENVIRONMENT;CASES" ${ARGN})
  set(name ${ARG_LABEL}.${suite}.${server})
  perdix_command_test(${name} LABEL valkey TIMEOUT 900 COMMAND
    ${CMAKE_COMMAND} -E env
      PERDIX_VALKEY_SERVERS=${PERDIX_VALKEY_SERVERS}
      PERDIX_VALKEY_MODULE=$<TARGET_FILE:${ARG_MODULE}>
      PERDIX_VALKEY_SERVER=${server}
      PERDIX_FAILING_DEVICE=$<TARGET_FILE:perdix_failing_device>
      PERDIX_TOOL=$<TARGET_FILE:perdix-tool>
      ${ARG_ENVIRONMENT}
      ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/${suite}_test.py -v ${ARG_CASES})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
endfunction()

foreach(server redis-7 valkey-8 valkey-9)
  foreach(suite tables persistence replication keyspace errors device clients cluster
      side_effects upstream)
    perdix_valkey_test(${suite} ${server} LABEL valkey MODULE perdix_valkey)
  endforeach()
endforeach()

# One case of each kind of promise, and few kills.
set(quick_tables TablesTest)
set(quick_persistence PersistenceTest.test_kill PersistenceTest.test_changes_of_keys
  PersistenceTest.test_append_only_file PersistenceTest.test_kill_at_random)
set(quick_keyspace KeyspaceTest.test_all_types KeyspaceTest.test_expiry
  KeyspaceTest.test_flush_and_swap KeyspaceTest.test_kills_whole_or_not_at_all
  KeyspaceTest.test_kills_of_units_with_flushes KeyspaceTest.test_clients_while_keys_come_back)
set(quick_errors ErrorsTest.test_pool_in_use ErrorsTest.test_bad_arguments
  ErrorsTest.test_oversize ErrorsTest.test_oversize_refuses_growth
  ErrorsTest.test_loaded_into_a_running_server)
set(quick_upstream ImagesTest.test_same ImagesTest.test_key_that_is_lost RunTest.test_run)
set(quick_device DeviceTest.test_native_keys_on_a_broken_device
  DeviceTest.test_tables_on_a_broken_device DeviceTest.test_native_keys_on_a_full_device)
set(quick_replication CutOffTest.test_waits_for_its_primary
  ReplicationTest.test_place_in_the_stream)
set(quick_side_effects SideEffectsTest)
foreach(server redis-7 valkey-8 valkey-9)
  foreach(suite tables persistence replication keyspace errors device side_effects upstream)
    perdix_valkey_test(${suite} ${server} LABEL valkey-quick MODULE perdix_valkey
      ENVIRONMENT PERDIX_KILLS=2 CASES ${quick_${suite}})
  endforeach()
endforeach()

# With sanitizers only under valkey-9: it takes its memory from the C library, so AddressSanitizer
# sees what server and module hand to each other. The sanitizer's library is loaded before the
# server. Leaks are not reported: a server that ends frees little.
if(TARGET perdix_valkey_asan)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
    OUTPUT_VARIABLE sanitizer OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH "${sanitizer}" sanitizer)
  foreach(suite tables persistence replication keyspace errors device side_effects)
    perdix_valkey_test(${suite} valkey-9 LABEL valkey-asan MODULE perdix_valkey_asan ENVIRONMENT
      PERDIX_VALKEY_PRELOAD=${sanitizer} ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
      UBSAN_OPTIONS=print_stacktrace=1)
  endforeach()
endif()
