// In this file: memory, then the guest's kernel.
#include <algorithm>
#include <array>

#include "dif/evaluate/subroutines.h"

namespace ringside::dif {

namespace {

constexpr std::uint64_t kMostSummed = 4096;

/// Zeroed, because nobody may see bytes that an earlier clause left in scratch.
CallResult zeroed(Memory& memory, std::uint64_t size) {
  const std::uint64_t handle = TRY(memory.allocate(size));
  std::ranges::fill(TRY(memory.writable(handle, size)), std::byte{0});
  return handle;
}

}  // namespace

CallResult MemorySubroutines::allocate(CallArguments a) {
  return zeroed(memory_, a[0].value);
}

CallResult MemorySubroutines::bcopy(CallArguments a) {
  const auto out = TRY(memory_.scratch(a[1].value, a[2].value));
  TRY(memory_.read(a[0].value, out));
  return 0;
}

CallResult MemorySubroutines::copyin(CallArguments a) {
  const std::uint64_t handle = TRY(memory_.allocate(a[1].value));
  const auto out = TRY(memory_.scratch(handle, a[1].value));
  TRY(memory_.read_user(a[0].value, out));
  return handle;
}

/// Of as many bytes as it may examine, all: copyinstr(arg1, arg2) of a write() is what it writes.
CallResult MemorySubroutines::copyinstr(CallArguments a) {
  const std::uint64_t limit = a.size() > 1 ? a[1].value : memory_.string_size();
  return memory_.copy_user_string(a[0].value, limit);
}

CallResult MemorySubroutines::copyinto(CallArguments a) {
  const auto out = TRY(memory_.scratch(a[2].value, a[1].value));
  TRY(memory_.read_user(a[0].value, out));
  return 0;
}

/// A copy in scratch first: the guest's memory is written at once or not at all.
CallResult MemorySubroutines::copyout(CallArguments a) {
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
CallResult MemorySubroutines::copyoutstr(CallArguments a) {
  if (a[2].value == 0) return 0;
  const std::string_view whole = TRY(string_argument(memory_, a[0]));
  const std::string_view cut = whole.substr(0, a[2].value - 1);
  const std::uint64_t handle = TRY(memory_.new_string(cut));
  TRY(builtins_.write_user(a[1].value, TRY(memory_.scratch(handle, cut.size() + 1))));
  memory_.give_back(handle);
  return 0;
}

/// __sum32(first, stride, count): of unsigned numbers of 32 bits, `stride` bytes from one to the
/// next.
CallResult MemorySubroutines::sum32(CallArguments a) {
  if (a[2].value > kMostSummed) return raise(FaultKind::IllegalOperation);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < a[2].value; ++i) {
    std::uint32_t number = 0;
    TRY(memory_.read(a[0].value + i * a[1].value, std::as_writable_bytes(std::span(&number, 1))));
    sum += number;
  }
  return sum;
}

namespace {

// include/linux/kdev_t.h: the kernel's own dev_t. User space sees it packed differently.
constexpr unsigned kMinorBits = 20;
constexpr std::size_t kLongestPath = 4096;  // PATH_MAX

}  // namespace

/// D types the process id as int.
CallResult GuestSubroutines::progenyof(CallArguments a) {
  const bool descends = TRY(builtins_.progeny_of(static_cast<std::int32_t>(a[0].value)));
  return descends ? 1 : 0;
}

CallResult GuestSubroutines::mutex_owned(CallArguments a) {
  const std::uint64_t owner = TRY(lock(LockFact::Owner, a));
  const std::uint64_t current = TRY(builtins_.load(static_cast<std::uint16_t>(Builtin::Curthread)));
  return owner != 0 && owner == current ? 1 : 0;
}

/// Of a struct path (include/linux/path.h: mnt, dentry), which may be D's own memory; or of a
/// struct dentry and a struct vfsmount.
CallResult GuestSubroutines::d_path(CallArguments a) {
  std::array<std::uint64_t, 2> path{};
  if (a.size() == 2) {
    path = {a[1].value, a[0].value};
  } else {
    TRY(memory_.read(a[0].value, std::as_writable_bytes(std::span(path))));
  }
  std::array<char, kLongestPath> text;
  const std::size_t length = TRY(builtins_.path(path[1], path[0], text));
  const std::string_view whole(text.data(), length);
  return string_result(memory_, whole.substr(0, whole.find('\0')));
}

/// copyoutmbuf(skb, n): the first n bytes of a packet, from where the guest's code stands in it.
/// Bytes that the packet does not have are 0.
CallResult GuestSubroutines::copyoutmbuf(CallArguments a) {
  const std::uint64_t handle = TRY(zeroed(memory_, a[1].value));
  TRY(builtins_.packet(a[0].value, PacketPart::Data, TRY(memory_.scratch(handle, a[1].value))));
  return handle;
}

CallResult GuestSubroutines::getmajor(CallArguments a) {
  return static_cast<std::uint32_t>(a[0].value) >> kMinorBits;
}

CallResult GuestSubroutines::getminor(CallArguments a) {
  return a[0].value & ((1u << kMinorBits) - 1);
}

}  // namespace ringside::dif
