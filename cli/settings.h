// Settings: what -x, #pragma D option and setopt() can set, in one table.
// Does not: know the command line's own letters (options.h).
// Fire context: no.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "dif/options.h"
#include "vmm/base/result.h"

namespace ringside::cli {

struct Settings {
  // Compile time.
  bool default_arguments = false;  // defaultargs
  bool empty = false;              // empty
  bool error_tags = false;         // errtags
  bool zero_matches = false;       // zdefs, -Z
  // Fixed once tracing starts.
  bool destructive = false;  // -w
  dif::EngineOptions engine;
  // May change at any time.
  bool drop_tags = false;                           // droptags
  bool flow_indent = false;                         // -F
  bool quiet = false;                               // -q
  bool raw_bytes = false;                           // rawbytes
  bool sort_by_key = false, sort_reversed = false;  // aggsortkey, aggsortrev
  std::size_t sort_position = 0;                    // aggsortpos: which aggregation of a printa
  std::size_t sort_key_position = 0;                // aggsortkeypos: which key comes first
  std::chrono::nanoseconds switch_interval = std::chrono::seconds(1);     // switchrate
  std::chrono::nanoseconds aggregate_interval = std::chrono::seconds(1);  // aggrate
  std::chrono::nanoseconds status_interval = std::chrono::seconds(1);     // statusrate
};

enum class SettingPhase {
  Start,    // -x and #pragma D option
  Running,  // setopt(): only what may change while tracing
};

/// Sets one option by dtrace's name. `value` is empty where none was given. The error is one line:
/// unknown name, bad value, known but not supported by this version, or fixed while tracing.
Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          SettingPhase phase);

/// "name" or "name=value", as -x takes it.
Result<void> apply_option_argument(Settings& settings, std::string_view argument);

}  // namespace ringside::cli
