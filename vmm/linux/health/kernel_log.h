// The kernel's log, from its ring buffer (what dmesg shows). No console need show it. Source:
// struct printk_ringbuffer (kernel/printk/printk_ringbuffer.h and .c; since 5.10):
//   descriptors  2^count_bits of struct prb_desc, and as many printk_info beside them; a
//                descriptor's index is its id modulo their number; the two top bits of state_var
//                say 0 reserved, 1 committed, 2 finalized, 3 reusable, the others are the id
//   text         2^size_bits bytes; a block is the id in 8 bytes, then the text; a position counts
//                on for ever, its place is its low bits; where a block would leave the end it lies
//                at the start instead; an odd position means that there is no text
// Used by health reports and by `dmesg`. Hostile input: bounded by the size of the ring, which is
// bounded; the guest may write meanwhile, so a record counts only if its id is the same before and
// after it was copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

struct LogRecord {
  std::uint64_t id = 0;        // the next record's is one more, modulo 2^62
  std::uint64_t sequence = 0;  // since boot
  std::uint64_t time = 0;      // nanoseconds since boot
  unsigned level = 0;          // syslog's: 0 emergency to 7 debug
  unsigned facility = 0;       // syslog's: 0 the kernel, 1 users
  std::string text;  // as the kernel has it, without its last newline; maybe several lines
};

class KernelLog {
 public:
  /// Unsupported where the kernel has no such buffer. `view` must outlive it.
  static Result<KernelLog> open(const KernelView& view);

  /// Records from the oldest on, at most the last `most` of them. Also the last one that a task
  /// still adds to. Invalid where the ring makes no sense.
  Result<std::vector<LogRecord>> last(std::size_t most);

  /// Those that came after the last call; the first call gives all that are there. Whole ones only,
  /// so a record that a task still adds to comes when it is whole.
  struct News {
    std::vector<LogRecord> records;
    std::uint64_t lost = 0;  // that came and were overwritten before this call
  };
  Result<News> take_news();

 private:
  enum class Found : std::uint8_t { Whole, Growing, Reserved, None };

  explicit KernelLog(const KernelView& view) : view_(&view) {}
  Result<void> read_ring();
  Found read(std::uint64_t id, LogRecord& record) const;
  std::optional<std::uint64_t> state_of(GuestVirt descriptor, std::uint64_t id) const;
  std::optional<std::string> text(std::span<const std::byte> descriptor, std::uint64_t id,
                                  std::uint64_t length) const;

  const KernelView* view_;
  std::optional<Field> state_, begin_, next_, time_, length_, level_, facility_, sequence_;
  std::uint64_t descriptor_bytes_ = 0, info_bytes_ = 0;
  std::optional<Field> count_bits_, size_bits_, descs_, infos_at_, data_at_, head_id_, tail_id_;
  GuestVirt ring_, descriptors_, infos_, data_;
  std::uint64_t count_ = 0, data_size_ = 0, head_ = 0, tail_ = 0;
  std::optional<std::uint64_t> next_wanted_;  // the id that take_news() begins at
};

/// The last lines of the log, at most `most`, the oldest first: printable, a line of a record each.
/// The errors of KernelLog.
Result<std::vector<LogLine>> read_kernel_log(const KernelView& view, std::size_t most);

}  // namespace ringside::guest_linux
