#include "providers/profile/before_shim.h"

#include <cstdint>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

/// Words that the shim may have pushed below it, and between a jump's return address and those.
constexpr unsigned kMostPushed = 6, kMostOfJump = kMostPushed + sizeof(arch::InterruptFrame) / 8;

/// The trap point that brought a vCPU here; the stack pointer and the flags as they were there.
struct Origin {
  GuestVirt place;
  std::uint64_t stack, flags;
};

/// An int3 in kernel mode pushes the kernel's cs and ss. The frame leads to what follows the int3,
/// or to the slot, as the shim has set it. If the slot is one of several trap points, the shim
/// keeps the low half of the way back beside cs, and at last puts it onto the stack.
std::optional<Origin> origin_of_int3(GuestVirt at, const Registers& now, const vmm::Mailboxes& shim,
                                     const GuestReader& kernel) {
  constexpr std::uint64_t kSelector = 0xffff'ffff;
  const auto frame = load<arch::InterruptFrame>(kernel, at);
  if (!frame || (frame->cs & kSelector) != now.cs || frame->ss != now.ss) return std::nullopt;
  const auto beside_cs = static_cast<std::int32_t>(frame->cs >> 32);
  const bool is_on_stack = beside_cs == 0;
  const auto way_back = is_on_stack ? load<std::uint64_t>(kernel, GuestVirt(frame->sp))
                                    : static_cast<std::uint64_t>(std::int64_t{beside_cs});
  const GuestVirt resume(frame->ip);
  if (const auto place = shim.displaced_from(resume, way_back.value_or(0))) {
    const unsigned words = is_on_stack ? place->words : 0;
    return Origin{place->from, frame->sp + words * sizeof(std::uint64_t), frame->flags};
  }
  if (shim.contains(resume)) return std::nullopt;
  return Origin{resume.wrapping_sub(sizeof arch::kBreakpoint), frame->sp, frame->flags};
}

/// A jump's record has pushed the flags and called the shim.
std::optional<Origin> origin_of_jump(GuestVirt at, const vmm::Mailboxes& shim,
                                     const GuestReader& kernel) {
  struct Call {
    std::uint64_t returns_to, rflags;
  };
  const auto call = load<Call>(kernel, at);
  const auto place = call ? shim.displaced_from(GuestVirt(call->returns_to), 0) : std::nullopt;
  if (!place) return std::nullopt;
  return Origin{place->from, at.wrapping_add(sizeof(Call)).raw(), call->rflags};
}

std::optional<Origin> find_origin(const Registers& now, const vmm::Mailboxes& shim,
                                  const GuestReader& kernel) {
  for (unsigned pushed = 0; pushed <= kMostOfJump; ++pushed) {
    const GuestVirt at =
        GuestVirt(now.*arch::kStackPointer).wrapping_add(pushed * sizeof(std::uint64_t));
    auto origin = pushed <= kMostPushed ? origin_of_int3(at, now, shim, kernel) : std::nullopt;
    if (!origin) origin = origin_of_jump(at, shim, kernel);
    if (origin) return origin;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Registers> before_shim(const Registers& now, const vmm::Mailboxes& shim,
                                     const GuestReader& kernel) {
  Registers before = now;
  const auto top = load<std::uint64_t>(kernel, GuestVirt(now.*arch::kStackPointer));
  if (const auto place =
          shim.displaced_from(GuestVirt(now.*arch::kProgramCounter), top.value_or(0))) {
    before.*arch::kProgramCounter = place->from.raw();
    before.*arch::kStackPointer += place->words * sizeof(std::uint64_t);
    return before;
  }
  const auto origin = find_origin(now, shim, kernel);
  if (!origin) return std::nullopt;
  before.*arch::kProgramCounter = origin->place.raw();
  before.*arch::kStackPointer = origin->stack;
  before.rflags = origin->flags;
  return before;
}

}  // namespace ringside::providers
