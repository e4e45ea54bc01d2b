#include "cli/options/buffer_sizes.h"

#include <fmt/format.h>

#include <string_view>

namespace ringside::cli {
namespace {

std::string_view words(dif::BufferKind kind) {
  switch (kind) {
    case dif::BufferKind::Principal: return "buffer";
    case dif::BufferKind::Aggregation: return "aggregation";
    case dif::BufferKind::Dynamic: return "dynamic variable";
    case dif::BufferKind::Speculation: return "speculation";
  }
  return "buffer";
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "tgmk";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::uint64_t unit = std::uint64_t{1} << (10 * (kUnits.size() - i));
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, kUnits[i]);
  }
  return fmt::format("{}", bytes);
}

std::string lowered_text(const dif::LoweredBuffer& buffer) {
  return fmt::format("{} size lowered to {}", words(buffer.kind), size_text(buffer.size));
}

}  // namespace ringside::cli
