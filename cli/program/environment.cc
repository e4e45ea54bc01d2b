#include "cli/program/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vmm/linux/types/variable_types.h"
#include "vmm/page_walk.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kOfGuests[] = {
    "fbt", "instr",    "sdt",    "syscall", "proc", "sched",  "io",  "ip",  "tcp",
    "udp", "lockstat", "vminfo", "sysinfo", "mib",  "fsinfo", "lsm", "sctp"};
/// A library defines it for a module of the same name, which the guest may not have loaded.
constexpr std::string_view kOfModule = "sctp";
constexpr std::string_view kOthers[] = {"dtrace", "profile", "vm"};

/// Whether a function of the kernel is a place of the provider's probes.
bool is_of_functions(std::string_view provider) {
  return provider.empty() || provider == "fbt" || provider == "instr";
}

/// Whether Linux calls the system call `name` otherwise: fstat is newfstat, pread is pread64.
bool is_linux_name(std::string_view linux_name, const std::string& name) {
  return linux_name == "new" + name || linux_name == name + "64";
}

}  // namespace

bool KernelEnvironment::has_module(std::string_view name) {
  if (kernel_ == nullptr) return false;
  const auto modules = kernel_->symbols().modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const guest_linux::Module& module) { return module.name == name; });
}

TracerEnvironment::Known& TracerEnvironment::find(const dif::ProbeDescription& pattern) {
  const auto [at, added] = signatures_.try_emplace(pattern.to_string());
  Known& known = at->second;
  if (!added) return known;
  std::size_t matched = 0;
  // A pattern that a provider cannot serve matches nothing; the compiler says so with its place.
  (void)tracer_->for_each_probe(pattern, [&](const providers::Probe& probe) {
    if (!known.first) known.first = probe;
    ++matched;
  });
  if (known.first) {
    known.signature.first = known.first->name;
    known.signature.attributes = tracer_->attributes(*known.first);
  }
  known.signature.matched = matched;
  return known;
}

d::ProbeSignature TracerEnvironment::match(const dif::ProbeDescription& pattern) {
  return find(pattern).signature;
}

d::ProbeSignature TracerEnvironment::signature(const dif::ProbeDescription& pattern) {
  Known& known = find(pattern);
  if (const auto first = std::exchange(known.first, std::nullopt)) {
    const std::size_t matched = known.signature.matched;
    known.signature = signature_of(*first);
    known.signature.matched = matched;
  }
  return known.signature;
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
  // Providers of processes have a number or a star at the end.
  const std::string& provider = pattern.provider;
  const bool is_of_process = provider.find_last_of("*0123456789") + 1 == provider.size();
  const bool are_functions = is_of_functions(provider) || provider == "syscall" || is_of_process;
  const bool names_place = !pattern.module.empty() || !pattern.function.empty();
  if (are_functions || !names_place || pattern.name.empty()) return {};
  const dif::ProbeDescription anywhere{pattern.provider, "", "", pattern.name};
  if (match(anywhere).matched == 0) return {};
  return fmt::format("{} does; modules and functions are this kernel's own: leave them empty",
                     anywhere.to_string());
}

void TracerEnvironment::offer_fields(const dif::ProbeDescription& pattern, Field field,
                                     SimilarName& similar) {
  dif::ProbeDescription any = pattern;
  any.*field = {};
  (void)tracer_->for_each_probe(
      any, [&](const providers::Probe& probe) { similar.offer(probe.name.*field); });
}

/// The nearest provider. Without a guest there are few, but a guest has them all.
std::string TracerEnvironment::similar_provider(const std::string& typed) {
  SimilarName similar(typed);
  for (const std::string_view name : kOfGuests) similar.offer(name);
  for (const std::string_view name : kOthers) similar.offer(name);
  return similar.best();
}

/// The nearest function. A kernel's are not looked for among the probes, each of which would be
/// examined.
std::string TracerEnvironment::similar_function(const dif::ProbeDescription& pattern) {
  SimilarName similar(pattern.function);
  if (kernel_ != nullptr && is_of_functions(pattern.provider)) {
    for (const guest_linux::Symbol& symbol : kernel_->symbols().symbols()) {
      const std::string_view module = kernel_->symbols().modules()[symbol.module].name;
      if (symbol.is_text() && dif::field_matches(pattern.module, module))
        similar.offer(symbol.name);
    }
    return similar.best();
  }
  std::string linux_name;
  dif::ProbeDescription any = pattern;
  any.function = {};
  (void)tracer_->for_each_probe(any, [&](const providers::Probe& probe) {
    similar.offer(probe.name.function);
    const bool is_call = probe.name.provider == "syscall";
    if (is_call && is_linux_name(probe.name.function, pattern.function)) {
      linux_name = probe.name.function;
    }
  });
  return linux_name.empty() ? similar.best() : linux_name;
}

std::string TracerEnvironment::similar_module(const dif::ProbeDescription& pattern) {
  SimilarName similar(pattern.module);
  if (kernel_ != nullptr && is_of_functions(pattern.provider)) {
    for (const guest_linux::Module& module : kernel_->symbols().modules())
      similar.offer(module.name);
  } else {
    offer_fields(pattern, &dif::ProbeDescription::module, similar);
  }
  return similar.best();
}

std::string TracerEnvironment::similar_name_of(const dif::ProbeDescription& pattern) {
  SimilarName similar(pattern.name);
  // All functions of a kernel have the same names; one of them has been found by its own name.
  const bool is_wide = pattern.function.empty() || dif::is_glob(pattern.function);
  if (is_of_functions(pattern.provider) && is_wide) {
    for (const char* name : {"entry", "return"}) similar.offer(name);
    if (pattern.provider.empty()) {
      for (const char* name : {"BEGIN", "END", "ERROR"}) similar.offer(name);
    }
  } else {
    offer_fields(pattern, &dif::ProbeDescription::name, similar);
  }
  return similar.best();
}

std::string TracerEnvironment::similar(const dif::ProbeDescription& pattern) {
  const auto fixed = [&](Field field, const std::string& nearest) -> std::string {
    if (nearest.empty()) return {};
    dif::ProbeDescription other = pattern;
    other.*field = nearest;
    // Only a guest that is there can be asked what it has.
    const bool exists = match(other).matched > 0 ||
                        (kernel_ == nullptr && field == &dif::ProbeDescription::provider);
    return exists ? fmt::format("did you mean {}?", other.to_string()) : std::string();
  };
  const auto wrong = [](const std::string& field) {
    return !field.empty() && !dif::is_glob(field);
  };
  std::string text;
  if (wrong(pattern.provider) && !tracer_->has_provider(pattern.provider)) {
    return fixed(&dif::ProbeDescription::provider, similar_provider(pattern.provider));
  }
  if (wrong(pattern.name)) {
    text = fixed(&dif::ProbeDescription::name, similar_name_of(pattern));
  }
  if (text.empty() && wrong(pattern.function)) {
    text = fixed(&dif::ProbeDescription::function, similar_function(pattern));
  }
  if (text.empty() && wrong(pattern.module)) {
    text = fixed(&dif::ProbeDescription::module, similar_module(pattern));
  }
  return text;
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
  if (kernel_ != nullptr && pattern.provider == kOfModule && !has_module(kOfModule)) {
    return fmt::format("the guest has not loaded its module {}", kOfModule);
  }
  const bool of_guest = std::ranges::find(kOfGuests, pattern.provider) != std::end(kOfGuests);
  if (kernel_ != nullptr || !of_guest) return similar(pattern);
  return memory_ == nullptr ? fmt::format("there is no guest; {}", kNameAGuest)
                            : "no Linux that runs was found in the guest";
}

std::string KernelEnvironment::type_module(TypeId id) {
  const auto module = kernel_ != nullptr ? kernel_->module_of(id) : std::nullopt;
  return module ? kernel_->symbols().modules()[*module].name : std::string();
}

std::optional<d::KernelVariable> KernelEnvironment::kernel_variable(std::string_view module,
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

std::string KernelEnvironment::similar_kernel_variable(std::string_view module,
                                                       std::string_view name) {
  SimilarName similar(name);
  if (kernel_ == nullptr) return {};
  for (const guest_linux::Symbol& symbol : kernel_->symbols().symbols()) {
    const std::string_view of = kernel_->symbols().modules()[symbol.module].name;
    if (!symbol.is_text() && (module.empty() || module == of)) similar.offer(symbol.name);
  }
  return similar.best();
}

}  // namespace ringside::cli
