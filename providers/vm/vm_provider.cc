// In this file, top to bottom: the probes and their arguments as tables, publishing and refusing,
// arguments, enabling.
#include "providers/vm/vm_provider.h"

#include <array>
#include <iterator>
#include <span>
#include <string_view>

namespace ringside::providers {
namespace {

using Kind = vmm::VcpuEvent::Kind;

/// The values of an event are in the order of its probe's arguments.
struct Argument {
  std::string_view type, name;
};

constexpr Argument kExit[] = {
    {"uint64_t", "guest_ns"}, {"uint64_t", "host_ns"}, {"uint32_t", "reason"}};
constexpr Argument kPort[] = {
    {"uint16_t", "port"}, {"uint8_t", "size"}, {"uint32_t", "count"}, {"uint32_t", "value"}};
constexpr Argument kMmio[] = {{"uint64_t", "address"}, {"uint8_t", "size"}, {"uint64_t", "value"}};
constexpr Argument kMsr[] = {{"uint32_t", "index"}, {"uint64_t", "value"}};
constexpr Argument kCpuid[] = {{"uint32_t", "leaf"}, {"uint32_t", "subleaf"}, {"uint32_t", "eax"},
                               {"uint32_t", "ebx"},  {"uint32_t", "ecx"},     {"uint32_t", "edx"}};
constexpr Argument kHlt[] = {{"uint64_t", "halted_ns"}};
constexpr Argument kInject[] = {{"uint32_t", "gsi"}, {"uint32_t", "level"}};
constexpr Argument kDirty[] = {{"uint64_t", "address"}};

struct Row {
  const char* function;
  const char* name;
  Kind kind;
  std::span<const Argument> arguments;
};

/// Ids follow this order, then kReasons'.
constexpr Row kRows[] = {
    {"pio", "in", Kind::PortIn, kPort},          {"pio", "out", Kind::PortOut, kPort},
    {"mmio", "read", Kind::MmioRead, kMmio},     {"mmio", "write", Kind::MmioWrite, kMmio},
    {"msr", "rd", Kind::MsrRead, kMsr},          {"msr", "wr", Kind::MsrWrite, kMsr},
    {"cpuid", "cpuid", Kind::Cpuid, kCpuid},     {"hlt", "hlt", Kind::Hlt, kHlt},
    {"inject", "inject", Kind::Inject, kInject}, {"dirty", "dirty", Kind::Dirty, kDirty},
    {"exit", "other", Kind::Exit, kExit},
};

struct Reason {
  std::uint32_t number;
  const char* name;
};

/// KVM_EXIT_* of linux/kvm.h (numbers that user space relies on, so they stay) that a machine with
/// x86 vCPUs can see, in lower case with dashes.
constexpr Reason kReasons[] = {
    {0, "unknown"},
    {1, "exception"},
    {2, "io"},
    {3, "hypercall"},
    {4, "debug"},
    {5, "hlt"},
    {6, "mmio"},
    {7, "irq-window-open"},
    {8, "shutdown"},
    {9, "fail-entry"},
    {10, "intr"},
    {11, "set-tpr"},
    {12, "tpr-access"},
    {16, "nmi"},
    {17, "internal-error"},
    {24, "system-event"},
    {26, "ioapic-eoi"},
    {27, "hyperv"},
    {29, "rdmsr"},
    {30, "wrmsr"},
    {31, "dirty-ring-full"},
    {33, "bus-lock"},
    {34, "xen"},
    {37, "notify"},
    {39, "memory-fault"},
};

constexpr std::uint32_t kFirstReason = std::size(kRows);
constexpr std::uint32_t kProbes = kFirstReason + std::size(kReasons);

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kVmAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Evolving, Evolving, Isa},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Evolving, Evolving, Isa},
};

Kind kind_of(std::uint32_t index) {
  return index < kFirstReason ? kRows[index].kind : Kind::Exit;
}

std::span<const Argument> arguments_of(std::uint32_t index) {
  return index < kFirstReason ? kRows[index].arguments : kExit;
}

}  // namespace

VmProvider::VmProvider(const vmm::VcpuExits* exits, const TypeGraph& types)
    : Provider("vm", kVmAttributes), exits_(exits), types_(types) {}

std::uint32_t VmProvider::id_count() const {
  return kProbes;
}

Probe VmProvider::probe(std::uint32_t index) const {
  const bool exit = index >= kFirstReason;
  return {id_at(index),
          {"vm", "vm", exit ? "exit" : kRows[index].function,
           exit ? kReasons[index - kFirstReason].name : kRows[index].name}};
}

std::optional<std::string> VmProvider::why_not(std::uint32_t index) const {
  if (exits_ == nullptr) {
    return "this machine's vCPUs run in another process, which does not tell what they do; "
           "use --machine kvm";
  }
  return exits_->cannot(kind_of(index));
}

Result<void> VmProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  for (std::uint32_t index = 0; index < kProbes; ++index) {
    const Probe candidate = probe(index);
    if (dif::matches(pattern, candidate.name) && !why_not(index)) visit(candidate);
  }
  return {};
}

Result<void> VmProvider::refusals(const dif::ProbeDescription& pattern,
                                  const RefusalVisitor& visit) {
  for (std::uint32_t index = 0; index < kProbes; ++index) {
    const Probe candidate = probe(index);
    if (!dif::matches(pattern, candidate.name)) continue;
    if (const auto reason = why_not(index)) visit({candidate.name, *reason});
  }
  return {};
}

Result<std::optional<Probe>> VmProvider::by_id(dif::ProbeId id) {
  const auto index = index_of(id);
  if (!index || why_not(*index)) return std::optional<Probe>();
  return std::optional(probe(*index));
}

ProbeArguments VmProvider::arguments(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index) return {};
  ProbeArguments arguments;
  for (const Argument& argument : arguments_of(*index)) {
    const auto type = types_.find(argument.type);
    if (!type) return {};
    arguments.types.push_back(*type);
    arguments.names.emplace_back(argument.name);
  }
  arguments.known = true;
  return arguments;
}

Result<void> VmProvider::enable(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index) return no_such_probe();
  if (const auto reason = why_not(*index)) return fail(ErrorCode::Unsupported, *reason);
  enabled_.insert(probe.id.value);
  return {};
}

/// Exits for a reason without a probe of its own are the probe's of all others; those with one are
/// its alone, enabled or not.
EventTable VmProvider::enabled() const {
  EventTable table;
  const auto probe_at = [this](std::uint32_t index) {
    return is_enabled(id_at(index)) ? id_at(index) : dif::ProbeId();
  };
  for (std::uint32_t index = 0; index < kFirstReason; ++index) {
    table.by_kind[static_cast<std::size_t>(kRows[index].kind)] = probe_at(index);
  }
  table.by_reason.fill(table.by_kind[static_cast<std::size_t>(Kind::Exit)]);
  for (std::uint32_t n = 0; n < std::size(kReasons); ++n) {
    table.by_reason[kReasons[n].number] = probe_at(kFirstReason + n);
  }
  return table;
}

const EventPlans& VmProvider::plans() {
  static constexpr EventPlans kPlans = [] {
    EventPlans plans;
    plans.fill(facts_as_arguments(VmDispatcher::kReasonFact));
    plans[static_cast<std::size_t>(Kind::Exit)] =
        arguments_from({ArgumentSource::fact(0), ArgumentSource::fact(1),
                        ArgumentSource::fact(VmDispatcher::kReasonFact)});
    return plans;
  }();
  return kPlans;
}

}  // namespace ringside::providers
