// The provider `instr`: a probe on every instruction of the kernel and its modules where an int3
// can stand safely. A probe's name is instr:MODULE:FUNCTION:CLASS-OFFSET, such as
// instr:vmlinux:vfs_read:call-1c. The classes are those of disasm/decoder.h, the offset is
// hexadecimal, from the function's symbol. Probes are made on demand: only for a description that
// names this provider, and only the functions that match it are decoded.
// Functions without an ftrace site have no such probes (instruction_list.h). The landing pad and
// the ftrace site do nothing, and the kernel reads or patches them. Their probes stand on the
// instruction that follows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "providers/context/binding.h"
#include "providers/instr/instruction_arguments.h"
#include "providers/provider.h"
#include "providers/trap_points/sites/instruction_list.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class InstrProvider final : public Provider {
 public:
  /// More probes than this are not published for one description: there is room for about as many
  /// trap points, and a whole kernel has millions of instructions.
  static constexpr std::size_t kMostProbes = 140'000;

  /// Bytes of text for which there are ids, of modules that come while tracing runs.
  static constexpr std::uint32_t kLateBytes = 1 << 26;

  /// Parameters as for FbtProvider. Ids follow the addresses that the text of the modules has now.
  InstrProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  std::uint32_t id_count() const override { return first_late_ + kLateBytes; }
  /// Unsupported: the pattern matches more than kMostProbes.
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  /// The instruction, with the name of the place where it leads.
  std::string detail(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  Result<void> admit(std::uint16_t module) override;
  Result<void> provide_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                          const Visitor& visit) override;
  bool is_enabled(dif::ProbeId id) const override { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) override { enabled_.erase(id.value); }

 private:
  /// The text of a module, and the id of its first byte.
  struct Range {
    GuestVirt begin;
    std::uint32_t size = 0, first = 0;
    bool is_gone = false;  // another module's text lies there now
  };
  struct ListedInstruction {
    disasm::Operation instruction;
    const guest_linux::Symbol* function = nullptr;
    /// Where the probe stands, if not on the instruction itself.
    std::optional<GuestVirt> stands_at;
  };
  /// A function that cannot be listed, or not to its end.
  using Trouble = std::function<void(const guest_linux::Symbol&, const std::string&)>;

  Result<std::vector<ListedInstruction>> places(const dif::ProbeDescription& pattern,
                                                const Trouble& trouble) const;
  Result<void> add_places(const dif::ProbeDescription& pattern, const guest_linux::Symbol& function,
                          const Trouble& trouble, std::vector<ListedInstruction>& out) const;
  /// Visits the places that are not refused.
  void visit_probes(const std::vector<ListedInstruction>& places, const Visitor& visit);
  std::optional<ListedInstruction> place_of(dif::ProbeId id) const;
  void add_range(const guest_linux::Module& module, std::uint32_t size);
  void forget(const Range& range);
  std::optional<std::uint32_t> index_at(GuestVirt address) const;
  dif::ProbeDescription name_of(const ListedInstruction& place) const;
  /// A place that a probe may have, and its instruction.
  struct ExaminedInstruction {
    ProbeSite site;
    disasm::Operation operation;
    bool is_beside = false;  // it stands after the instruction, which does nothing
  };
  Result<void> examine(const ListedInstruction& place);
  Result<const ExaminedInstruction*> examined(dif::ProbeId id, GuestVirt address);
  std::optional<GuestVirt> address_of(dif::ProbeId id) const;
  std::string why_none(const dif::ProbeDescription& pattern) const;
  std::string why_no_instruction(const guest_linux::Symbol& function, std::string_view name) const;

  const GuestReader& text_;
  guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  std::vector<Range> ranges_;
  std::map<std::uint16_t, std::size_t> late_;  // in ranges_, by the module's index
  std::uint32_t ids_ = 0, first_late_ = 0;
  PlanPool plans_;
  std::unordered_map<std::uint64_t, ExaminedInstruction> examined_;  // by the instruction's address
  std::uint64_t generation_ = 0;                                     // that those are of
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
