#include "vmm/kvm/host/perf_ring.h"

#include <algorithm>
#include <cstring>

#include "vmm/base/bytes.h"

namespace ringside::vmm::kvm {

void PerfRing::copy(std::uint64_t at, std::span<std::byte> to) const {
  const std::size_t begin = at % data_.size();
  const std::size_t first = std::min(to.size(), data_.size() - begin);
  std::memcpy(to.data(), data_.data() + begin, first);
  std::memcpy(to.data() + first, data_.data(), to.size() - first);
}

std::optional<PerfRing::Sample> PerfRing::next() {
  constexpr std::size_t kHeader = sizeof(perf_event_header), kRaw = kHeader + 12;
  // SAFETY: the kernel writes data_head after the records before it, and reads data_tail before it
  // writes over them (man perf_event_open): an acquire and a release.
  const std::uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = page_->data_tail;
  while (head - tail >= kHeader) {
    perf_event_header header;
    copy(tail, std::as_writable_bytes(std::span(&header, 1)));
    if (header.size < kHeader || header.size > head - tail) break;  // not as documented: give up
    const auto record =
        std::span(record_).first(std::min<std::size_t>(header.size, record_.size()));
    copy(tail, record);
    tail += header.size;
    __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
    if (header.type == PERF_RECORD_LOST) {
      lost_ += load_within<std::uint64_t>(record, kHeader + 8).value_or(0);
    }
    if (header.type != PERF_RECORD_SAMPLE || record.size() < kRaw) continue;
    const std::size_t size = load_at<std::uint32_t>(record, kRaw - 4);
    return Sample{load_at<std::uint64_t>(record, kHeader),
                  record.subspan(kRaw, std::min(size, record.size() - kRaw))};
  }
  if (head != tail) __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);
  return std::nullopt;
}

}  // namespace ringside::vmm::kvm
