# Which tests run beside which, and in what order.

# scripts/test has six units for each processor. A test of real processes waits most of the time and
# takes one of them. Any other test takes three, and one that computes for long takes four. So about
# as many of those run as there are processors, and tests that wait run beside them.
set(computing test_replay_tables test_seeded_check test_planner_reality test_list_schedule test_codec test_codec_messages test_audit
  integration_test_determinism integration_test_simulated integration_test_plan_dag)
get_property(every_test DIRECTORY PROPERTY TESTS)
foreach(name ${every_test})
  if(name IN_LIST computing OR name MATCHES "^(prop|crash|corpus|golden|sim)_")
    set_tests_properties(${name} PROPERTIES PROCESSORS 4)
  elseif(NOT name MATCHES "^(integration|jail)_")
    set_tests_properties(${name} PROPERTIES PROCESSORS 3)
  endif()
endforeach()
# The seeds keep every processor busy.
include(ProcessorCount)
ProcessorCount(processors)
math(EXPR busy "4 * ${processors}")
set_tests_properties(sim_seeds PROPERTIES PROCESSORS ${busy})
# Those that measure and wait most of the time run at once.
math(EXPR half "3 * ${processors}")
foreach(name ${measuring_and_waiting})
  set_tests_properties(integration_test_${name} PROPERTIES PROCESSORS ${half})
endforeach()
set_tests_properties(test_wire_noise PROPERTIES PROCESSORS 1) # it waits for the end of handshakes

# ctest starts with what takes longest, which a fresh clone does not know: seconds on two processors. What has no figure here
# takes less than half a minute.
set(seconds
  sim_seeds 150 sim_compilers 111 sim_cluster 40 crash_memory 75 integration_test_paid 83 integration_test_cut 80 integration_test_soak 78 integration_test_must_hold 64
  integration_test_owner 62 integration_test_resume 58 integration_test_report 50
  integration_test_cluster 50 integration_test_idle_key 50 integration_test_live 40 integration_test_shell 115 integration_test_idle 120 integration_test_tensor_devices 90
  integration_test_gpu 80 integration_test_failing 75 integration_test_vad 90 integration_test_upgrade 55
  integration_test_webgpu 50 integration_test_challenge_devices 60 integration_test_storage_faults 80 integration_test_deadline 78
  integration_test_agent_lost 47 integration_test_donations 46 integration_test_history 44 jail_escape 40
  integration_test_determinism 40 integration_test_referee 36 prop_plan_objectives 36 crash_faults 85 jail_run 33
  prop_plan_split 32 crash_power 82 integration_test_cli_market 30 integration_test_agent_disk_full 30)
while(seconds)
  list(POP_FRONT seconds name cost)
  set_property(TEST ${name} PROPERTY COST ${cost})
endwhile()

# Both need clang's simulator. Who comes second would wait for the other's build.
set_tests_properties(integration_test_determinism PROPERTIES DEPENDS sim_compilers)
