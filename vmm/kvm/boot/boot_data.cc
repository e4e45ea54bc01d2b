// The command line, descriptor and page tables, PVH's start info. Formats: Intel SDM volume
// 3, 3.4.5 and 4.5; xen/include/public/arch-x86/hvm/start_info.h, version 1.
#include "vmm/kvm/boot/boot_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kFlatCode32 = 0x00cf'9b00'0000'ffff;
constexpr std::uint64_t kFlatCode64 = 0x00af'9b00'0000'ffff;
constexpr std::uint64_t kFlatData = 0x00cf'9300'0000'ffff;
static_assert(kBootGdt + 4 * sizeof(std::uint64_t) <= kBootIdt);

using arch::kPageSize;
constexpr std::uint64_t kPresentWritable = arch::pte::kPresent | arch::pte::kWritable;
constexpr unsigned kDirectories = 4;  // 1 GiB each

struct HvmStartInfo {
  std::uint32_t magic = 0x336e'c578;
  std::uint32_t version = 1;
  std::uint32_t flags = 0;
  std::uint32_t module_count = 0;
  std::uint64_t modules = 0;
  std::uint64_t command_line = kCommandLine;
  std::uint64_t rsdp = 0;
  std::uint64_t memory_map = 0;
  std::uint32_t memory_map_entries = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HvmStartInfo) == 56 && offsetof(HvmStartInfo, memory_map) == 40);

struct HvmModule {
  std::uint64_t address = 0, size = 0, command_line = 0, reserved = 0;
};
struct HvmMemory {
  std::uint64_t address = 0, size = 0;
  std::uint32_t type = 0;  // as in e820
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HvmMemory) == 24);

constexpr std::uint64_t kModulesAt = kStartInfo + 0x80;

}  // namespace

Result<void> put(GuestMemory& memory, std::uint64_t at, std::span<const std::byte> bytes,
                 std::string_view what) {
  if (bytes.empty() || memory.write(GuestPhys(at), bytes)) return {};
  return fail(ErrorCode::Limit,
              fmt::format("no RAM at {:#x} for {} ({} bytes)", at, what, bytes.size()));
}

Result<void> write_command_line(GuestMemory& memory, const std::string& text, std::uint64_t most) {
  most = std::min(most, kCommandLineSize - 1);
  if (text.size() > most) {
    return fail(ErrorCode::Limit,
                fmt::format("the kernel's command line has {} characters, {} too many: shorten "
                            "--append",
                            text.size(), text.size() - most));
  }
  if (text.find('\0') != std::string::npos)
    return fail(ErrorCode::Invalid, "the kernel's command line has a NUL in it");
  return put(memory, kCommandLine, std::as_bytes(std::span(text.c_str(), text.size() + 1)),
             "the command line");
}

Result<void> write_gdt(GuestMemory& memory, BootState::Mode mode) {
  const std::array<std::uint64_t, 4> gdt{
      0, 0, mode == BootState::Mode::Long64 ? kFlatCode64 : kFlatCode32, kFlatData};
  return put(memory, kBootGdt, std::as_bytes(std::span(gdt)), "the descriptor table");
}

Result<void> write_identity_map(GuestMemory& memory) {
  std::array<std::uint64_t, 512> table{};
  table[0] = (kBootTables + kPageSize) | kPresentWritable;
  TRY(put(memory, kBootTables, std::as_bytes(std::span(table)), "page tables"));
  for (unsigned i = 0; i < kDirectories; ++i)
    table[i] = (kBootTables + (2 + i) * kPageSize) | kPresentWritable;
  TRY(put(memory, kBootTables + kPageSize, std::as_bytes(std::span(table)), "page tables"));
  std::uint64_t address = 0;
  for (unsigned i = 0; i < kDirectories; ++i) {
    for (std::uint64_t& entry : table) {
      entry = address | arch::pte::kLarge | kPresentWritable;
      address += arch::kLargePageSize;
    }
    TRY(put(memory, kBootTables + (2 + i) * kPageSize, std::as_bytes(std::span(table)),
            "page tables"));
  }
  return {};
}

Result<void> write_common(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                          std::uint64_t most_command_line, BootState::Mode mode) {
  TRY(write_command_line(memory, request.command_line, most_command_line));
  TRY(put(memory, initrd.raw(), request.initrd, "the initrd"));
  TRY(write_gdt(memory, mode));
  if (mode == BootState::Mode::Long64) TRY(write_identity_map(memory));
  return {};
}

Result<void> write_start_info(GuestMemory& memory, const BootRequest& request, GuestPhys initrd) {
  HvmStartInfo info;
  if (request.rsdp) info.rsdp = request.rsdp->raw();
  if (!request.initrd.empty()) {
    const HvmModule module{initrd.raw(), request.initrd.size(), 0, 0};
    TRY(put(memory, kModulesAt, bytes_of(module), "the start info"));
    info.modules = kModulesAt;
    info.module_count = 1;
  }
  std::uint64_t at = kMemoryMapAt;
  for (const E820Entry& entry : memory_map(request.ram_size)) {
    const HvmMemory range{entry.base, entry.size, static_cast<std::uint32_t>(entry.type), 0};
    TRY(put(memory, at, bytes_of(range), "the start info"));
    at += sizeof range;
    ++info.memory_map_entries;
  }
  info.memory_map = kMemoryMapAt;
  return put(memory, kStartInfo, bytes_of(info), "the start info");
}

}  // namespace ringside::vmm::kvm
