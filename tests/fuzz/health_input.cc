// The health report of a guest whose memory is any, and changes while it is looked at. In this
// file, top to bottom: a kernel's types, the report, first inputs.
#include <algorithm>
#include <array>
#include <map>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/health/block_requests.h"
#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/diagnosis.h"
#include "vmm/linux/health/fake_kernel_for_tests.h"
#include "vmm/linux/health/kernel_log.h"
#include "vmm/linux/health/kernel_state.h"
#include "vmm/linux/health/tasks.h"
#include "vmm/linux/health/waits.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

using fakes::kData;
constexpr std::uint64_t kHeap = 0xffff'8880'0100'0000;
constexpr std::uint64_t kSecond = 1'000'000'000, kJiffies = 4'294'892'296 + 100 * 250;
constexpr std::uint64_t kRing = kData + 0x2100, kDescriptors = kData + 0x3000,
                        kInfos = kData + 0x3400, kTexts = kData + 0x3800;

void add_disks(fakes::HealthKernel& kernel) {
  kernel.structure("sb_writers", 8, {{"frozen", "unsigned short", 0}});
  kernel.structure("super_block", 96,
                   {{"s_list", "list_head", 0},
                    {"s_inodes", "list_head", 16},
                    {"s_writers", "sb_writers", 32},
                    {"s_id", "char", 40, 32},
                    {"s_type", "unsigned long", 80}});
  kernel.structure("file_system_type", 8, {{"name", "unsigned long", 0}});
  kernel.structure("inode", 16, {{"i_sb_list", "list_head", 0}});
  kernel.structure("block_device", 16,
                   {{"bd_disk", "unsigned long", 0}, {"bd_stats", "unsigned long", 8}});
  kernel.structure("bdev_inode", 32, {{"bdev", "block_device", 0}, {"vfs_inode", "inode", 16}});
  kernel.structure("gendisk", 48,
                   {{"disk_name", "char", 0, 32},
                    {"queue", "unsigned long", 32},
                    {"part0", "unsigned long", 40}});
  kernel.structure("request_queue", 8, {{"tag_set", "unsigned long", 0}});
  kernel.structure("blk_mq_tag_set", 16,
                   {{"tags", "unsigned long", 0}, {"nr_hw_queues", "unsigned int", 8}});
  kernel.structure("blk_mq_tags", 16,
                   {{"nr_tags", "unsigned int", 0}, {"rqs", "unsigned long", 8}});
  kernel.structure("request", 64,
                   {{"q", "unsigned long", 0},
                    {"cmd_flags", "unsigned int", 8},
                    {"tag", "int", 12},
                    {"state", "unsigned int", 16},
                    {"__data_len", "unsigned int", 20},
                    {"__sector", "unsigned long", 24},
                    {"deadline", "unsigned long", 32},
                    {"timeout", "unsigned int", 40}});
  kernel.structure("disk_stats", 16, {{"in_flight", "unsigned long", 0}});
  kernel.symbol("super_blocks", kData + 0x6000);
  kernel.symbol("blockdev_superblock", kData + 0x6010);
}

const fakes::HealthKernel& kernel() {
  static const fakes::HealthKernel* const made = [] {
    auto* made = new fakes::HealthKernel;
    fakes::add_tasks(*made);
    fakes::add_log(*made);
    fakes::add_rcu(*made);
    add_disks(*made);
    made->seal();
    return made;
  }();
  return *made;
}

bool is_shown(std::string_view text) {
  return printable(text) == text;
}

void look_at_tasks(const KernelView& view, const Clocks& clocks, HealthReport& report) {
  const StackTables stacks;
  Tasks tasks(view, clocks, stacks);
  tasks.list();
  CHECK(tasks.all().size() <= Tasks::kMost);
  report.task_count = tasks.all().size();
  const Waits waits(view, tasks, report.frozen);
  const std::vector<Frame> in_mutex{{0, "schedule+0x5"}, {0, "__mutex_lock.constprop.0+0x20"}};
  for (const Task& task : tasks.all()) {
    CHECK(is_shown(task.name) && task.name.size() <= 64);
    if (task.state != TaskState::Uninterruptible || report.waiting.size() >= 64) continue;
    report.waiting.push_back({task, tasks.sleeping_stack(task), waits.find(task, in_mutex)});
    CHECK(report.waiting.back().stack.size() <= Tasks::kMostFrames);
  }
}

HealthReport report_of(const GuestInput& guest) {
  guest.rewind();
  const KernelView view(kernel(), guest);
  const Clocks clocks(view);
  HealthReport report;
  report.release = "6.1.0";
  report.frozen = read_frozen_filesystems(view);
  look_at_tasks(view, clocks, report);
  if (auto log = read_kernel_log(view, 40)) {
    CHECK(log->size() <= 40);
    read_last_kill(*log, clocks.now(), report.memory);
    report.log = std::move(*log);
  }
  report.rcu = read_rcu(view, clocks);
  report.disks = BlockRequests(view, clocks).read().disks;
  for (const DiskReport& disk : report.disks)
    CHECK(is_shown(disk.name) && disk.requests.size() <= 8);
  for (const LogLine& line : report.log) CHECK(is_shown(line.text));
  for (const FilesystemReport& each : report.frozen) CHECK(is_shown(each.device + each.type));
  report.causes = diagnose(report);
  CHECK(!report.causes.empty());
  for (const Cause& cause : report.causes) CHECK(is_shown(cause.text));
  return report;
}

std::vector<std::string> texts_of(const HealthReport& report) {
  std::vector<std::string> texts;
  for (const Cause& cause : report.causes) texts.push_back(cause.text);
  return texts;
}

}  // namespace

std::size_t read_health(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput guest(script);
  const HealthReport report = report_of(guest);
  CHECK(texts_of(report_of(guest)) == texts_of(report));
  return report.task_count + report.disks.size() + report.log.size();
}

namespace {

/// A guest's memory, by pages.
class Memory {
 public:
  using Pages = std::map<std::uint64_t, std::array<std::byte, 4096>>;
  template <class T>
  void put(std::uint64_t at, const T& value) {
    for (const std::byte byte : std::as_bytes(std::span(&value, 1))) {
      pages_[at / 4096][at % 4096] = byte;
      ++at;
    }
  }
  void put_text(std::uint64_t at, std::string_view text) {
    for (const char c : text) put(at++, c);
  }
  const Pages& pages() const { return pages_; }

 private:
  Pages pages_;
};

std::uint64_t task_at(unsigned index) {
  return index == 0 ? kData : kHeap + std::uint64_t{index} * 0x10000;
}

void put_task(Memory& memory, unsigned index, std::uint32_t state, unsigned next) {
  const std::uint64_t at = task_at(index), signal = at + 0x200, stack = at + 0x4000;
  memory.put(at, state);
  memory.put(at + 4, 100 + index);
  memory.put(at + 8, 100 + index);
  memory.put_text(at + 16, "task");
  memory.put(at + 32, stack);
  memory.put(at + 40, task_at(next) + 40);
  memory.put(at + 56, signal);
  memory.put(at + 64, signal);
  memory.put(signal, at + 64);
  memory.put(at + 80, 90 * kSecond);
  memory.put(at + 104, stack + 0x3000);  // thread.sp
  memory.put(stack + 0x3000, std::uint64_t{0});
}

/// `owner` holds it and `waiter` waits.
void put_mutex(Memory& memory, std::uint64_t at, unsigned owner, unsigned waiter) {
  const std::uint64_t node = task_at(waiter) + 0x4000 + 0x3800;
  memory.put(at, task_at(owner) | 1);
  memory.put(at + 16, node);
  memory.put(at + 24, node);
  memory.put(node, at + 16);
  memory.put(node + 8, at + 16);
  memory.put(node + 16, task_at(waiter));
}

void put_log(Memory& memory) {
  constexpr std::string_view kLine = "Out of memory: Killed process 12 (dd) total-vm:1kB";
  memory.put(kData + 0x2000, kRing);
  memory.put(kRing, 3U);
  memory.put(kRing + 8, kDescriptors);
  memory.put(kRing + 16, kInfos);
  memory.put(kRing + 24, std::uint64_t{1});
  memory.put(kRing + 32, std::uint64_t{1});
  memory.put(kRing + 40, 8U);
  memory.put(kRing + 48, kTexts);
  memory.put(kDescriptors + 24, std::uint64_t{2} << 62 | 1);
  memory.put(kDescriptors + 24 + 16, std::uint64_t{64});
  memory.put(kInfos + 24, 95 * kSecond);
  memory.put(kInfos + 24 + 8, static_cast<std::uint16_t>(kLine.size()));
  memory.put(kTexts, std::uint64_t{1});
  memory.put_text(kTexts + 8, kLine);
}

void put_disk(Memory& memory) {
  constexpr std::uint64_t kSuper = kHeap, kDevice = kHeap + 0x200, kDisk = kHeap + 0x300,
                          kQueue = kHeap + 0x400, kSet = kHeap + 0x500, kTags = kHeap + 0x600,
                          kArray = kHeap + 0x700, kRequest = kHeap + 0x800, kType = kHeap + 0x900;
  memory.put(kData + 0x6000, kSuper);
  memory.put(kData + 0x6010, kSuper);
  memory.put(kSuper, kData + 0x6000);
  memory.put(kSuper + 16, kDevice + 16);
  memory.put(kSuper + 32, std::uint16_t{4});
  memory.put_text(kSuper + 40, "vda");
  memory.put(kSuper + 80, kType);
  memory.put(kType, kType + 16);
  memory.put_text(kType + 16, "ext4");
  memory.put(kDevice, kDisk);
  memory.put(kDevice + 16, kSuper + 16);
  memory.put_text(kDisk, "vda");
  memory.put(kDisk + 32, kQueue);
  memory.put(kDisk + 40, kDevice);
  memory.put(kQueue, kSet);
  memory.put(kSet, kArray);
  memory.put(kSet + 8, 1U);
  memory.put(kArray, kTags);
  memory.put(kTags, 2U);
  memory.put(kTags + 8, kArray + 16);
  memory.put(kArray + 16, kRequest);
  memory.put(kRequest, kQueue);
  memory.put(kRequest + 16, 1U);
  memory.put(kRequest + 20, 4096U);
  memory.put(kRequest + 32, kJiffies + 5000);
  memory.put(kRequest + 40, 7500U);
}

}  // namespace

Inputs health_inputs() {
  Memory memory;
  for (const std::uint64_t base : kernel().percpu_bases()) memory.put(base, 100 * kSecond);
  memory.put(kData + 0x1000, kJiffies);
  put_task(memory, 0, 0, 1);
  put_task(memory, 1, 2, 2);
  put_task(memory, 2, 2, 0);
  put_mutex(memory, kHeap + 0x100, 2, 1);
  put_mutex(memory, kHeap + 0x140, 1, 2);
  put_log(memory);
  put_disk(memory);
  memory.put(kData + 0x5000 + 200, std::uint64_t{5});
  memory.put(kData + 0x5000 + 208, kJiffies - 3000);
  memory.put(kData + 0x5000 + 48, std::uint64_t{2});
  memory.put(kData + 0x5000 + 48 + 12, 63);
  memory.put(kData + 0x5000 + 48 + 16, std::uint8_t{1});
  auto changing = pieces_of(memory.pages());
  for (std::size_t i = 0; i < changing.size(); i += 3) changing[i].after = 40;
  return {write_guest(pieces_of(memory.pages())), write_guest(changing)};
}

}  // namespace ringside::fuzz
