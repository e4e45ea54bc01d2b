#include "vmm/code_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ringside::vmm {
namespace {

static_assert(kMostJoined == sizeof(std::uint64_t));

/// With the bytes behind it, which nobody changes meanwhile: the guest stands still.
void store_whole(std::span<std::byte> place, std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, place.data(), sizeof word);
  std::memcpy(&word, bytes.data(), bytes.size());
  // SAFETY: `place` has 8 bytes. They need not be aligned: x86 stores them by one instruction all
  // the same, and a process is killed between two.
  asm volatile("mov %1, %0" : "=m"(*reinterpret_cast<std::uint64_t*>(place.data())) : "r"(word));
}

bool write_instruction(GuestMemory& memory, std::span<const CodeWrite> writes) {
  std::array<std::byte, kMostJoined> buffer;
  const auto bytes = std::span(buffer).first(writes.size());
  std::ranges::transform(writes, bytes.begin(),
                         [](const CodeWrite& write) { return static_cast<std::byte>(write.byte); });
  const GuestPhys at = writes.front().at;
  const auto place = bytes.size() > 1 ? memory.mapping(at, kMostJoined) : std::span<std::byte>();
  if (place.empty()) return memory.write(at, bytes);
  store_whole(place, bytes);
  return true;
}

}  // namespace

std::span<const CodeWrite> leading_run(std::span<const CodeWrite> writes, std::size_t most) {
  std::size_t count = std::min<std::size_t>(writes.size(), 1);
  const auto follows = [&] { return writes[count].at == writes[0].at.wrapping_add(count); };
  while (count < writes.size() && follows() && (count < most || writes[count].is_joined)) ++count;
  return writes.first(count);
}

std::optional<GuestPhys> write_through(GuestMemory& memory, std::span<const CodeWrite> writes) {
  std::optional<GuestPhys> refused;
  while (!writes.empty()) {
    // The bytes that are joined to the first one.
    const auto whole = leading_run(writes, 1);
    const auto instruction = whole.first(std::min(whole.size(), kMostJoined));
    if (!write_instruction(memory, instruction) && !refused) refused = instruction.front().at;
    writes = writes.subspan(instruction.size());
  }
  return refused;
}

}  // namespace ringside::vmm
