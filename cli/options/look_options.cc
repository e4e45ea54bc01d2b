#include "cli/options/look_options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/options/line_options.h"
#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

using List = LookOptions::List;
constexpr std::array<std::string_view, 8> kLevels{"emerg", "alert",  "crit", "err",
                                                  "warn",  "notice", "info", "debug"};
/// The options of a trace that all of them take.
constexpr std::string_view kSharedLetters = "Oox";
constexpr std::array<std::string_view, 3> kSharedWords{"core", "types", "help"};

Result<void> set_threads(LookOptions& look, const std::string&) {
  look.threads = true;
  return {};
}

Result<void> set_follow(LookOptions& look, const std::string&) {
  look.follow = true;
  return {};
}

/// "err,warn", of the names that dmesg has for them.
Result<void> set_levels(LookOptions& look, const std::string& text) {
  look.levels = 0;
  std::string_view rest = text;
  do {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto* const level = std::ranges::find(kLevels, rest.substr(0, comma));
    if (level == kLevels.end()) {
      return fail(ErrorCode::Usage, fmt::format("dmesg: no level \"{}\": there are {}",
                                                rest.substr(0, comma), fmt::join(kLevels, ", ")));
    }
    look.levels = static_cast<std::uint8_t>(look.levels | 1U << (level - kLevels.begin()));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  } while (!rest.empty());
  return {};
}

Result<void> set_process(LookOptions& look, const std::string& text) {
  const auto pid = parse_number(text);
  if (!pid || *pid < 1 || *pid > INT32_MAX) {
    return fail(ErrorCode::Usage, fmt::format("lsof: invalid pid: {}", text));
  }
  look.process = static_cast<std::int64_t>(*pid);
  return {};
}

Result<void> set_batch(LookOptions& look, const std::string&) {
  look.batch = true;
  return {};
}

Result<void> set_rounds(LookOptions& look, const std::string& text) {
  const auto count = parse_number(text);
  if (!count || *count < 1 || *count > UINT32_MAX) {
    return fail(ErrorCode::Usage, fmt::format("top: -n {}: it takes a number of rounds", text));
  }
  look.rounds = static_cast<unsigned>(*count);
  return {};
}

/// Seconds, with a fraction.
Result<void> set_interval(LookOptions& look, const std::string& text) {
  constexpr double kLeast = 0.1, kMost = 86'400;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(seconds >= kLeast && seconds <= kMost)) {
    return fail(ErrorCode::Usage, fmt::format("top: -d {}: it takes seconds, 0.1 or more", text));
  }
  look.interval = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  return {};
}

Result<void> set_key(LookOptions& look, const std::string& text) {
  using Key = LookOptions::Key;
  constexpr std::array<std::pair<std::string_view, Key>, 4> kKeys{
      {{"cpu", Key::Cpu}, {"mem", Key::Memory}, {"time", Key::Time}, {"pid", Key::Pid}}};
  for (const auto& [name, key] : kKeys) {
    if (text != name) continue;
    look.key = key;
    return {};
  }
  return fail(ErrorCode::Usage,
              fmt::format("top: -s {}: it sorts by one of cpu, mem, time and pid", text));
}

struct OwnOption {
  List list;
  char letter;
  bool takes_argument;
  Result<void> (*set)(LookOptions& look, const std::string& argument);
};
constexpr OwnOption kOwnOptions[] = {
    {List::Processes, 'T', false, set_threads},
    {List::Top, 'T', false, set_threads},
    {List::Log, 'w', false, set_follow},
    {List::Log, 'l', true, set_levels},
    {List::Files, 'p', true, set_process},
    {List::Top, 'b', false, set_batch},
    {List::Top, 'n', true, set_rounds},
    {List::Top, 'd', true, set_interval},
    {List::Top, 's', true, set_key},
};

std::string letters_of(List list) {
  std::string letters = "-:O";
  for (const OwnOption& own : kOwnOptions) {
    if (own.list != list) continue;
    letters += own.letter;
    if (own.takes_argument) letters += ':';
  }
  return letters + "o:x:";
}

/// Of the options of a trace.
const LineOption& shared(char letter, std::string_view word) {
  const auto options = line_options();
  return *std::ranges::find_if(options, [&](const LineOption& option) {
    return word.empty() ? option.letter == letter : option.word == word;
  });
}

Result<void> one_option(CommandLine& line, int letter, int long_index) {
  const std::string argument = optarg == nullptr ? std::string() : optarg;
  const std::string_view command = name_of(line.look.list);
  if (letter == 0)
    return shared(0, kSharedWords[static_cast<std::size_t>(long_index)]).set(line, argument);
  if (letter == 1) {
    line.arguments.push_back(argument);
    return {};
  }
  if (letter == ':') {
    return fail(ErrorCode::Usage, fmt::format("{}: an option lacks its argument", command));
  }
  for (const OwnOption& own : kOwnOptions) {
    if (own.list == line.look.list && own.letter == letter) return own.set(line.look, argument);
  }
  if (letter != '?' && kSharedLetters.find(static_cast<char>(letter)) != kSharedLetters.npos) {
    return shared(static_cast<char>(letter), "").set(line, argument);
  }
  return fail(
      ErrorCode::Usage,
      fmt::format("{}: no such option{}; 'ringside help' lists those of each command", command,
                  optopt > ' ' ? fmt::format(" -{}", static_cast<char>(optopt)) : ""));
}

/// The word after -O, where it names a form; else it is json.
void take_format(CommandLine& line, const std::vector<char*>& words) {
  const auto next = static_cast<std::size_t>(optind);
  line.settings.format = OutputFormat::Json;
  if (next + 1 >= words.size()) return;
  const auto format = parse_output_format(words[next]);
  if (!format) return;
  line.settings.format = *format;
  ++optind;
}

Result<void> check(const CommandLine& line) {
  const LookOptions& look = line.look;
  const std::string_view command = name_of(look.list);
  const OutputFormat format = line.settings.format;
  if (format != OutputFormat::Text && format != OutputFormat::Json &&
      format != OutputFormat::JsonLines) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: it is printed as text, json or jsonl", command));
  }
  if (!line.core_file.empty() && !line.arguments.empty()) {
    return fail(ErrorCode::Usage, fmt::format("{}: name machines or --core, not both", command));
  }
  if (!line.core_file.empty() && (look.follow || look.list == List::Top)) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: a saved guest does not run, so there is nothing to follow{}",
                            command, look.follow ? "" : "; ps --core lists its processes"));
  }
  if (format == OutputFormat::Json && (look.follow || look.rounds.value_or(1) != 1)) {
    return fail(
        ErrorCode::Unsupported,
        fmt::format("{}: json is one document; -O jsonl writes one after the other", command));
  }
  return {};
}

}  // namespace

std::string_view name_of(List list) {
  switch (list) {
    case List::Processes: return "ps";
    case List::Log: return "dmesg";
    case List::Modules: return "modules";
    case List::Mounts: return "mounts";
    case List::Files: return "lsof";
    case List::Sockets: return "netstat";
    case List::Top: return "top";
  }
  return "?";
}

Result<void> parse_look(CommandLine& line, List list, const std::vector<std::string>& given) {
  line.task = CommandLine::Task::Look;
  line.look.list = list;
  std::vector<std::string> kept(given.begin() + 1, given.end());  // the command is the name
  std::vector<char*> words;
  words.reserve(kept.size() + 1);
  for (std::string& word : kept) words.push_back(word.data());
  words.push_back(nullptr);
  const std::string letters = letters_of(list);
  std::vector<option> long_ones;
  long_ones.reserve(kSharedWords.size() + 1);
  for (const std::string_view word : kSharedWords) {
    const bool takes = shared(0, word).takes_argument;
    long_ones.push_back({word.data(), takes ? required_argument : no_argument, nullptr, 0});
  }
  long_ones.push_back({nullptr, 0, nullptr, 0});
  opterr = 0;
  optind = 0;
  const int count = static_cast<int>(kept.size());
  for (;;) {
    int index = 0;
    const int letter = getopt_long(count, words.data(), letters.c_str(), long_ones.data(), &index);
    if (letter == -1) break;
    TRY(one_option(line, letter, index));
    if (letter == 'O') take_format(line, words);
  }
  for (int at = optind; at < count; ++at)
    line.arguments.emplace_back(words[static_cast<std::size_t>(at)]);
  if (line.task == CommandLine::Task::Help) return {};
  return check(line);
}

}  // namespace ringside::cli
