// Limits the sizes of buffers to what the host has room for. A host grants almost any size, because
// memory is taken only when it is used. But a buffer that is larger than the host's memory would
// get us killed when it fills. So each kind of buffer may take a quarter of the host's memory, for
// all vCPUs together. If the address space is smaller than that (ulimit -v), it is an eighth of
// what is left. Used by the engine and, for bufresize=manual, by the code that makes a buffer. Fire
// context: no.
#pragma once

#include <cstdint>
#include <vector>

#include "dif/program/options.h"
#include "vmm/base/result.h"

namespace ringside::dif {

enum class BufferKind : std::uint8_t { Principal, Aggregation, Dynamic, Speculation };

struct LoweredBuffer {
  BufferKind kind = BufferKind::Principal;
  std::size_t size = 0;  // what the option is worth now
  bool operator==(const LoweredBuffer&) const = default;
};

struct BufferPlan {
  EngineOptions options;
  std::vector<LoweredBuffer> lowered;
};

/// `options` with sizes that the host has room for. bufresize=manual refuses (Limit) instead.
Result<BufferPlan> plan_buffers(const EngineOptions& options, unsigned vcpus);
/// The same for a host that grants each kind `most` bytes.
Result<BufferPlan> plan_buffers(const EngineOptions& options, unsigned vcpus, std::uint64_t most);

}  // namespace ringside::dif
