#include "vmm/shim/shim_image.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "vmm/base/numbers.h"
#include "vmm/page_walk.h"
#include "vmm/shim/fetch_list.h"

namespace ringside::vmm {
namespace {

/// Process numbers are below 2^22 (PID_MAX_LIMIT, include/linux/threads.h).
constexpr unsigned kPidBits = 22;

/// Field 22 of /proc/PID/stat; 0 when there is no such process, or it has ended. The second field,
/// its name, ends with the last parenthesis.
std::uint64_t start_of(std::uint64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos) return 0;
  std::istringstream fields(text.substr(name + 1));
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return 0;
  for (unsigned field = 4; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

}  // namespace

Result<shim_header> read_image() {
  shim_header header{};
  if (shim_image_size < sizeof header || shim_image_size > SHIM_CODE_SIZE) {
    return fail(ErrorCode::Invalid, "the embedded shim has an impossible size: build again");
  }
  std::memcpy(&header, shim_image, sizeof header);
  if (header.magic != SHIM_MAGIC || header.version != SHIM_VERSION ||
      header.image_bytes != shim_image_size || header.entry >= shim_image_size) {
    return fail(ErrorCode::Invalid,
                fmt::format("the embedded shim is version {}, this program speaks version {}: "
                            "build both together",
                            header.version, SHIM_VERSION));
  }
  return header;
}

shim_header complete(shim_header header, const ShimKernelFacts& facts, GuestVirt home,
                     const ShimLayout& layout) {
  header.original = facts.int3_handler.raw();
  header.this_cpu_off = facts.this_cpu_off;
  header.data = home.wrapping_add(layout.data).raw();
  header.slots = home.wrapping_add(layout.slots).raw();
  header.unit_shift = layout.unit_shift;
  header.page_bytes = static_cast<std::uint32_t>(layout.page_bytes);
  header.base = home.raw();
  header.region_bytes = layout.bytes;
  header.slots_bytes = layout.slots_bytes;
  if (facts.task) {
    header.current = facts.task->current;
    header.comm = facts.task->comm;
    header.pid = facts.task->pid;
    header.tgid = facts.task->tgid;
    header.start_time = facts.task->start_time;
  }
  header.user_tables = facts.page_table_isolation ? SHIM_USER_TABLES : 0;
  header.cpu_number = facts.cpu_number;
  header.rings = layout.ring_count;
  if (layout.ring_count != 0) {
    header.ring_controls = home.wrapping_add(layout.rings).raw();
    header.full_list = FetchList().head();
    header.least_list = FetchList({.registers = false, .ids = false}).head();
    header.trap_points = layout.expected_points;
  }
  return header;
}

std::vector<std::byte> image_with(const shim_header& header) {
  const auto image = std::as_bytes(std::span(shim_image, shim_image_size));
  std::vector<std::byte> bytes(image.begin(), image.end());
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

bool is_shim_at(const GuestMemory& memory, const PageTable& table, GuestVirt handler) {
  const GuestVirt base(round_down(handler.raw(), kShimLargePage));
  const auto start = translate(memory, table, base);
  const auto magic = start ? memory.load64(start->address) : std::nullopt;
  return magic && static_cast<std::uint32_t>(*magic) == SHIM_MAGIC;
}

ProcessName ProcessName::of_self() {
  return of(getpid());
}

ProcessName ProcessName::of(pid_t pid) {
  const auto number = static_cast<std::uint64_t>(pid);
  return {number, number == 0 ? 0 : start_of(number)};
}

std::uint64_t ProcessName::word() const {
  return start == 0 ? 0 : pid | start << kPidBits;
}

bool ProcessName::is_alive() const {
  return pid != 0 && start != 0 && start_of(pid) == start;
}

}  // namespace ringside::vmm
