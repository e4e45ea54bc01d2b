"""The core: tests that boot guests in .ci/run on machines with few processors (run.py's --core). Each
part of the project by its quickest witness, each kernel and each number of CPUs at least once. The whole
of both suites takes an hour and a half there; --nightly runs it, and so does --ci where there are
processors for it.

A word is the beginning of the names of classes or of tests.
"""

VM = (
    "test_as_is", "test_attach_bad_input", "test_attach_ends.Moves", "test_attach_leave.ToTheByte",
    "test_attach_permissions", "test_attach_qmp.Owners", "test_attach_qmp.Processors",
    "test_attach_qmp.Refusals", "test_attach_storage", "test_command", "test_counters.debian_6_1_cpus_2",
    "test_examples.Examples.test_debian_6_12", "test_functions", "test_hostile_guest.Shrunk", "test_images",
    "test_instr.On612", "test_io.debian_6_12", "test_itself.debian_6_12_cpus_1", "test_jumps.Jumps",
    "test_language.debian_6_1.", "test_lifecycle", "test_locks.debian_6_12_cpus_1",
    "test_machines.OneOfSeveral", "test_members.Newest", "test_members.Older", "test_no_guest",
    "test_peers", "test_programs", "test_saved_programs", "test_sdt.Refusals",
    "test_sdt.debian_6_12_cpus_1", "test_stable.debian_6_1_cpus_2", "test_statistics",
    "test_storm.Storm.test_hot_probes_lose_nothing",
    "test_storm.Storm.test_a_guest_outlives_us_in_a_storm_of_hot_probes", "test_take_over", "test_teach",
    "test_user_symbols", "test_vms", "test_why.")

NESTED = (
    "test_attach.Attached.test_a_guest_goes_on_when_ringside_is_killed",
    "test_attach.Attached.test_our_own_vmm_with_two_cpus",
    "test_attach.Attached.test_qemu_by_its_monitor",
    "test_attach.Attached.test_qemu_with_a_microvm_of_two_cpus",
    "test_attach.Attached.test_what_is_not_fit_is_refused_in_one_line",
    "test_bad_ends", "test_boot_tracing.BootTracing.test_initcalls_of_6_12",
    "test_disks.Disks.test_two_cpus_read_write_and_copy",
    "test_guests.Guests.test_6_1_by_its_boot_protocol",
    "test_guests.Guests.test_counts_by_exits_on_two_cpus", "test_guests.Guests.test_hvc0",
    "test_guests.Guests.test_profile", "test_level1", "test_programs_of_kvm",
    "test_teaching.Teaching.test_every_entry")
