#include "providers/pid/usdt_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vmm/base/numbers.h"

namespace ringside::providers {
namespace {

using guest_linux::FileFunction, guest_linux::FileFunctions, guest_linux::StaticProbe;
using enum dif::Stability;
using enum dif::DependencyClass;

/// Dynamic Tracing Guide, "Statically Defined Tracing for User Applications", without what a
/// program's author may promise.
constexpr dif::ProviderAttributes kUsdtAttributes{
    .provider = {Unstable, Unstable, Common},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Unstable, Unstable, Common},
    .arguments = {Unstable, Unstable, Common},
};

constexpr std::string_view kUsdtName = "usdt";  // of no probe
constexpr std::size_t kMostListed = 16;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A provider's name, taken apart.
struct Asked {
  std::string_view provider;  // a pattern for the notes' own
  std::int32_t process = 0;   // 0: all
};

/// A note's name may end with a digit itself, so each way to take the number off counts.
std::vector<Asked> asked_by(std::string_view name) {
  std::vector<Asked> found;
  if (name.ends_with('*') && name.size() > 1) found.push_back({name, 0});
  for (std::size_t at = name.size(); at > 1 && is_digit(name[at - 1]); --at) {
    if (name[at - 1] == '0') continue;
    const auto process = parse_number<std::int32_t>(name.substr(at - 1), 10);
    if (process) found.push_back({name.substr(0, at - 1), *process});
  }
  return found;
}

/// "query__start" is query-start.
std::string dashed(std::string_view name) {
  std::string made;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_dash = name.substr(at).starts_with("__");
    made += is_dash ? '-' : name[at];
    at += is_dash ? 1 : 0;
  }
  return made;
}

}  // namespace

UsdtProvider::UsdtProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                           UserPointTable& table, ProbePoints& points)
    : ProcessProvider(kUsdtName, kUsdtAttributes, memory, kernel, table, points) {}

bool UsdtProvider::may_match(std::string_view pattern) const {
  return !asked_by(pattern).empty();
}

Result<void> UsdtProvider::look(const dif::ProbeDescription& names, const Trouble& trouble,
                                std::set<std::uint32_t>* published, const Module* only) {
  bool any = false, any_process = false;
  std::set<std::string> others;
  for (const auto& [provider, process] : asked_by(names.provider)) {
    const auto modules = modules_of(process, only);
    if (!modules) continue;
    any_process = true;
    const Pattern pattern{names, process, trouble, published};
    for (const Module& module : *modules) {
      if (!pattern.wants(module)) continue;
      any |= TRY(look_at(pattern, provider, module));
      if (any || others.size() == kMostListed) continue;
      for (const StaticProbe& each : table().static_probes_of(module.inode)) {
        others.insert(each.provider);
      }
    }
  }
  if (any) return {};
  std::string there;
  for (const std::string& each : others) there += (there.empty() ? "" : ", ") + each;
  if (!any_process) {
    trouble(names,
            "no provider is called so, and the guest has no process of this number with memory of "
            "its own");
  } else if (there.empty()) {
    trouble(names,
            "no provider is called so, and no static probe (USDT) is in the files that are "
            "mapped, as far as their notes are in the guest's memory or in --sysroot");
  } else {
    trouble(names, fmt::format("no provider is called so; the static probes (USDT) that are mapped "
                               "have the providers {}",
                               there));
  }
  return {};
}

Result<bool> UsdtProvider::look_at(const Pattern& pattern, std::string_view provider,
                                   const Module& module) {
  auto entries = entries_of(pattern, provider, module);
  const bool any = !entries.empty();
  TRY(publish(pattern, std::move(entries)));
  return any;
}

std::vector<ProcessProvider::Entry> UsdtProvider::entries_of(const Pattern& pattern,
                                                             std::string_view provider,
                                                             const Module& module) {
  std::vector<Entry> entries;
  std::map<std::string, std::size_t> numbers;  // in `entries`, by name
  const FileFunctions* functions = nullptr;    // read only where a probe is wanted
  for (const StaticProbe& each : table().static_probes_of(module.inode, pattern.servers())) {
    if (!dif::glob_match(provider, each.provider)) continue;
    if (!dif::field_matches(pattern.names.name, dashed(each.name))) continue;
    if (functions == nullptr) functions = functions_of(module);
    if (functions == nullptr) break;
    const FileFunction* const function = functions->at(each.offset);
    const std::string in = function == nullptr ? "" : std::string(function->name);
    if (!dif::field_matches(pattern.names.function, in)) continue;
    const std::string number = pattern.process == 0 ? "*" : std::to_string(pattern.process);
    const dif::ProbeDescription name{each.provider + number, module.name, in, dashed(each.name)};
    const auto [known, is_new] = numbers.try_emplace(name.to_string(), entries.size());
    if (is_new) {
      entries.push_back({.name = name, .process = pattern.process});
      entries.back().arguments.why_unknown = "a static probe's note tells sizes and no types";
    }
    Entry* const entry = &entries[known->second];
    const FilePlace at{module.inode, each.offset, each.semaphore};
    if (std::ranges::find(entry->places, at, &Place::at) != entry->places.end()) continue;
    table().expect(module.inode, each.offset);
    const std::uint64_t distance = function == nullptr ? 0 : each.offset - function->offset;
    entry->places.push_back({.at = at,
                             .in_function = static_cast<std::uint32_t>(distance),
                             .plan = plan_of(each.arguments)});
    if (entry->places.size() > kMostListed) continue;
    entry->notes += fmt::format("{}{}", entry->notes.empty() ? "" : "; ",
                                each.arguments.empty() ? "no arguments" : each.arguments);
  }
  return entries;
}

const ArgumentPlan* UsdtProvider::plan_of(const std::string& arguments) {
  auto& found = plans_[arguments];
  if (!found) found = std::make_unique<const Plan>(arguments);
  return &found->plan;
}

}  // namespace ringside::providers
