#include "vmm/linux/text/boot_patches.h"

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/text/patched_sites.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint64_t kParavirtBytes = 16;
using arch::kLongestInstruction;

struct RelativeTable {
  std::string_view section;
  std::uint8_t length;
  std::string_view what;
};

// Lengths are the longest that the kernel writes: `jcc rel32` is six bytes.
constexpr std::array kRelative = {
    RelativeTable{".retpoline_sites", 6, "retpoline"},
    RelativeTable{".return_sites", 5, "return thunk"},
    RelativeTable{".call_sites", 5, "call thunk"},
    RelativeTable{".ibt_endbr_seal", 4, "landing pad"},
    RelativeTable{".smp_locks", 1, "lock prefix"},
};

void add_relative(const vmm::ElfFile::Section& section, std::uint8_t length, std::string_view what,
                  std::vector<Kernel::PatchedSite>& sites) {
  const std::uint64_t count = std::min<std::uint64_t>(section.bytes.size() / 4, kMaxTableEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t offset = load_at<std::int32_t>(section.bytes, i * 4);
    const std::uint64_t at = section.address + i * 4 + static_cast<std::uint64_t>(offset);
    sites.push_back({GuestVirt(at), length, what});
  }
}

bool add_alternatives(const vmm::ElfFile::Section& section, const TypeGraph& types,
                      std::vector<Kernel::PatchedSite>& sites) {
  const auto type = types.find(TypeKind::Struct, "alt_instr");
  const auto length_at = offset_of(types, "alt_instr", {"instrlen"});
  const std::uint64_t entry = type ? types.size_of(*type) : 0;
  if (!length_at || entry < 8 || *length_at >= entry) return false;
  const std::uint64_t count = std::min(section.bytes.size() / entry, kMaxTableEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = i * entry;
    const std::int64_t offset = load_at<std::int32_t>(section.bytes, at);
    const auto length = load_at<std::uint8_t>(section.bytes, at + *length_at);
    sites.push_back({GuestVirt(section.address + at + static_cast<std::uint64_t>(offset)), length,
                     "alternative"});
  }
  return true;
}

void add_paravirt(const vmm::ElfFile::Section& section, std::vector<Kernel::PatchedSite>& sites) {
  const std::uint64_t count =
      std::min<std::uint64_t>(section.bytes.size() / kParavirtBytes, kMaxTableEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t at = i * kParavirtBytes;
    sites.push_back({GuestVirt(load_at<std::uint64_t>(section.bytes, at)),
                     load_at<std::uint8_t>(section.bytes, at + 9), "paravirt call"});
  }
}

}  // namespace

std::optional<std::vector<Kernel::PatchedSite>> find_boot_patches(const vmm::ElfFile& image,
                                                                  const TypeGraph& types) {
  std::vector<Kernel::PatchedSite> sites;
  const vmm::ElfFile::Section* alternatives = image.section(".altinstructions");
  if (alternatives == nullptr || !add_alternatives(*alternatives, types, sites)) {
    return std::nullopt;
  }
  for (const RelativeTable& table : kRelative) {
    const vmm::ElfFile::Section* section = image.section(table.section);
    if (section != nullptr) add_relative(*section, table.length, table.what, sites);
  }
  for (const vmm::ElfFile::Section& section : image.sections()) {
    // One section for each constant; an entry points at the operand, inside its instruction.
    if (!section.name.starts_with("runtime_")) continue;
    add_relative(section, kLongestInstruction, "runtime constant", sites);
  }
  const vmm::ElfFile::Section* paravirt = image.section(".parainstructions");
  if (paravirt != nullptr) add_paravirt(*paravirt, sites);
  std::sort(sites.begin(), sites.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return sites;
}

}  // namespace ringside::guest_linux
