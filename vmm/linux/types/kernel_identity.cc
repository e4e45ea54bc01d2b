#include "vmm/linux/types/kernel_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "vmm/base/bytes.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint64_t kMostNotes = 64 << 10;
constexpr std::uint32_t kNoteOfBuildId = 3;  // NT_GNU_BUILD_ID

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100'0000'01b3;
    }
  }
  void add(std::string_view text) {
    add(std::as_bytes(std::span(text)));
    add(std::as_bytes(std::span("\0", 1)));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf2'9ce4'8422'2325;
};

/// A copy of the bytes between two symbols of vmlinux; empty when they cannot all be read.
std::vector<std::byte> between(const SymbolTable& symbols, const GuestReader& memory,
                               std::string_view start, std::string_view stop, std::uint64_t most) {
  const Symbol* begin = symbols.find(start, "vmlinux");
  const Symbol* end = symbols.find(stop, "vmlinux");
  if (begin == nullptr || end == nullptr || end->address <= begin->address) return {};
  const std::uint64_t size = end->address.offset_from(begin->address);
  if (size > most) return {};
  std::vector<std::byte> bytes(size);
  if (!memory.read(begin->address, bytes)) return {};
  return bytes;
}

}  // namespace

std::string build_id_in(std::span<const std::byte> notes) {
  while (const auto note = take_elf_note(notes)) {
    const std::size_t size = note->description.size();
    if (note->type != kNoteOfBuildId || note->name != "GNU" || size == 0 || size > kMostBuildId) {
      continue;
    }
    std::string text;
    for (const std::byte byte : note->description) {
      text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    }
    return text;
  }
  return {};
}

namespace {

std::uint64_t hash_of_types(std::span<const std::byte> btf) {
  if (btf.empty()) return 0;
  Hash hash;
  hash.add(btf);
  return hash.value();
}

std::uint64_t module_types(Kernel& kernel, const GuestReader& memory, std::string_view module) {
  const SymbolTable& symbols = kernel.symbols();
  const auto layout = ModuleLayout::from(kernel.types());
  const Symbol* list = symbols.find("modules", "vmlinux");
  const Symbol* btf_list = symbols.find("btf_modules", "vmlinux");
  if (!layout || list == nullptr || btf_list == nullptr) return 0;
  const auto heads = list_modules(memory, *layout, list->address);
  if (!heads) return 0;
  const auto head = std::ranges::find(*heads, module, &ModuleHead::name);
  if (head == heads->end()) return 0;
  ModuleBudget budget;
  for (const ModuleBtf& btf : read_module_btf(memory, *layout, btf_list->address, budget)) {
    if (btf.module == head->address && btf.bytes) return hash_of_types(*btf.bytes);
  }
  return 0;
}

}  // namespace

std::string find_build_id(const SymbolTable& symbols, const GuestReader& memory) {
  return build_id_in(between(symbols, memory, "__start_notes", "__stop_notes", kMostNotes));
}

std::optional<KernelPartIdentity> identify(Kernel& kernel, const GuestReader& memory,
                                           std::string_view module) {
  const SymbolTable& symbols = kernel.symbols();
  const auto modules = symbols.modules();
  const auto found = std::ranges::find(modules, module, &Module::name);
  if (found == modules.end()) return std::nullopt;
  Hash names;
  for (const Symbol& symbol : symbols.symbols()) {
    if (symbol.module != found - modules.begin()) continue;
    names.add(symbol.name);
  }
  KernelPartIdentity identity{fmt::format("names-{:016x}", names.value()), 0};
  if (found != modules.begin()) {
    identity.types = module_types(kernel, memory, module);
    return identity;
  }
  identity.types =
      hash_of_types(between(symbols, memory, "__start_BTF", "__stop_BTF", kMaxBtfBytes));
  const std::string id = find_build_id(symbols, memory);
  if (!id.empty()) identity.build = id;
  return identity;
}

}  // namespace ringside::guest_linux
