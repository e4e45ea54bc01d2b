#include "providers/context/bare_context.h"

#include <array>

#include "providers/context/registers.h"

namespace ringside::providers {
namespace {

constexpr std::size_t kDeepestBareStack = 256;  // frames that are counted

}  // namespace

void BareContext::Memory::set(const Registers& registers) {
  if (!arch::pages(registers)) {
    paging_ = Paging::Off;
  } else if (!arch::in_long_mode(registers)) {
    paging_ = Paging::Other;
  } else {
    paging_ = Paging::Long;
    paged_.set_table(arch::page_table_of(registers));
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

Result<std::uint64_t, Fault> BareContext::machine_register(dif::RegisterSet set,
                                                           std::uint64_t n) const {
  if (set == dif::RegisterSet::OfProcess && !registers_.in_user_mode()) {
    return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  return register_for_d(registers_, n);
}

std::uint64_t BareContext::address_space() const {
  return arch::page_table_of(registers_).root.raw();
}

std::size_t BareContext::stack(std::span<std::uint64_t> frames) const {
  // Frames of 16- and 32-bit code are of another size.
  const bool wide = arch::in_long_mode(registers_);
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
      std::array<std::uint64_t, kDeepestBareStack> frames;
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
    case ContextVariable::Vtimestamp:
    case ContextVariable::Born: return 0;
  }
  return 0;
}

}  // namespace ringside::providers
