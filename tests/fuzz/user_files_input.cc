// Files that a guest's kernel has in memory: its page cache, and ELF files in it.
#include <algorithm>
#include <string>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "vmm/base/check.h"
#include "vmm/linux/processes/demangle.h"
#include "vmm/linux/processes/elf_file_for_tests.h"
#include "vmm/linux/processes/static_probes.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::size_t kRam = 64 << 12;

bool prints(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
}

/// Pieces at the lowest addresses are the guest's RAM, the others its kernel's memory.
std::vector<std::byte> ram_of(const GuestInput& guest) {
  std::vector<std::byte> ram(kRam);
  for (const Piece& piece : guest.pieces()) {
    if (piece.at >= ram.size()) continue;
    const std::size_t room = ram.size() - piece.at;
    std::ranges::copy(piece.bytes.first(std::min(piece.bytes.size(), room)),
                      ram.begin() + static_cast<std::ptrdiff_t>(piece.at));
  }
  return ram;
}

std::size_t check_functions(const FilePages& file) {
  const auto functions = FileFunctions::read(file);
  for (const FileFunction& each : functions.all()) {
    CHECK(!each.name.empty() && each.name.size() <= 4096 && prints(each.name));
    CHECK(functions.is_text(each.offset) && each.offset < file.size());
    const FileFunction* const found = functions.at(each.offset);
    CHECK(found == nullptr || found->offset <= each.offset);
    CHECK(demangle(each.name).size() <= 4096);
  }
  return functions.all().size();
}

std::size_t check_probes(const FilePages& file) {
  const auto elf = FileElf::read(file);
  if (!elf) return 0;
  const auto probes = read_static_probes(file, *elf);
  for (const StaticProbe& each : probes) {
    CHECK(!each.provider.empty() && !each.name.empty());
    CHECK(prints(each.provider) && prints(each.name) && prints(each.arguments));
    CHECK(each.offset < file.size() && each.semaphore.value_or(0) < file.size());
  }
  return probes.size();
}

}  // namespace

std::size_t read_user_file(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput guest(script);
  const GuestVirt inode(script.take<std::uint64_t>());
  std::vector<std::byte> ram = ram_of(guest);
  const vmm::GuestMemory memory({{GuestPhys(0), ram}});
  const PageCacheLayout layout = fakes::page_cache_layout();
  const auto file = FilePages::of_inode(memory, guest, layout, inode);
  if (!file) return 0;
  for (std::uint64_t page = 0; page < 8; ++page) (void)file->is_unsaved(page);
  return check_functions(*file) + check_probes(*file);
}

Inputs user_file_inputs() {
  Inputs inputs;
  for (const Elf64_Word table : {SHT_SYMTAB, SHT_DYNSYM}) {
    fakes::ElfFile file(0x1000, 0x2000);
    file.table_type = table;
    file.data = 0x100;
    file.add_function("main", 0x1000, 0x20);
    file.add_function("_ZN4wars5fightEiPKc", 0x1040, 0x20);
    file.add_function("total", 0x2f20, 8, STT_OBJECT);
    file.add_static_probe("sample", "call__start", "8@%rdi -4@total+4(%rip)", 0x1010, 0x2f00);
    file.add_static_probe("sample", "call__end", "", 0x1050);
    fakes::PagedGuest guest;
    fakes::PageCacheWriter cache(guest);
    const std::uint64_t inode = cache.whole(file.encode());
    auto pieces = pieces_of(guest.pages());
    for (std::uint64_t frame = 0; frame < 8; ++frame) {
      pieces.push_back({frame << 12, 1 << 12, 0, cache.page(frame)});
    }
    inputs.push_back(write_guest(pieces, std::as_bytes(std::span(&inode, 1))));
  }
  return inputs;
}

}  // namespace ringside::fuzz
