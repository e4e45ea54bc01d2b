#include "providers/bare_context.h"

#include <array>

#include "providers/frame_pointers.h"

namespace ringside::providers {
namespace {

// Intel SDM volume 3A, 2.2.1 and 2.5.
constexpr std::uint64_t kPagingOn = std::uint64_t{1} << 31;    // CR0.PG
constexpr std::uint64_t kFiveLevels = std::uint64_t{1} << 12;  // CR4.LA57
constexpr std::uint64_t kLongMode = std::uint64_t{1} << 10;    // EFER.LMA
constexpr std::uint64_t kRootBits = 0x000f'ffff'ffff'f000;     // of CR3

constexpr std::size_t kDeepestStack = 256;  // frames that are counted

}  // namespace

void BareContext::Memory::set(const Registers& registers) {
  if ((registers.cr0 & kPagingOn) == 0) {
    paging_ = Paging::Off;
  } else if ((registers.efer & kLongMode) == 0) {
    paging_ = Paging::Other;
  } else {
    paging_ = Paging::Long;
    const unsigned levels = (registers.cr4 & kFiveLevels) != 0 ? 5 : 4;
    paged_.set_table({GuestPhys(registers.cr3 & kRootBits), levels, 0});
  }
}

Result<void, Fault> BareContext::Memory::read(GuestVirt at, std::span<std::byte> out) const {
  if (paging_ == Paging::Long) return paged_.read(at, out);
  if (paging_ == Paging::Off && physical_.read(GuestPhys(at.raw()), out)) return {};
  return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
}

void BareContext::begin(const Registers& registers) {
  registers_ = registers;
  memory_.set(registers);
}

std::size_t BareContext::stack(std::span<std::uint64_t> frames) const {
  // Frames of 16- and 32-bit code are of another size.
  const bool wide = (registers_.efer & kLongMode) != 0;
  return follow_frame_pointers(memory_, registers_, frames.first(wide ? frames.size() : 1));
}

Result<std::size_t, Fault> BareContext::kernel_stack(std::span<std::uint64_t> frames) const {
  return registers_.in_user_mode() || frames.empty() ? 0 : stack(frames);
}

Result<std::size_t, Fault> BareContext::user_stack(std::span<std::uint64_t> frames) const {
  return registers_.in_user_mode() && !frames.empty() ? stack(frames) : 0;
}

Result<std::uint64_t, Fault> BareContext::variable(dif::ContextVariable which) const {
  using dif::ContextVariable;
  const bool user = registers_.in_user_mode();
  switch (which) {
    case ContextVariable::Caller:
    case ContextVariable::Ucaller: {
      if (user != (which == ContextVariable::Ucaller)) return 0;
      std::array<std::uint64_t, 2> frames{};
      stack(frames);
      return frames[1];
    }
    case ContextVariable::Stackdepth:
    case ContextVariable::Ustackdepth: {
      if (user != (which == ContextVariable::Ustackdepth)) return 0;
      std::array<std::uint64_t, kDeepestStack> frames;
      return stack(frames);
    }
    case ContextVariable::Curthread:
    case ContextVariable::Pid:
    case ContextVariable::Tid:
    case ContextVariable::Ppid:
    case ContextVariable::Uid:
    case ContextVariable::Gid:
    case ContextVariable::Errno:
    case ContextVariable::Ipl:
    case ContextVariable::Vtimestamp: return 0;
  }
  return 0;
}

}  // namespace ringside::providers
