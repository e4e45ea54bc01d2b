#include "providers/profile/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

/// dtrace publishes these without being asked, in this order.
constexpr const char* kUsual[] = {
    "profile-97",   "profile-199",  "profile-499", "profile-997", "profile-1999",
    "profile-4001", "profile-4999", "tick-1",      "tick-10",     "tick-100",
    "tick-500",     "tick-1000",    "tick-5000",
};

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kProfileAttributes{
    .provider = {Evolving, Evolving, Common},
    .module = {Unstable, Unstable, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Common},
    .arguments = {Evolving, Evolving, Common},
};

/// arg0 and arg1 are the kernel's pc and the user's, one of them 0; arg2 is how late it is (ns).
constexpr ArgumentPlan kSampleArguments = arguments_from(
    {ArgumentSource::kernel_pc(), ArgumentSource::user_pc(), ArgumentSource::fact(0)});
/// A tick happens on no CPU, so it has arg2 only.
constexpr ArgumentPlan kTickArguments = arguments_from({{}, {}, ArgumentSource::fact(0)});

/// Whether the pattern asks for a timer by its whole name.
bool names_one(const dif::ProbeDescription& pattern) {
  return pattern.module.empty() && pattern.function.empty() && !dif::is_glob(pattern.name);
}

}  // namespace

ProfileProvider::ProfileProvider() : Provider("profile", kProfileAttributes) {
  for (const char* name : kUsual) publish(name);
  CHECK(published_.size() == std::size(kUsual));
}

Probe ProfileProvider::probe(std::size_t index) const {
  return {id_at(static_cast<std::uint32_t>(index)), {"profile", "", "", published_[index].name}};
}

Result<TimerName> ProfileProvider::servable(const std::string& name) const {
  const TimerName timer = TRY(parse_timer_name(name));
  if (published_.size() >= kMostProbes) {
    return fail(ErrorCode::Limit, fmt::format("no more than {} timers in one run", kMostProbes));
  }
  return timer;
}

void ProfileProvider::publish(const std::string& name) {
  const auto known = std::any_of(published_.begin(), published_.end(),
                                 [&](const Published& one) { return one.name == name; });
  if (known) return;
  if (const auto timer = servable(name)) published_.push_back({name, *timer});
}

Result<void> ProfileProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  if (names_one(pattern)) publish(pattern.name);
  for (std::size_t index = 0; index < published_.size(); ++index) {
    const Probe candidate = probe(index);
    if (dif::matches(pattern, candidate.name)) visit(candidate);
  }
  return {};
}

Result<void> ProfileProvider::refusals(const dif::ProbeDescription& pattern,
                                       const RefusalVisitor& visit) {
  if (!names_one(pattern)) return {};
  const auto timer = servable(pattern.name);
  if (!timer && timer.error().code != ErrorCode::NotFound) {
    visit({{"profile", "", "", pattern.name}, timer.error().message});
  }
  return {};
}

Result<std::optional<Probe>> ProfileProvider::by_id(dif::ProbeId id) {
  const auto index = index_of(id);
  if (!index || *index >= published_.size()) return std::optional<Probe>();
  return std::optional(probe(*index));
}

ProbeArguments ProfileProvider::arguments(const Probe&) {
  return {};
}

Result<void> ProfileProvider::enable(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index || *index >= published_.size()) return no_such_probe();
  if (is_enabled(probe.id)) return {};
  const TimerName& timer = published_[*index].timer;
  const ArgumentPlan& plan = timer.kind == TimerKind::Profile ? kSampleArguments : kTickArguments;
  enabled_.push_back({probe.id, timer.kind, timer.interval, &plan});
  return {};
}

bool ProfileProvider::is_enabled(dif::ProbeId id) const {
  return std::ranges::find(enabled_, id, &EnabledTimer::probe) != enabled_.end();
}

void ProfileProvider::note_disabled(dif::ProbeId id) {
  std::erase_if(enabled_, [&](const EnabledTimer& timer) { return timer.probe == id; });
}

bool ProfileProvider::has_samples() const {
  return std::ranges::find(enabled_, TimerKind::Profile, &EnabledTimer::kind) != enabled_.end();
}

}  // namespace ringside::providers
