// In this file, top to bottom: value readers, the table in dtrace's three classes, what can mean
// nothing here.
#include "cli/options/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "cli/options/quantities.h"

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

/// `wanted`: what the value has to be, for the user.
tl::unexpected<Error> bad_value(View wanted) {
  return fail(ErrorCode::Usage, fmt::format("Invalid value for specified option: {}", wanted));
}

constexpr View kNoValue = "it takes none";
constexpr View kNotEmpty = "it may not be empty";

/// "one of a, b and c".
std::string one_of_text(std::initializer_list<View> words) {
  std::string text = "one of ";
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word != words.begin()) text += word + 1 == words.end() ? " and " : ", ";
    text += *word;
  }
  return text;
}

/// An option that chooses between ways of which there is one here.
Result<void> one_of(std::initializer_list<View> words, View value) {
  const bool known = std::find(words.begin(), words.end(), value) != words.end();
  return known ? Result<void>() : bad_value(one_of_text(words));
}

/// Words count in any case.
Result<void> set_flag(bool& flag, View value) {
  constexpr std::array<View, 8> kOn{"", "1", "on", "yes", "true", "set", "enable", "enabled"};
  constexpr std::array<View, 7> kOff{"0", "off", "no", "false", "unset", "disable", "disabled"};
  std::string word(value);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kOn.begin(), kOn.end(), word) != kOn.end()) {
    flag = true;
  } else if (std::find(kOff.begin(), kOff.end(), word) != kOff.end()) {
    flag = false;
  } else {
    const auto number = parse_number(value);
    if (!number) return bad_value("yes or no");
    flag = *number != 0;
  }
  return {};
}

/// The compiler's own flags can only be set.
Result<void> set_compiler_flag(bool& flag, View value) {
  if (!value.empty()) return bad_value(kNoValue);
  flag = true;
  return {};
}

template <class Integer>
Result<void> set_number(Integer& number, View value, std::uint64_t least, std::uint64_t most) {
  const auto parsed = parse_number(value);
  if (!parsed || *parsed < least || *parsed > most) {
    return bad_value(most >= UINT32_MAX ? fmt::format("a number of {} or more", least)
                                        : fmt::format("a number from {} to {}", least, most));
  }
  number = static_cast<Integer>(*parsed);
  return {};
}

template <class Integer>
Result<void> set_size(Integer& size, View value, std::uint64_t least = 1,
                      std::uint64_t most = UINT64_MAX) {
  const auto bytes = parse_size(value);
  if (!bytes || *bytes < least || *bytes > most) {
    const std::string bounds =
        most == UINT64_MAX ? std::string() : fmt::format(", from {} to {} bytes", least, most);
    return bad_value("a size such as 4k" + bounds);
  }
  size = static_cast<Integer>(*bytes);
  return {};
}

Result<void> set_rate(nanoseconds& interval, View value) {
  const auto parsed = parse_rate(value);
  if (!parsed) return bad_value("a rate such as 10hz, or an interval such as 100ms");
  interval = *parsed;
  return {};
}

Result<void> set_status_rate(Settings& settings, View value) {
  TRY(set_rate(settings.status_interval, value));
  settings.status_interval = std::min(settings.status_interval, kSlowestStatus);
  return {};
}

Result<void> set_clean_rate(Settings& settings, View value) {
  nanoseconds interval{};
  TRY(set_rate(interval, value));
  settings.engine.clean_interval =
      static_cast<std::uint64_t>(std::clamp(interval, kFastestCleaning, kSlowestCleaning).count());
  return {};
}

Result<void> set_buffer_policy(Settings& settings, View value) {
  if (value == "switch") {
    settings.engine.buffer_policy = dif::BufferPolicy::Switch;
  } else if (value == "ring") {
    settings.engine.buffer_policy = dif::BufferPolicy::Ring;
  } else if (value == "fill") {
    settings.engine.buffer_policy = dif::BufferPolicy::Fill;
  } else {
    return bad_value(one_of_text({"switch", "ring", "fill"}));
  }
  return {};
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

Result<void> set_text(std::string& text, View value) {
  if (value.empty()) return bad_value(kNotEmpty);
  text = value;
  return {};
}

Result<void> add_text(std::vector<std::string>& texts, View prefix, View value) {
  if (value.empty()) return bad_value(kNotEmpty);
  texts.push_back(std::string(prefix) + std::string(value));
  return {};
}

Result<void> set_preprocessor_arguments(Settings& settings, View value) {
  std::istringstream words{std::string(value)};
  for (std::string word; words >> word;) settings.preprocessor.arguments.push_back(word);
  return settings.preprocessor.arguments.empty() ? Result<void>(bad_value(kNotEmpty))
                                                 : Result<void>();
}

Result<void> set_conformance(Settings& settings, View value) {
  using Conformance = PreprocessorSettings::Conformance;
  if (value == "a" || value == "t") {
    settings.preprocessor.conformance = Conformance::Default;
  } else if (value == "c") {
    settings.preprocessor.conformance = Conformance::Strict;
  } else if (value == "s") {
    settings.preprocessor.conformance = Conformance::Traditional;
  } else {
    return bad_value(one_of_text({"a", "c", "s", "t"}));
  }
  return {};
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
  if (value == "auto") {
    settings.channel = providers::Channel::Auto;
  } else if (value == "spin") {
    settings.channel = providers::Channel::Spin;
  } else if (value == "exit") {
    settings.channel = providers::Channel::Exit;
  } else {
    return bad_value(one_of_text({"auto", "spin", "exit"}));
  }
  return {};
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
  if (value.empty()) return bad_value(kNotEmpty);
  if (!settings.boot_arguments.empty()) settings.boot_arguments += ' ';
  settings.boot_arguments += value;
  return {};
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
// A compile-time option may be set while tracing, as dtrace has it, and has no effect then.
constexpr unsigned kAnyTime =
    sources({From::CommandLine, From::Program, From::SavedProgram, From::Setopt});
/// Not once tracing is on.
constexpr unsigned kBefore = sources({From::CommandLine, From::Program, From::SavedProgram});
/// When a program is read, these have done their work: for the guest, the preprocessor, the
/// libraries.
constexpr unsigned kFirst = sources({From::CommandLine});
constexpr unsigned kFirstOrLater = sources({From::CommandLine, From::Setopt});

constexpr OptionRow kRows[]{
    // Compile time.
    {"amin", kAnyTime, set_attribute_minimum},
    {"argref", kAnyTime, compiler_flag<&Settings::unused_arguments>},
    {"cpp", kAnyTime,
     [](Settings& s, View v) { return set_compiler_flag(s.preprocessor.wanted, v); }},
    {"cppargs", kFirstOrLater, set_preprocessor_arguments},
    {"cpphdrs", kFirstOrLater,
     [](Settings& s, View v) { return set_compiler_flag(s.preprocessor.list_headers, v); }},
    {"cpppath", kFirstOrLater,
     [](Settings& s, View v) { return set_text(s.preprocessor.path, v); }},
    {"ctypes", kAnyTime, [](Settings& s, View v) { return set_text(s.c_dictionary, v); }},
    {"debug", kAnyTime, compiler_flag<&Settings::debug>},
    {"defaultargs", kAnyTime, compiler_flag<&Settings::default_arguments>},
    {"define", kFirstOrLater,
     [](Settings& s, View v) { return add_text(s.preprocessor.definitions, "-D", v); }},
    {"droptags", kAnyTime, flag<&Settings::drop_tags>},
    {"dtypes", kAnyTime, [](Settings& s, View v) { return set_text(s.d_dictionary, v); }},
    {"empty", kAnyTime, compiler_flag<&Settings::empty>},
    {"encoding", kBefore, set_encoding},
    {"errtags", kAnyTime, compiler_flag<&Settings::error_tags>},
    {"evaltime", kAnyTime, check_evaluation_time},
    {"incdir", kFirstOrLater,
     [](Settings& s, View v) { return add_text(s.preprocessor.definitions, "-I", v); }},
    {"iregs", kAnyTime,
     [](Settings& s, View v) { return set_number(s.integer_registers, v, 1, dif::kRegisters); }},
    {"kdefs", kAnyTime, as_it_is},
    {"libdir", kFirstOrLater,
     [](Settings& s, View v) { return add_text(s.library_folders, "", v); }},
    {"nolibs", kFirstOrLater, compiler_flag<&Settings::no_libraries>},
    {"oformat", kBefore, set_format},
    {"rawtext", kBefore, flag<&Settings::raw_text>},
    {"setenv", kFirst, set_environment},
    {"stdc", kFirstOrLater, set_conformance},
    {"syslibdir", kFirstOrLater,
     [](Settings& s, View v) { return set_text(s.system_library_folder, v); }},
    {"tree", kAnyTime, set_tree},
    {"tregs", kAnyTime,
     [](Settings& s, View v) { return set_number(s.tuple_registers, v, 0, dif::kTupleSlots); }},
    {"udefs", kAnyTime, as_it_is},
    {"undef", kFirstOrLater,
     [](Settings& s, View v) { return add_text(s.preprocessor.definitions, "-U", v); }},
    {"unsetenv", kFirst, remove_from_environment},
    {"verbose", kAnyTime, compiler_flag<&Settings::show_dif>},
    {"version", kAnyTime, set_version},
    {"zdefs", kAnyTime, compiler_flag<&Settings::zero_matches>},
    // Compile time, with nothing to change: symbols are looked for when a program is compiled,
    // no objects are linked, no processes of the host are looked into and there is no BPF.
    {"aggpercpu", kAnyTime, as_it_is},
    {"bpflog", kAnyTime, [](Settings&, View) { return Result<void>(); }},
    {"bpflogsize", kAnyTime, any_size},
    {"core", kAnyTime, as_it_is},
    {"debugassert", kAnyTime, [](Settings&, View) { return Result<void>(); }},
    {"disasm", kAnyTime, any_size},
    {"knodefs", kAnyTime, as_it_is},
    {"late", kAnyTime,
     [](Settings&, View v) {
       return one_of({"all", "dynamic", "static"}, v);
     }},
    {"lazyload", kAnyTime, as_it_is},
    {"ldpath", kFirstOrLater, any_text},
    {"linkmode", kAnyTime,
     [](Settings&, View v) {
       return one_of({"kernel", "primary", "dynamic", "static"}, v);
     }},
    {"linknommap", kAnyTime, as_it_is},
    {"linktype", kAnyTime,
     [](Settings&, View v) {
       return one_of({"elf", "dof"}, v);
     }},
    {"lockmem", kAnyTime, any_size},
    {"pgmax", kAnyTime, any_size},
    {"preallocate", kAnyTime, any_size},
    {"pspec", kAnyTime, as_it_is},
    {"strip", kAnyTime, as_it_is},
    {"unodefs", kAnyTime, as_it_is},
    // Run time.
    {"aggmerge", kBefore, flag<&Settings::merge_aggregations>},
    {"aggsize", kBefore,
     [](Settings& s, View v) { return set_size(s.engine.aggregation_size, v); }},
    {"bootargs", kFirst, add_boot_arguments},
    {"bufpolicy", kBefore, set_buffer_policy},
    {"bufresize", kBefore, set_buffer_resize},
    {"bufsize", kBefore, [](Settings& s, View v) { return set_size(s.engine.buffer_size, v); }},
    {"channel", kFirst, set_channel},
    {"cleanrate", kBefore, set_clean_rate},
    {"cpu", kBefore, set_cpu},
    {"destructive", kBefore, flag<&Settings::destructive>},
    {"dynvarsize", kBefore, [](Settings& s, View v) { return set_size(s.engine.dynamic_size, v); }},
    {"jstackframes", kBefore, frames<&Settings::java_stack_frames>},
    {"jstackstrsize", kBefore,
     [](Settings& s, View v) { return set_size(s.java_string_size, v, 0, kMaxString); }},
    {"jumpprobes", kFirst, flag_if_set<&Settings::jump_probes>},
    {"maxframes", kBefore, frames<&Settings::most_frames>},
    {"maxrate", kBefore, set_most_traps},
    {"maxslow", kBefore, set_most_slow},
    {"noresolve", kBefore, flag<&Settings::raw_user_addresses>},
    {"nspec", kBefore,
     [](Settings& s, View v) {
       return set_number(s.engine.speculations, v, 0, kMostSpeculations);
     }},
    {"pollthreads", kFirst,
     [](Settings& s, View v) {
       return set_number(s.poll_threads, v, 1, providers::kMostPollThreads);
     }},
    {"printsize", kBefore, [](Settings& s, View v) { return set_size(s.print_size, v); }},
    {"quietresize", kBefore, flag<&Settings::quiet_resize>},
    {"scratchsize", kBefore,
     [](Settings& s, View v) { return set_size(s.engine.scratch_size, v, 8, kMaxScratch); }},
    {"specsize", kBefore,
     [](Settings& s, View v) { return set_size(s.engine.speculation_size, v); }},
    {"stackframes", kBefore, frames<&Settings::stack_frames>},
    {"strsize", kBefore,
     [](Settings& s, View v) { return set_size(s.engine.string_size, v, 2, kMaxString); }},
    {"temporal", kBefore, [](Settings& s, View v) { return set_flag(s.engine.temporal, v); }},
    {"ustackframes", kBefore, frames<&Settings::user_stack_frames>},
    // Run time, dynamic.
    {"agghist", kAnyTime, flag<&Settings::aggregation_histogram>},
    {"aggpack", kAnyTime, flag<&Settings::aggregation_pack>},
    {"aggrate", kAnyTime, rate<&Settings::aggregate_interval>},
    {"aggsortkey", kAnyTime, flag<&Settings::sort_by_key>},
    {"aggsortkeypos", kAnyTime, index<&Settings::sort_key_position>},
    {"aggsortpos", kAnyTime, index<&Settings::sort_position>},
    {"aggsortrev", kAnyTime, flag<&Settings::sort_reversed>},
    {"aggzoom", kAnyTime, flag<&Settings::aggregation_zoom>},
    {"flowindent", kAnyTime, flag<&Settings::flow_indent>},
    {"quiet", kAnyTime, flag<&Settings::quiet>},
    {"rawbytes", kAnyTime, flag<&Settings::raw_bytes>},
    {"stackindent", kAnyTime, index<&Settings::stack_indent>},
    {"statusrate", kAnyTime, set_status_rate},
    {"switchrate", kAnyTime, rate<&Settings::switch_interval>},
};

// Accepting these would be a silent lie.
constexpr View kNoDaemon = "there is no USDT daemon here";
constexpr View kFromGuest = "symbols and types are read out of the guest";

constexpr MeaninglessOption kMeaningless[]{
    {"buflimit", "buffers are read at switchrate, however full they are"},
    {"ctfpath", kFromGuest},
    {"dofstashpath", kNoDaemon},
    {"grabanon",
     "there is no anonymous tracing here; to trace a boot, start the guest with --machine kvm"},
    {"modpath", kFromGuest},
    {"pcapsize", "there is no pcap() here"},
    {"procfspath", "processes are looked at in the guest"},
    {"sysslice", kNoDaemon},
    {"useruid", kNoDaemon},
    {"zone", "Linux has no zones"},
};

}  // namespace

std::span<const OptionRow> option_rows() {
  return kRows;
}

std::span<const MeaninglessOption> meaningless_options() {
  return kMeaningless;
}

}  // namespace ringside::cli
