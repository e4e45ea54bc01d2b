// In this file, top to bottom: reading, the guest's kprobes, places that are being patched.
#include "providers/trap_points/sites/original_text.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;
using guest_linux::Kprobe;

/// The guest goes on while its kprobes are read; a list that changes is read again.
constexpr unsigned kListReadings = 20;
/// How often, in all, we wait for a place that the guest is patching: it takes microseconds there,
/// but a guest may say so of every place and for ever.
constexpr unsigned kWaits = 500;
constexpr auto kWait = std::chrono::milliseconds(1);

}  // namespace

OriginalText::OriginalText(const vmm::PageTableReader& live, const ReplacedText& ours,
                           Kernel& kernel)
    : live_(live),
      ours_(ours),
      kernel_(kernel),
      table_(kernel.symbols(), kernel.types()),
      waits_left_(kWaits) {
  look_again();
}

const GuestReader& OriginalText::source() const {
  if (copies_) return *copies_;
  return live_;
}

std::size_t OriginalText::copy(GuestVirt at, std::span<std::byte> out,
                               Result<void, Fault>& done) const {
  if (!copies_) live_.forget();  // a module may have come or gone since the last read
  done = source().read(at, out);
  return done
             ? out.size()
             : std::min<std::uint64_t>(GuestVirt(done.error().address).offset_from(at), out.size());
}

Result<void, Fault> OriginalText::read(GuestVirt at, std::span<std::byte> out) const {
  Result<void, Fault> done;
  std::span<std::byte> copied = out.first(copy(at, out, done));
  while (waits_left_ > 0 && is_being_patched(at, copied)) {
    --waits_left_;
    std::this_thread::sleep_for(kWait);
    if (copies_) copies_.emplace(live_);
    copied = out.first(copy(at, out, done));
  }
  if (ours_.are_there()) remove_ours(at, copied);
  remove_kprobes(at, copied);
  return done;
}

/// Of all functions at once a guest waits for it, so what cannot be ours is passed over quickly.
void OriginalText::remove_ours(GuestVirt at, std::span<std::byte> copied) const {
  const auto remove_from = [&](std::uint64_t offset) {
    const auto below = ours_.below(at.wrapping_add(offset));
    for (const std::byte byte : below) {
      if (offset < copied.size()) copied[offset] = byte;  // wraps before what was read
      ++offset;
    }
  };
  for (std::uint64_t before = SHIM_JUMP_BYTES - 1; before > 0; --before) remove_from(-before);
  for (const std::byte first : {arch::kBreakpoint, arch::kNearJump}) {
    auto rest = copied;
    while (!rest.empty()) {  // memchr() may not be given a null pointer
      const void* const found = std::memchr(rest.data(), std::to_integer<int>(first), rest.size());
      if (found == nullptr) break;
      const auto offset = static_cast<const std::byte*>(found) - copied.data();
      remove_from(static_cast<std::uint64_t>(offset));
      rest = copied.subspan(static_cast<std::size_t>(offset) + 1);
    }
  }
}

bool OriginalText::look_again() {
  live_.forget();
  copies_.emplace(live_);
  auto kprobes = table_.read(live_);
  for (unsigned n = 1; !kprobes && n < kListReadings; ++n) kprobes = table_.read(live_);
  const bool was_known = trouble_.has_value();
  trouble_ = kprobes ? Result<void>() : tl::unexpected(kprobes.error());
  const std::vector<Kprobe> before =
      std::exchange(kprobes_, kprobes ? std::move(*kprobes) : std::vector<Kprobe>());
  return was_known != trouble_.has_value() ||
         !std::ranges::equal(before, kprobes_, {}, &Kprobe::address, &Kprobe::address);
}

bool OriginalText::has_kprobe(GuestVirt at, std::size_t size) const {
  return guest_linux::has_kprobe(kprobes_, at, size);
}

void OriginalText::remove_kprobes(GuestVirt at, std::span<std::byte> copied) const {
  for (const Kprobe& kprobe : guest_linux::kprobes_from(kprobes_, at)) {
    if (kprobe.address >= at && !kprobe.address.is_in(at, copied.size())) break;
    guest_linux::KprobeBytes now;
    if (!source().read(kprobe.address, now)) continue;
    const auto original = kprobe.original(now);
    for (std::size_t i = 0; i < original.size(); ++i) {
      const std::uint64_t index = kprobe.address.wrapping_add(i).offset_from(at);
      // The bytes that our own int3s replaced are there already.
      if (index < copied.size() && original[i] != now[i]) copied[index] = original[i];
    }
  }
}

/// While the kernel rewrites a jump label or a static call, an int3 of its own stands there.
bool OriginalText::is_being_patched(GuestVirt at, std::span<const std::byte> copied) const {
  for (const auto& site : Kernel::sites_from(kernel_.patched_sites(), at)) {
    const std::uint64_t offset = site.address.offset_from(at);
    if (offset >= copied.size()) break;
    const bool is_rewritten = site.length > 1;  // not one of the exception table
    if (is_rewritten && copied[offset] == arch::kBreakpoint) return true;
  }
  return false;
}

}  // namespace ringside::providers
