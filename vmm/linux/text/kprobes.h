// The guest's own kprobes: the instructions that its breakpoints and jumps have replaced. Also
// tells whether the guest is changing its text right now. Sources (kernel/kprobes.c,
// kernel/locking/mutex.c):
//   kprobe_table: 64 struct hlist_head, each a list of struct kprobe by `hlist`; with `addr`, the
//     first byte of the original instruction as `opcode`, a copy of the instruction in
//     `ainsn.insn`, and `flags`. One entry an address: where several kprobes share one, their
//     aggregate.
//   struct optimized_kprobe {kp, optinsn}: where a jump (e9 rel32) to `optinsn.insn` has taken the
//     breakpoint's place, `optinsn.copied_insn` has the four bytes after the first.
//   text_mutex, kprobe_mutex: held while kernel text is changed (jump labels, static calls, ftrace,
//     kprobes, BPF); otherwise `owner` is 0 apart from three flags.
// Offsets are the guest's own types'. Used by the tracepoint table,
// and for functions without an ftrace site.
// Hostile input: the lists may be cyclic, endless or torn by a change under way; walks are bounded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// The bytes that a kprobe may have rewritten: a jump's opcode and its distance.
inline constexpr std::size_t kKprobeBytes = 5;
using KprobeBytes = std::array<std::byte, kKprobeBytes>;

struct Kprobe {
  GuestVirt address;
  std::byte opcode{};  // the first byte of the original instruction
  /// Only of a kprobe that is optimised or about to be.
  struct Jump {
    std::array<std::byte, 4> distance{};  // the four bytes after the jump's opcode
    std::array<std::byte, 4> original{};  // the guest's bytes at their place
  };
  std::optional<Jump> jump;

  /// The bytes from `address` on without the kprobe; `now`: those that are there now.
  KprobeBytes original(const KprobeBytes& now) const;
};

/// `kprobes` are in the order of their addresses. Returns those whose bytes reach `at` or lie
/// behind it.
std::span<const Kprobe> kprobes_from(std::span<const Kprobe> kprobes, GuestVirt at);
/// Whether one of them has changed, or may still change, one of these bytes. The kernel may turn a
/// kprobe into a jump of five bytes, and then keeps the bytes that it finds there as the original
/// ones. So no int3 of ours may stand among them.
bool has_kprobe(std::span<const Kprobe> kprobes, GuestVirt at, std::size_t size);

class KprobeTable {
 public:
  /// For a kernel without kprobes read() finds none.
  KprobeTable(const SymbolTable& symbols, const TypeGraph& types);

  /// Every kprobe that may have changed text, sorted by address. Invalid when the lists cannot be
  /// walked, Unsupported when there are some and the kernel's types do not describe them.
  Result<std::vector<Kprobe>> read(const GuestReader& kernel) const;

  /// Whether the guest is changing its text or a kprobe, or only whether it is changing a kprobe;
  /// false for a kernel without such locks. The answer holds while the machine is paused.
  enum class Changes : std::uint8_t { OfText, OfKprobes };
  bool is_changing(const GuestReader& kernel, Changes changes = Changes::OfText) const;

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
  std::optional<GuestVirt> text_owner_, kprobe_owner_;  // of the locks
};

/// The text in which a kernel allows no kprobes: NOKPROBE_SYMBOL(), and the sections .entry.text,
/// .noinstr.text and .kprobes.text, of the kernel and its modules (kprobe_blacklist, a struct
/// list_head of struct kprobe_blacklist_entry {list, start_addr, end_addr}, since 3.16). Sorted by
/// where they begin. Unsupported: the kernel has no such list; Invalid: it cannot be read.
Result<std::vector<Kernel::AddressRange>> read_kprobe_blacklist(const GuestReader& kernel,
                                                                const SymbolTable& symbols,
                                                                const TypeGraph& types);

}  // namespace ringside::guest_linux
