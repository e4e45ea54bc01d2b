#include "dif/engine/buffer_plan.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "dif/evaluate/lazy_memory.h"

namespace ringside::dif {

namespace {

constexpr std::uint64_t kShareOfHost = 4;
constexpr std::uint64_t kShareOfRoom = 8;
constexpr std::uint64_t kUnknownHost = std::uint64_t{4} << 30;

std::uint64_t host_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kUnknownHost;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::uint64_t most_per_kind() {
  const std::uint64_t host = host_memory();
  std::uint64_t room = host;
  while (room > 1 && !LazyMemory::is_possible(room)) room /= 2;
  // With less address space than the host has memory (ulimit -v), the rest of us lives in it, too.
  return room / (room == host ? kShareOfHost : kShareOfRoom);
}

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::Principal: return "principal buffers";
    case BufferKind::Aggregation: return "aggregation buffers";
    case BufferKind::Dynamic: return "dynamic variables";
    case BufferKind::Speculation: return "speculation buffers";
  }
  return "buffers";
}

}  // namespace

Result<BufferPlan> plan_buffers(const EngineOptions& options, unsigned vcpus) {
  return plan_buffers(options, vcpus, most_per_kind());
}

Result<BufferPlan> plan_buffers(const EngineOptions& options, unsigned vcpus, std::uint64_t most) {
  BufferPlan plan{options, {}};
  // `copies` buffers of `size` bytes each.
  const auto fit = [&](BufferKind kind, std::size_t& size, std::uint64_t copies) -> Result<void> {
    if (copies == 0) return {};
    const std::size_t asked = size;
    while (size > 1 && (size > most / copies || !LazyMemory::is_possible(size * copies))) size /= 2;
    if (size == asked) return {};
    if (options.buffer_resize == BufferResize::Manual) {
      return fail(ErrorCode::Limit, "not enough memory for " + std::string(name_of(kind)));
    }
    plan.lowered.push_back({kind, size});
    return {};
  };
  const std::uint64_t halves = options.buffer_policy == BufferPolicy::Switch ? 2 : 1;
  TRY(fit(BufferKind::Principal, plan.options.buffer_size, halves * vcpus));
  TRY(fit(BufferKind::Aggregation, plan.options.aggregation_size, std::uint64_t{2} * vcpus));
  TRY(fit(BufferKind::Dynamic, plan.options.dynamic_size, 1));
  TRY(fit(BufferKind::Speculation, plan.options.speculation_size,
          std::uint64_t{options.speculations} * vcpus));
  return plan;
}

}  // namespace ringside::dif
