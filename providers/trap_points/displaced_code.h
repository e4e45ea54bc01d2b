// The code that probes have displaced: slots with one instruction each, and records of jumps with
// the instructions that a jump covers. All of it lies in the shim's slot area and is never freed: a
// task that was preempted inside may come back at any time. Part of the trap point table.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "disasm/decoder.h"
#include "providers/trap_points/jump_run.h"
#include "providers/trap_points/sites/probe_site.h"
#include "providers/trap_points/trap_point_types.h"
#include "vmm/base/guest_reader.h"
#include "vmm/shim/jump_record.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

/// A jump that may replace an int3.
struct Jump {
  JumpRun run;
  guest_linux::Kernel::AddressRange record;
  vmm::JumpBytes code;                      // the jump itself
  std::optional<std::uint8_t> recording{};  // its traps go into rings, by this fetch list

  std::span<const std::byte> replaced() const { return run.code().first(code.size()); }
};

class DisplacedCode {
 public:
  /// The addresses are those of sites whose slots have code of their own before the instruction.
  struct SpecialSites {
    const Result<std::optional<GuestVirt>>& kexec_site;
    const Result<GuestVirt>& fault_search;
  };

  /// All must outlive it.
  DisplacedCode(vmm::TrapTable& shim, SpecialSites special) : shim_(shim), special_(special) {}

  /// A slot for the site's instruction, whose traps wait. Errors: no room left; the instruction
  /// cannot run there. Where room is scarce it may be another site's, too.
  Result<GuestVirt> make_slot(const ProbeSite& site);
  /// The same where traps are recorded by this fetch list (none: they wait). `slot`: the one that
  /// the site has; no entry of its leads there now.
  Result<GuestVirt> slot_for_list(GuestVirt slot, const ProbeSite& site,
                                  std::optional<std::uint8_t> list);
  /// A new record for a jump at `address`. Empty where there is none for it: out of reach, no room
  /// left, or a slot there has code of its own.
  /// `recording`: into rings, by this fetch list (TrapTable::record_at()).
  std::optional<Jump> make_record(GuestVirt address, const JumpRun& run,
                                  std::optional<std::uint8_t> recording);

  /// The addresses to which vCPUs and tasks in slots and records will return. Such a return may
  /// lead to the instruction after a displaced one, which a new jump is about to cover. Error:
  /// somebody stands in code that is not ours.
  Result<std::vector<GuestVirt>> ways_back(const GuestReader& live,
                                           std::span<const GuestVirt> standing) const;

  /// All that there is room for.
  guest_linux::Kernel::AddressRange range() const;
  std::span<const Slot> slots() const { return slots_; }

 private:
  /// Code that was displaced, with all that leads to it, and where in the text it goes on; empty
  /// where that is on the stack.
  struct DisplacedRange {
    guest_linux::Kernel::AddressRange code;
    std::optional<GuestVirt> back;
  };
  /// The contents of a slot, as if it lay where the slots begin, its header, and the list of its
  /// trap points. Slots in which all are the same are one.
  using SlotKey = std::tuple<std::vector<std::byte>, std::array<std::byte, vmm::SlotHeader::kBytes>,
                             std::optional<std::uint8_t>>;
  struct SharedSlot {
    SlotKey key;
    std::uint32_t users = 0;  // that ever had it
  };
  /// A slot's code at some place, with its parts if it ends with a return.
  struct SlotCode {
    std::vector<std::byte> bytes;
    std::optional<std::array<disasm::ReturningCode::Part, 2>> parts;
    vmm::SlotHeader header;
  };

  bool is_kexec_site(GuestVirt at) const {
    return special_.kexec_site && *special_.kexec_site == at;
  }
  bool is_search(GuestVirt at) const {
    return special_.fault_search && *special_.fault_search == at;
  }
  void note_slot(const ProbeSite& site, GuestVirt slot, const SlotCode& code);
  static Result<SlotCode> encode(const ProbeSite& site, GuestVirt slot);
  Result<GuestVirt> make_own_slot(const ProbeSite& site);
  Result<GuestVirt> share_slot(const ProbeSite& site, std::optional<std::uint8_t> list);
  bool write_record(Jump& jump, vmm::JumpRecord record, GuestVirt jump_entry);
  void note_moved(const Jump& jump, GuestVirt address, GuestVirt slot, std::size_t size);

  vmm::TrapTable& shim_;
  const SpecialSites special_;
  std::vector<Slot> slots_;
  std::vector<DisplacedRange> ranges_;  // by address
  std::map<SlotKey, GuestVirt> by_key_;
  std::map<GuestVirt, SharedSlot> shared_;
};

}  // namespace ringside::providers
