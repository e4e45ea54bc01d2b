// The part of LinuxContext that follows stacks and reaches into the process. In this file, top to
// bottom: the user's registers, stacks, callers, descent, writing, waiting.
#include <time.h>

#include <algorithm>
#include <array>

#include "providers/clock/host_clock.h"
#include "providers/context/linux_context.h"
#include "providers/context/registers.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/processes/user_unwind.h"
#include "vmm/linux/stacks/stack_walk.h"
#include "vmm/read_ahead.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kUser64 = 0x33;  // __USER_CS
constexpr unsigned kMostAncestors = 1024;

constexpr Fault bad_address(std::uint64_t at) {
  return Fault{FaultKind::BadAddress, 0, at};
}

}  // namespace

Result<Registers, Fault> LinuxContext::user_registers() const {
  if (registers_->in_user_mode()) return *registers_;
  constexpr Fault kNone{FaultKind::IllegalOperation, 0, 0};
  const GuestVirt task = TRY(current());
  if (TRY(field<std::uint64_t>(task, layout_.task_mm)) == 0) {
    return tl::make_unexpected(kNone);
  }
  const GuestVirt stack(TRY(field<std::uint64_t>(task, layout_.task_stack)));
  const auto at = stack.checked_add(saved_registers_);
  if (!at) return tl::make_unexpected(bad_address(stack.raw()));
  Registers user = arch::unsave(TRY(load<arch::SavedRegisters>(kernel(), *at)));
  if (!user.in_user_mode()) return tl::make_unexpected(Fault{FaultKind::BadStack, 0, at->raw()});
  user.cr0 = registers_->cr0, user.cr3 = registers_->cr3, user.cr4 = registers_->cr4;
  user.efer = registers_->efer;
  return user;
}

bool LinuxContext::at_function_edge() const {
  return !anywhere_ && binding_.at_function_edge;
}

Result<std::size_t, Fault> LinuxContext::kernel_stack(std::span<std::uint64_t> frames) const {
  using Start = guest_linux::WalkStart;
  if (parts_.stack_tables == nullptr || registers_->in_user_mode()) return 0;
  const Start start = at_function_edge() ? Start::Caller : Start::Here;
  recorded_kernel_.forget_missed();
  const std::size_t found =
      guest_linux::unwind(*parts_.stack_tables, kernel(), *registers_, start, frames);
  // Else a stack that ends where the record does would be taken for a whole one.
  if (const auto at = recorded_kernel_.missed()) {
    return tl::make_unexpected(Fault{FaultKind::BadStack, 0, at->raw()});
  }
  return found;
}

Result<std::uint64_t, Fault> LinuxContext::caller() const {
  if (at_function_edge()) return stack_word(0);
  std::array<std::uint64_t, 2> frames{};
  const std::size_t found = TRY(kernel_stack(frames));
  return anywhere_ ? (found > 1 ? frames[1] : 0) : frames[0];
}

Result<std::size_t, Fault> LinuxContext::user_stack(std::span<std::uint64_t> frames) const {
  const auto user = user_registers();
  if (!user || frames.empty()) return 0;
  // A 32-bit program's frames are of another size.
  const std::size_t most = user->cs == kUser64 ? frames.size() : 1;
  // A record has neither the stack nor the tables.
  const auto mm = task_field<std::uint64_t>(layout_.task_mm);
  if (!unwinder_ || is_over_ || most == 1 || !mm || *mm == 0) {
    return follow_frame_pointers(this->user(), *user, frames.first(most));
  }
  return unwinder_->walk({kernel(), this->user(), GuestVirt(*mm)}, *user, frames.first(most));
}

Result<std::uint64_t, Fault> LinuxContext::user_caller() const {
  std::array<std::uint64_t, 2> frames{};
  TRY(user_stack(frames));
  return frames[1];
}

Result<bool, Fault> LinuxContext::progeny_of(std::int64_t pid) const {
  GuestVirt task = TRY(current());
  for (unsigned n = 0; n < kMostAncestors; ++n) {
    const auto id = TRY(field<std::int32_t>(task, layout_.task_tgid));
    if (id == pid) return true;
    const GuestVirt parent(TRY(field<std::uint64_t>(task, layout_.task_real_parent)));
    if (id == 0 || parent == task) return false;  // the first task is its own parent
    task = parent;
  }
  return false;
}

Result<void, Fault> LinuxContext::write_user(GuestVirt at, std::span<const std::byte> bytes) const {
  if (is_over_) return tl::make_unexpected(bad_address(at.raw()));
  // First all of it is looked up, then it is written: a string that ends in a read-only page must
  // not be there in part.
  for (const bool writing : {false, true}) {
    auto rest = bytes;
    for (std::uint64_t to = at.raw(); !rest.empty();) {
      const std::size_t length = std::min<std::size_t>(rest.size(), arch::left_in_page(to));
      const auto place = arch::in_kernel_half(GuestVirt(to))
                             ? std::nullopt
                             : vmm::translate_writable(memory_, process_table_, GuestVirt(to));
      if (!place) return tl::make_unexpected(bad_address(to));
      if (writing && !memory_.write(place->address, rest.first(length))) {
        return tl::make_unexpected(bad_address(to));
      }
      rest = rest.subspan(length);
      to += length;
    }
  }
  return {};
}

Result<void, Fault> LinuxContext::wait(std::uint64_t nanoseconds) const {
  // Slices, because vCPUs that trap meanwhile wait in the shim only while the host shows life.
  constexpr std::uint64_t kSlice = 1'000'000;
  // A program that waits wants to see the guest as it is afterwards.
  if (auto* const ahead = vmm::ReadAhead::of_thread(memory_)) ahead->drop();
  const std::uint64_t end = monotonic_ns() + nanoseconds;
  for (std::uint64_t now = monotonic_ns(); now < end; now = monotonic_ns()) {
    const timespec rest{0, static_cast<long>(std::min(kSlice, end - now))};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
    if (parts_.shim != nullptr) parts_.shim->heartbeat();
  }
  return {};
}

}  // namespace ringside::providers
