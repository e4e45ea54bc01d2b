// The command line: dtrace(1)'s letters and the machine's long options, parsed into plain data.
// Does not: open files, look for images, or start anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "vmm/attach/host/attach_target.h"
#include "vmm/base/result.h"
#include "vmm/guest_config.h"
#include "vmm/kvm/start_kvm.h"
#include "vmm/qemu/start_qemu.h"

namespace ringside::cli {

/// One D program as the command line gives it.
struct ProgramSource {
  /// Text is a script that is in no file, of a program that uses libringside.
  enum class Kind : std::uint8_t { Name, Function, Module, Provider, Id, Script, Text };
  Kind kind = Kind::Name;
  std::string text;  // Script: the file's name; else a description, maybe with predicate and clause
};

/// Which launcher starts the machine, and by what it runs.
enum class MachineChoice : std::uint8_t {
  Auto,     // QEMU with KVM where it is fit, else with TCG
  QemuKvm,  // QEMU with KVM, or an error that says why not
  Qemu,     // QEMU with its own translator (TCG)
  Kvm,      // our own VMM, or an error that says why not
};

struct MachineOptions {
  std::string image;                        // --image; found by images.h
  std::optional<vmm::AttachTarget> attach;  // --attach: one that runs already, instead of the rest
  bool plug_card = false;                   // its ivshmem: memory for the shim may be plugged in
  MachineChoice choice = MachineChoice::Auto;
  vmm::GuestConfig guest;
  vmm::QemuConfig qemu;  // the accelerator follows from `choice`
  vmm::KvmConfig kvm;
  bool after_boot = false;  // --after-boot
  /// The machine's name in records and messages, and in vmname: its own name=, else its image, else
  /// its kernel; the second one of a name ends with "-2". Empty for one to attach to that says
  /// none: then it is what its owner calls it.
  std::string name;

  /// Whether its guest runs on after us, and with it whatever we leave there.
  bool outlives_us() const { return attach.has_value() || qemu.keep; }
};

/// `plockstat`: as the letters of plockstat(1M) say.
struct PlockstatOptions {
  bool contention = true, hold = false;
  unsigned depth = 0;    // of stacks in the callers' place; 0: the callers
  unsigned seconds = 0;  // 0: to the process's end
};

/// One of the commands that list what a guest has, and its own options.
struct LookOptions {
  enum class List : std::uint8_t { Processes, Log, Modules, Mounts, Files, Sockets, Top };
  enum class Key : std::uint8_t { Cpu, Memory, Time, Pid };
  List list = List::Processes;
  bool threads = false;                      // ps -T, top -T: a row for each
  bool follow = false;                       // dmesg -w
  std::uint8_t levels = 0xff;                // dmesg -l: a bit for each, 0 (emerg) to 7 (debug)
  std::optional<std::int64_t> process;       // lsof -p
  bool batch = false;                        // top -b: rounds one after the other, no screen
  std::optional<unsigned> rounds;            // top -n
  std::chrono::milliseconds interval{3000};  // top -d
  Key key = Key::Cpu;                        // top -s
};

/// `web`: where it listens.
struct WebOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
  bool given = false;      // --listen
};

struct CommandLine {
  enum class Task : std::uint8_t {
    Trace,
    List,
    CompileOnly,
    Save,            // `compile`: write DOF
    Header,          // -h
    Objects,         // -G
    ListVms,         // `vms`
    Clean,           // `clean`: take out what a ringside that was killed has left
    Why,             // `why`: a health report
    Look,            // `ps`, `dmesg`...: `look` says which
    Examples,        // `examples`: the scripts that come with the program
    Stats,           // `stats`: the figures of traces that run
    Plockstat,       // `plockstat`: the locks of a process
    Draw,            // `draw`: a picture of saved output
    Web,             // `web`: a page for a browser
    Version,         // -V: of D, in dtrace's words
    ProgramVersion,  // --version
    Help,
  };
  Task task = Task::Trace;
  std::vector<ProgramSource> programs;
  std::string dof_file;  // `run`: the program, compiled before
  std::string example;   // `examples`: the script to show; empty: a list
  LookOptions look;
  PlockstatOptions plockstat;          // `plockstat`
  WebOptions web;                      // `web`
  std::string before_file;             // `draw --before`: output to compare with
  std::string core_file;               // --core: a saved guest
  std::string types_file;              // --types: of the kernels that are traced
  std::vector<std::string> arguments;  // $1...
  Settings settings;
  bool verbose = false;  // -v: stability and argument types
  std::string output_file;
  std::vector<std::string> commands;     // -c
  std::vector<std::int64_t> processes;   // -p
  MachineOptions common;                 // what all machines have, but for their own suboptions
  std::vector<MachineOptions> machines;  // one for each --image, --kernel and --attach, in order
  bool one_of_several = false;           // `clean`: the user has named more machines than this one

  /// Whether lines about a machine have to say which.
  bool names_machines() const { return machines.size() > 1 || one_of_several; }
  /// The beginning of those lines about the machine of that name: "NAME: ", or nothing.
  std::string line_start(const std::string& name) const {
    return names_machines() ? name + ": " : std::string();
  }

  /// Whether guests are traced from their first instruction, not once they have booted.
  bool from_start() const {
    return common.choice == MachineChoice::Kvm && commands.empty() && !common.after_boot;
  }
};

/// Parses like dtrace: options first, then the script's arguments, which may mix. `presets` are the
/// settings to start from (environment variables). An ErrorCode::Usage means exit status 2; any
/// other is a line for exit status 1.
Result<CommandLine> parse_command_line(std::vector<std::string> arguments, Settings presets = {});

/// DTRACE_OPT_<NAME>=VALUE, DTRACE_DEBUG and _DTRACE_TESTING out of "NAME=VALUE" strings.
Result<void> apply_environment(Settings& settings, const std::vector<std::string>& environment);

}  // namespace ringside::cli
