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
  // A pattern that a provider cannot serve matches nothing; the compiler says so with its place.
  (void)tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    if (!first) first = probe;
    ++signature.matched;
  });
  if (first) {
    providers::ProbeArguments arguments = tracer_->arguments(*first);
    signature.has_types = arguments.known;
    signature.arguments = std::move(arguments.types);
    signature.argument_names = std::move(arguments.names);
    for (auto& [type, native] : arguments.translated) {
      signature.translated.push_back({std::move(type), native});
    }
    signature.first = first->name;
    signature.attributes = tracer_->attributes(*first);
  }
  return signature;
}

std::optional<dif::ProbeDescription> TracerEnvironment::probe_by_id(dif::ProbeId id) {
  const auto probe = tracer_->probe_by_id(id);
  if (!probe || !*probe) return std::nullopt;
  return (*probe)->name;
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
    return fmt::format("{} cannot be probed: {}{}", first->name.to_string(), first->reason, others);
  }
  const bool of_guest = pattern.provider == "fbt" || pattern.provider == "instr" ||
                        pattern.provider == "syscall";
  if (kernel_ != nullptr || !of_guest) return {};
  return memory_ == nullptr ? "there is no guest; name one with --image or --kernel"
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
