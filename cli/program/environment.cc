#include "cli/program/environment.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/linux/types/variable_types.h"
#include "vmm/page_walk.h"

namespace ringside::cli {

bool TracerEnvironment::has_module(std::string_view name) {
  if (kernel_ == nullptr) return false;
  const auto modules = kernel_->symbols().modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const guest_linux::Module& module) { return module.name == name; });
}

d::ProbeSignature TracerEnvironment::signature(const dif::ProbeDescription& pattern) {
  const auto [at, added] = signatures_.try_emplace(pattern.to_string());
  d::ProbeSignature& signature = at->second;
  if (!added) return signature;
  std::optional<providers::Probe> first;
  std::size_t matched = 0;
  // A pattern that a provider cannot serve matches nothing; the compiler says so with its place.
  (void)tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    if (!first) first = probe;
    ++matched;
  });
  if (first) signature = signature_of(*first);
  signature.matched = matched;
  return signature;
}

d::ProbeSignature TracerEnvironment::signature_of(const providers::Probe& probe) {
  d::ProbeSignature signature;
  providers::ProbeArguments arguments = tracer_->arguments(probe);
  signature.matched = 1;
  signature.has_types = arguments.known;
  signature.why_no_types = std::move(arguments.why_unknown);
  signature.arguments = std::move(arguments.types);
  signature.argument_names = std::move(arguments.names);
  for (auto& [type, native] : arguments.translated) {
    signature.translated.push_back({std::move(type), native});
  }
  signature.first = probe.name;
  signature.attributes = tracer_->attributes(probe);
  return signature;
}

void TracerEnvironment::for_each_signature(
    const dif::ProbeDescription& pattern,
    const std::function<bool(const d::ProbeSignature&)>& visit) {
  bool goes_on = true;
  (void)tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    if (goes_on) goes_on = visit(signature_of(probe));
  });
}

std::optional<dif::ProbeDescription> TracerEnvironment::probe_by_id(dif::ProbeId id) {
  const auto probe = tracer_->probe_by_id(id);
  if (!probe || !*probe) return std::nullopt;
  return (*probe)->name;
}

/// Scripts of other systems may name a module or function of theirs: io:sd::start. Empty: the
/// provider has no such probe anywhere, or its probes are functions.
std::string TracerEnvironment::where_else(const dif::ProbeDescription& pattern) {
  const bool is_of_functions = pattern.provider.empty() || pattern.provider == "fbt" ||
                               pattern.provider == "instr" || pattern.provider == "syscall";
  const bool names_place = !pattern.module.empty() || !pattern.function.empty();
  if (is_of_functions || !names_place || pattern.name.empty()) return {};
  const dif::ProbeDescription anywhere{pattern.provider, "", "", pattern.name};
  if (signature(anywhere).matched == 0) return {};
  return fmt::format("{} does; modules and functions are this kernel's own: leave them empty",
                     anywhere.to_string());
}

std::string TracerEnvironment::why_no_match(const dif::ProbeDescription& pattern) {
  std::optional<providers::Refusal> first;
  std::size_t more = 0;
  // Probes that cannot be looked at now have no reason to tell.
  (void)tracer_->refusals(pattern, [&](const providers::Refusal& refusal) {
    if (first) ++more;
    if (!first) first = refusal;
  });
  if (first) {
    const std::string others = more > 0 ? fmt::format(" (and {} more; see -l -v)", more) : "";
    if (first->name == pattern) return first->reason + others;
    return fmt::format("{} cannot be probed: {}{}", first->name.to_string(), first->reason, others);
  }
  if (std::string elsewhere = where_else(pattern); !elsewhere.empty()) return elsewhere;
  constexpr std::string_view kOfGuests[] = {"fbt",      "instr",  "sdt",     "syscall", "proc",
                                            "sched",    "io",     "ip",      "tcp",     "udp",
                                            "lockstat", "vminfo", "sysinfo", "mib"};
  const bool of_guest = std::ranges::find(kOfGuests, pattern.provider) != std::end(kOfGuests);
  if (kernel_ != nullptr || !of_guest) return {};
  return memory_ == nullptr ? fmt::format("there is no guest; {}", kNameAGuest)
                            : "no Linux that runs was found in the guest";
}

std::string TracerEnvironment::type_module(TypeId id) {
  const auto module = kernel_ != nullptr ? kernel_->module_of(id) : std::nullopt;
  return module ? kernel_->symbols().modules()[*module].name : std::string();
}

std::optional<d::KernelVariable> TracerEnvironment::kernel_variable(std::string_view module,
                                                                    std::string_view name) {
  if (kernel_ == nullptr) return std::nullopt;
  const guest_linux::Symbol* symbol = kernel_->symbols().find(name, module);
  if (symbol == nullptr) return std::nullopt;
  std::optional<TypeId> type;
  if (memory_ != nullptr && kernel_->symbols().modules()[symbol->module].name == "vmlinux") {
    const vmm::PageTableReader reader(*memory_, kernel_->table());
    type = guest_linux::variable_type(types_, name, reader, symbol->address);
  }
  return d::KernelVariable{kernel_->symbols().modules()[symbol->module].name, symbol->address,
                           type};
}

}  // namespace ringside::cli
