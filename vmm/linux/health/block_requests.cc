// In this file, top to bottom: one request, one disk, all disks.
#include "vmm/linux/health/block_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <vector>

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostDevices = 8192, kMostQueues = 256, kMostTags = 16384, kMostShown = 8;
constexpr std::size_t kDiskNameBytes = 32;
/// The budget of all disks together: a guest can make many queues of many tags.
constexpr std::size_t kMostRead = 1 << 18;

/// REQ_OP_* (include/linux/blk_types.h), the low 8 bits of cmd_flags.
std::string operation_name(std::uint64_t flags) {
  constexpr std::array<std::string_view, 4> kNames{"read", "write", "flush", "discard"};
  const std::uint64_t operation = flags & 0xff;
  if (operation < kNames.size()) return std::string(kNames[operation]);
  return fmt::format("operation {}", operation);
}

}  // namespace

BlockRequests::BlockRequests(const KernelView& view, const Clocks& clocks)
    : view_(view), clocks_(clocks) {
  super_block_at_ = view.symbol("blockdev_superblock");
  inodes_ = view.field("super_block", "s_inodes");
  inode_link_ = view.field("inode", "i_sb_list");
  holder_inode_ = view.field("bdev_inode", "vfs_inode");
  device_disk_ = view.field("block_device", "bd_disk");
  device_stats_ = view.field("block_device", "bd_stats");
  disk_name_ = view.field("gendisk", "disk_name");
  disk_queue_ = view.field("gendisk", "queue");
  disk_whole_ = view.field("gendisk", "part0");
  queue_set_ = view.field("request_queue", "tag_set");
  set_tags_ = view.field("blk_mq_tag_set", "tags");
  set_queues_ = view.field("blk_mq_tag_set", "nr_hw_queues");
  tags_count_ = view.field("blk_mq_tags", "nr_tags");
  tags_requests_ = view.field("blk_mq_tags", "rqs");
  request_state_ = view.field("request", "state");
  request_queue_ = view.field("request", "q");
  request_tag_ = view.field("request", "tag");
  request_flags_ = view.field("request", "cmd_flags");
  request_bytes_ = view.field("request", "__data_len");
  request_sector_ = view.field("request", "__sector");
  request_deadline_ = view.field("request", "deadline");
  request_timeout_ = view.field("request", "timeout");
  stats_in_flight_ = view.field("disk_stats", "in_flight");
}

bool BlockRequests::knows_requests() const {
  return inodes_ && inode_link_ && holder_inode_ && device_disk_ && disk_name_ && disk_queue_ &&
         queue_set_ && set_tags_ && set_queues_ && tags_count_ && tags_requests_ &&
         request_state_ && request_queue_ && request_tag_;
}

RequestReport BlockRequests::request(GuestVirt at) const {
  RequestReport report;
  report.operation = operation_name(view_.value(at, request_flags_).value_or(0));
  report.bytes = view_.value(at, request_bytes_).value_or(0);
  report.sector = view_.value(at, request_sector_).value_or(0);
  const auto deadline = view_.value(at, request_deadline_),
             timeout = view_.value(at, request_timeout_);
  if (deadline && timeout && *timeout <= *deadline) {
    report.age = clocks_.since_jiffies(*deadline - *timeout);
  }
  return report;
}

void BlockRequests::read_queue(GuestVirt tags, GuestVirt queue, DiskReport& report) {
  constexpr std::uint64_t kInFlight = 1;  // MQ_RQ_IN_FLIGHT
  const std::uint64_t count =
      std::min<std::uint64_t>(view_.value(tags, tags_count_).value_or(0), kMostTags);
  const auto requests = view_.pointer(tags, tags_requests_);
  if (!requests) return;
  // All at once: nearly all are empty, and where guest RAM is only copied each read is a system
  // call.
  std::vector<std::uint64_t> entries(std::min<std::uint64_t>(count, budget_));
  budget_ -= entries.size();
  read_available(view_.reader(), *requests, std::as_writable_bytes(std::span(entries)));
  for (std::uint64_t tag = 0; tag < entries.size(); ++tag) {
    if (entries[tag] == 0) continue;
    const GuestVirt found(entries[tag]);
    // Entries of requests that have ended stay.
    if (view_.value(found, request_state_) != kInFlight ||
        view_.value(found, request_tag_) != tag || view_.pointer(found, request_queue_) != queue) {
      continue;
    }
    ++report.in_flight;
    report.requests.push_back(request(found));
    if (const auto age = report.requests.back().age) {
      report.oldest = std::max(report.oldest.value_or(0), *age);
    }
  }
}

void BlockRequests::read_tags(GuestVirt set, GuestVirt queue, DiskReport& report) {
  const std::uint64_t queues =
      std::min<std::uint64_t>(view_.value(set, set_queues_).value_or(0), kMostQueues);
  const auto array = view_.pointer(set, set_tags_);
  if (!array) return;
  std::set<std::uint64_t> read;  // queues may share their tags
  for (std::uint64_t i = 0; i < queues; ++i) {
    const auto tags = view_.load<std::uint64_t>(array->wrapping_add(i * 8));
    if (tags && *tags != 0 && read.insert(*tags).second)
      read_queue(GuestVirt(*tags), queue, report);
  }
}

/// Requests begun and not ended, reads and writes of all CPUs; each CPU's may be below zero.
std::optional<std::uint64_t> BlockRequests::accounted(GuestVirt device) const {
  const auto stats = view_.value(device, device_stats_);
  if (!stats || *stats == 0 || !stats_in_flight_) return std::nullopt;
  std::int64_t sum = 0;
  for (const std::uint64_t base : view_.kernel().percpu_bases()) {
    const GuestVirt at = GuestVirt(*stats).wrapping_add(base + stats_in_flight_->offset);
    const auto both = view_.load<std::array<std::int64_t, 2>>(at);
    if (!both) continue;
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                    static_cast<std::uint64_t>((*both)[0]) +
                                    static_cast<std::uint64_t>((*both)[1]));
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(sum, 0));
}

void BlockRequests::add_disk(GuestVirt device, GuestVirt disk) {
  if (!seen_.insert(disk.raw()).second) return;
  DiskReport report;
  report.name = view_.text(disk.wrapping_add(disk_name_->offset), kDiskNameBytes);
  const auto whole = view_.pointer(disk, disk_whole_);
  report.accounted = accounted(disk_whole_ && disk_whole_->bytes == 8 && whole ? *whole : device);
  const auto queue = view_.pointer(disk, disk_queue_);
  const auto set = queue ? view_.pointer(*queue, queue_set_) : std::nullopt;
  if (set) read_tags(*set, *queue, report);
  if (report.in_flight == 0 && report.accounted.value_or(0) == 0) return;
  std::ranges::stable_sort(report.requests, std::greater<>(), &RequestReport::age);
  if (report.requests.size() > kMostShown) report.requests.resize(kMostShown);
  state_.disks.push_back(std::move(report));
}

BlockState BlockRequests::read() {
  budget_ = kMostRead;
  seen_.clear();
  state_ = {};
  const auto super_block = view_.load<std::uint64_t>(super_block_at_);
  if (!super_block || *super_block == 0 || !knows_requests()) return {};
  state_.known = true;
  const GuestVirt head = GuestVirt(*super_block).wrapping_add(inodes_->offset);
  view_.walk_list(head, kMostDevices, [&](GuestVirt node) {
    const GuestVirt device =
        node.wrapping_sub(inode_link_->offset).wrapping_sub(holder_inode_->offset);
    if (const auto disk = view_.pointer(device, device_disk_)) add_disk(device, *disk);
    return true;
  });
  std::ranges::stable_sort(state_.disks, std::greater<>(), &DiskReport::oldest);
  return std::move(state_);
}

}  // namespace ringside::guest_linux
