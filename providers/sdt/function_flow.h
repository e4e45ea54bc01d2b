// The control flow of a function of the kernel, by its text: its instructions, which ones may run
// after each, and which ones can be reached while a tracepoint is off. Used to find where the
// probes of static tracepoints may stand. Every branch may go both ways; an instruction that traps
// (ud2 of a warning) may go on.
// Hostile input: sizes are capped, what does not decode is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "disasm/decoder.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class FunctionFlow {
 public:
  /// An instruction, by its place in nodes().
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  struct Node {
    GuestVirt at;
    disasm::Instruction in;
    Index next = kNone;   // where it goes on in the order of addresses, if it may
    Index jump = kNone;   // where it jumps to inside the function: of a label when that is on
    GuestVirt key{};      // of a jump label: what switches it
    bool faults = false;  // the kernel looks its fault up by its address
  };

  /// Reads the flow of the function that contains `at`, with its .cold part. Unsupported: its end
  /// is not known, it does not decode, or it jumps where it cannot be followed.
  static Result<FunctionFlow> read(const GuestReader& text, const guest_linux::Kernel& kernel,
                                   GuestVirt at);

  std::span<const Node> nodes() const { return nodes_; }
  const Node& operator[](Index index) const { return nodes_[index]; }
  /// The instruction that begins there; kNone if none does.
  Index at(GuestVirt address) const;
  bool covers(GuestVirt address) const;

  /// For each instruction, whether it may run at all.
  std::vector<bool> reachable() const { return reach(std::nullopt); }
  /// The same while all jump labels of this key are off, without the code that they jump to.
  std::vector<bool> reachable_without(GuestVirt key) const { return reach(key); }
  /// Whether the function may be entered there: by a call, a fault's fixup.
  bool is_root(Index index) const;
  /// Whether this instruction may go on there.
  bool leads_to(Index from, Index to) const;

 private:
  Result<void> add_part(const GuestReader& text, const guest_linux::Kernel& kernel,
                        const guest_linux::Symbol& part);
  Result<void> add_cold_parts(const GuestReader& text, const guest_linux::Kernel& kernel);
  Result<void> connect(const guest_linux::Kernel& kernel);
  static void take_sites(std::span<const guest_linux::Kernel::PatchedSite>& sites, Node& node);
  void add_fixups(const GuestReader& text, const guest_linux::Kernel& kernel);
  void add_root(GuestVirt at);
  std::vector<bool> reach(std::optional<GuestVirt> off) const;

  struct Part {
    GuestVirt begin;
    std::uint64_t size = 0;
  };
  std::vector<Part> parts_;
  std::vector<Node> nodes_;   // by address
  std::vector<Index> roots_;  // sorted
};

}  // namespace ringside::providers
