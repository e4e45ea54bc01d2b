#include "dif/evaluate/memory.h"

#include <algorithm>
#include <cstring>

#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {
constexpr std::size_t kScratchAlignment = 8;
}  // namespace

Memory::Memory(const EngineOptions& options)
    : scratch_memory_(round_up(options.scratch_size, kScratchAlignment)),
      scratch_(scratch_memory_.bytes().first(std::min(
          scratch_memory_.bytes().size(), round_up(options.scratch_size, kScratchAlignment)))),
      staging_memory_(kStagedStrings * options.string_size),
      string_size_(options.string_size) {
  const auto staging = staging_memory_.bytes();
  // SAFETY: char may alias.
  staging_ = {reinterpret_cast<char*>(staging.data()),
              std::min(staging.size(), kStagedStrings * options.string_size)};
  set_arena(Arena::Scratch, scratch_);
}

/// An element is this firing's from when it was looked up; one whose address comes from elsewhere
/// may be anybody's.
std::span<const std::byte> Memory::shared_state(Arena arena, std::uint64_t at, std::size_t least) {
  const std::uint64_t offset = at & kOffsetMask;
  if (arena == Arena::Globals) {
    access_->take_program();
  } else if (const std::uint64_t open = open_bytes(at); open >= least && open != 0) {
    return readable_[index(arena)].subspan(offset, open);
  } else {
    access_->take_everything();
  }
  return readable_[index(arena)].subspan(offset);
}

Result<void, Fault> Memory::read_state(std::uint64_t at, std::span<std::byte> out) {
  const auto bytes = state(at, out.size());
  if (bytes.empty() || bytes.size() < out.size())
    return raise(FaultKind::BadAddress, at + bytes.size());
  if (out.empty()) return {};
  // Both may lie in scratch (bcopy within it).
  std::memmove(out.data(), bytes.data(), out.size());
  return {};
}

Result<std::string_view, Fault> Memory::another_string(std::uint64_t at, std::size_t limit) {
  const std::size_t most = std::min(limit, string_size_);
  if (is_handle(at)) {
    const auto bytes = state(at, 1);
    if (bytes.empty()) return raise(FaultKind::BadAddress, at);
    // SAFETY: char may alias; the length is bounded by the arena.
    const char* const text = reinterpret_cast<const char*>(bytes.data());
    return std::string_view(text, ::strnlen(text, std::min(bytes.size(), most)));
  }
  const std::size_t start = staged_;
  // Never cut for want of room.
  if (most > staging_.size() - start) return raise(FaultKind::NoScratch);
  while (staged_ - start < most) {
    const auto line = TRY(kernel_.line_from(at));
    const std::size_t part = std::min(line.size(), most - (staged_ - start));
    const void* nul = std::memchr(line.data(), 0, part);
    const std::size_t length =
        nul == nullptr ? part
                       : static_cast<std::size_t>(static_cast<const std::byte*>(nul) - line.data());
    std::memcpy(staging_.data() + staged_, line.data(), length);
    staged_ += length;
    at += length;
    if (nul != nullptr) break;
  }
  return std::string_view(staging_.data() + start, staged_ - start);
}

Result<std::uint64_t, Fault> Memory::copy_user_string(std::uint64_t at, std::size_t limit) {
  limit = std::min(limit, string_size_);
  const std::uint64_t handle = TRY(allocate(limit + 1));
  std::byte* const out = scratch_.data() + (handle & kOffsetMask);
  std::size_t length = 0;
  bool ended = false;
  while (!ended && length < limit) {
    const auto line = TRY(user_.line_from(at + length));
    for (std::size_t i = 0; i < line.size() && length < limit && !ended; ++i) {
      ended = line[i] == std::byte{0};
      if (!ended) out[length++] = line[i];
    }
  }
  out[length] = std::byte{0};
  scratch_used_ = (handle & kOffsetMask) +
                  round_up(length + 1, kScratchAlignment);  // gives back what was not needed
  return handle;
}

/// How many bytes of an opened element lie from the handle on.
std::uint64_t Memory::open_bytes(std::uint64_t at) const {
  for (const Opened& element : std::span(opened_).first(std::min(open_count_, opened_.size()))) {
    const bool inside = at >= element.handle && at - element.handle < element.size;
    if (inside && element.gaps == gaps()) return element.size - (at - element.handle);
  }
  return 0;
}

Result<std::span<std::byte>, Fault> Memory::writable(std::uint64_t at, std::uint64_t size) {
  const auto arena = static_cast<Arena>(at >> 48 & 0xff);
  const bool may = is_handle(at) &&
                   (arena == Arena::Scratch || arena == Arena::Globals || arena == Arena::Locals ||
                    (arena == Arena::Dynamic && size <= open_bytes(at)));
  if (!may) return raise(FaultKind::BadAddress, at);
  const std::uint64_t offset = at & kOffsetMask;
  const auto bytes = arenas_[index(arena)];
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return raise(FaultKind::BadAddress, at);
  }
  if (arena == Arena::Globals && access_ != nullptr) access_->take_program();
  return bytes.subspan(offset, size);
}

Result<std::span<std::byte>, Fault> Memory::scratch(std::uint64_t at, std::uint64_t size) {
  const bool is_scratch = is_handle(at) && static_cast<Arena>(at >> 48 & 0xff) == Arena::Scratch;
  if (!is_scratch) return raise(FaultKind::BadAddress, at);
  return writable(at, size);
}

void Memory::give_back(std::uint64_t handle) {
  scratch_used_ = static_cast<std::size_t>(handle & kOffsetMask);
}

Result<std::uint64_t, Fault> Memory::allocate(std::uint64_t size) {
  if (size > scratch_.size() - scratch_used_) return raise(FaultKind::NoScratch);
  const std::uint64_t handle = make_handle(Arena::Scratch, scratch_used_);
  scratch_used_ += round_up(size, kScratchAlignment);
  return handle;
}

Result<std::uint64_t, Fault> Memory::new_string(std::string_view text) {
  const std::uint64_t handle = TRY(allocate(text.size() + 1));
  std::byte* const out = scratch_.data() + (handle & kOffsetMask);
  std::ranges::copy(std::as_bytes(std::span(text)), out);
  out[text.size()] = std::byte{0};
  return handle;
}

}  // namespace ringside::dif
