// The names table of kallsyms, for the decoder and the scan: the length of each name, and the check
// that a table ends where it should. Layout: kallsyms.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringside::guest_linux {

inline constexpr std::size_t kTokenIndexBytes = 512;  // a u16 for each of 256 tokens

enum class LengthForm : std::uint8_t { OneByte, TwoBytes };

/// Bytes of the length and the number of tokens of the name at the start of `rest`.
struct NameHead {
  std::size_t bytes = 1;
  std::size_t tokens = 0;
};

/// Empty when the name is empty or leaves `rest`.
inline std::optional<NameHead> name_head(std::span<const std::byte> rest, LengthForm form) {
  if (rest.empty()) return std::nullopt;
  NameHead head{1, static_cast<std::size_t>(rest[0])};
  if (form == LengthForm::TwoBytes && (head.tokens & 0x80) != 0) {
    if (rest.size() < 2) return std::nullopt;
    head = {2, (head.tokens & 0x7f) | static_cast<std::size_t>(rest[1]) << 7};
  }
  if (head.tokens == 0 || head.tokens > rest.size() - head.bytes) return std::nullopt;
  return head;
}

struct NamesExtent {
  std::size_t bytes = 0;   // of the table
  std::size_t at_256 = 0;  // where symbol 256 starts
};

/// Walks `count` names. Each step takes one from `budget`; empty when that is spent or a name is
/// bad.
std::optional<NamesExtent> measure_names(std::span<const std::byte> names, std::uint32_t count,
                                         LengthForm form, std::uint64_t& budget);

/// Whether the markers follow the table at one of the alignments that kernels use, which proves its
/// end. It proves nothing for 256 symbols or fewer.
bool markers_follow(std::span<const std::byte> names, const NamesExtent& extent);

}  // namespace ringside::guest_linux
