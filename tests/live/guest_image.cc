#include "tests/live/guest_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "vmm/arch/arch.h"

namespace ringside::live {
namespace {

constexpr std::uint64_t kPage = arch::kPageSize;
constexpr GuestVirt kImageRegion{0xffff'ffff'8000'0000};
/// After the firmware's data, up to the extended BIOS data area.
constexpr GuestPhys kLow{kPage};
constexpr std::uint64_t kLowBytes = 0x9'f000 - kPage;
/// The bits that a CPU writes into the tables by itself.
constexpr std::uint64_t kByCpu = arch::pte::kAccessed | arch::pte::kDirty;

}  // namespace

void GuestImage::add(const std::string& what, vmm::GuestMemory& memory, GuestPhys at,
                     std::uint64_t size) {
  auto& words = parts_[what];
  words.resize(size / 8);
  if (!memory.read(at, std::as_writable_bytes(std::span(words)))) words.assign(1, ~0ULL);
}

/// Page by page; what is not mapped is left out.
void GuestImage::add_virtual(const std::string& what, vmm::GuestMemory& memory,
                             const vmm::PageTable& table, GuestVirt at, std::uint64_t size) {
  for (std::uint64_t page = at.raw() / kPage * kPage; page < at.raw() + size; page += kPage) {
    const auto found = vmm::translate(memory, table, GuestVirt(page));
    if (found) add(fmt::format("{} at {:#x}", what, page), memory, found->address, kPage);
  }
}

/// Every table on the way to the image's region, and the directory of each of its page tables.
void GuestImage::add_tables(const std::string& what, vmm::GuestMemory& memory,
                            const vmm::PageTable& table) {
  for (unsigned level = table.levels; level >= 2; --level) {
    const auto entry = vmm::entry_address(memory, table, kImageRegion, level);
    if (!entry) continue;
    const std::string name = fmt::format("{} of level {}", what, level);
    add(name, memory, GuestPhys(entry->raw() / kPage * kPage), kPage);
    for (std::uint64_t& word : parts_[name]) word &= ~kByCpu;
  }
}

GuestImage GuestImage::take(vmm::PausedMachine& machine, const guest_linux::Kernel& kernel) {
  GuestImage image;
  vmm::GuestMemory& memory = machine.memory();
  const auto& table = kernel.table();
  for (const guest_linux::Module& module : kernel.symbols().modules()) {
    image.add_virtual(module.name, memory, table, module.text_base, module.text_size);
  }
  const auto* idt = kernel.symbols().find("idt_table", "vmlinux");
  if (idt != nullptr) image.add_virtual("interrupt table", memory, table, idt->address, kPage);
  for (std::uint64_t at = 0; at < kLowBytes; at += kPage) {
    const GuestPhys page = kLow.wrapping_add(at);
    image.add(fmt::format("first megabyte at {:#x}", page.raw()), memory, page, kPage);
  }
  image.add_tables("kernel's table", memory, table);
  vmm::PageTable user = table;
  user.root = GuestPhys(table.root.raw() | kPage);
  image.add_tables("user half's table", memory, user);
  return image;
}

std::vector<std::string> GuestImage::differences(const GuestImage& later, std::size_t most) const {
  std::vector<std::string> found;
  const auto note = [&](std::string text) {
    if (found.size() < most) found.push_back(std::move(text));
  };
  for (const auto& [name, words] : parts_) {
    const auto other = later.parts_.find(name);
    if (other == later.parts_.end()) {
      note(name + " is gone");
      continue;
    }
    const auto [here, there] = std::ranges::mismatch(words, other->second);
    if (here == words.end() || there == other->second.end()) continue;
    note(fmt::format("{}+{:#x}: {:#x} became {:#x}", name, (here - words.begin()) * 8, *here,
                     *there));
  }
  for (const auto& [name, words] : later.parts_) {
    if (!parts_.contains(name)) note(name + " is new");
  }
  return found;
}

std::size_t GuestImage::bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, words] : parts_) sum += words.size() * 8;
  return sum;
}

}  // namespace ringside::live
