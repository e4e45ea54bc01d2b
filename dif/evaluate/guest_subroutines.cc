// The subroutines about the guest: its processes' memory, who descends from whom, its locks and
// its device numbers.
#include "dif/evaluate/subroutines.h"

namespace ringside::dif {

namespace {

// include/linux/kdev_t.h: the kernel's own dev_t. User space sees it packed differently.
constexpr unsigned kMinorBits = 20;

}  // namespace

Result<std::uint64_t, Fault> Subroutines::copyin(Arguments a) {
  const std::uint64_t handle = TRY(memory_.allocate(a[1].value));
  if (a[1].value == 0) return handle;
  const auto out = TRY(memory_.scratch(handle, a[1].value));
  TRY(memory_.read_user(a[0].value, out));
  return handle;
}

Result<std::uint64_t, Fault> Subroutines::copyinstr(Arguments a) {
  const std::uint64_t limit = a.size() > 1 ? a[1].value : memory_.string_size() + 1;
  return memory_.copy_user_string(a[0].value, limit);
}

Result<std::uint64_t, Fault> Subroutines::copyinto(Arguments a) {
  const auto out = TRY(memory_.scratch(a[2].value, a[1].value));
  TRY(memory_.read_user(a[0].value, out));
  return 0;
}

/// A copy in scratch first: the guest's memory is written at once or not at all.
Result<std::uint64_t, Fault> Subroutines::copyout(Arguments a) {
  const std::uint64_t size = a[2].value;
  if (size == 0) return 0;
  const std::uint64_t handle = TRY(memory_.allocate(size));
  const auto bytes = TRY(memory_.scratch(handle, size));
  TRY(memory_.read(a[0].value, bytes));
  TRY(builtins_.write_user(a[1].value, bytes));
  memory_.give_back(handle);
  return 0;
}

/// With its NUL; of a string that is too long, as much as fits before one.
Result<std::uint64_t, Fault> Subroutines::copyoutstr(Arguments a) {
  if (a[2].value == 0) return 0;
  const std::string_view whole = TRY(text(a[0]));
  const std::string_view cut = whole.substr(0, a[2].value - 1);
  const std::uint64_t handle = TRY(memory_.new_string(cut));
  TRY(builtins_.write_user(a[1].value, TRY(memory_.scratch(handle, cut.size() + 1))));
  memory_.give_back(handle);
  return 0;
}

/// D types the process id as int.
Result<std::uint64_t, Fault> Subroutines::progenyof(Arguments a) {
  const bool descends = TRY(builtins_.progeny_of(static_cast<std::int32_t>(a[0].value)));
  return descends ? 1 : 0;
}

Result<std::uint64_t, Fault> Subroutines::mutex_owned(Arguments a) {
  const std::uint64_t owner = TRY(lock(LockFact::Owner, a));
  const std::uint64_t current = TRY(builtins_.load(static_cast<std::uint16_t>(Builtin::Curthread)));
  return owner != 0 && owner == current ? 1 : 0;
}

Result<std::uint64_t, Fault> Subroutines::getmajor(Arguments a) {
  return static_cast<std::uint32_t>(a[0].value) >> kMinorBits;
}

Result<std::uint64_t, Fault> Subroutines::getminor(Arguments a) {
  return a[0].value & ((1u << kMinorBits) - 1);
}

}  // namespace ringside::dif
