#include "vmm/linux/health/kernel_log.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostText = 4096;  // a record's; PRINTKRB_RECORD_MAX is 1024, later 2048
constexpr std::size_t kMostStruct = 1024;
constexpr std::uint64_t kMostBits = 30;
constexpr std::uint64_t kLostText = 1;  // FAILED_LPOS: there was no room for it
constexpr std::uint64_t kIdMask = ~std::uint64_t{0} >> 2;
enum DescriptorState : std::uint8_t { Reserved, Committed, Finalized, Reusable };

/// Whether a record is there, which a task may still add to.
bool has_record(std::optional<std::uint64_t> state) {
  return state && (*state == Committed || *state == Finalized);
}

}  // namespace

Result<KernelLog> KernelLog::open(const KernelView& view) {
  KernelLog log(view);
  const auto ring = [&](std::string_view path) { return view.field("printk_ringbuffer", path); };
  log.count_bits_ = ring("desc_ring.count_bits");
  log.size_bits_ = ring("text_data_ring.size_bits");
  log.descs_ = ring("desc_ring.descs");
  log.infos_at_ = ring("desc_ring.infos");
  log.data_at_ = ring("text_data_ring.data");
  log.head_id_ = ring("desc_ring.head_id.counter");
  log.tail_id_ = ring("desc_ring.tail_id.counter");
  log.state_ = view.field("prb_desc", "state_var.counter");
  log.begin_ = view.field("prb_desc", "text_blk_lpos.begin");
  log.next_ = view.field("prb_desc", "text_blk_lpos.next");
  log.time_ = view.field("printk_info", "ts_nsec");
  log.length_ = view.field("printk_info", "text_len");
  log.level_ = view.field("printk_info", "level");
  log.facility_ = view.field("printk_info", "facility");
  log.sequence_ = view.field("printk_info", "seq");
  log.descriptor_bytes_ = view.size_of("prb_desc");
  log.info_bytes_ = view.size_of("printk_info");
  const auto at = view.variable<std::uint64_t>("prb");
  const bool is_known = log.state_ && log.begin_ && log.next_ && log.time_ && log.length_ &&
                        log.descriptor_bytes_ != 0 && log.descriptor_bytes_ <= kMostStruct &&
                        log.info_bytes_ != 0 && log.info_bytes_ <= kMostStruct;
  if (!at || !is_known) {
    return fail(ErrorCode::Unsupported, "the kernel log of this kernel is not known (before 5.10)");
  }
  log.ring_ = GuestVirt(*at);
  return log;
}

Result<void> KernelLog::read_ring() {
  const auto number = [&](const std::optional<Field>& field) { return view_->value(ring_, field); };
  const auto count_bits = number(count_bits_), size_bits = number(size_bits_);
  const auto descriptors = number(descs_), infos = number(infos_at_), data = number(data_at_);
  const auto head = number(head_id_), tail = number(tail_id_);
  const bool all = count_bits && size_bits && descriptors && infos && data && head && tail;
  if (!all || *count_bits > kMostBits || *size_bits > kMostBits) {
    return fail(ErrorCode::Invalid, "the kernel log makes no sense");
  }
  count_ = std::uint64_t{1} << *count_bits;
  data_size_ = std::uint64_t{1} << *size_bits;
  descriptors_ = GuestVirt(*descriptors);
  infos_ = GuestVirt(*infos);
  data_ = GuestVirt(*data);
  head_ = *head & kIdMask;
  tail_ = *tail & kIdMask;
  return {};
}

std::optional<std::string> KernelLog::text(std::span<const std::byte> descriptor, std::uint64_t id,
                                           std::uint64_t length) const {
  const auto begin = value_in(descriptor, begin_), next = value_in(descriptor, next_);
  if (!begin || !next) return std::nullopt;
  if (*begin == kLostText) return std::nullopt;
  if ((*begin & 1) != 0) return std::string();  // an empty line
  const std::uint64_t at = *begin & (data_size_ - 1);
  const bool wrapped = *begin / data_size_ != *next / data_size_ && *next % data_size_ != 0;
  const std::uint64_t place = wrapped ? 0 : at;
  if (place + 8 > data_size_) return std::nullopt;
  if (view_->load<std::uint64_t>(data_.wrapping_add(place)) != id) return std::nullopt;
  std::string bytes(std::min({length, std::uint64_t{kMostText}, data_size_ - place - 8}), '\0');
  if (!view_->reader().read(data_.wrapping_add(place + 8),
                            std::as_writable_bytes(std::span(bytes)))) {
    return std::nullopt;
  }
  return bytes;
}

/// Empty when the descriptor is another record's by now.
std::optional<std::uint64_t> KernelLog::state_of(GuestVirt descriptor, std::uint64_t id) const {
  const auto state = view_->value(descriptor, state_);
  if (!state || (*state & kIdMask) != id) return std::nullopt;
  return *state >> 62;
}

KernelLog::Found KernelLog::read(std::uint64_t id, LogRecord& record) const {
  const std::uint64_t index = id & (count_ - 1);
  const GuestVirt at = descriptors_.wrapping_add(index * descriptor_bytes_);
  const auto before = state_of(at, id);
  if (before == Reserved) return Found::Reserved;
  if (!has_record(before)) return Found::None;
  std::array<std::byte, kMostStruct> descriptor, info;
  const auto its_descriptor = std::span(descriptor).first(descriptor_bytes_);
  const auto its_info = std::span(info).first(info_bytes_);
  if (!view_->reader().read(at, its_descriptor) ||
      !view_->reader().read(infos_.wrapping_add(index * info_bytes_), its_info)) {
    return Found::None;
  }
  const auto time = value_in(its_info, time_), length = value_in(its_info, length_);
  if (!time || !length) return Found::None;
  auto words = text(its_descriptor, id, *length);
  if (!words || !has_record(state_of(at, id))) return Found::None;
  record = {id,
            value_in(its_info, sequence_).value_or(0),
            *time,
            static_cast<unsigned>(value_in(its_info, level_).value_or(6)),
            static_cast<unsigned>(value_in(its_info, facility_).value_or(0)),
            std::move(*words)};
  return before == Finalized ? Found::Whole : Found::Growing;
}

Result<std::vector<LogRecord>> KernelLog::last(std::size_t most) {
  TRY(read_ring());
  std::vector<LogRecord> records;
  const std::uint64_t there = std::min(((head_ - tail_) & kIdMask) + 1, count_);
  for (std::uint64_t back = 0; back < there && records.size() < most; ++back) {
    LogRecord record;
    const Found found = read((head_ - back) & kIdMask, record);
    if (found == Found::Whole || found == Found::Growing) records.push_back(std::move(record));
  }
  std::ranges::reverse(records);
  return records;
}

Result<KernelLog::News> KernelLog::take_news() {
  TRY(read_ring());
  News news;
  std::uint64_t id = next_wanted_.value_or(tail_);
  // Ids go around; a distance of more than half of them is one back.
  if (const std::uint64_t behind = (tail_ - id) & kIdMask; behind < kIdMask / 2) {
    if (next_wanted_) news.lost = behind;
    id = tail_;
  }
  // Fewer than there were: another kernel has begun anew.
  if (const std::uint64_t ahead = (id - head_ - 1) & kIdMask; ahead != 0 && ahead < kIdMask / 2) {
    id = tail_;
  }
  const std::uint64_t there = std::min((head_ + 1 - id) & kIdMask, count_);
  for (std::uint64_t n = 0; n < there; ++n, id = (id + 1) & kIdMask) {
    LogRecord record;
    const Found found = read(id, record);
    if (found == Found::Growing || found == Found::Reserved) break;
    if (found == Found::Whole) news.records.push_back(std::move(record));
    if (found == Found::None && next_wanted_) ++news.lost;
  }
  next_wanted_ = id;
  return news;
}

Result<std::vector<LogLine>> read_kernel_log(const KernelView& view, std::size_t most) {
  KernelLog log = TRY(KernelLog::open(view));
  std::vector<LogLine> lines;
  for (const LogRecord& record : TRY(log.last(most))) {
    // One record can be several lines.
    std::string_view rest = record.text;
    for (std::size_t parts = 0; !rest.empty() && parts < most; ++parts) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string words(rest.substr(0, end));
      std::ranges::replace(words, '\t', ' ');
      lines.push_back({record.time, record.level, printable(words)});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (lines.size() > most)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return lines;
}

}  // namespace ringside::guest_linux
