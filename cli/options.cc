// The command line. In this file, top to bottom: the long options, one letter at a time, checks
// that need the whole line, the help text.
#include "cli/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <array>
#include <string_view>

#include "cli/quantities.h"

namespace ringside::cli {
namespace {

enum LongOption : int {
  Image = 256,
  Kernel,
  Initrd,
  Append,
  Cpus,
  Memory,
  Machine,
  Keep,
  Qemu,
  Help,
};

const std::array<option, 11> kLongOptions{{
    {"image", required_argument, nullptr, Image},
    {"kernel", required_argument, nullptr, Kernel},
    {"initrd", required_argument, nullptr, Initrd},
    {"append", required_argument, nullptr, Append},
    {"cpus", required_argument, nullptr, Cpus},
    {"memory", required_argument, nullptr, Memory},
    {"machine", required_argument, nullptr, Machine},
    {"keep", no_argument, nullptr, Keep},
    {"qemu", required_argument, nullptr, Qemu},
    {"help", no_argument, nullptr, Help},
    {nullptr, 0, nullptr, 0},
}};

// "-": words that are no options come back in their order, so that they may stand anywhere.
// ":": a missing argument is told apart from an unknown letter.
constexpr const char* kLetters = "-:36:aAb:Bc:CD:ef:FGhHi:I:lL:m:n:o:p:P:qs:SU:vVwx:X:Z";

constexpr unsigned kMaxCpus = 64;

Result<void> set_machine(vmm::MachineConfig& config, std::string_view choice) {
  if (choice == "auto") {
    config.choice = vmm::MachineChoice::Auto;
  } else if (choice == "kvm") {
    config.choice = vmm::MachineChoice::Kvm;
  } else if (choice == "qemu") {
    config.choice = vmm::MachineChoice::Qemu;
  } else {
    return fail(ErrorCode::Usage,
                fmt::format("--machine {}: it is one of auto, kvm and qemu", choice));
  }
  return {};
}

Result<void> set_cpus(vmm::MachineConfig& config, std::string_view text) {
  const auto cpus = parse_number(text);
  if (!cpus || *cpus < 1 || *cpus > kMaxCpus) {
    return fail(ErrorCode::Usage, fmt::format("--cpus {}: a number from 1 to {}", text, kMaxCpus));
  }
  config.vcpus = static_cast<unsigned>(*cpus);
  return {};
}

Result<void> set_memory(vmm::MachineConfig& config, std::string_view text) {
  constexpr std::uint64_t kLeast = 256 << 20;  // vmm's own limit
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kLeast || *bytes % (1 << 20) != 0) {
    return fail(ErrorCode::Usage,
                fmt::format("--memory {}: a size of 256m or more, in whole megabytes", text));
  }
  config.memory = *bytes;
  return {};
}

Result<void> long_option(CommandLine& line, int which, std::string argument) {
  vmm::MachineConfig& config = line.machine.config;
  switch (which) {
    case Image: line.machine.image = std::move(argument); return {};
    case Kernel: config.kernel = std::move(argument); return {};
    case Initrd: config.initrd = std::move(argument); return {};
    case Append: config.append = std::move(argument); return {};
    case Cpus: return set_cpus(config, argument);
    case Memory: return set_memory(config, argument);
    case Machine: return set_machine(config, argument);
    case Keep: config.keep = true; return {};
    case Qemu: config.qemu = std::move(argument); return {};
    default: line.task = CommandLine::Task::Help; return {};
  }
}

void add_program(CommandLine& line, ProgramSource::Kind kind, std::string text) {
  line.programs.push_back({kind, std::move(text)});
}

Result<void> set_command(CommandLine& line, std::string command) {
  if (!line.command.empty()) {
    return fail(ErrorCode::Unsupported, "more than one -c is not supported yet");
  }
  line.command = std::move(command);
  return {};
}

Result<void> unsupported_letter(int letter) {
  return fail(ErrorCode::Unsupported,
              fmt::format("option -{} is not supported yet", static_cast<char>(letter)));
}

Result<void> short_option(CommandLine& line, int letter, std::string argument) {
  using Kind = ProgramSource::Kind;
  switch (letter) {
    case 1: line.arguments.push_back(std::move(argument)); return {};
    case 'n': add_program(line, Kind::Name, std::move(argument)); return {};
    case 'f': add_program(line, Kind::Function, std::move(argument)); return {};
    case 'm': add_program(line, Kind::Module, std::move(argument)); return {};
    case 'P': add_program(line, Kind::Provider, std::move(argument)); return {};
    case 'i': add_program(line, Kind::Id, std::move(argument)); return {};
    case 's': add_program(line, Kind::Script, std::move(argument)); return {};
    case 'l': line.task = CommandLine::Task::List; return {};
    case 'e': line.task = CommandLine::Task::CompileOnly; return {};
    case 'V': line.task = CommandLine::Task::Version; return {};
    case 'q': line.settings.quiet = true; return {};
    case 'w': line.settings.destructive = true; return {};
    case 'Z': line.settings.zero_matches = true; return {};
    case 'F': line.settings.flow_indent = true; return {};
    case 'v': line.verbose = true; return {};
    case 'S': line.show_dif = true; return {};
    case 'o': line.output_file = std::move(argument); return {};
    case 'c': return set_command(line, std::move(argument));
    case 'b': return apply_option(line.settings, "bufsize", argument, SettingPhase::Start);
    case 'x': return apply_option_argument(line.settings, argument);
    case '6':
      if (argument == "4") return {};
      return fail(ErrorCode::Usage, "illegal option -- 6 (did you mean -64?)");
    default: return unsupported_letter(letter);
  }
}

Result<void> one_option(CommandLine& line, int letter, const char* word) {
  std::string argument = optarg == nullptr ? std::string() : optarg;
  if (letter == ':') {
    return fail(ErrorCode::Usage, fmt::format("option {} requires an argument", word));
  }
  if (letter == '?') {
    if (optopt != 0 && optopt < Image) {
      return fail(ErrorCode::Usage,
                  fmt::format("illegal option -- {} (see --help)", static_cast<char>(optopt)));
    }
    return fail(ErrorCode::Usage, fmt::format("illegal option {} (see --help)", word));
  }
  if (letter >= Image) return long_option(line, letter, std::move(argument));
  return short_option(line, letter, std::move(argument));
}

/// Rules between options.
Result<void> check(const CommandLine& line) {
  using Task = CommandLine::Task;
  if (line.task == Task::Version || line.task == Task::Help) return {};
  const vmm::MachineConfig& config = line.machine.config;
  if (!line.machine.image.empty() && !config.kernel.empty()) {
    return fail(ErrorCode::Usage, "--image and --kernel exclude each other");
  }
  if (!config.initrd.empty() && config.kernel.empty()) {
    return fail(ErrorCode::Usage, "--initrd needs --kernel");
  }
  if (!line.command.empty() && !line.machine.wanted()) {
    return fail(ErrorCode::Usage,
                "-c runs a command in a guest: name one with --image or --kernel");
  }
  if (line.programs.empty() && line.task != Task::List) {
    return fail(ErrorCode::Usage, "no probes specified (see --help)");
  }
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(std::vector<std::string> arguments) {
  CommandLine line;
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const int count = static_cast<int>(arguments.size());

  opterr = 0;
  optind = 0;  // a fresh scan: tests parse more than one line in a process
  for (;;) {
    const int at = optind == 0 ? 1 : optind;
    const int letter = getopt_long(count, words.data(), kLetters, kLongOptions.data(), nullptr);
    if (letter == -1) break;
    const char* word = at < count ? words[static_cast<std::size_t>(at)] : "";
    TRY(one_option(line, letter, word));
  }
  for (int at = optind; at < count; ++at) {
    line.arguments.emplace_back(words[static_cast<std::size_t>(at)]);
  }
  TRY(check(line));
  return line;
}

std::string help_text() {
  return R"(Usage: ringside [options] [script arguments]

Programs (each may be given several times; D text may follow a description):
  -n [[[provider:]module:]function:]name [/predicate/] [{ actions }]
  -f, -m, -P, -i    the same by function, module, provider or probe id
  -s FILE           a D script; further words are its $1, $2...

What to do with them:
  -l  list the probes they match (all without a program); with -v argument types
  -e  compile, then exit        -S  print the compiled DIF on stderr
  -v  report on each clause     -V  print the version
  -c COMMAND        run COMMAND in the guest's shell; tracing ends when it does

How:
  -q  print only what the program asks for     -o FILE  append the output to FILE
  -w  allow destructive actions                -Z  allow descriptions that match nothing
  -F  indent by function entry and return      -b SIZE  buffer size per CPU
  -x NAME[=VALUE]   set one of dtrace's options

The machine (none: only probes that need no guest):
  --image NAME      a guest that images/build made
  --kernel FILE [--initrd FILE] [--append STRING]
  --cpus N  --memory SIZE  --machine auto|kvm|qemu  --qemu PATH
  --keep            leave the guest running
)";
}

}  // namespace ringside::cli
