"""The core: tests that boot guests in ./check and, on machines with few processors, in .ci/run (run.py's
--core). Each part of the project by its quickest witness, each kernel and each number of CPUs at least
once. The whole of both suites takes an hour and a half there; --nightly runs it, and so does --ci where
there are processors for it. Of live it names what is left out.

There the build before the tests leaves out the unit tests, which are only built with the address
sanitizer: core.py BUILD names the targets of a build folder that --ci builds, none where it is all.

A word is the beginning of the names of classes or of tests. Those of vm stand in the order in which
they run. ./check runs all of VM. --ci then runs as much of VM_BESIDE as it has time for.
"""

import os
import pathlib
import sys

from introspect import introspect, suites_of

# On fewer, guests that share them with others are ten times slower, not two: what they trap into is not
# running. So nothing runs beside them there, and --ci builds the unit tests with the address sanitizer
# alone: to build them twice would take it beyond the time that build machines are to take.
ENOUGH_PROCESSORS = 4


def has_processors():
    """Whether several suites that boot guests may run at a time."""
    return (os.cpu_count() or 1) >= ENOUGH_PROCESSORS


def some(group, *names):
    """Of a class the tests whose names begin so."""
    return tuple(f"{group}.test_{name}" for name in names)


VM = (
    # Counts, kernels and CPUs; probes of each kind; what holds when we end.
    "test_programs.debian_6_1_cpus_2", *some("test_storm.Storm", "hot", "a_guest_outlives_us_in_a_storm_of_hot"),
    *some("test_take_over.TakeOver", "clean_takes_it"), "test_jumps.Jumps",
    "test_record.Started.test_clauses_that_wait", "test_record.Attached.test_counts",
    "test_attach_qmp.Processors", *some("test_instr.On612", "arguments"), "test_sdt.debian_6_12_cpus_1",
    "test_attach_leave.ToTheByte.test_of_memory_that_is_read",
    "test_pid.Libraries.test_count_while", "test_pid.CountsOfOld.test_of_entries", "test_pid.Files.test_are_as_they_were",
    *some("test_usdt.Counts", "of_all", "semaphores"), "test_host_files.Sysroot.test_of_another_build",
    "test_pages.Pages.test_that_are_given_up_and_read",
    "test_user_examples.Older", *some("test_user_types.TypedOfOld", "members", "values"),
    "test_plockstat.CountsOfOld.test_of_a_process",
    # The guest that changes itself.
    "test_modules.Modules.test_a_module_that_was_absent", "test_hotplug.Hotplug.test_a_cpu_goes_off",
    # Each part once.
    *some("test_language.debian_6_1", "a_thread", "drops", "records", "speculations", "stacks", "structured", "user"),
    *some("test_counters.debian_6_1_cpus_2", "memory", "packets"), "test_io.debian_6_12",
    *some("test_stable.debian_6_1_cpus_2", "processes", "packets"),
    *some("test_defined.debian_6_12_cpus_1", "a_library", "files"),
    *some("test_locks.debian_6_12_cpus_1", "locks_that_are_waited"), *some("test_functions.FormsOfFunctions", "both"),
    *some("test_statistics.Statistics", "the_figures", "traps"), *some("test_why.Why", "busy", "a_panic"),
    "test_look.debian_6_12_cpus_1", *some("test_library.C", "records_by_polling"), *some("test_library.Python", "ctrl", "records"),
    *some("test_saved_programs.SavedPrograms", "one"), *some("test_pictures.Pictures", "pictures"),
    *some("test_lifecycle.Ends", "interrupt", "kill_takes", "a_kept_guest_survives"), "test_lifecycle.Errors",
    *some("test_machines.OneOfSeveral", "one_dies"), "test_hostile_guest.Shrunk", *some("test_peers.Peers", "connections"),
    *some("test_attach_ends.Moves", "a_machine"), "test_command", "test_images.CommandPort",
    # Refusals.
    "test_no_guest", *some("test_web.Requests", "a_program", "nobody", "programs"),
    "test_attach_bad_input.NoMachine", *some("test_attach_permissions.Users", "a_machine"))

# As much more of .ci/run as there is time for.
VM_BESIDE = (
    *some("test_record.Started", "probes_that_look"), "test_record_ends.Stopped",
    *some("test_record_ends.Owned", "one_that_goes_back"), "test_programs.debian_6_12_cpus_1",
    "test_take_over.TakeOver.test_what_was_left_in_the_first", "test_instr.On612", "test_counters.debian_6_1_cpus_2",
    *some("test_language.debian_6_1", "a_ring", "a_stack", "each", "identity", "return", "samples", "symbols", "time",
          "types", "what_is_written"),
    "test_statistics", "test_user_symbols.UserSymbolsOn612", "test_look",
    "test_user_symbols.CodeMadeAtRunTime.",
    *some("test_unwind.debian_6_12_cpus_1", "a_program_with", "files"), "test_why.Why", "test_stable.debian_6_1_cpus_2",
    "test_defined.debian_6_12_cpus_1", "test_lifecycle", "test_itself.debian_6_12_cpus_1",
    "test_locks.debian_6_12_cpus_1", "test_members.Newest", "test_teach", "test_peers", "test_vms",
    "test_attach_qmp.Owners", "test_attach_storage", "test_attach_ends.Moves", "test_images", "test_no_types",
    "test_attach_qmp.Refusals", "test_attach_bad_input", "test_attach_permissions", "test_sdt.Refusals",
    *some("test_as_is.AsItIs", "breakpoints", "page_tables", "what_does_not_fit"), "test_members.Older",
    "test_examples.Examples.test_debian_6_12", "test_pid", "test_usdt", "test_host_files", "test_pages",
    "test_user_examples", "test_user_types", "test_plockstat", "test_library", "test_web")


def vm_lists(options):
    """The lists of words for these options of run.py; none: all tests."""
    if not options.core:
        return ()
    return (VM, VM_BESIDE) if options.ci else (VM,)


# GoogleTest's filter of the suite live, of which each case boots a guest: those that are left out.
LIVE = "-" + ":".join((
    "*ComeAndGo.*/debian_6_1_on_*", "*ComeAndGo.*/debian_6_12_on_1", "*Leave.*/Debian61On*",
    "*Leave.*/Debian612On1", "*LeavePreempted.*/*IsolatedSetAside", "*LeavePreempted.SoIsThat*",
    "*LiveShim.*/*_Copied", "*LiveStaticTracepoints.*/debian_6_1", "*LiveText.*/debian_6_1",
    "*RandomSets.*/debian_6_1_*", "*RandomSets.*/debian_6_12_on_2"))

NESTED = (
    "nested.", "test_attach.Attached.test_a_guest", "test_guests.Guests.test_counts_by_exits_on_two",
    "test_boot_tracing.BootTracing.test_initcalls_of_6_12")


def programs_and_data(targets, tests):
    """The files that a build makes by default, less the unit tests, by meson's lists of targets and tests.
    Those of the suite kvm stay: tests/nested/ runs them, too."""
    suites = {test["cmd"][0]: suites_of(test) for test in tests}
    unit = {program for program, of in suites.items() if "unit" in of and "kvm" not in of}
    return [name for target in targets if target["build_by_default"] and target["type"] != "static library"
            for name in target["filename"] if name not in unit]


if __name__ == "__main__" and not has_processors():
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    NAMES = programs_and_data(introspect(BUILD, "targets"), introspect(BUILD, "tests"))
    print(*(pathlib.Path(name).relative_to(BUILD) for name in NAMES))
