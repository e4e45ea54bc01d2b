#include "vmm/code_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/arch/arch.h"

namespace ringside::vmm {
namespace {

static_assert(kMostJoined == sizeof(std::uint64_t));

// Of two writes in one request. QEMU takes 6 us for a request, and for all of fbt 64 and 1000 are
// no faster.
constexpr std::uint64_t kFarthest = 256;

/// With the bytes after it, which nobody changes meanwhile: the guest stands still.
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

/// How many of the first ones bridged_run() takes.
std::size_t count_bridged(std::span<const CodeWrite> writes, std::size_t most) {
  const GuestPhys first = writes.front().at;
  const std::uint64_t left_of_page = arch::left_in_page(first.raw());
  const std::uint64_t end = std::min<std::uint64_t>(most, left_of_page);
  std::size_t count = leading_run(writes, most).size();
  while (count < writes.size()) {
    const auto next = leading_run(writes.subspan(count), most);
    const std::uint64_t distance = next.front().at.offset_from(writes[count - 1].at);
    const bool follows = distance > 0 && distance <= kFarthest;
    if (!follows || next.back().at.offset_from(first) >= end) break;
    count += next.size();
  }
  return count;
}

}  // namespace

std::span<const CodeWrite> leading_run(std::span<const CodeWrite> writes, std::size_t most) {
  std::size_t count = std::min<std::size_t>(writes.size(), 1);
  const auto follows = [&] { return writes[count].at == writes[0].at.wrapping_add(count); };
  while (count < writes.size() && follows() && (count < most || writes[count].is_joined)) ++count;
  return writes.first(count);
}

CodeRun bridged_run(const GuestMemory& memory, std::span<const CodeWrite> writes,
                    std::size_t most) {
  if (writes.empty()) return {};
  const auto run_of = [writes](std::size_t count) {
    const GuestPhys at = writes.front().at, last = writes[count - 1].at;
    return CodeRun{at, std::vector<std::uint8_t>(last.offset_from(at) + 1), count};
  };
  CodeRun run = run_of(count_bridged(writes, most));
  const bool has_gaps = run.bytes.size() != run.writes;
  if (has_gaps && !memory.read(run.at, std::as_writable_bytes(std::span(run.bytes)))) {
    run = run_of(leading_run(writes, most).size());
  }
  for (const CodeWrite& write : writes.first(run.writes)) {
    run.bytes[write.at.offset_from(run.at)] = write.byte;
  }
  return run;
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
