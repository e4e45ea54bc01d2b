// The DWARF of a file: addresses of functions, then the sizes of its sections, then their bytes.
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/script.h"
#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/base/check.h"
#include "vmm/linux/processes/dwarf_types.h"
#include "vmm/linux/processes/elf_file_for_tests.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::array<std::string_view, 9> kSections = {
    ".debug_info",        ".debug_abbrev", ".debug_str",      ".debug_line_str", ".debug_addr",
    ".debug_str_offsets", ".debug_ranges", ".debug_rnglists", ".debug_types"};
constexpr std::uint64_t kMost = 1 << 20;

/// An ELF file with these sections.
std::vector<std::byte> file_with(std::span<const std::span<const std::byte>> sections) {
  Elf64_Ehdr header = arch::elf_header(ET_DYN);
  std::vector<std::byte> file(sizeof header);
  const auto append = [&file](std::span<const std::byte> more) {
    const std::uint64_t at = file.size();
    file.insert(file.end(), more.begin(), more.end());
    return at;
  };
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  for (std::size_t n = 0; n < sections.size(); ++n) {
    Elf64_Shdr& each = headers.emplace_back();
    each.sh_name = static_cast<Elf64_Word>(names.size());
    each.sh_type = SHT_PROGBITS;
    each.sh_offset = append(sections[n]);
    each.sh_size = sections[n].size();
    names.append(kSections[n]) += '\0';
  }
  Elf64_Shdr& last = headers.emplace_back();
  last.sh_type = SHT_STRTAB;
  last.sh_offset = append(std::as_bytes(std::span(names)));
  last.sh_size = names.size();
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  header.e_shoff = append(std::as_bytes(std::span(headers)));
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

void check_type(const TypeGraph& graph, TypeId id) {
  CHECK(id.value < graph.size());
  (void)graph.to_string(id);
  (void)graph.find_member(graph.resolve(graph[graph.resolve(id)].target), "none");
  for (const Member& each : graph.members(id)) {
    CHECK(each.type.value < graph.size());
    const std::uint64_t bits = each.bit_width != 0 ? each.bit_width : graph.size_of(each.type) * 8;
    CHECK(each.bit_offset + bits <= graph[id].size * 8);
  }
}

std::size_t check_function(DwarfTypes& types, std::uint64_t address, TypeGraph& graph) {
  const auto function = types.function_at(address, "", graph);
  if (!function) return 0;
  CHECK(function->types.size() == function->names.size());
  CHECK(function->types.size() == function->places.size());
  check_type(graph, function->result);
  for (const TypeId each : function->types) check_type(graph, each);
  return 1;
}

}  // namespace

std::size_t read_dwarf(std::span<const std::byte> input) {
  FuzzScript script(input);
  std::vector<std::uint64_t> addresses(script.take<std::uint8_t>());
  for (std::uint64_t& each : addresses) each = script.take<std::uint64_t>();
  const bool is_its_own_alternative = script.take<std::uint8_t>() % 2 == 1;
  std::array<std::uint32_t, kSections.size()> sizes;
  for (std::uint32_t& each : sizes) each = script.take<std::uint32_t>();
  std::array<std::span<const std::byte>, kSections.size()> sections;
  for (std::size_t n = 0; n < sizes.size(); ++n) sections[n] = script.take_bytes(sizes[n]);
  const fakes::MemoryFile bytes(file_with(sections));
  const auto elf = FileElf::read(bytes);
  CHECK(elf.has_value());
  const DwarfTypes::File file{bytes, *elf};
  auto types = DwarfTypes::read(file, kMost, is_its_own_alternative ? &file : nullptr);
  if (!types) return 0;
  TypeGraph graph;
  std::size_t found = 0;
  for (const std::uint64_t each : addresses) found += check_function(*types, each, graph);
  for (std::uint32_t n = 0; n < graph.size(); ++n) check_type(graph, TypeId{n});
  return found;
}

/// Of programs that this build's compiler made.
Inputs dwarf_inputs() {
  Inputs inputs;
  for (const char* const name : {"c4", "c5", "cc_units"}) {
    std::ifstream stream(std::string(DWARF_SAMPLES "/libdwarf_sample_") + name + ".so",
                         std::ios::binary);
    const std::string text{std::istreambuf_iterator(stream), {}};
    const auto view = std::as_bytes(std::span(text));
    const fakes::MemoryFile bytes(std::vector<std::byte>(view.begin(), view.end()));
    const auto elf = FileElf::read(bytes);
    CHECK(elf.has_value());
    std::vector<std::uint64_t> addresses;
    const auto tables = elf->symbol_tables();
    for (const Elf64_Sym& each : FileSymbols::read(bytes, *elf, *tables.back()).symbols) {
      if (ELF64_ST_TYPE(each.st_info) == STT_FUNC && each.st_value != 0) {
        addresses.push_back(each.st_value);
      }
    }
    ScriptWriter writer;
    writer.put(static_cast<std::uint8_t>(addresses.size()));
    for (const std::uint64_t each : addresses) writer.put(each);
    writer.put(static_cast<std::uint8_t>(inputs.size()));  // 1: its own alternative
    std::vector<std::byte> contents;
    for (const std::string_view section : kSections) {
      const Elf64_Shdr* const header = elf->section(section);
      writer.put(header == nullptr ? 0U : static_cast<std::uint32_t>(header->sh_size));
      if (header == nullptr) continue;
      const auto part = view.subspan(header->sh_offset, header->sh_size);
      contents.insert(contents.end(), part.begin(), part.end());
    }
    std::vector<std::byte> input = writer.bytes();
    input.insert(input.end(), contents.begin(), contents.end());
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace ringside::fuzz
