// In this file, top to bottom: processes, user ELF images, first inputs of both.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/processes/reverse_map.h"
#include "vmm/linux/processes/user_elf.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/processes/user_names.h"
#include "vmm/linux/types/btf.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::uint64_t kProgram = 0x40'0000, kLibrary = 0x7f00'0000'0000;
constexpr std::uint64_t kPid = 7;
constexpr std::array<std::uint64_t, 5> kAsked = {kProgram + 0x10, kLibrary + 0x104,
                                                 kLibrary + 0x8010, 0x9000, UINT64_MAX};
constexpr std::uint64_t kInode = fakes::kKernel + 0x80000;  // of a file that is mapped

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, is_name_character);
}

class Through final : public GuestReader {
 public:
  explicit Through(const GuestReader& guest) : guest_(guest) {}
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    return guest_.read(at, out);
  }

 private:
  const GuestReader& guest_;
};

std::size_t check_mappings(const GuestInput& guest, const ProcessLayout& layout, GuestVirt mm) {
  const auto mappings = list_file_mappings(guest, layout, mm);
  GuestVirt reached(0);
  for (const FileMapping& mapping : mappings) {
    CHECK(reached <= mapping.begin && mapping.begin < mapping.end);
    CHECK(mapping.end.raw() <= std::uint64_t{1} << 56);
    reached = mapping.end;
  }
  for (const FileMapping& mapping :
       std::span(mappings).first(std::min<std::size_t>(mappings.size(), 64))) {
    const std::string name = file_name(guest, layout, mapping.file);
    CHECK(name.size() <= 255 && is_printable(name));
  }
  return mappings.size();
}

std::size_t check_uses(const GuestInput& guest) {
  static const auto map = [] {
    TypeGraph types;
    CHECK(Btf::read(fakes::process_types().blob(), nullptr, types).has_value());
    return ReverseMap::from(types);
  }();
  guest.rewind();
  const auto uses = map->uses(guest, GuestVirt(kInode), 0, 8);
  if (!uses) return 0;
  for (const FileUse& use : *uses) {
    CHECK(use.begin < use.end && use.offset % 4096 == 0 && use.offset <= 8 * 4096);
  }
  return uses->size();
}

/// The kernel's memory and the process's are one, so that a piece may be either.
std::vector<std::string> names_of(const GuestInput& guest) {
  guest.rewind();
  UserNames::Access access;
  access.kernel = [&guest] { return std::make_unique<Through>(guest); };
  access.process = [&guest](GuestVirt root) -> std::unique_ptr<GuestReader> {
    return root.raw() == 0 ? nullptr : std::make_unique<Through>(guest);
  };
  UserNames names(std::move(access), fakes::process_layout(), GuestVirt(fakes::kInitTask),
                  std::chrono::hours(1), 1 << 20);
  std::vector<std::string> found;
  for (const std::uint64_t address : kAsked) {
    found.push_back(names.describe(kPid, GuestVirt(address)));
    CHECK(!found.back().empty() && found.back().size() < 8192 && is_printable(found.back()));
  }
  return found;
}

}  // namespace

std::size_t read_processes(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput guest(script);
  const ProcessLayout layout = fakes::process_layout();
  const auto found = find_process(guest, layout, GuestVirt(fakes::kInitTask), kPid);
  const std::size_t count = found ? check_mappings(guest, layout, found->mm) : 0;
  const auto names = names_of(guest);
  CHECK(names_of(guest) == names);
  return count + check_uses(guest);
}

namespace {

std::vector<std::string> symbols_of(const GuestInput& process) {
  process.rewind();
  std::vector<std::string> found;
  const auto elf = UserElf::read(process, GuestVirt(kLibrary));
  if (!elf) return found;
  CHECK(elf->size <= std::uint64_t{4} << 30);
  CHECK(elf->dynamic <= elf->size && elf->dynamic_size <= elf->size - elf->dynamic);
  const auto symbols = DynamicSymbols::read(process, *elf);
  CHECK(symbols.count() <= 1 << 18 && symbols.bytes() <= (48 << 20));
  for (std::uint64_t distance = 0; distance < 0x400; distance += 0x20) {
    const auto at = symbols.at(distance);
    if (!at) continue;
    CHECK(!at->name.empty() && at->name.size() <= 4096 && is_printable(at->name));
    CHECK(at->offset <= distance);
    found.emplace_back(at->name);
  }
  found.push_back(std::to_string(symbols.count()) + (symbols.whole() ? "" : "?"));
  return found;
}

}  // namespace

std::size_t read_user_elf(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput process(script);
  const auto symbols = symbols_of(process);
  CHECK(symbols_of(process) == symbols);
  return symbols.empty() ? 0 : symbols.size() - 1;
}

namespace {

using fakes::SmallLibrary;

const std::vector<SmallLibrary::Named> kNamed = {
    {"read", 0x100, 0x20},
    {"__read", 0x100, 0x20},
    {"environ", 0x140, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)},
    {"write", 0x180, 0x40, ELF64_ST_INFO(STB_WEAK, STT_GNU_IFUNC)},
    {"inner", 0x190, 8},
    {"malloc", 0, 0, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0}};

std::vector<std::byte> library(const SmallLibrary& form) {
  fakes::PagedGuest process;
  form.map(process, kLibrary, kNamed);
  return write_guest(pieces_of(process.pages()));
}

/// A tree of three mappings, as fakes::process_types() describes it.
void put_uses(fakes::PagedGuest& guest) {
  const auto area = [](std::uint64_t n) { return kInode + 0x100 * (n + 1); };
  guest.put(kInode + 0x30, kInode + 0x80);
  guest.put(kInode + 0x80 + 0x20, area(1) + 40);
  for (std::uint64_t n = 0; n < 3; ++n) {
    guest.put(area(n), kLibrary + (n << 20));
    guest.put(area(n) + 8, kLibrary + (n << 20) + 0x2000);
    guest.put(area(n) + 16, n * 2);
    guest.put(area(n) + 40 + 24, n == 0 ? std::uint64_t{1} : std::uint64_t{5});
  }
  guest.put(area(1) + 40 + 8, area(2) + 40);
  guest.put(area(1) + 40 + 16, area(0) + 40);
}

std::vector<std::byte> a_process(bool with_levels) {
  fakes::PagedGuest guest;
  fakes::ProcessWriter write(guest);
  SmallLibrary program;
  program.linked_at = kProgram;
  program.build_id = "program";
  program.map(guest, kProgram, {});
  SmallLibrary().map(guest, kLibrary, kNamed);
  const std::uint64_t file = write.file("a.out"), lib = write.file("lib.so");
  std::uint64_t root = 0;
  if (with_levels) {
    const auto area = [&](std::uint64_t begin, std::uint64_t page, std::uint64_t of) {
      return write.area(begin, begin + 0x1000, page, of);
    };
    const auto low = write.node(1, {{kProgram - 1, 0},
                                    {kProgram + 0xfff, area(kProgram, 0, file)},
                                    {kProgram + 0x1fff, area(kProgram + 0x1000, 1, file)},
                                    {0, 0}});
    const auto high =
        write.node(1, {{kLibrary - 1, 0}, {kLibrary + 0xfff, area(kLibrary, 0, lib)}, {0, 0}});
    const auto inner = write.node(2, {{kProgram + 0xffff, low}, {0, 0}});
    root = fakes::ProcessWriter::as_root(write.node(3, {{kProgram + 0xf'ffff, inner}, {0, high}}));
  } else {
    root = write.small_tree({{0x9000, 0xa000, 0, 0},
                             {kProgram, kProgram + 0x1000, 0, file},
                             {kProgram + 0x1000, kProgram + 0x3000, 1, file},
                             {kProgram + 0x3000, kProgram + 0x4000, 0, 0},
                             {kLibrary, kLibrary + 0x4000, 0, lib},
                             {kLibrary + 0x8000, kLibrary + 0x9000, 0, lib}});
  }
  write.task(1, write.memory(0, 0));
  write.task(2, 0);
  write.task(kPid, write.memory(root, 1, 0x9000));
  put_uses(guest);
  return write_guest(pieces_of(guest.pages()));
}

}  // namespace

Inputs process_inputs() {
  return {a_process(false), a_process(true)};
}

Inputs user_elf_inputs() {
  SmallLibrary plain, sysv, elsewhere;
  sysv.gnu_hash = false;
  sysv.relocated = false;
  elsewhere.linked_at = kProgram;
  return {library(plain), library(sysv), library(elsewhere)};
}

}  // namespace ringside::fuzz
