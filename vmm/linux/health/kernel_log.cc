#include "vmm/linux/health/kernel_log.h"

#include <algorithm>
#include <array>

#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostLine = 1024;  // PRINTKRB_RECORD_MAX
constexpr std::uint64_t kIdMask = ~std::uint64_t{0} >> 2;
enum DescriptorState : std::uint8_t { Reserved, Committed, Finalized, Reusable };

class LogReader {
 public:
  static Result<LogReader> open(const KernelView& view);
  std::vector<LogLine> last(std::size_t most) const;

 private:
  explicit LogReader(const KernelView& view) : view_(view) {}
  bool read_layout();
  bool read_ring();
  std::optional<LogLine> line(std::uint64_t id) const;
  std::optional<std::string> text(GuestVirt descriptor, std::uint64_t id,
                                  std::uint64_t length) const;

  const KernelView& view_;
  std::optional<Field> descriptor_state_, begin_, next_, time_, length_, level_;
  std::uint64_t descriptor_bytes_ = 0, info_bytes_ = 0;
  GuestVirt ring_, descriptors_, infos_, data_;
  std::uint64_t count_ = 0, data_size_ = 0, head_ = 0, tail_ = 0;
};

bool LogReader::read_layout() {
  descriptor_state_ = view_.field("prb_desc", "state_var.counter");
  begin_ = view_.field("prb_desc", "text_blk_lpos.begin");
  next_ = view_.field("prb_desc", "text_blk_lpos.next");
  time_ = view_.field("printk_info", "ts_nsec");
  length_ = view_.field("printk_info", "text_len");
  level_ = view_.field("printk_info", "level");
  descriptor_bytes_ = view_.size_of("prb_desc");
  info_bytes_ = view_.size_of("printk_info");
  return descriptor_state_ && begin_ && next_ && time_ && length_ && descriptor_bytes_ != 0 &&
         info_bytes_ != 0;
}

bool LogReader::read_ring() {
  constexpr std::uint64_t kMostBits = 30;
  const auto field = [&](std::string_view path) {
    return view_.value(ring_, view_.field("printk_ringbuffer", path));
  };
  const auto count_bits = field("desc_ring.count_bits"),
             size_bits = field("text_data_ring.size_bits");
  const auto descriptors = field("desc_ring.descs"), infos = field("desc_ring.infos");
  const auto data = field("text_data_ring.data");
  const auto head = field("desc_ring.head_id.counter"), tail = field("desc_ring.tail_id.counter");
  if (!count_bits || !size_bits || !descriptors || !infos || !data || !head || !tail) return false;
  if (*count_bits > kMostBits || *size_bits > kMostBits) return false;
  count_ = std::uint64_t{1} << *count_bits;
  data_size_ = std::uint64_t{1} << *size_bits;
  descriptors_ = GuestVirt(*descriptors);
  infos_ = GuestVirt(*infos);
  data_ = GuestVirt(*data);
  head_ = *head & kIdMask;
  tail_ = *tail & kIdMask;
  return true;
}

Result<LogReader> LogReader::open(const KernelView& view) {
  LogReader reader(view);
  const auto ring = view.variable<std::uint64_t>("prb");
  if (!ring || !reader.read_layout()) {
    return fail(ErrorCode::Unsupported, "the kernel log of this kernel is not known (before 5.10)");
  }
  reader.ring_ = GuestVirt(*ring);
  if (!reader.read_ring()) return fail(ErrorCode::Invalid, "the kernel log makes no sense");
  return reader;
}

std::optional<std::string> LogReader::text(GuestVirt descriptor, std::uint64_t id,
                                           std::uint64_t length) const {
  const auto begin = view_.value(descriptor, begin_), next = view_.value(descriptor, next_);
  if (!begin || !next) return std::nullopt;
  if ((*begin & 1) != 0) return std::string();  // a line without text, or one that was lost
  const std::uint64_t at = *begin & (data_size_ - 1);
  const bool wrapped = *begin / data_size_ != *next / data_size_ && *next % data_size_ != 0;
  const std::uint64_t place = wrapped ? 0 : at;
  if (place + 8 > data_size_) return std::nullopt;
  if (view_.load<std::uint64_t>(data_.wrapping_add(place)) != id) return std::nullopt;
  std::string bytes(std::min({length, std::uint64_t{kMostLine}, data_size_ - place - 8}), '\0');
  if (!view_.reader().read(data_.wrapping_add(place + 8),
                           std::as_writable_bytes(std::span(bytes)))) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<LogLine> LogReader::line(std::uint64_t id) const {
  const std::uint64_t index = id & (count_ - 1);
  const GuestVirt descriptor = descriptors_.wrapping_add(index * descriptor_bytes_);
  const GuestVirt info = infos_.wrapping_add(index * info_bytes_);
  const auto state = view_.value(descriptor, descriptor_state_);
  if (!state || (*state & kIdMask) != id) return std::nullopt;
  const auto stage = static_cast<DescriptorState>(*state >> 62);
  if (stage != Committed && stage != Finalized) return std::nullopt;
  const auto time = view_.value(info, time_), length = view_.value(info, length_);
  if (!time || !length) return std::nullopt;
  auto words = text(descriptor, id, *length);
  if (!words) return std::nullopt;
  return LogLine{*time, static_cast<unsigned>(view_.value(info, level_).value_or(6)),
                 std::move(*words)};
}

std::vector<LogLine> LogReader::last(std::size_t most) const {
  std::vector<LogLine> lines;
  const std::uint64_t there = std::min(((head_ - tail_) & kIdMask) + 1, count_);
  for (std::uint64_t back = 0; back < there && lines.size() < most; ++back) {
    const auto found = line((head_ - back) & kIdMask);
    if (!found) continue;
    // One record can be several lines.
    std::string_view rest = found->text;
    std::vector<LogLine> parts;
    while (!rest.empty() && parts.size() < most) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string words(rest.substr(0, end));
      std::ranges::replace(words, '\t', ' ');
      parts.push_back({found->time, found->level, printable(words)});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (auto part = parts.rbegin(); part != parts.rend() && lines.size() < most; ++part) {
      lines.push_back(std::move(*part));
    }
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace

Result<std::vector<LogLine>> read_kernel_log(const KernelView& view, std::size_t most) {
  return TRY(LogReader::open(view)).last(most);
}

}  // namespace ringside::guest_linux
