#include "cli/options/buffer_sizes.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/options/option_values.h"

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

std::string lowered_text(const dif::LoweredBuffer& buffer) {
  return fmt::format("{} size lowered to {}", words(buffer.kind), size_text(buffer.size));
}

}  // namespace ringside::cli
