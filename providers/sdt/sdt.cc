// In this file, top to bottom: tracepoints and their sites, standing for them, what is published,
// what is said of a probe, enabling.
#include "providers/sdt/sdt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;
using guest_linux::StaticTracepoint;
using guest_linux::Symbol;

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kSdtAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Private, Private, Isa},
};

/// Kernels and their modules have some 2,000 sites.
constexpr std::size_t kMostPlaces = 1 << 13;

/// The values that the arrival has worked out, word by word.
constexpr ArgumentPlan kWorkedOut = [] {
  ArgumentPlan plan;
  for (std::uint32_t n = 0; n < plan.arguments.size(); ++n) {
    plan.arguments[n] = ArgumentSource::filter_value(n);
  }
  return plan;
}();

bool is_scalar(const Type& type) {
  switch (type.kind) {
    case TypeKind::Integer:
    case TypeKind::Enum:
    case TypeKind::Pointer:
    case TypeKind::Struct:
    case TypeKind::Union: return type.size != 0 && type.size <= sizeof(std::uint64_t);
    default: return false;
  }
}

/// Whether an instruction runs only after a jump label of this key has jumped.
bool is_only_behind(const FunctionFlow& flow, FunctionFlow::Index index, GuestVirt key) {
  if (!flow.reachable()[index]) return false;
  const auto before = flow.reachable_without(key);
  if (before[index]) return false;
  const auto leaves = [&](FunctionFlow::Index to) {
    return to != FunctionFlow::kNone && !before[to];
  };
  for (FunctionFlow::Index n = 0; n < flow.nodes().size(); ++n) {
    if (before[n] && flow[n].key != key && (leaves(flow[n].next) || leaves(flow[n].jump))) {
      return false;  // a plain way into a label's block
    }
  }
  return true;
}

bool begins_with_any(std::string_view name, std::span<const std::string> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace

SdtProvider::SdtProvider(const GuestReader& text, Kernel& kernel, ProbePoints& points)
    : Provider("sdt", kSdtAttributes),
      text_(text),
      kernel_(kernel),
      points_(points),
      stack_bytes_(guest_linux::kernel_stack_bytes(kernel.symbols())),
      cpu_{guest_linux::cpu_number_offset(kernel.symbols(), kernel.types()),
           std::max<std::size_t>(kernel.percpu_bases().size(), 1) - 1} {}

bool SdtProvider::Tracepoint::is_usable() const {
  return sites && std::ranges::any_of(*sites, [](const Site& one) { return !one.leads.empty(); });
}

/// Once: ids follow what the kernel and its modules have then.
Result<void> SdtProvider::read() {
  if (is_read_) return {};
  for (auto& known : TRY(guest_linux::read_static_tracepoints(text_, kernel_))) {
    auto shapes = parameters(known.name);
    tracepoints_.push_back({std::move(known), std::move(shapes), {}, {}});
  }
  find_places();
  is_read_ = true;
  return {};
}

void SdtProvider::find_places() {
  std::unordered_map<GuestVirt, Index> by_key;
  for (Index n = 0; n < tracepoints_.size(); ++n) by_key.emplace(tracepoints_[n].known.key, n);
  std::size_t room = kMostPlaces;
  for (const auto& site : kernel_.patched_sites()) {
    if (site.target == GuestVirt()) continue;
    const auto owner = by_key.find(site.key);
    if (owner == by_key.end() || room == 0) continue;
    --room;
    tracepoints_[owner->second].places.push_back(site.address);
  }
  for (Tracepoint& one : tracepoints_) one.function = function_of(one.places);
}

std::string SdtProvider::function_of(const std::vector<GuestVirt>& places) const {
  std::string_view function;
  for (const GuestVirt place : places) {
    const Symbol* const symbol = kernel_.symbols().at(place);
    if (symbol == nullptr || (!function.empty() && symbol->name != function)) return {};
    function = symbol->name;
  }
  return std::string(function);
}

/// The places of one site, if an int3 can stand on all of them.
Result<SdtProvider::Site> SdtProvider::place(GuestVirt at, const Slice& slice,
                                             const SitePlacement& how) {
  Site out{.at = at, .where = how.where, .leads = {}, .trouble = {}};
  Binding binding;
  binding.at_function_edge = false;  // stacks begin with the instruction's own frame
  binding.plan = &kWorkedOut;
  const auto lead = [&](GuestVirt place, arch::Condition condition) -> Result<void> {
    binding.condition = condition;
    out.leads.push_back({TRY(points_.examine(place, SitePolicy::Normal)), binding});
    return {};
  };
  // Edges come first: a vCPU that comes by one of them is known when it is after the site.
  for (const SitePlacement::Edge& edge : how.edges) TRY(lead(edge.at, edge.condition));
  if (how.target) TRY(lead(*how.target, arch::kNoCondition));
  if (how.where != SitePlacement::Where::TargetOnly) TRY(lead(how.at, arch::kNoCondition));
  const SiteWatch& watch = watches_.emplace_back(at, slice, how, stack_bytes_, cpu_);
  for (std::size_t n = 0; n < out.leads.size(); ++n) {
    const TrapFilter& here = n < how.edges.size()                  ? watch.at_edge()
                             : how.target && n == how.edges.size() ? watch.at_target()
                                                                   : watch.at_place();
    out.leads[n].binding.filter = &here;
  }
  return out;
}

std::vector<BoundSite> SdtProvider::bound_sites_of(const std::vector<Site>& sites) {
  std::vector<BoundSite> bound;
  std::unordered_set<GuestVirt> places;
  for (const Site& site : sites) {
    for (const BoundSite& lead : site.leads) {
      if (places.insert(lead.site.address()).second) bound.push_back(lead);
    }
  }
  return bound;
}

Result<SdtProvider::Site> SdtProvider::placed_site(const Tracepoint& tracepoint, GuestVirt at,
                                                   const FunctionFlow& flow) {
  if (tracepoint.known.has_registration) {
    return fail(ErrorCode::Unsupported,
                "the kernel comes by only after the tracepoint was registered in the guest");
  }
  const auto index = flow.at(at);
  if (index == FunctionFlow::kNone || flow[index].jump == FunctionFlow::kNone) {
    return fail(ErrorCode::Unsupported, "its function's code does not lead there");
  }
  const auto others = flow.reachable_without(tracepoint.known.key);
  const Slice::Source of{text_, kernel_, tracepoint.known, flow, others, tracepoint.parameters};
  const Slice slice = TRY(Slice::prepare(of, flow[index].jump));
  Error last;
  for (const SitePlacement& how : TRY(placements_for(of, index, slice))) {
    auto done = place(at, slice, how);
    if (done) return done;
    last = done.error();
  }
  return tl::make_unexpected(std::move(last));
}

/// Whether the site in this function only asks whether the tracepoint is on (trace_X_enabled()):
/// the function does not call its tracers, and each function of the kernel that does has come by a
/// site of its own.
bool SdtProvider::only_asks(const Tracepoint& tracepoint, const FunctionFlow& flow) const {
  if (tracepoint.known.call_key == GuestVirt()) return false;
  bool is_called = false;
  for (const auto& call : kernel_.patched_sites()) {
    if (call.key != tracepoint.known.call_key || call.target != GuestVirt()) continue;
    is_called = true;
    if (flow.covers(call.address)) return false;
    const auto caller = FunctionFlow::read(text_, kernel_, call.address);
    const auto index = caller ? caller->at(call.address) : FunctionFlow::kNone;
    if (index == FunctionFlow::kNone || !is_only_behind(*caller, index, tracepoint.known.key)) {
      return false;
    }
  }
  return is_called;
}

SdtProvider::Site SdtProvider::examine_site(const Tracepoint& tracepoint, GuestVirt at,
                                            const FunctionFlow& flow) {
  auto done = placed_site(tracepoint, at, flow);
  if (done) return std::move(*done);
  if (only_asks(tracepoint, flow)) return {.at = at, .leads = {}, .only_asks = true};
  return {.at = at, .leads = {}, .trouble = std::move(done.error().message)};
}

void SdtProvider::examine(const std::vector<Index>& wanted) {
  if (std::exchange(generation_, points_.generation()) != points_.generation()) {
    for (Tracepoint& one : tracepoints_) one.sites.reset();
  }
  std::map<GuestVirt, Index> places;  // in the order of addresses, so that functions are read once
  for (const Index index : wanted) {
    Tracepoint& one = tracepoints_[index];
    if (one.sites) continue;
    one.sites.emplace();
    for (const GuestVirt place : one.places) places.emplace(place, index);
  }
  std::optional<Result<FunctionFlow>> flow;
  for (const auto& [place, index] : places) {
    const bool known = flow && *flow && (*flow)->covers(place);
    if (!known) flow.emplace(FunctionFlow::read(text_, kernel_, place));
    Tracepoint& one = tracepoints_[index];
    if (*flow) {
      one.sites->push_back(examine_site(one, place, **flow));
    } else {
      one.sites->push_back({.at = place, .leads = {}, .trouble = flow->error().message});
    }
  }
}

dif::ProbeDescription SdtProvider::name_of(const Tracepoint& tracepoint) const {
  return {std::string(name()), tracepoint.known.group, tracepoint.function, tracepoint.known.name};
}

std::vector<SdtProvider::Index> SdtProvider::matching(const dif::ProbeDescription& pattern) const {
  std::vector<Index> out;
  for (Index n = 0; n < tracepoints_.size(); ++n) {
    if (dif::matches(pattern, name_of(tracepoints_[n]))) out.push_back(n);
  }
  return out;
}

Result<void> SdtProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  // A description of all probes does not mean these; and a kernel that has none is no error here.
  if (pattern.provider != name() || !read()) return {};
  const auto wanted = matching(pattern);
  examine(wanted);
  for (const Index index : wanted) {
    const Tracepoint& one = tracepoints_[index];
    if (one.is_usable()) visit({id_at(index), name_of(one)});
  }
  return {};
}

std::string SdtProvider::reason(const Tracepoint& tracepoint) const {
  if (tracepoint.places.empty()) return "the kernel has no code that comes by it";
  const auto failed =
      std::ranges::find_if(*tracepoint.sites, [](const Site& one) { return !one.trouble.empty(); });
  if (failed == tracepoint.sites->end()) return "the kernel only asks whether it is on";
  const Site& first = *failed;
  if (tracepoint.sites->size() == 1) return first.trouble;
  return fmt::format("{} (the first of {} sites)", first.trouble, tracepoint.sites->size());
}

Result<void> SdtProvider::refusals(const dif::ProbeDescription& pattern,
                                   const RefusalVisitor& visit) {
  if (pattern.provider != name()) return {};
  if (const auto done = read(); !done) {
    visit({pattern, done.error().message});
    return {};
  }
  const auto wanted = matching(pattern);
  if (wanted.empty()) refuse_misplaced(pattern, visit);
  examine(wanted);
  for (const Index index : wanted) {
    const Tracepoint& one = tracepoints_[index];
    if (!one.is_usable()) visit({name_of(one), reason(one)});
  }
  return {};
}

/// perf and bpftrace write GROUP:TRACEPOINT, and so does who has the name in the place of the
/// function, which is the kernel's that comes by it.
void SdtProvider::refuse_misplaced(const dif::ProbeDescription& pattern,
                                   const RefusalVisitor& visit) const {
  if (pattern.function.empty() || !pattern.name.empty()) return;
  dif::ProbeDescription meant = pattern;
  std::swap(meant.function, meant.name);
  if (matching(meant).empty()) return;
  visit({pattern, fmt::format("a tracepoint's name is the fourth field, and the third one a "
                              "function: {}",
                              meant.to_string())});
}

void SdtProvider::gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) {
  if (pattern.provider != name() || !read()) return;
  const auto wanted = matching(pattern);
  examine(wanted);
  for (const Index index : wanted) {
    const Tracepoint& one = tracepoints_[index];
    if (!one.is_usable()) continue;
    for (const Site& site : *one.sites) {
      if (site.trouble.empty()) continue;
      visit({name_of(one),
             fmt::format("in {}: {}", kernel_.symbols().describe(site.at), site.trouble)});
    }
  }
}

/// Empty for what is no probe of this provider.
std::optional<SdtProvider::Index> SdtProvider::find(dif::ProbeId id) {
  const auto index = index_of(id);
  if (!index || !read() || *index >= tracepoints_.size()) return std::nullopt;
  return index;
}

Result<std::optional<Probe>> SdtProvider::by_id(dif::ProbeId id) {
  const auto index = find(id);
  if (!index) return std::optional<Probe>();
  examine({*index});
  const Tracepoint& one = tracepoints_[*index];
  if (!one.is_usable()) return std::optional<Probe>();
  return std::optional(Probe{id, name_of(one)});
}

/// The function that BTF's btf_trace_NAME points to.
std::optional<TypeId> SdtProvider::prototype(const std::string& tracepoint) const {
  const auto& types = kernel_.types();
  const auto named = types.find("btf_trace_" + tracepoint);
  if (!named) return std::nullopt;
  const TypeId pointer = types.resolve(*named);
  if (types[pointer].kind != TypeKind::Pointer) return std::nullopt;
  const TypeId function = types.resolve(types[pointer].target);
  if (types[function].kind != TypeKind::Function) return std::nullopt;
  return function;
}

/// As far as each takes one word; without types as many words as a plan has.
std::vector<SliceParameter> SdtProvider::parameters(const std::string& tracepoint) const {
  const auto function = prototype(tracepoint);
  if (!function) return std::vector<SliceParameter>(dif::kMaxProbeArguments);
  const auto& types = kernel_.types();
  std::vector<SliceParameter> out;
  const auto all = types.parameters(*function);
  for (const Parameter& one : all.subspan(std::min<std::size_t>(1, all.size()))) {
    const Type& type = types[types.resolve(one.type)];
    if (!is_scalar(type)) break;
    const bool is_pointer = type.kind == TypeKind::Pointer;
    const std::uint64_t leads_to =
        is_pointer ? std::max<std::uint64_t>(types.size_of(type.target), 1) : 0;
    out.push_back({static_cast<std::uint8_t>(type.size), type.is_signed, leads_to});
  }
  return out;
}

std::span<const Parameter> SdtProvider::prototype_arguments(std::string_view tracepoint) const {
  const std::string name(tracepoint);
  const auto function = prototype(name);
  if (!function) return {};
  return kernel_.types().parameters(*function).subspan(1, parameters(name).size());
}

ProbeArguments SdtProvider::arguments(const Probe& probe) {
  const auto index = find(probe.id);
  if (!index) return {};
  const Tracepoint& tracepoint = tracepoints_[*index];
  const auto function = prototype(tracepoint.known.name);
  if (!function) {
    ProbeArguments unknown;
    unknown.why_unknown =
        fmt::format("this kernel's BTF has no btf_trace_{}", tracepoint.known.name);
    return unknown;
  }
  ProbeArguments out{.known = true, .types = {}, .names = {}, .translated = {}};
  const std::size_t count =
      std::min<std::size_t>(tracepoint.parameters.size(), dif::kMaxProbeArguments);
  for (const Parameter& one : kernel_.types().parameters(*function).subspan(1, count)) {
    out.types.push_back(one.type);
    out.names.emplace_back(one.name);
  }
  return out;
}

std::string SdtProvider::detail(const Probe& probe) {
  const auto index = find(probe.id);
  if (!index || !tracepoints_[*index].sites) return {};
  std::string text;
  for (const Site& site : *tracepoints_[*index].sites) {
    const auto how = site.only_asks         ? "only asks whether the tracepoint is on"
                     : site.trouble.empty() ? std::string(ringside::providers::name_of(site.where))
                                            : "not probed, " + site.trouble;
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : "; ", kernel_.symbols().describe(site.at), how);
  }
  return text;
}

Result<void> SdtProvider::enable(const Probe& probe) {
  const auto index = find(probe.id);
  if (!index) return no_such_probe();
  if (enabled_.contains(probe.id.value)) return {};
  examine({*index});
  const Tracepoint& one = tracepoints_[*index];
  if (!one.is_usable()) return fail(ErrorCode::Unsupported, reason(one));
  for (BoundSite& bound : bound_sites_of(*one.sites)) {
    bound.binding.probe = probe.id;
    TRY(points_.bind(bound.site, bound.binding));
  }
  enabled_.insert(probe.id.value);
  return {};
}

/// The functions of the kernel that those call, by where they begin.
std::unordered_set<GuestVirt> SdtProvider::called_by(
    std::span<const std::string> beginnings) const {
  std::unordered_set<GuestVirt> called;
  if (beginnings.empty()) return called;
  for (const Symbol& function : kernel_.symbols().symbols()) {
    if (!function.is_text() || !begins_with_any(function.name, beginnings)) continue;
    const auto flow = FunctionFlow::read(text_, kernel_, function.address);
    if (!flow) continue;  // it calls nothing that is known
    for (const FunctionFlow::Node& node : flow->nodes()) {
      if (node.in.flow == disasm::Flow::Call) called.insert(node.in.target);
    }
  }
  return called;
}

Result<std::vector<BoundSite>> SdtProvider::bound_sites(
    std::string_view tracepoint, std::span<const std::string> never_in,
    std::span<const std::string> never_called_by) {
  TRY(read());
  const auto found = std::ranges::find_if(
      tracepoints_, [&](const Tracepoint& one) { return one.known.name == tracepoint; });
  if (found == tracepoints_.end()) {
    return fail(ErrorCode::Unsupported,
                fmt::format("this kernel has no static tracepoint {}", tracepoint));
  }
  found->sites.reset();  // arrivals remember, so nobody shares them
  examine({static_cast<Index>(found - tracepoints_.begin())});
  auto sites = std::exchange(found->sites, std::nullopt);
  const auto called = called_by(never_called_by);
  std::erase_if(*sites, [&](const Site& site) {
    const Symbol* const function = kernel_.symbols().at(site.at);
    return function != nullptr &&
           (begins_with_any(function->name, never_in) || called.contains(function->address));
  });
  const auto failed =
      std::ranges::find_if(*sites, [](const Site& site) { return !site.trouble.empty(); });
  if (failed != sites->end()) return fail(ErrorCode::Unsupported, failed->trouble);
  auto bound = bound_sites_of(*sites);
  if (bound.empty()) {
    return fail(ErrorCode::Unsupported, fmt::format("nothing comes by at {}", tracepoint));
  }
  return bound;
}

}  // namespace ringside::providers
