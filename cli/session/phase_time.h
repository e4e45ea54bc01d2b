// Reports for -x debug: how long each phase of a run took, and how long it paused the guests.
#pragma once

#include <chrono>
#include <string_view>

#include "cli/options/settings.h"
#include "cli/session/session_target.h"

namespace ringside::cli {

using Clock = std::chrono::steady_clock;

/// Says on stderr how long ago `since` was, under -x debug: "compiled in 1.5 ms".
void report_time(const Settings& settings, std::string_view phase, Clock::time_point since);
/// Says of each machine how often and how long it has been made to stand still until now.
void report_pauses(const Settings& settings, const SessionTargets& targets);

}  // namespace ringside::cli
