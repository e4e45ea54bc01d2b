// The one safe way to read guest virtual memory: by copy. A GuestReader is bound to one machine and
// one page table, so no call site can mix address spaces.
// Fire context: yes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside {

class GuestReader {
 public:
  virtual ~GuestReader() = default;

  /// Copies out.size() bytes at `at`, across pages. On failure the Fault is BadAddress and names
  /// the first byte that could not be read; the bytes before it have been copied.
  virtual Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const = 0;
};

/// Where no memory of a guest can be read.
class NoMemory final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte>) const override {
    return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
  }
};

/// Copies what can be read from `at` on, up to out.size() bytes; returns how many.
inline std::size_t read_available(const GuestReader& guest, GuestVirt at,
                                  std::span<std::byte> out) {
  const auto done = guest.read(at, out);
  if (done) return out.size();
  return std::min<std::uint64_t>(GuestVirt(done.error().address).offset_from(at), out.size());
}

/// Copies one T out of the guest. A copy, never a reference: the guest may rewrite the bytes.
template <class T>
Result<T, Fault> load(const GuestReader& guest, GuestVirt at) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
  T value{};
  TRY(guest.read(at, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

}  // namespace ringside
