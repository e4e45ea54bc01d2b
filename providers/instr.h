// The provider `instr`: a probe on every instruction of the kernel and its modules where an int3
// can stand safely: instr:MODULE:FUNCTION:CLASS-OFFSET, such as instr:vmlinux:vfs_read:call-1c. The
// classes are those of disasm/operation.h, the offset is hexadecimal, from the function's symbol.
// Probes are made on demand: only a description that names this provider asks for any, and only the
// functions that it matches are decoded.
// Functions without an ftrace site have none (instruction_list.h). The landing pad and the ftrace
// site itself, which the kernel looks at or patches, do nothing; their probes stand on the
// instruction that follows them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "providers/fire/binding.h"
#include "providers/instruction_arguments.h"
#include "providers/provider.h"
#include "providers/tracepoint/instruction_list.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class InstrProvider final : public Provider {
 public:
  /// More probes than this are not published for one description: there is room for about as many
  /// tracepoints, and a whole kernel has millions of instructions.
  static constexpr std::size_t kMostProbes = 140'000;

  /// As of FbtProvider. Ids follow the addresses that the text of the modules has now.
  InstrProvider(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points);

  std::uint32_t id_count() const override { return ids_; }
  /// Unsupported: the pattern matches more than kMostProbes.
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  /// The instruction, with the name of the place where it leads.
  std::string detail(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  bool is_enabled(dif::ProbeId id) const override { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) override { enabled_.erase(id.value); }

 private:
  /// The text of a module, and the id of its first byte.
  struct Range {
    GuestVirt begin;
    std::uint32_t size = 0, first = 0;
  };
  struct Place {
    ListedInstruction instruction;
    const guest_linux::Symbol* function = nullptr;
    /// Where its probe stands instead; empty: on the instruction.
    std::optional<GuestVirt> stands_at;
  };
  /// A function that cannot be listed, or not to its end.
  using Trouble = std::function<void(const guest_linux::Symbol&, const std::string&)>;

  Result<std::vector<Place>> places(const dif::ProbeDescription& pattern,
                                    const Trouble& trouble) const;
  Result<void> add_places(const dif::ProbeDescription& pattern, const guest_linux::Symbol& function,
                          const Trouble& trouble, std::vector<Place>& out) const;
  std::optional<Place> place_of(dif::ProbeId id) const;
  std::optional<std::uint32_t> index_at(GuestVirt address) const;
  dif::ProbeDescription name_of(const Place& place) const;
  /// What is known of a place that a probe may have.
  struct Stand {
    ProbeSite site;
    disasm::Operation operation;
    bool is_beside = false;  // it stands after the instruction, which does nothing
  };
  Result<void> examine(const Place& place);
  Result<const Stand*> stand_of(dif::ProbeId id, GuestVirt address);
  std::optional<GuestVirt> address_of(dif::ProbeId id) const;
  std::string why_none(const dif::ProbeDescription& pattern) const;
  std::string why_no_instruction(const guest_linux::Symbol& function, std::string_view name) const;

  const GuestReader& text_;
  guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  std::vector<Range> ranges_;
  std::uint32_t ids_ = 0;
  PlanPool plans_;
  std::unordered_map<std::uint64_t, Stand> examined_;  // by the instruction's address
  std::uint64_t generation_ = 0;                       // that those are of
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
