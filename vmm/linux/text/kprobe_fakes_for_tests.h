// Kprobes of a fake guest: the types that describe them, and their structures in its memory.
// Not linked into the product.
#pragma once

#include <cstdint>

#include "vmm/base/check.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux::fakes {

/// Where things lie in the structures below.
inline constexpr std::uint64_t kNodeAt = 8, kAddrAt = 24, kOpcodeAt = 32, kCopyAt = 40,
                               kFlagsAt = 56, kOptimizedAt = 16, kCopiedAt = 96, kTargetAt = 104,
                               kOwnerAt = 8;
inline constexpr std::uint32_t kFlagGone = 1, kFlagOptimized = 4, kFlagFtrace = 8;

/// struct kprobe, struct optimized_kprobe and struct mutex, as BTF.
inline void add_kprobe_types(TypeGraph& types) {
  BtfWriter btf;
  const auto word = btf.integer("unsigned long", 8, false);
  const auto half = btf.integer("unsigned int", 4, false);
  const auto byte = btf.integer("unsigned char", 1, false);
  const auto bits = [](std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes * 8); };
  const auto copy = btf.structure("arch_specific_insn", 16, {{"insn", word, 0}});
  const auto kprobe = btf.structure("kprobe", 64,
                                    {{"hlist", word, bits(kNodeAt)},
                                     {"addr", word, bits(kAddrAt)},
                                     {"opcode", byte, bits(kOpcodeAt)},
                                     {"ainsn", copy, bits(kCopyAt)},
                                     {"flags", half, bits(kFlagsAt)}});
  const auto jump =
      btf.structure("arch_optimized_insn", 16, {{"copied_insn", half, 0}, {"insn", word, bits(8)}});
  btf.structure("optimized_kprobe", 112,
                {{"kp", kprobe, bits(kOptimizedAt)}, {"optinsn", jump, bits(kCopiedAt)}});
  btf.structure("mutex", 32, {{"owner", word, bits(kOwnerAt)}});
  const bool added = Btf::read(btf.blob(), nullptr, types).has_value();
  CHECK(added);
}

struct FakeKprobe {
  std::uint64_t at;  // of its structure: an optimized_kprobe
  std::uint64_t address;
  std::uint8_t opcode;
  std::uint32_t flags = 0;
  std::uint32_t copied = 0;
  std::uint64_t target = 0;
  std::uint64_t next = 0;  // another FakeKprobe's node()

  std::uint64_t node() const { return at + kOptimizedAt + kNodeAt; }

  /// Through `put(address, value)`. The copy of the instruction follows the structure.
  template <class Put>
  void write(Put put) const {
    const std::uint64_t kprobe = at + kOptimizedAt;
    put(kprobe + kNodeAt, next);
    put(kprobe + kAddrAt, address);
    put(kprobe + kOpcodeAt, opcode);
    put(kprobe + kCopyAt, at + 0x100);
    put(kprobe + kFlagsAt, flags);
    put(at + kCopiedAt, copied);
    put(at + kTargetAt, target);
    put(at + 0x100, opcode);
  }
};

}  // namespace ringside::guest_linux::fakes
