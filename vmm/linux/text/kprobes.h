// The guest's own kprobes: what stood in its text before it put a breakpoint or a jump there. And
// whether it is changing its text right now. Sources (kernel/kprobes.c, kernel/locking/mutex.c):
//   kprobe_table: 64 struct hlist_head, each a list of struct kprobe by `hlist`; with `addr`, the
//     first byte of the original instruction as `opcode`, a copy of the instruction in
//     `ainsn.insn`, and `flags`. One entry an address: where several kprobes share one, their
//     aggregate.
//   struct optimized_kprobe {kp, optinsn}: where a jump (e9 rel32) to `optinsn.insn` has taken the
//     breakpoint's place, `optinsn.copied_insn` has the four bytes behind the first.
//   text_mutex, kprobe_mutex: held by whoever changes kernel text (jump labels, static calls,
//     ftrace, kprobes, BPF); `owner` is 0 but for three flags while nobody does.
// Offsets are the guest's own types'. Used by the tracepoint table.
// Hostile input: the lists may be cyclic, endless or torn by a change under way; walks are bounded.
// Fire context: no.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// What kprobes may have rewritten: the jump's opcode and its distance.
inline constexpr std::size_t kKprobeBytes = 5;
using KprobeBytes = std::array<std::byte, kKprobeBytes>;

struct Kprobe {
  GuestVirt address;
  std::byte opcode{};  // the first byte of the original instruction
  /// Only of a kprobe that is optimised or about to be.
  struct Jump {
    std::array<std::byte, 4> distance{};  // as the jump has it, behind its opcode
    std::array<std::byte, 4> original{};  // what stood there before the jump
  };
  std::optional<Jump> jump;

  /// The bytes from `address` on as they are without the kprobe, given those that stand there now.
  KprobeBytes original(const KprobeBytes& now) const;
};

class KprobeTable {
 public:
  /// Of a kernel without kprobes there is none, and read() finds none.
  KprobeTable(const SymbolTable& symbols, const TypeGraph& types);

  /// Every kprobe that may have changed text, sorted by address. Invalid when the lists cannot be
  /// walked, or when the kernel's types do not describe them.
  Result<std::vector<Kprobe>> read(const GuestReader& kernel) const;

  /// Whether the guest is about to change its text, or a kprobe; false of a kernel that has no such
  /// locks. Good while the machine is paused.
  bool is_changing(const GuestReader& kernel) const;

 private:
  struct Layout {
    std::uint32_t hlist, addr, opcode, copy, flags;
    struct Optimized {
      std::uint32_t kprobe, copied, jump_target;
    };
    std::optional<Optimized> optimized;  // CONFIG_OPTPROBES
  };
  static std::optional<Layout> layout_of(const TypeGraph& types);

  /// `seen`: the nodes of this list and of those before it.
  Result<void> walk(const GuestReader& kernel, GuestVirt head,
                    std::unordered_set<std::uint64_t>& seen, std::vector<Kprobe>& found) const;
  Result<void> add(const GuestReader& kernel, GuestVirt kprobe, std::vector<Kprobe>& found) const;

  std::optional<GuestVirt> table_;
  std::optional<Layout> layout_;
  std::vector<GuestVirt> lock_owners_;
};

}  // namespace ringside::guest_linux
