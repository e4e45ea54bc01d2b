#include "dif/evaluate/guest_subroutines.h"

#include <array>

namespace ringside::dif {

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

CallResult GuestSubroutines::getmajor(CallArguments a) {
  return static_cast<std::uint32_t>(a[0].value) >> kMinorBits;
}

CallResult GuestSubroutines::getminor(CallArguments a) {
  return a[0].value & ((1u << kMinorBits) - 1);
}

}  // namespace ringside::dif
