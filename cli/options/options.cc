// The command line. In this file, top to bottom: one letter at a time, checks that need the whole
// line, the environment.
#include "cli/options/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <iterator>
#include <string_view>

#include "cli/messages/messages.h"
#include "cli/options/line_options.h"
#include "cli/options/look_options.h"
#include "cli/options/machine_list.h"
#include "vmm/base/numbers.h"
#include "vmm/base/similar_name.h"

namespace ringside::cli {
namespace {

constexpr int kFirstLongOption = 256;  // of those that getopt_long() returns: after all letters

tl::unexpected<Error> illegal_letter(std::string_view letters) {
  return fail(ErrorCode::Usage,
              fmt::format("illegal option -- {}; --help lists the options", letters));
}

/// An option of two dashes that there is not, with the nearest one.
tl::unexpected<Error> illegal_word(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const LineOption& option : line_options()) {
    if (*option.word != 0) known.push_back(std::string("--") + option.word);
  }
  const std::string nearest = similar_name(name, known, std::identity());
  return fail(ErrorCode::Usage,
              fmt::format("illegal option {}{}", word,
                          nearest.empty() ? "; --help lists the options" : did_you_mean(nearest)));
}

Result<void> one_option(CommandLine& line, int letter, const char* word) {
  std::string argument = optarg == nullptr ? std::string() : optarg;
  if (letter == ':') {
    const std::string name =
        optopt < kFirstLongOption ? std::string(1, static_cast<char>(optopt)) : word;
    return fail(ErrorCode::Usage, fmt::format("option requires an argument -- {}", name));
  }
  if (letter == '?') {
    const bool is_letter = optopt != 0 && optopt < kFirstLongOption;
    return is_letter ? illegal_letter(fmt::format("{}", static_cast<char>(optopt)))
                     : illegal_word(word);
  }
  if (letter == 1) {
    line.arguments.push_back(std::move(argument));
    return {};
  }
  const auto options = line_options();
  if (letter >= kFirstLongOption) {
    return options[static_cast<std::size_t>(letter - kFirstLongOption)].set(line, argument);
  }
  return std::ranges::find(options, letter, &LineOption::letter)->set(line, argument);
}

/// `vms` takes nothing but a form of its output.
Result<void> check_list_of_vms(const CommandLine& line) {
  if (!line.programs.empty() || !line.machines.empty() || !line.arguments.empty()) {
    return fail(ErrorCode::Usage, "vms: it lists this host's machines, and takes -O json only");
  }
  const OutputFormat format = line.settings.format;
  if (format == OutputFormat::Text || format == OutputFormat::Json) return {};
  return fail(ErrorCode::Unsupported, "vms: it is printed as text or with -O json");
}

/// `why` looks at one guest and takes no program.
Result<void> check_why(const CommandLine& line) {
  const bool programs = !line.programs.empty() || !line.commands.empty() || !line.processes.empty();
  if (programs || !line.machines.empty()) {
    return fail(ErrorCode::Usage, "why: it takes a running machine or --core, and no program");
  }
  if (line.core_file.empty() ? line.arguments.size() != 1 : !line.arguments.empty()) {
    return fail(ErrorCode::Usage,
                "why: name one machine (pid:N, qmp:PATH, a libvirt domain), or "
                "--core FILE");
  }
  const OutputFormat format = line.settings.format;
  if (format != OutputFormat::Text && format != OutputFormat::Json &&
      format != OutputFormat::JsonLines) {
    return fail(ErrorCode::Unsupported, "why: its report is text, json or jsonl");
  }
  return {};
}

/// `stats` takes names of machines, and a form of its output.
Result<void> check_stats(const CommandLine& line) {
  const bool programs = !line.programs.empty() || !line.commands.empty() || !line.processes.empty();
  if (programs || !line.machines.empty() || !line.core_file.empty()) {
    return fail(ErrorCode::Usage,
                "stats: it takes names of machines that are traced now, and no program");
  }
  const OutputFormat format = line.settings.format;
  if (format != OutputFormat::Text && format != OutputFormat::Json &&
      format != OutputFormat::JsonLines) {
    return fail(ErrorCode::Unsupported, "stats: its report is text, json or jsonl");
  }
  return {};
}

/// `draw` takes one file, or two to compare.
Result<void> check_draw(const CommandLine& line) {
  const bool programs = !line.programs.empty() || !line.commands.empty() || !line.processes.empty();
  if (programs || !line.machines.empty() || !line.core_file.empty()) {
    return fail(ErrorCode::Usage, "draw: it takes a file that -O jsonl wrote, and no program");
  }
  if (line.arguments.size() > 1) {
    return fail(ErrorCode::Usage,
                "draw: it takes one file; to compare two, draw flame --before FILE FILE");
  }
  if (!line.before_file.empty() && line.settings.format != OutputFormat::Flame) {
    return fail(ErrorCode::Unsupported, "draw: --before is for flame only");
  }
  return {};
}

/// `web` takes machines; its page takes the programs.
Result<void> check_web(const CommandLine& line) {
  const bool programs = !line.programs.empty() || !line.commands.empty() || !line.processes.empty();
  if (!programs && line.machines.empty() && line.core_file.empty()) return {};
  return fail(ErrorCode::Usage,
              "web: it takes running machines (pid:N, qmp:PATH, a libvirt domain) or none, which "
              "means all; programs are for its page");
}

/// Refuses the options that a kernel traced from its first instruction does not have.
Result<void> check_from_start(const CommandLine& line) {
  if (!line.settings.jump_probes.value_or(false) || !line.from_start()) return {};
  return fail(ErrorCode::Unsupported,
              "-x jumpprobes: in a kernel that is traced from its first instruction all probes are "
              "breakpoints: leave it out, or trace with --after-boot or -c");
}

using Words = std::vector<std::string>;

Result<std::size_t> begin_clean(CommandLine& line, const Words& words) {
  if (words.size() < 3 || words[2].starts_with('-')) {
    return fail(ErrorCode::Usage, "clean: name the machine, as for --attach");
  }
  line.task = CommandLine::Task::Clean;
  line.machines.emplace_back().attach = {words[2], {}};
  return 2;
}

Result<std::size_t> begin_examples(CommandLine& line, const Words& words) {
  line.task = CommandLine::Task::Examples;
  if (words.size() < 3 || words[2].starts_with('-')) return 1;
  line.example = words[2];
  return 2;
}

Result<std::size_t> begin_draw(CommandLine& line, const Words& words) {
  line.task = CommandLine::Task::Draw;
  const auto format = parse_output_format(words.size() < 3 ? "" : words[2]);
  if (!format || !is_picture(*format)) {
    return fail(ErrorCode::Usage,
                "draw: name the picture: folded, flame, speedscope, heatmap or perfetto");
  }
  line.settings.format = *format;
  return 2;
}

Result<std::size_t> begin_run(CommandLine& line, const Words& words) {
  if (words.size() < 3 || words[2].starts_with('-')) {
    return fail(ErrorCode::Usage, "run: name the file that compile wrote");
  }
  line.dof_file = words[2];
  return 2;
}

Result<unsigned> take_count(std::string_view letter, std::string_view word) {
  constexpr unsigned kMost = 1'000'000;
  const auto number = ringside::parse_number<unsigned>(word);
  if (number && *number > 0 && *number <= kMost) return *number;
  return fail(ErrorCode::Usage,
              fmt::format("plockstat: {} takes a number from 1 on, not '{}'", letter, word));
}

/// Its letters, those of plockstat(1M), come before others: -s and -e mean something else there.
Result<std::size_t> begin_plockstat(CommandLine& line, const Words& words) {
  line.task = CommandLine::Task::Plockstat;
  PlockstatOptions& options = line.plockstat;
  std::size_t at = 2;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    const bool is_flag = word == "-A" || word == "-C" || word == "-H";
    if (is_flag) {
      options.contention = word != "-H", options.hold = word != "-C";
    } else if (word.starts_with("-s") || word.starts_with("-e")) {
      const std::string letter = word.substr(0, 2);
      if (word.size() == 2 && ++at == words.size()) {
        return fail(ErrorCode::Usage, fmt::format("plockstat: {} takes a number", letter));
      }
      const std::string number = word.size() == 2 ? words[at] : word.substr(2);
      (letter == "-s" ? options.depth : options.seconds) = TRY(take_count(letter, number));
    } else if (word.starts_with('-')) {
      break;
    } else if (line.machines.empty()) {
      line.machines.emplace_back().attach = {word, {}};
    } else if (const auto process = ringside::parse_number<std::int64_t>(word);
               process && line.processes.empty()) {
      line.processes.push_back(*process);
    } else {
      return fail(
          ErrorCode::Usage,
          fmt::format("plockstat: '{}' is no number of a process: plockstat TARGET PID", word));
    }
  }
  return at - 1;
}

/// `plockstat` looks at one process of one guest, and brings its program along.
Result<void> check_plockstat(const CommandLine& line) {
  if (!line.programs.empty() || !line.arguments.empty() || !line.core_file.empty()) {
    return fail(ErrorCode::Usage,
                "plockstat: it takes no program; its own options (-A, -C, -H, -s, -e) come first");
  }
  if (!line.commands.empty()) {
    return fail(
        ErrorCode::Unsupported,
        "plockstat: a command of -c has not mapped its libraries when tracing begins: start "
        "it in the guest, and name its process");
  }
  if (line.machines.size() == 1 && line.processes.size() == 1) return {};
  return fail(ErrorCode::Usage,
              "plockstat: name a machine and a process of its guest: plockstat TARGET PID");
}

template <LookOptions::List kList>
Result<std::size_t> begin_look(CommandLine& line, const Words& words) {
  TRY(parse_look(line, kList, words));
  return words.size() - 1;
}

template <CommandLine::Task kTask>
Result<std::size_t> begin_task(CommandLine& line, const Words&) {
  line.task = kTask;
  return 1;
}

/// The words that may stand before the options.
struct Command {
  std::string_view name;
  /// The number of words that it takes, itself included.
  Result<std::size_t> (*begin)(CommandLine& line, const Words& words);
};

constexpr Command kCommands[] = {
#define COMMAND(name, value, set, help, manual) {name, set},
#include "cli/options/options.def"
};

const Command* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  return found == std::end(kCommands) ? nullptr : found;
}

Result<std::size_t> sub_command(CommandLine& line, const Words& words) {
  const Command* const command = words.size() < 2 ? nullptr : find_command(words[1]);
  return command != nullptr ? command->begin(line, words) : Result<std::size_t>(0);
}

/// `first` is the first word of a line without a program.
tl::unexpected<Error> no_program(const CommandLine& line, std::string_view first) {
  for (const std::string& word : line.arguments) {
    if (find_command(word) == nullptr) continue;
    return fail(ErrorCode::Usage, fmt::format("no probes specified: if {0} is meant as a command, "
                                              "it comes first: {1} {0}",
                                              word, program_name()));
  }
  if (first.starts_with('-') || find_command(first) != nullptr) {
    return fail(ErrorCode::NotFound, "no probes specified");
  }
  std::string way_out = did_you_mean(similar_name(first, kCommands, std::mem_fn(&Command::name)));
  if (way_out.empty()) {
    way_out = "; there are";
    for (const Command& command : kCommands) way_out += fmt::format(" {}", command.name);
    way_out += "; a program begins with -n or -s";
  }
  return fail(ErrorCode::Usage, fmt::format("no such command: {}{}", first, way_out));
}

/// Rules between options.
Result<void> check(const CommandLine& line, std::string_view first_word) {
  using Task = CommandLine::Task;
  if (line.task == Task::Version || line.task == Task::ProgramVersion || line.task == Task::Help) {
    return {};
  }
  if (line.task == Task::Look) return {};  // parse_look() has
  if (line.web.given && line.task != Task::Web)
    return fail(ErrorCode::Usage, "--listen: it is for the command web");
  if (line.task == Task::Why) return check_why(line);
  if (line.task == Task::Stats) return check_stats(line);
  if (line.task == Task::Draw) return check_draw(line);
  if (line.task == Task::Web) return check_web(line);
  if (!line.before_file.empty()) {
    return fail(ErrorCode::Usage, "--before: it is for the command draw flame");
  }
  if (line.settings.meanwhile_interval && line.settings.format != OutputFormat::Json &&
      line.settings.format != OutputFormat::JsonLines) {
    return fail(ErrorCode::Unsupported, "-x meanwhile: it is for -O json and -O jsonl");
  }
  TRY(check_machines(line));
  if (line.task == Task::Plockstat) return check_plockstat(line);
  TRY(check_from_start(line));
  const bool runs = !line.machines.empty() || !line.commands.empty() || !line.processes.empty();
  if (!line.core_file.empty() && runs) {
    return fail(ErrorCode::Unsupported,
                "--core: a saved guest stands alone and runs nothing: no other machine, -c or -p");
  }
  const bool guests = !line.machines.empty();
  if (guests && line.commands.size() > 1) {
    return fail(ErrorCode::Unsupported,
                "a guest takes one -c; put several commands into one: -c 'a & b'");
  }
  if (guests && !line.processes.empty()) {
    const bool is_one =
        line.machines.size() == 1 && line.processes.size() == 1 && line.commands.empty();
    if (!is_one) {
      return fail(ErrorCode::Unsupported,
                  "-p names one process of one guest: no second machine or -p, and no -c; for "
                  "more, name processes in probes (pid123:::) or compare pid in a predicate");
    }
  }
  if (line.task == Task::Header || line.task == Task::Objects) {
    return fail(ErrorCode::Unsupported,
                fmt::format("-{}: USDT headers and objects are for native builds; make them with "
                            "the dtrace or the sys/sdt.h of the guest's own system",
                            line.task == Task::Header ? 'h' : 'G'));
  }
  if (line.task == Task::Save && line.output_file.empty()) {
    return fail(ErrorCode::Usage, "compile: name the file to write with -o");
  }
  if (!line.dof_file.empty() && !line.programs.empty()) {
    return fail(ErrorCode::Usage, "run: the program is in the file; it takes no other");
  }
  if (line.task == Task::ListVms) return check_list_of_vms(line);
  if (line.task == Task::Examples) {
    if (line.programs.empty() && line.machines.empty() && line.arguments.empty()) return {};
    return fail(ErrorCode::Usage, "examples: it takes the name of a script, or nothing");
  }
  if (line.task == Task::Clean) {
    if (line.programs.empty()) return {};
    return fail(ErrorCode::Usage, "clean: it takes machines, and no program");
  }
  const bool needs_program = line.task != Task::List && line.task != Task::CompileOnly;
  if (line.programs.empty() && line.dof_file.empty() && needs_program) {
    return no_program(line, first_word);
  }
  return {};
}

/// The words after the first target of `clean` are targets, too.
void add_targets(CommandLine& line) {
  for (std::string& word : line.arguments) line.machines.emplace_back().attach = {word, {}};
  line.arguments.clear();
}

std::string letters_for_getopt() {
  // "-": words that are no options come back in their order, so that they may stand anywhere.
  // ":": a missing argument is told apart from an unknown letter.
  std::string letters = "-:";
  for (const LineOption& one : line_options()) {
    if (one.letter == 0) continue;
    letters += one.letter;
    if (one.takes_argument) letters += ':';
  }
  return letters;
}

std::vector<option> long_options_for_getopt() {
  std::vector<option> options;
  int value = kFirstLongOption;
  for (const LineOption& one : line_options()) {
    const int argument = one.takes_argument ? required_argument : no_argument;
    if (*one.word != 0) options.push_back({one.word, argument, nullptr, value});
    ++value;
  }
  options.push_back({nullptr, 0, nullptr, 0});
  return options;
}

/// FreeBSD's -O has no argument; here it may name the format.
Result<void> take_format(CommandLine& line, const std::vector<char*>& words, int count) {
  if (optind >= count) return {};
  const std::string_view word = words[static_cast<std::size_t>(optind)];
  if (word.starts_with('-')) return {};
  const auto format = parse_output_format(word);
  if (!format) {
    return fail(ErrorCode::Usage,
                fmt::format("-O {}: the word after it is one of {}; an argument of the program's "
                            "stands elsewhere",
                            word, kOutputFormats));
  }
  line.settings.format = *format;
  ++optind;
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(std::vector<std::string> arguments, Settings presets) {
  if (arguments.size() < 2) return fail(ErrorCode::Usage, "no probes specified");
  CommandLine line;
  line.settings = std::move(presets);
  const std::string first_word = arguments[1];
  const std::size_t taken = TRY(sub_command(line, arguments));
  if (!arguments.empty()) {
    const auto first = arguments.begin() + 1;
    arguments.erase(first, first + static_cast<std::ptrdiff_t>(taken));
  }
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const int count = static_cast<int>(arguments.size());

  const std::string letters = letters_for_getopt();
  const std::vector<option> long_ones = long_options_for_getopt();
  opterr = 0;
  optind = 0;  // a fresh scan: tests parse more than one line in a process
  for (;;) {
    const int at = optind == 0 ? 1 : optind;
    const int letter = getopt_long(count, words.data(), letters.c_str(), long_ones.data(), nullptr);
    if (letter == -1) break;
    const char* word = at < count ? words[static_cast<std::size_t>(at)] : "";
    TRY(one_option(line, letter, word));
    if (letter == 'O') TRY(take_format(line, words, count));
  }
  for (int at = optind; at < count; ++at) {
    line.arguments.emplace_back(words[static_cast<std::size_t>(at)]);
  }
  if (line.task == CommandLine::Task::Clean) add_targets(line);
  TRY(complete_machines(line));
  TRY(check(line, first_word));
  return line;
}

Result<void> apply_environment(Settings& settings, const std::vector<std::string>& environment) {
  constexpr std::string_view kPreset = "DTRACE_OPT_";
  for (const std::string& variable : environment) {
    const std::size_t equals = std::min(variable.find('='), variable.size());
    std::string name = variable.substr(0, equals);
    const std::string value = variable.substr(std::min(equals + 1, variable.size()));
    if (name == "DTRACE_DEBUG") settings.debug = true;
    if (name == "_DTRACE_TESTING") settings.testing = settings.quiet_resize = true;
    if (!name.starts_with(kPreset)) continue;
    name.erase(0, kPreset.size());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (auto done = apply_option(settings, name, value, OptionSource::CommandLine); !done) {
      return fail(ErrorCode::Unsupported, fmt::format("failed to set option {} from {}: {}", name,
                                                      variable, done.error().message));
    }
  }
  return {};
}

}  // namespace ringside::cli
