#include "cli/options/options.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

using SourceKind = ProgramSource::Kind;
using Task = CommandLine::Task;

Result<CommandLine> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "ringside");
  return parse_command_line(std::move(words));
}

TEST(CommandLine, KeepsProgramsInTheirOrder) {
  const auto line = parse(
      {"-n", "BEGIN", "-P", "syscall", "-s", "a.d", "-f", "vfs_read", "-m", "loop", "-i", "7"});

  ASSERT_TRUE(line) << line.error().message;
  ASSERT_EQ(line->programs.size(), 6u);
  EXPECT_EQ(line->programs[0].kind, SourceKind::Name);
  EXPECT_EQ(line->programs[1].kind, SourceKind::Provider);
  EXPECT_EQ(line->programs[2].kind, SourceKind::Script);
  EXPECT_EQ(line->programs[3].text, "vfs_read");
  EXPECT_EQ(line->programs[4].kind, SourceKind::Module);
  EXPECT_EQ(line->programs[5].kind, SourceKind::Id);
}

TEST(CommandLine, WhyTakesOneMachineOrACoreAndNoProgram) {
  const auto core = parse({"why", "--core", "file", "-O", "json"});
  ASSERT_TRUE(core) << core.error().message;
  EXPECT_EQ(core->task, Task::Why);
  EXPECT_EQ(core->core_file, "file");
  EXPECT_EQ(core->settings.format, OutputFormat::Json);
  const auto target = parse({"why", "pid:12"});
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->arguments, std::vector<std::string>{"pid:12"});

  EXPECT_FALSE(parse({"why"}));
  EXPECT_FALSE(parse({"why", "pid:1", "pid:2"}));
  EXPECT_FALSE(parse({"why", "--core", "file", "pid:1"}));
  EXPECT_FALSE(parse({"why", "--core", "file", "--core", "other"}));
  EXPECT_FALSE(parse({"why", "--core", "file", "-n", "BEGIN"}));
  EXPECT_FALSE(parse({"why", "--image", "debian-6.1"}));
  EXPECT_FALSE(parse({"why", "--core", "file", "-O", "xml"}));
}

TEST(CommandLine, PlockstatTakesAMachineAndAProcess) {
  const auto line = parse({"plockstat", "-A", "-s", "5", "-e10", "web1", "812", "-o", "file"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->task, Task::Plockstat);
  EXPECT_TRUE(line->plockstat.contention && line->plockstat.hold);
  EXPECT_EQ(line->plockstat.depth, 5u);
  EXPECT_EQ(line->plockstat.seconds, 10u);
  EXPECT_EQ(line->machines.front().attach->text, "web1");
  EXPECT_EQ(line->processes, std::vector<std::int64_t>{812});
  EXPECT_EQ(line->output_file, "file");
  const auto holds = parse({"plockstat", "-H", "web1", "-p", "812"});
  ASSERT_TRUE(holds) << holds.error().message;
  EXPECT_FALSE(holds->plockstat.contention);
  EXPECT_FALSE(parse({"plockstat", "--image", "debian-6.12", "-c", "program"}));

  EXPECT_FALSE(parse({"plockstat"}));
  EXPECT_FALSE(parse({"plockstat", "web1"}));
  EXPECT_FALSE(parse({"plockstat", "812"}));
  EXPECT_FALSE(parse({"plockstat", "web1", "812", "813"}));
  EXPECT_FALSE(parse({"plockstat", "web1", "812", "-c", "program"}));
  EXPECT_FALSE(parse({"plockstat", "web1", "812", "-n", "BEGIN"}));
  EXPECT_FALSE(parse({"plockstat", "-s", "0", "web1", "812"}));
  EXPECT_FALSE(parse({"plockstat", "-s"}));
  EXPECT_FALSE(parse({"plockstat", "--core", "file", "-p", "1"}));
}

TEST(CommandLine, ListsOfGuestsHaveLettersOfTheirOwn) {
  using List = LookOptions::List;
  const auto threads = parse({"ps", "-T", "web1", "pid:12", "-O", "jsonl"});
  ASSERT_TRUE(threads) << threads.error().message;
  EXPECT_EQ(threads->task, Task::Look);
  EXPECT_EQ(threads->look.list, List::Processes);
  EXPECT_TRUE(threads->look.threads);
  EXPECT_EQ(threads->arguments, (std::vector<std::string>{"web1", "pid:12"}));
  EXPECT_EQ(threads->settings.format, OutputFormat::JsonLines);
  const auto log = parse({"dmesg", "-wl", "err,warn", "web1"});
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_TRUE(log->look.follow);
  EXPECT_FALSE(log->settings.destructive) << "not the -w of a trace";
  EXPECT_EQ(log->look.levels, 1U << 3 | 1U << 4);
  const auto files = parse({"lsof", "-p", "7", "--core", "file", "-x", "rawtext"});
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->look.process, 7);
  EXPECT_EQ(files->core_file, "file");
  EXPECT_TRUE(files->settings.raw_text);
  const auto top = parse({"top", "-b", "-n", "3", "-d", "0.5", "-s", "mem"});
  ASSERT_TRUE(top) << top.error().message;
  EXPECT_EQ(top->look.rounds, 3u);
  EXPECT_EQ(top->look.interval, std::chrono::milliseconds(500));
  EXPECT_EQ(top->look.key, LookOptions::Key::Memory);
  EXPECT_EQ(parse({"ps", "-O", "web1"})->settings.format, OutputFormat::Json);
  EXPECT_EQ(parse({"ps", "-O"})->settings.format, OutputFormat::Json);
}

TEST(CommandLine, ListsOfGuestsRefuseWhatIsNotTheirs) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"ps", "-w"}, "ps: no such option -w; 'ringside help' lists those of each command"},
      {{"ps", "--image", "x"}, "ps: no such option; 'ringside help' lists those of each command"},
      {{"lsof", "-p"}, "lsof: an option lacks its argument"},
      {{"lsof", "-p", "no"}, "lsof: invalid pid: no"},
      {{"ps", "--core", "file", "web1"}, "ps: name machines or --core, not both"},
      {{"dmesg", "-w", "--core", "file"},
       "dmesg: a saved guest does not run, so there is nothing to follow"},
      {{"top", "--core", "file"},
       "top: a saved guest does not run, so there is nothing to follow; ps --core lists its "
       "processes"},
      {{"dmesg", "-w", "-O", "json"},
       "dmesg: json is one document; -O jsonl writes one after the other"},
      {{"modules", "-O", "xml"}, "modules: it is printed as text, json or jsonl"},
      {{"top", "-d", "0"}, "top: -d 0: it takes seconds, 0.1 or more"},
      {{"top", "-s", "x"}, "top: -s x: it sorts by one of cpu, mem, time and pid"},
      {{"dmesg", "-l", "bad"},
       "dmesg: no level \"bad\": there are emerg, alert, crit, err, warn, notice, info, debug"},
  };
  for (const auto& [words, message] : refused) EXPECT_EQ(parse(words).error().message, message);
}

TEST(CommandLine, ASavedGuestStandsAlone) {
  EXPECT_TRUE(parse({"--core", "file", "-n", "BEGIN"}));

  EXPECT_FALSE(parse({"--core", "file", "-n", "BEGIN", "--image", "debian-6.1"}));
  EXPECT_FALSE(parse({"--core", "file", "-n", "BEGIN", "-c", "true"}));
  EXPECT_FALSE(parse({"--core", "file", "-n", "BEGIN", "-p", "1"}));
  EXPECT_TRUE(parse({"--attach", "pid:1", "-n", "BEGIN", "-p", "1"})) << "a process of the guest";
  EXPECT_FALSE(parse({"--attach", "pid:1", "-n", "BEGIN", "-p", "1", "-p", "2"}));
  EXPECT_FALSE(parse({"--attach", "pid:1", "--attach", "pid:2", "-n", "BEGIN", "-p", "1"}));
}

TEST(CommandLine, ScriptArgumentsMayStandAnywhere) {
  const auto line = parse({"-s", "a.d", "one", "-q", "two", "--", "-three"});

  ASSERT_TRUE(line);
  EXPECT_EQ(line->arguments, (std::vector<std::string>{"one", "two", "-three"}));
  EXPECT_TRUE(line->settings.quiet);
}

TEST(CommandLine, LettersCanBeJoined) {
  const auto line = parse({"-qwn", "BEGIN"});

  ASSERT_TRUE(line);
  EXPECT_TRUE(line->settings.quiet);
  EXPECT_TRUE(line->settings.destructive);
  EXPECT_EQ(line->programs[0].text, "BEGIN");
}

TEST(CommandLine, ReadsTheMachine) {
  const auto line =
      parse({"--kernel", "k", "--initrd=i", "--append", "quiet", "--cpus", "2", "--memory", "1g",
             "--machine", "qemu", "--keep", "--as-is", "-n", "BEGIN", "-c", "ls /"});

  ASSERT_TRUE(line) << line.error().message;
  const MachineOptions& machine = line->machines.front();
  EXPECT_EQ(machine.guest.kernel, "k");
  EXPECT_EQ(machine.guest.initrd, "i");
  EXPECT_EQ(machine.guest.append, "quiet");
  EXPECT_EQ(machine.guest.vcpus, 2u);
  EXPECT_EQ(machine.guest.memory, std::uint64_t{1} << 30);
  EXPECT_EQ(machine.choice, MachineChoice::Qemu);
  EXPECT_TRUE(machine.qemu.keep && machine.qemu.as_is);
  EXPECT_EQ(line->commands, std::vector<std::string>{"ls /"});
}

TEST(CommandLine, EachImageAndEachKernelIsAMachineOfItsOwn) {
  const auto line =
      parse({"--image", "a,name=web,cpus=4", "--cpus", "2", "--memory", "1g", "--kernel",
             "k,,1,initrd=own", "--image", "a", "--initrd", "i", "--image", "a", "-n", "BEGIN"});

  ASSERT_TRUE(line) << line.error().message;
  ASSERT_EQ(line->machines.size(), 4u);
  const auto& machines = line->machines;
  EXPECT_EQ(machines[0].image, "a");
  EXPECT_EQ(machines[0].name, "web");
  EXPECT_EQ(machines[0].guest.vcpus, 4u);
  EXPECT_EQ(machines[1].guest.kernel, "k,1");
  EXPECT_EQ(machines[1].name, "k_1");
  EXPECT_EQ(machines[1].guest.vcpus, 2u) << "what is said of all stands anywhere";
  EXPECT_EQ(machines[1].guest.initrd, "own");
  EXPECT_EQ(machines[2].name, "a");
  EXPECT_EQ(machines[3].name, "a-2");
  for (const auto& each : machines) EXPECT_EQ(each.guest.memory, std::uint64_t{1} << 30);
}

TEST(CommandLine, WhatTwoMachinesCannotShareIsRefused) {
  const auto refusal = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--kernel", "a", "--kernel", "b", "-n", "BEGIN"});
    const auto line = parse(std::move(words));
    return line ? std::string() : line.error().message;
  };

  EXPECT_EQ(refusal({"--keep"}), "--keep: only one machine can be left running");
  EXPECT_EQ(refusal({"--machine", "kvm", "--console"}),
            "--console: there is one terminal, for one machine");
  EXPECT_EQ(refusal({"--machine", "kvm", "--disk", "d"}),
            "--disk d: two machines would write to it; give --disk d,ro");
  EXPECT_EQ(refusal({"--machine", "kvm", "--disk", "d,ro"}), "");
}

TEST(CommandLine, OneLineForEachMistake) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> usage{
      {{"-?"}, "illegal option -- ?; --help lists the options"},
      {{"-y"}, "illegal option -- y; --help lists the options"},
      {{"-65", "-n", "BEGIN"}, "illegal option -- 65; --help lists the options"},
      {{"--nonesuch"}, "illegal option --nonesuch; --help lists the options"},
      {{"--atach", "web1", "-n", "BEGIN"}, "illegal option --atach; did you mean --attach?"},
      {{"--imgae=x", "-n", "BEGIN"}, "illegal option --imgae=x; did you mean --image?"},
      {{"whyy", "web1"}, "no such command: whyy; did you mean why?"},
      {{"man", "-v"},
       "no such command: man; there are vms ps dmesg modules mounts netstat lsof top why stats "
       "plockstat draw web clean examples compile run help; a program begins with -n or -s"},
      {{"-O", "json", "vms"},
       "no probes specified: if vms is meant as a command, it comes first: ringside vms"},
      {{"-n", "BEGIN", "-O", "yaml"},
       "-O yaml: the word after it is one of text, json, jsonl, xml, html, csv, folded, flame, "
       "speedscope, heatmap and perfetto; an argument of "
       "the program's stands elsewhere"},
      {{"-n"}, "option requires an argument -- n"},
      {{"-l", "-h", "-s", "a.d"}, "only one of the [-AGhlV] options can be specified at a time"},
      {{"--cpus", "0", "-n", "BEGIN"}, "--cpus 0: a number from 1 to 64"},
      {{"--memory", "64m", "-n", "BEGIN"},
       "--memory 64m: a size of 256m or more, in whole megabytes"},
      {{"--memory", "300000001", "-n", "BEGIN"},
       "--memory 300000001: a size of 256m or more, in whole megabytes"},
      {{"--image", "a,cpu=2", "-n", "BEGIN"},
       "--image cpu=2: after the first comma stand name=NAME, cpus=N, memory=SIZE, initrd=FILE or "
       "append=STRING"},
      {{"--image", "a,initrd=b", "-n", "BEGIN"}, "--image: an image has an initrd of its own"},
      {{"--image", ",cpus=2", "-n", "BEGIN"}, "--image: name one"},
      {{"--image", "a,name=x", "--image", "b,name=x", "-n", "BEGIN"}, "two machines are named x"},
      {{"compile", "-n", "BEGIN"}, "compile: name the file to write with -o"},
      {{"run"}, "run: name the file that compile wrote"},
      {{}, "no probes specified"},
  };
  for (const auto& [words, message] : usage) {
    const auto line = parse(words);
    ASSERT_FALSE(line) << message;
    EXPECT_EQ(line.error().message, message);
    EXPECT_EQ(line.error().code, ErrorCode::Usage) << message;
  }
}

TEST(CommandLine, WhatIsRefusedForItsValueIsNoBadUsage) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> failures{
      {{"-q"}, "no probes specified"},
      {{"compile", "-o", "a"}, "no probes specified"},
      {{"-x", "strsize=10"}, "no probes specified"},
      {{"-x", "bufsize=4q", "-n", "BEGIN"},
       "failed to set -x bufsize: Invalid value for specified option: a size such as 4k"},
      {{"-b", "4q", "-n", "BEGIN"},
       "failed to set -b 4q: Invalid value for specified option: a size such as 4k"},
      {{"-X", "q", "-n", "BEGIN"},
       "failed to set -X q: Invalid value for specified option: one of a, c, s and t"},
      {{"-x", "strsiz=1", "-n", "BEGIN"},
       "failed to set -x strsiz: Invalid option name; did you mean strsize?"},
      {{"-p", "x", "-n", "BEGIN"}, "invalid pid: x"},
      {{"-p", " ", "-n", "BEGIN"}, "invalid pid:  "},
      {{"-A", "-n", "BEGIN"},
       "-A: there is no anonymous tracing here; to trace a boot, start the guest with --machine "
       "kvm"},
      {{"--image", "a", "-c", "a", "-c", "b", "-n", "BEGIN"},
       "a guest takes one -c; put several commands into one: -c 'a & b'"},
  };
  for (const auto& [words, message] : failures) {
    const auto line = parse(words);
    ASSERT_FALSE(line) << message;
    EXPECT_EQ(line.error().message, message);
    EXPECT_NE(line.error().code, ErrorCode::Usage) << message;
  }
}

TEST(CommandLine, TakesAPidWithABlankBeforeIt) {
  const auto line = parse({"-p 123", "-n", "BEGIN"});  // as a script passes it in one word

  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->processes, std::vector<std::int64_t>{123});
}

TEST(CommandLine, TakesEachOfDtracesLetters) {
  const auto line =
      parse({"-64", "-BCdFHOSvwZ", "-b", "1m", "-D", "A=1", "-U", "B",  "-I", "/i", "-L",
             "/l",  "-X",          "c",  "-c", "a",  "-c",  "b",  "-p", "7",  "-n", "BEGIN"});

  ASSERT_TRUE(line) << line.error().message;
  const Settings& settings = line->settings;
  EXPECT_TRUE(settings.preprocessor.wanted && settings.preprocessor.list_headers);
  EXPECT_EQ(settings.preprocessor.definitions, (std::vector<std::string>{"-DA=1", "-UB", "-I/i"}));
  EXPECT_EQ(settings.preprocessor.conformance, PreprocessorSettings::Conformance::Strict);
  EXPECT_EQ(settings.library_folders, std::vector<std::string>{"/l"});
  EXPECT_TRUE(settings.flow_indent && settings.destructive && settings.zero_matches);
  EXPECT_TRUE(settings.show_dif && settings.print_all_aggregations);
  EXPECT_TRUE(line->verbose && settings.show_desugared);
  EXPECT_EQ(line->commands, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(line->processes, std::vector<std::int64_t>{7});
}

TEST(CommandLine, AFormatMayFollowTheLetterO) {
  EXPECT_EQ(parse({"-O", "json", "-n", "BEGIN"})->settings.format, OutputFormat::Json);
  EXPECT_EQ(parse({"-O", "-n", "BEGIN"})->settings.format, OutputFormat::Text);
  EXPECT_EQ(parse({"--libxo", "xml,pretty", "-n", "BEGIN"})->settings.format, OutputFormat::Xml);
  EXPECT_FALSE(parse({"--libxo", "yaml", "-n", "BEGIN"}));
}

TEST(CommandLine, ProgramsCanBeSavedAndRun) {
  const auto saved = parse({"compile", "-o", "x.dof", "-n", "BEGIN"});
  const auto run = parse({"run", "x.dof", "-q"});

  ASSERT_TRUE(saved && run);
  EXPECT_EQ(saved->task, Task::Save);
  EXPECT_EQ(saved->output_file, "x.dof");
  EXPECT_EQ(run->dof_file, "x.dof");
  EXPECT_TRUE(run->settings.quiet);
}

TEST(CommandLine, OurOwnMachineIsTracedFromItsFirstInstructionUnlessACommandIsGiven) {
  const auto first = parse({"--machine", "kvm", "--kernel", "k", "--disk", "a,ro", "--disk", "b",
                            "--console", "--boot", "bzimage", "-n", "BEGIN"});
  const auto command = parse({"--machine", "kvm", "--kernel", "k", "-n", "BEGIN", "-c", "ls"});
  const auto later = parse({"--machine", "kvm", "--image", "i", "--after-boot", "-n", "BEGIN"});
  const auto qemu = parse({"--machine", "qemu-kvm", "--kernel", "k", "-n", "BEGIN"});

  ASSERT_TRUE(first && command && later && qemu);
  EXPECT_TRUE(first->from_start());
  EXPECT_FALSE(command->from_start() || later->from_start() || qemu->from_start());
  const MachineOptions& machine = first->machines.front();
  EXPECT_EQ(machine.choice, MachineChoice::Kvm);
  EXPECT_EQ(machine.kvm.boot, vmm::BootPreference::BzImage);
  EXPECT_TRUE(machine.kvm.terminal);
  ASSERT_EQ(machine.kvm.disks.size(), 2u);
  EXPECT_EQ(machine.kvm.disks[0].path, "a");
  EXPECT_TRUE(machine.kvm.disks[0].read_only && !machine.kvm.disks[1].read_only);
  EXPECT_EQ(qemu->machines.front().choice, MachineChoice::QemuKvm);
}

TEST(CommandLine, JumpsAreRefusedWhereAKernelIsTracedFromItsFirstInstruction) {
  const auto boot = parse({"--machine", "kvm", "--kernel", "k", "-x", "jumpprobes", "-n", "BEGIN"});
  const auto off =
      parse({"--machine", "kvm", "--kernel", "k", "-x", "jumpprobes=no", "-n", "BEGIN"});
  const auto later = parse(
      {"--machine", "kvm", "--image", "i", "--after-boot", "-x", "jumpprobes", "-n", "BEGIN"});

  ASSERT_FALSE(boot);
  EXPECT_EQ(boot.error().code, ErrorCode::Unsupported);
  EXPECT_TRUE(boot.error().message.starts_with("-x jumpprobes: ")) << boot.error().message;
  EXPECT_TRUE(off && later);
}

TEST(CommandLine, WhatOneKindOfMachineCannotDoNamesTheOther) {
  const auto disk = parse({"--kernel", "k", "--disk", "d", "-n", "BEGIN"});
  const auto keep = parse({"--machine", "kvm", "--kernel", "k", "--keep", "-n", "BEGIN"});
  const auto as_is = parse({"--machine", "kvm", "--kernel", "k", "--as-is", "-n", "BEGIN"});
  const auto nothing = parse({"--machine", "kvm", "-n", "BEGIN"});

  ASSERT_TRUE(!disk && !keep && !as_is && !nothing);
  EXPECT_NE(as_is.error().message.find("--machine qemu"), std::string::npos);
  EXPECT_EQ(disk.error().message, "--disk needs --machine kvm");
  EXPECT_NE(keep.error().message.find("--machine qemu"), std::string::npos);
  EXPECT_NE(nothing.error().message.find("--kernel"), std::string::npos);
}

TEST(CommandLine, FoldersWithFilesOfTheGuestAreInTheirOrder) {
  const auto line = parse({"--sysroot", "/a", "-x", "sysroot=/b", "--sysroot", "/c", "-l"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->settings.sysroots, (std::vector<std::string>{"/a", "/b", "/c"}));
  EXPECT_FALSE(parse({"--sysroot", "", "-l"}));
}

TEST(CommandLine, TheChannelAndTheKernelsArgumentsAreOptions) {
  const auto line = parse({"-x", "channel=exit", "-x", "bootargs=a=1", "-x", "bootargs=b", "-l"});
  const auto wrong = parse({"-x", "channel=pigeon", "-l"});

  ASSERT_TRUE(line && !wrong);
  EXPECT_EQ(line->settings.channel, providers::Channel::Exit);
  EXPECT_EQ(line->settings.poll_threads, 1u);
  EXPECT_EQ(parse({"-x", "pollthreads=3", "-l"})->settings.poll_threads, 3u);
  for (const char* const none : {"pollthreads=0", "pollthreads=65", "pollthreads=all"}) {
    EXPECT_FALSE(parse({"-x", none, "-l"})) << none;
  }
  EXPECT_EQ(line->settings.boot_arguments, "a=1 b");
}

TEST(Presets, ComeFromTheEnvironmentAndYieldToTheCommandLine) {
  Settings presets;
  ASSERT_TRUE(apply_environment(presets, {"HOME=/", "DTRACE_OPT_BUFSIZE=1m", "DTRACE_OPT_quiet=",
                                          "_DTRACE_TESTING=1", "DTRACE_DEBUG=1"}));
  const auto line = parse_command_line({"x", "-b", "2m", "-n", "BEGIN"}, presets);

  ASSERT_TRUE(line);
  EXPECT_EQ(presets.engine.buffer_size, 1u << 20);
  EXPECT_EQ(line->settings.engine.buffer_size, 2u << 20);
  EXPECT_TRUE(line->settings.quiet && line->settings.testing && line->settings.debug);
}

TEST(Presets, ThatAreWrongNameTheirVariable) {
  Settings presets;
  const auto done = apply_environment(presets, {"DTRACE_OPT_WOMBATS=25"});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "failed to set option wombats from DTRACE_OPT_WOMBATS=25: Invalid option name");
}

TEST(CommandLine, ListAndVersionNeedNoProgram) {
  EXPECT_EQ(parse({"-l"})->task, Task::List);
  EXPECT_EQ(parse({"-V"})->task, Task::Version);
  EXPECT_EQ(parse({"--help"})->task, Task::Help);
}

TEST(Options, MachinesThatRunAreAttachedToBesideOnesThatAreStarted) {
  const auto line =
      parse({"--attach", "pid:12", "--image", "a", "--attach",
             "qemu:///system?name=web1,ivshmem,name=w", "--cpus", "2", "-n", "BEGIN"});

  ASSERT_TRUE(line.has_value()) << line.error().message;
  ASSERT_EQ(line->machines.size(), 3u);
  ASSERT_TRUE(line->machines[0].attach.has_value());
  EXPECT_EQ(std::get<vmm::ProcessTarget>(line->machines[0].attach->where).pid, 12);
  EXPECT_EQ(line->machines[0].name, "")
      << "its owner's name for it is found when it is attached to";
  EXPECT_FALSE(line->machines[1].attach.has_value());
  EXPECT_EQ(line->machines[1].guest.vcpus, 2u);
  EXPECT_EQ(std::get<vmm::DomainTarget>(line->machines[2].attach->where).domain, "web1");
  EXPECT_EQ(line->machines[2].name, "w");
  EXPECT_TRUE(line->machines[2].plug_card);
  EXPECT_FALSE(line->machines[0].plug_card);
}

TEST(Options, WhatIsSaidOfMachinesToStartIsRefusedForOnesThatRun) {
  struct Case {
    std::vector<std::string> words;
    std::string message;
  };
  const Case cases[] = {
      {{"--attach", "pid:x", "-n", "BEGIN"}, "--attach 'pid:x': that is no process number"},
      {{"--attach", "pid:", "-n", "BEGIN"}, "--attach 'pid:': that is no process number; it takes"},
      {{"--attach", "pid:1,cpus=2", "-n", "BEGIN"}, "after the comma stands name=NAME"},
      {{"--attach", "qmp:/a,name=", "-n", "BEGIN"},
       "--attach 'qmp:/a,name=': after the comma stands name=NAME or ivshmem"},
      {{"--attach", "pid:1,foo", "-n", "BEGIN"}, "--attach 'pid:1,foo': after the comma stands"},
      {{"--attach", "pid:1", "--cpus", "2", "-n", "BEGIN"}, "--cpus is for machines that ringside"},
      {{"--attach", "pid:1", "--memory", "1g", "-n", "BEGIN"}, "--memory is for machines"},
      {{"--attach", "pid:1", "--keep", "-n", "BEGIN"}, "--keep is for machines"},
      {{"--attach", "pid:1", "-x", "bootargs=x", "-n", "BEGIN"}, "--append is for machines"},
      {{"--attach", "pid:1", "-c", "ls", "-n", "BEGIN"}, "-c: a command can be run in a guest of"},
      {{"--attach", "qmp:/a", "--attach", "qmp:/a,name=b", "-n", "BEGIN"},
       "'qmp:/a' is named twice: name each machine once"},
      {{"--attach", "pid:1,name=a", "--attach", "pid:2,name=a", "-n", "BEGIN"},
       "two machines are named a"},
  };
  for (const Case& each : cases) {
    const auto line = parse(each.words);

    ASSERT_FALSE(line.has_value()) << each.message;
    EXPECT_NE(line.error().message.find(each.message), std::string::npos) << line.error().message;
  }
}

TEST(Options, ExamplesTakesANameOrNothing) {
  EXPECT_EQ(parse({"examples"})->example, "");
  const auto named = parse({"examples", "opens"});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->task, CommandLine::Task::Examples);
  EXPECT_EQ(named->example, "opens");
  EXPECT_EQ(parse({"examples", "opens", "more"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"examples", "-n", "BEGIN"}).error().code, ErrorCode::Usage);
}

TEST(Options, VmsTakesAFormAndNothingElse) {
  const auto plain = parse({"vms"});
  const auto json = parse({"vms", "-O", "json"});

  ASSERT_TRUE(plain.has_value() && json.has_value());
  EXPECT_EQ(plain->task, CommandLine::Task::ListVms);
  EXPECT_EQ(json->settings.format, OutputFormat::Json);
  EXPECT_EQ(parse({"vms", "-n", "BEGIN"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"vms", "all"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"vms", "-O", "xml"}).error().code, ErrorCode::Unsupported);
}

TEST(CommandLine, WebTakesMachinesAndAPlaceToListen) {
  const auto all = parse({"web"});
  const auto some = parse({"web", "--listen", "[::1]:8080", "qmp:/a", "web1"});

  ASSERT_TRUE(all && some);
  EXPECT_EQ(all->task, Task::Web);
  EXPECT_EQ(all->web.address, "127.0.0.1");
  EXPECT_EQ(all->web.port, 0);
  EXPECT_EQ(some->web.address, "::1");
  EXPECT_EQ(some->web.port, 8080);
  EXPECT_EQ(some->arguments, (std::vector<std::string>{"qmp:/a", "web1"}));
  EXPECT_EQ(parse({"web", "--listen", "10.0.0.1:80"})->web.address, "10.0.0.1");
  EXPECT_EQ(parse({"web", "--listen", "80"})->web.address, "127.0.0.1");
  for (const char* wrong : {"", "x", ":80", "1:2:", "70000", "localhost:http"}) {
    EXPECT_EQ(parse({"web", "--listen", wrong}).error().code, ErrorCode::Usage) << wrong;
  }
  EXPECT_EQ(parse({"web", "-n", "BEGIN"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"vms", "--listen", "80"}).error().message,
            "--listen: it is for the command web");
}

TEST(CommandLine, MeanwhileIsForJson) {
  EXPECT_TRUE(parse({"-x", "meanwhile=1s", "-O", "jsonl", "-n", "BEGIN"}));
  EXPECT_EQ(parse({"-x", "meanwhile=1s", "-n", "BEGIN"}).error().message,
            "-x meanwhile: it is for -O json and -O jsonl");
}

TEST(CommandLine, DrawTakesAPictureAndAFile) {
  const auto piped = parse({"draw", "flame"});
  const auto file = parse({"draw", "heatmap", "a.jsonl", "-o", "a.svg"});
  const auto two = parse({"draw", "flame", "--before", "a.jsonl", "b.jsonl"});

  ASSERT_TRUE(piped && file && two);
  EXPECT_EQ(piped->task, Task::Draw);
  EXPECT_EQ(piped->settings.format, OutputFormat::Flame);
  EXPECT_TRUE(piped->arguments.empty());
  EXPECT_EQ(file->settings.format, OutputFormat::Heatmap);
  EXPECT_EQ(file->arguments, std::vector<std::string>{"a.jsonl"});
  EXPECT_EQ(file->output_file, "a.svg");
  EXPECT_EQ(two->before_file, "a.jsonl");
  EXPECT_EQ(parse({"draw"}).error().message,
            "draw: name the picture: folded, flame, speedscope, heatmap or perfetto");
  EXPECT_EQ(parse({"draw", "json", "a.jsonl"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"draw", "flame", "a", "b"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"draw", "flame", "a", "-n", "BEGIN"}).error().code, ErrorCode::Usage);
  EXPECT_EQ(parse({"draw", "folded", "--before", "a", "b"}).error().code, ErrorCode::Unsupported);
  EXPECT_EQ(parse({"-n", "BEGIN", "--before", "a"}).error().code, ErrorCode::Usage);
}

TEST(CommandLine, CleanTakesMachines) {
  const auto line = parse({"clean", "qmp:/run/web1"});

  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->task, CommandLine::Task::Clean);
  ASSERT_EQ(line->machines.size(), 1u);
  EXPECT_TRUE(line->machines.front().attach);
  const std::string wants = "clean: name the machine, as for --attach";
  EXPECT_EQ(parse({"clean"}).error().message, wants);
  EXPECT_EQ(parse({"clean", "--cache", "pid:1"}).error().message, wants);
  EXPECT_EQ(parse({"clean", "pid:1", "-n", "BEGIN"}).error().message,
            "clean: it takes machines, and no program");

  const auto several = parse({"clean", "pid:1", "web1", "qmp:/run/web2"});

  ASSERT_TRUE(several) << several.error().message;
  ASSERT_EQ(several->machines.size(), 3u);
  EXPECT_EQ(several->machines[1].attach->text, "web1");
  EXPECT_TRUE(several->arguments.empty());
  EXPECT_EQ(parse({"clean", "pid:1", "pid:x"}).error().code, ErrorCode::Invalid);
}

}  // namespace
}  // namespace ringside::cli
