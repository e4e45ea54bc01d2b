// The layout of a host tracepoint's record, from its format file in tracefs (Linux
// Documentation/trace/events.rst, section 2). The host's kernel writes it; it is not hostile, but
// fields come and go with versions.
// Used by host_tracepoints. Pure.
// Fire context: read() yes, the rest no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

/// Where an unsigned field of 1, 2, 4 or 8 bytes lies in the record.
struct TraceField {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;

  /// Empty when the record is too short for it.
  std::optional<std::uint64_t> read(std::span<const std::byte> record) const;
};

/// The "ID:" line.
Result<std::uint32_t> trace_id(std::string_view format);
/// NotFound when the format has no such field, Invalid when it is no number of a size above.
Result<TraceField> trace_field(std::string_view format, std::string_view name);

}  // namespace ringside::vmm::kvm
