// In this file, top to bottom: markers, the sets, the steps, the notice.
#include "providers/boot/boot_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace ringside::providers {
namespace {

constexpr std::array<std::string_view, BootPlan::kMoments> kFunctions{
    "", "x86_64_start_kernel", "early_cpu_init", "rest_init", "free_initmem"};

constexpr std::uint32_t kSystemScheduling =
    1;  // set in rest_init; those above: init memory is free

}  // namespace

BootPlan::Markers BootPlan::find_markers(const BootPoints& points) {
  Markers markers;
  if (!points.is_linux()) return markers;
  for (std::size_t i = 1; i < kMoments; ++i) markers[i] = points.marker(kFunctions[i]);
  return markers;
}

bool BootPlan::has_markers() const {
  return std::any_of(markers_.begin(), markers_.end(), [](const auto& at) { return at; });
}

std::optional<BootPlan::Moment> BootPlan::marked_by(GuestVirt at) const {
  for (std::size_t i = 1; i < kMoments; ++i) {
    if (markers_[i] == at) return static_cast<Moment>(i);
  }
  return std::nullopt;
}

bool BootPlan::asks_system_state() const {
  return has_markers() && points_.size() == kRegisters && reached_ == Moment::Start;
}

/// Bytes in init text only with a marker that tells when they must go: none can be set in time.
std::optional<BootPlan::Moment> BootPlan::told_by(std::uint32_t system_state) const {
  if (system_state > kSystemScheduling) return Moment::Freed;
  const bool any_init = std::any_of(points_.begin(), points_.end(),
                                    [](const BootPoints::Point& point) { return point.is_init; });
  if (system_state < kSystemScheduling || any_init) return std::nullopt;
  return Moment::Patched;
}

std::optional<BootPlan::Moment> BootPlan::next_after(Moment moment) const {
  for (std::size_t i = static_cast<std::size_t>(moment) + 1; i < kMoments; ++i) {
    if (markers_[i]) return static_cast<Moment>(i);
  }
  return std::nullopt;
}

void BootPlan::add_marker(std::vector<GuestVirt>& to, Moment moment) const {
  const auto marker = markers_[static_cast<std::size_t>(moment)];
  if (marker && std::find(to.begin(), to.end(), *marker) == to.end()) to.push_back(*marker);
}

std::vector<GuestVirt> BootPlan::first(std::size_t count) const {
  std::vector<GuestVirt> set;
  for (const BootPoints::Point& point : points_) {
    if (set.size() < count) set.push_back(point.address);
  }
  return set;
}

std::vector<GuestVirt> BootPlan::set_at(Moment moment) const {
  std::vector<GuestVirt> set;
  for (const BootPoints::Point& point : points_) {
    const bool too_early = point.patched_at_boot && moment < Moment::Patched;
    const bool too_late = point.is_init && moment >= Moment::Freed;
    if (!too_early && !too_late) set.push_back(point.address);
  }
  if (moment < Moment::Patched) add_marker(set, Moment::Patched);
  if (moment == Moment::Patched) add_marker(set, Moment::Freed);
  return set;
}

BootPlan::Step BootPlan::start() const {
  if (!has_markers()) return {Moment::Start, first(points_.size()), first(kRegisters)};
  if (is_few()) {
    std::vector<GuestVirt> set = first(kRegisters);
    if (set.size() < kRegisters) add_marker(set, Moment::Patched);
    return {Moment::Start, set, {}};
  }
  std::vector<GuestVirt> set = first(kRegisters - 1);
  if (const auto next = next_after(Moment::Start)) add_marker(set, *next);
  return {Moment::Start, set, {}};
}

std::optional<BootPlan::Step> BootPlan::at(GuestVirt hit,
                                           std::optional<std::uint32_t> system_state) const {
  if (!has_markers()) {
    if (complete_ || tries_ >= kMostTries) return std::nullopt;
    return Step{Moment::Start, first(points_.size()), {}};
  }
  if (asks_system_state()) {
    const auto told = system_state ? told_by(*system_state) : std::nullopt;
    if (!told) return std::nullopt;
    return Step{*told, set_at(*told), first(kRegisters)};
  }
  const auto moment = marked_by(hit);
  if (!moment || *moment <= reached_) return std::nullopt;
  std::vector<GuestVirt> instead = first(kRegisters - 1);
  if (const auto next = next_after(*moment)) add_marker(instead, *next);
  return Step{*moment, set_at(*moment), std::move(instead)};
}

void BootPlan::made(const Step& step, bool wanted) {
  ++tries_;
  complete_ = complete_ || wanted;
  reached_ = step.moment;
}

std::optional<std::string> BootPlan::notice() const {
  if (is_few()) return std::nullopt;
  if (!has_markers()) return std::nullopt;
  const auto late = std::count_if(points_.begin(), points_.end(),
                                  [](const auto& point) { return point.patched_at_boot; });
  std::string text = fmt::format(
      "{} places are probed, and the CPU watches 4 before the kernel can take breakpoints: but for "
      "the first 3, they begin in {}",
      points_.size(), kFunctions[static_cast<std::size_t>(Moment::Trapping)]);
  if (late == 0) return text;
  return text + fmt::format(", and the {} that the kernel rewrites while it boots in {}", late,
                            kFunctions[static_cast<std::size_t>(Moment::Patched)]);
}

}  // namespace ringside::providers
