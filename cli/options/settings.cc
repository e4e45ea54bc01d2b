// In this file, top to bottom: the functions that the rows of options.def name for -x, the table of
// these rows, how an option is set.
#include "cli/options/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <iterator>
#include <sstream>

#include "cli/options/option_values.h"
#include "vmm/base/similar_name.h"

namespace ringside::cli {
namespace {

using View = std::string_view;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMaxString = 64 << 10;
constexpr std::uint64_t kMaxScratch = 64 << 20;
constexpr std::uint64_t kMostFrames = 2048;
constexpr std::uint64_t kMostSpeculations = 1 << 20;
// dtrace's own bounds; what lies beyond is brought to the nearer one.
constexpr nanoseconds kFastestCleaning = std::chrono::microseconds(200);
constexpr nanoseconds kSlowestCleaning = std::chrono::minutes(1);
constexpr nanoseconds kSlowestStatus = std::chrono::seconds(10);

Result<void> set_status_rate(Settings& settings, View value) {
  TRY(set_rate(settings.status_interval, value));
  settings.status_interval = std::min(settings.status_interval, kSlowestStatus);
  return {};
}

Result<void> set_meanwhile(Settings& settings, View value) {
  nanoseconds interval{};
  TRY(set_rate(interval, value));
  settings.meanwhile_interval = interval;
  return {};
}

/// An option of the environment, which is for all traces, does not hold here.
Result<void> seal(Settings& settings, View value) {
  TRY(set_flag(settings.sealed, value));
  if (settings.sealed) settings.destructive = false;
  return {};
}

/// Options that write or start something on the host, or lift or replace what it has set.
bool is_sealed(View name) {
  constexpr View kNames[] = {"cpp",     "ctypes",  "destructive", "dtypes",
                             "maxrate", "maxslow", "oformat"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

Result<void> set_clean_rate(Settings& settings, View value) {
  nanoseconds interval{};
  TRY(set_rate(interval, value));
  settings.engine.clean_interval =
      static_cast<std::uint64_t>(std::clamp(interval, kFastestCleaning, kSlowestCleaning).count());
  return {};
}

Result<void> set_buffer_policy(Settings& settings, View value) {
  using dif::BufferPolicy;
  return set_choice(settings.engine.buffer_policy, value,
                    {{"switch", BufferPolicy::Switch},
                     {"ring", BufferPolicy::Ring},
                     {"fill", BufferPolicy::Fill}});
}

Result<void> set_buffer_resize(Settings& settings, View value) {
  if (value != "auto" && value != "manual") return bad_value("auto or manual");
  settings.engine.buffer_resize =
      value == "auto" ? dif::BufferResize::Auto : dif::BufferResize::Manual;
  return {};
}

Result<void> set_cpu(Settings& settings, View value) {
  if (value == "all") {
    settings.engine.cpu.reset();
    return {};
  }
  std::uint32_t cpu = 0;
  if (!set_number(cpu, value, 0, UINT32_MAX)) return bad_value("a CPU's number, or all");
  settings.engine.cpu = cpu;
  return {};
}

Result<void> set_attribute_minimum(Settings& settings, View value) {
  settings.attribute_minimum = dif::parse_attributes(value);
  if (!settings.attribute_minimum) return bad_value("attributes such as Evolving/Evolving/Common");
  return {};
}

/// The versions of D that there have been.
constexpr std::array<std::array<unsigned, 3>, 23> kVersions{{
    {1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {1, 2, 1},  {1, 2, 2},  {1, 3, 0},  {1, 4, 0},  {1, 4, 1},
    {1, 5, 0}, {1, 6, 0}, {1, 6, 1}, {1, 6, 2},  {1, 6, 3},  {1, 7, 0},  {1, 7, 1},  {1, 8, 0},
    {1, 8, 1}, {1, 9, 0}, {1, 9, 1}, {1, 10, 0}, {1, 11, 0}, {1, 12, 0}, {1, 13, 0},
}};

Result<void> set_version(Settings& settings, View value) {
  std::array<unsigned, 3> version{};
  const auto malformed =
      fail(ErrorCode::Usage, "Version is not properly formatted or is too large");
  std::istringstream parts{std::string(value)};
  std::size_t count = 0;
  for (std::string part; std::getline(parts, part, '.'); ++count) {
    if (count == version.size()) return malformed;
    const char* const end = part.data() + part.size();
    const auto [stop, status] = std::from_chars(part.data(), end, version[count]);
    const unsigned most = count == 0 ? 255 : 4095;
    if (status != std::errc() || stop != end || version[count] > most) return malformed;
  }
  if (count < 2 || value.ends_with('.')) return malformed;
  if (std::find(kVersions.begin(), kVersions.end(), version) == kVersions.end()) {
    return fail(ErrorCode::Usage, "Requested version is not supported by compiler");
  }
  settings.version = version;
  return {};
}

Result<void> set_preprocessor_arguments(Settings& settings, View value) {
  std::istringstream words{std::string(value)};
  for (std::string word; words >> word;) settings.preprocessor.arguments.push_back(word);
  return settings.preprocessor.arguments.empty() ? Result<void>(bad_value("it may not be empty"))
                                                 : Result<void>();
}

Result<void> set_conformance(Settings& settings, View value) {
  using Conformance = PreprocessorSettings::Conformance;
  return set_choice(settings.preprocessor.conformance, value,
                    {{"a", Conformance::Default},
                     {"c", Conformance::Strict},
                     {"s", Conformance::Traditional},
                     {"t", Conformance::Default}});
}

/// Where -c's process waits until tracing is on. It waits before its dynamic loader runs, whatever
/// is asked for: nothing of the process can be traced that a later point would change.
Result<void> check_evaluation_time(Settings&, View value) {
  return one_of({"exec", "preinit", "postinit", "main"}, value);
}

Result<void> set_environment(Settings& settings, View value) {
  const std::size_t equals = std::min(value.find('='), value.size());
  if (equals == 0) return bad_value("NAME=VALUE");
  settings.environment.emplace_back(value.substr(0, equals),
                                    value.substr(std::min(equals + 1, value.size())));
  return {};
}

Result<void> remove_from_environment(Settings& settings, View value) {
  if (value.find('=') != View::npos) return bad_value("a name without =");
  return add_text(settings.removed_environment, "", value);
}

Result<void> set_encoding(Settings& settings, View value) {
  if (value != "ascii" && value != "utf8") return bad_value("ascii or utf8");
  settings.utf8 = value == "utf8";
  return {};
}

Result<void> set_format(Settings& settings, View value) {
  const auto format = parse_output_format(value);
  if (!format) return bad_value(fmt::format("one of {}", kOutputFormats));
  settings.format = *format;
  return {};
}

Result<void> set_channel(Settings& settings, View value) {
  using providers::Channel;
  return set_choice(settings.channel, value,
                    {{"auto", Channel::Auto}, {"spin", Channel::Spin}, {"exit", Channel::Exit}});
}

Result<void> set_recording(Settings& settings, View value) {
  using providers::Recording;
  return set_choice(settings.recording, value,
                    {{"auto", Recording::Auto}, {"yes", Recording::Yes}, {"no", Recording::No}});
}

Result<void> set_record_full(Settings& settings, View value) {
  using providers::RecordFull;
  return set_choice(settings.record_full, value,
                    {{"wait", RecordFull::Wait}, {"drop", RecordFull::Drop}});
}

/// "20000" or "20000/s" traps a second; "none" for no limit.
Result<void> set_most_traps(Settings& settings, View value) {
  if (value == "none") {
    settings.budget.max_rate.reset();
    return {};
  }
  if (value.ends_with("/s")) value.remove_suffix(2);
  std::uint64_t rate = 0;
  if (!set_number(rate, value, 1, UINT64_MAX)) return bad_value("traps a second, or none");
  settings.budget.max_rate = rate;
  return {};
}

/// "90" or "90%".
Result<void> set_most_slow(Settings& settings, View value) {
  if (value.ends_with("%")) value.remove_suffix(1);
  unsigned percent = 0;
  if (!set_number(percent, value, 1, 100)) return bad_value("a percentage from 1 to 100");
  settings.budget.max_slow = percent;
  return {};
}

Result<void> add_boot_arguments(Settings& settings, View value) {
  if (value.empty()) return bad_value("it may not be empty");
  if (!settings.boot_arguments.empty()) settings.boot_arguments += ' ';
  settings.boot_arguments += value;
  return {};
}

Result<void> add_sysroot(Settings& settings, View value) {
  return add_text(settings.sysroots, "", value);
}

template <bool Settings::*kFlag>
Result<void> flag(Settings& settings, View value) {
  return set_flag(settings.*kFlag, value);
}

template <std::optional<bool> Settings::*kFlag>
Result<void> flag_if_set(Settings& settings, View value) {
  bool flag = false;
  TRY(set_flag(flag, value));
  settings.*kFlag = flag;
  return {};
}

template <bool Settings::*kFlag>
Result<void> compiler_flag(Settings& settings, View value) {
  return set_compiler_flag(settings.*kFlag, value);
}

Result<void> set_cpp(Settings& settings, View value) {
  return set_compiler_flag(settings.preprocessor.wanted, value);
}

Result<void> set_cpp_headers(Settings& settings, View value) {
  return set_compiler_flag(settings.preprocessor.list_headers, value);
}

Result<void> set_cpp_path(Settings& settings, View value) {
  return set_text(settings.preprocessor.path, value);
}

/// The preprocessor's -D, -U and -I.
template <char kLetter>
Result<void> add_definition(Settings& settings, View value) {
  constexpr std::array kPrefix{'-', kLetter};
  return add_text(settings.preprocessor.definitions, View(kPrefix.data(), kPrefix.size()), value);
}

Result<void> add_library_folder(Settings& settings, View value) {
  return add_text(settings.library_folders, "", value);
}

Result<void> set_integer_registers(Settings& settings, View value) {
  return set_number(settings.integer_registers, value, 1, dif::kRegisters);
}

Result<void> set_tuple_registers(Settings& settings, View value) {
  return set_number(settings.tuple_registers, value, 0, dif::kTupleSlots);
}

Result<void> set_java_string_size(Settings& settings, View value) {
  return set_size(settings.java_string_size, value, 0, kMaxString);
}

Result<void> set_speculations(Settings& settings, View value) {
  return set_number(settings.engine.speculations, value, 0, kMostSpeculations);
}

Result<void> set_poll_threads(Settings& settings, View value) {
  return set_number(settings.poll_threads, value, 1, providers::kMostPollThreads);
}

Result<void> set_packet_size(Settings& settings, View value) {
  return set_size(settings.engine.packet_size, value, 1, dif::kMostPacketBytes);
}

Result<void> set_print_size(Settings& settings, View value) {
  return set_size(settings.print_size, value);
}

Result<void> set_scratch_size(Settings& settings, View value) {
  return set_size(settings.engine.scratch_size, value, 8, kMaxScratch);
}

Result<void> set_string_size(Settings& settings, View value) {
  return set_size(settings.engine.string_size, value, 2, kMaxString);
}

Result<void> set_jit(Settings& settings, View value) {
  return set_flag(settings.engine.jit, value);
}

Result<void> set_temporal(Settings& settings, View value) {
  return set_flag(settings.engine.temporal, value);
}

template <std::string Settings::*kText>
Result<void> text(Settings& settings, View value) {
  return set_text(settings.*kText, value);
}

template <std::size_t dif::EngineOptions::*kSize>
Result<void> engine_size(Settings& settings, View value) {
  return set_size(settings.engine.*kSize, value);
}

template <std::uint32_t Settings::*kNumber>
Result<void> frames(Settings& settings, View value) {
  return set_number(settings.*kNumber, value, 0, kMostFrames);
}

template <nanoseconds Settings::*kInterval>
Result<void> rate(Settings& settings, View value) {
  return set_rate(settings.*kInterval, value);
}

template <std::size_t Settings::*kIndex>
Result<void> index(Settings& settings, View value) {
  return set_number(settings.*kIndex, value, 0, 4096);
}

/// dtrace's bits for the phases of which to show the tree. Ours has one that can be shown.
Result<void> set_tree(Settings& settings, View value) {
  constexpr std::uint32_t kDesugared = 8;
  std::uint32_t phases = 0;
  TRY(set_number(phases, value, 0, UINT32_MAX));
  settings.show_desugared = (phases & kDesugared) != 0;
  return {};
}

// Of options that change nothing.

Result<void> check_late(Settings&, View value) {
  return one_of({"all", "dynamic", "static"}, value);
}

Result<void> check_link_mode(Settings&, View value) {
  return one_of({"kernel", "primary", "dynamic", "static"}, value);
}

Result<void> check_link_type(Settings&, View value) {
  return one_of({"elf", "dof"}, value);
}

Result<void> any_value(Settings&, View) {
  return {};
}

Result<void> any_size(Settings&, View value) {
  std::uint64_t ignored = 0;
  return value == "unlimited" ? Result<void>() : set_size(ignored, value, 0);
}

Result<void> any_text(Settings&, View value) {
  std::string ignored;
  return set_text(ignored, value);
}

/// An option that asks for what is so anyway.
Result<void> as_it_is(Settings&, View value) {
  bool ignored = false;
  return set_compiler_flag(ignored, value);
}

constexpr unsigned sources(std::initializer_list<OptionSource> list) {
  unsigned all = 0;
  for (const OptionSource one : list) all |= static_cast<unsigned>(one);
  return all;
}

using From = OptionSource;
// Who may set an option of each class. A compile-time option may be set while tracing, as dtrace
// has it, and has no effect then.
constexpr unsigned kCompile =
    sources({From::CommandLine, From::Program, From::SavedProgram, From::Setopt});
/// When a program is read, these have done their work: for the preprocessor and the libraries.
constexpr unsigned kCompileFirst = sources({From::CommandLine, From::Setopt});
/// Not once tracing is on.
constexpr unsigned kRun = sources({From::CommandLine, From::Program, From::SavedProgram});
/// These have done their work for the guest when a program is read.
constexpr unsigned kRunFirst = sources({From::CommandLine});
constexpr unsigned kDynamic = kCompile, kIgnored = kCompile, kIgnoredFirst = kCompileFirst;

struct XOption {
  View name;
  unsigned sources;  // OptionSources
  Result<void> (*set)(Settings&, View value);
};

constexpr XOption kXOptions[] = {
#define X_OPTION(name, letter, value, group, again, when, set, help, manual) {name, k##when, set},
#include "cli/options/options.def"
};

/// An option of dtrace's that can mean nothing here.
struct MeaninglessOption {
  View name, reason;
};

constexpr MeaninglessOption kMeaningless[] = {
#define X_REFUSED(name, reason) {name, reason},
#include "cli/options/options.def"
};

}  // namespace

std::string language_version_text() {
  const auto [major, minor, micro] = kLanguageVersion;
  return micro == 0 ? fmt::format("{}.{}", major, minor)
                    : fmt::format("{}.{}.{}", major, minor, micro);
}

std::optional<OutputFormat> parse_output_format(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, OutputFormat>, 11> kNames{{
      {"text", OutputFormat::Text},
      {"json", OutputFormat::Json},
      {"jsonl", OutputFormat::JsonLines},
      {"xml", OutputFormat::Xml},
      {"html", OutputFormat::Html},
      {"csv", OutputFormat::Csv},
      {"folded", OutputFormat::Folded},
      {"flame", OutputFormat::Flame},
      {"speedscope", OutputFormat::Speedscope},
      {"heatmap", OutputFormat::Heatmap},
      {"perfetto", OutputFormat::Perfetto},
  }};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

bool is_picture(OutputFormat format) {
  switch (format) {
    case OutputFormat::Text:
    case OutputFormat::Json:
    case OutputFormat::JsonLines:
    case OutputFormat::Xml:
    case OutputFormat::Html:
    case OutputFormat::Csv: return false;
    case OutputFormat::Folded:
    case OutputFormat::Flame:
    case OutputFormat::Speedscope:
    case OutputFormat::Heatmap:
    case OutputFormat::Perfetto: return true;
  }
  return false;
}

bool is_drawn_whole(OutputFormat format) {
  return is_picture(format) && format != OutputFormat::Folded;
}

Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          OptionSource source) {
  const auto* const row = std::ranges::find(kXOptions, name, &XOption::name);
  if (row == std::end(kXOptions)) {
    for (const MeaninglessOption& option : kMeaningless) {
      if (option.name == name) return fail(ErrorCode::Unsupported, std::string(option.reason));
    }
    return fail(ErrorCode::Usage,
                "Invalid option name" +
                    did_you_mean(similar_name(name, kXOptions, std::mem_fn(&XOption::name))));
  }
  if ((row->sources & static_cast<unsigned>(source)) == 0) {
    return fail(ErrorCode::Unsupported, source == OptionSource::Setopt
                                            ? "Operation illegal when tracing is active"
                                            : "Option cannot be used from within a D program");
  }
  if (settings.sealed && source != OptionSource::CommandLine && is_sealed(name)) {
    return fail(ErrorCode::Unsupported,
                "it may change the host, or how much the guest waits, and programs here may not: "
                "run the program with ringside itself");
  }
  return row->set(settings, value);
}

Result<void> apply_option_argument(Settings& settings, std::string_view argument) {
  const std::size_t equals = std::min(argument.find('='), argument.size());
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
  auto done = apply_option(settings, name, value, OptionSource::CommandLine);
  if (done) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("failed to set -x {}: {}", name, done.error().message));
}

}  // namespace ringside::cli
