// The command line: dtrace(1)'s letters and the machine's long options, parsed into plain data.
// Does not: open files, look for images, or start anything.
// Fire context: no.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"

namespace ringside::cli {

/// One D program as the command line gives it.
struct ProgramSource {
  enum class Kind : std::uint8_t { Name, Function, Module, Provider, Id, Script };
  Kind kind = Kind::Name;
  std::string text;  // Script: the file's name; else a description, maybe with predicate and clause
};

struct MachineOptions {
  std::string image;  // --image; found by images.h
  vmm::MachineConfig config;

  bool wanted() const { return !image.empty() || !config.kernel.empty(); }
};

struct CommandLine {
  enum class Task : std::uint8_t { Trace, List, CompileOnly, Version, Help };
  Task task = Task::Trace;
  std::vector<ProgramSource> programs;
  std::vector<std::string> arguments;  // $1...
  Settings settings;
  bool verbose = false;   // -v: with -l argument types, else a report on each clause
  bool show_dif = false;  // -S
  std::string output_file;
  std::string command;  // -c
  MachineOptions machine;
};

/// Parses like dtrace: options first, then the script's arguments, which may mix. Errors are
/// ErrorCode::Usage or Unsupported, one line each; both mean exit status 2.
Result<CommandLine> parse_command_line(std::vector<std::string> arguments);

/// What --help prints.
std::string help_text();

}  // namespace ringside::cli
