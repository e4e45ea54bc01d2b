// The option table: name, when it may change, and how its value is read.
// In this file, top to bottom: value readers, the table, what dtrace has and we do not, lookup.
#include "cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/quantities.h"

namespace ringside::cli {
namespace {

constexpr std::uint64_t kMaxBuffer = std::uint64_t{1} << 36;
constexpr std::uint64_t kMaxString = 64 << 10;

Result<void> set_flag(bool& flag, std::string_view value) {
  constexpr std::array<std::string_view, 7> kOn{"", "1", "on", "yes", "true", "set", "enabled"};
  constexpr std::array<std::string_view, 6> kOff{"0", "off", "no", "false", "unset", "disabled"};
  if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) {
    flag = true;
  } else if (std::find(kOff.begin(), kOff.end(), value) != kOff.end()) {
    flag = false;
  } else {
    return fail(ErrorCode::Usage, fmt::format("'{}' is neither on nor off", value));
  }
  return {};
}

template <class Integer>
Result<void> set_size(Integer& size, std::string_view value, std::uint64_t least,
                      std::uint64_t most) {
  const std::uint64_t bytes = TRY(parse_size(value));
  if (bytes < least || bytes > most) {
    return fail(ErrorCode::Usage,
                fmt::format("size '{}' is not between {} and {} bytes", value, least, most));
  }
  size = static_cast<Integer>(bytes);
  return {};
}

Result<void> set_rate(std::chrono::nanoseconds& interval, std::string_view value) {
  interval = TRY(parse_rate(value));
  return {};
}

Result<void> set_index(std::size_t& index, std::string_view value) {
  index = TRY(parse_number(value));
  return {};
}

struct Row {
  std::string_view name;
  bool dynamic;
  Result<void> (*set)(Settings&, std::string_view);
};

using View = std::string_view;

constexpr std::array kRows{
    Row{"aggrate", true, [](Settings& s, View v) { return set_rate(s.aggregate_interval, v); }},
    Row{"aggsize", false,
        [](Settings& s, View v) { return set_size(s.engine.aggregation_size, v, 1, kMaxBuffer); }},
    Row{"aggsortkey", true, [](Settings& s, View v) { return set_flag(s.sort_by_key, v); }},
    Row{"aggsortkeypos", true,
        [](Settings& s, View v) { return set_index(s.sort_key_position, v); }},
    Row{"aggsortpos", true, [](Settings& s, View v) { return set_index(s.sort_position, v); }},
    Row{"aggsortrev", true, [](Settings& s, View v) { return set_flag(s.sort_reversed, v); }},
    Row{"bufsize", false,
        [](Settings& s, View v) { return set_size(s.engine.buffer_size, v, 1, kMaxBuffer); }},
    Row{"defaultargs", false, [](Settings& s, View v) { return set_flag(s.default_arguments, v); }},
    Row{"destructive", false, [](Settings& s, View v) { return set_flag(s.destructive, v); }},
    Row{"droptags", true, [](Settings& s, View v) { return set_flag(s.drop_tags, v); }},
    Row{"dynvarsize", false,
        [](Settings& s, View v) { return set_size(s.engine.dynamic_size, v, 1, kMaxBuffer); }},
    Row{"empty", false, [](Settings& s, View v) { return set_flag(s.empty, v); }},
    Row{"errtags", false, [](Settings& s, View v) { return set_flag(s.error_tags, v); }},
    Row{"flowindent", true, [](Settings& s, View v) { return set_flag(s.flow_indent, v); }},
    Row{"quiet", true, [](Settings& s, View v) { return set_flag(s.quiet, v); }},
    Row{"rawbytes", true, [](Settings& s, View v) { return set_flag(s.raw_bytes, v); }},
    Row{"statusrate", true, [](Settings& s, View v) { return set_rate(s.status_interval, v); }},
    Row{"strsize", false,
        [](Settings& s, View v) { return set_size(s.engine.string_size, v, 2, kMaxString); }},
    Row{"switchrate", true, [](Settings& s, View v) { return set_rate(s.switch_interval, v); }},
    Row{"zdefs", false, [](Settings& s, View v) { return set_flag(s.zero_matches, v); }},
};

// dtrace's options that have no effect here yet. Accepting them would be a silent lie.
constexpr std::array<std::string_view, 66> kUnsupported{
    "agghist",     "aggpack",     "aggpercpu",   "aggzoom",      "amin",          "argref",
    "bufpolicy",   "buflimit",    "bufresize",   "cleanrate",    "core",          "cpp",
    "cppargs",     "cpphdrs",     "cpppath",     "cpu",          "ctfpath",       "ctypes",
    "debug",       "define",      "disasm",      "dtypes",       "encoding",      "evaltime",
    "grabanon",    "incdir",      "iregs",       "jstackframes", "jstackstrsize", "kdefs",
    "knodefs",     "late",        "lazyload",    "ldpath",       "libdir",        "linkmode",
    "linktype",    "lockmem",     "maxframes",   "modpath",      "nolibs",        "noresolve",
    "nspec",       "oformat",     "pcapsize",    "pgmax",        "preallocate",   "printsize",
    "pspec",       "quietresize", "scratchsize", "setenv",       "specsize",      "stackframes",
    "stackindent", "stdc",        "strip",       "syslibdir",    "temporal",      "tree",
    "tregs",       "udefs",       "undef",       "unsetenv",     "ustackframes",  "version",
};

}  // namespace

Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          SettingPhase phase) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& candidate) { return candidate.name == name; });
  if (row == kRows.end()) {
    if (std::find(kUnsupported.begin(), kUnsupported.end(), name) != kUnsupported.end()) {
      return fail(ErrorCode::Unsupported, fmt::format("option '{}' is not supported yet", name));
    }
    return fail(ErrorCode::Usage, fmt::format("there is no option '{}'", name));
  }
  if (phase == SettingPhase::Running && !row->dynamic) {
    return fail(ErrorCode::Unsupported,
                fmt::format("option '{}' cannot change while tracing", name));
  }
  if (auto done = row->set(settings, value); !done) {
    return fail(done.error().code, fmt::format("option '{}': {}", name, done.error().message));
  }
  return {};
}

Result<void> apply_option_argument(Settings& settings, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    return apply_option(settings, argument, {}, SettingPhase::Start);
  }
  return apply_option(settings, argument.substr(0, equals), argument.substr(equals + 1),
                      SettingPhase::Start);
}

}  // namespace ringside::cli
