#include <algorithm>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/types/btf.h"
#include "vmm/linux/types/variable_types.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::uint32_t kMostSpelled = 512;
constexpr std::size_t kLongestName = 512;  // KSYM_NAME_LEN

/// Every id in the graph is one of its types; names are bounded and printable.
void check_ids(const TypeGraph& graph) {
  const auto valid = [&](TypeId id) { return id.value < graph.size(); };
  const auto named = [](std::string_view name) {
    return name.size() <= kLongestName && printable(name) == name;
  };
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    const TypeId id{n};
    const Type& type = graph[id];
    CHECK(valid(type.target) && valid(graph.resolve(id)) && named(type.name));
    switch (type.kind) {
      case TypeKind::Struct:
      case TypeKind::Union:
        for (const Member& member : graph.members(id))
          CHECK(valid(member.type) && named(member.name));
        break;
      case TypeKind::Function:
        for (const Parameter& parameter : graph.parameters(id))
          CHECK(valid(parameter.type) && named(parameter.name));
        break;
      case TypeKind::Enum: (void)graph.enumerators(id).size(); break;
      default: break;
    }
  }
}

/// Everything that is asked by name or printed, of the types that were added last.
void ask(TypeGraph& graph) {
  const auto count = static_cast<std::uint32_t>(graph.size());
  for (std::uint32_t n = count - std::min(count, kMostSpelled); n < count; ++n) {
    const TypeId id{n};
    (void)graph.to_string(id);
    (void)graph.size_of(id);
    (void)graph.find_member(id, "next");
    for (const Enumerator& enumerator : graph.enumerators(id)) {
      (void)graph.find_enumerator(enumerator.name);
    }
  }
  (void)read_layout(graph);
  (void)ModuleLayout::from(graph);
  (void)ProcessLayout::from(graph);
  const fakes::SparseGuest nothing;
  for (const auto name : {"init_task", "linux_banner", "jiffies", "modules"}) {
    const auto type = variable_type(graph, name, nothing, GuestVirt(0));
    CHECK(!type || type->value < graph.size());
  }
}

}  // namespace

std::size_t read_btf(std::span<const std::byte> input) {
  FuzzScript script(input);
  const auto of_kernel = script.take_bytes(script.take<std::uint32_t>());
  const auto of_module = script.take_bytes(input.size());
  TypeGraph graph;
  const std::size_t built_in = graph.size();
  const auto base = Btf::read(of_kernel, nullptr, graph);
  CHECK(base || graph.size() == built_in);
  const std::size_t before = graph.size();
  const auto split = Btf::read(of_module, base ? &*base : nullptr, graph);
  CHECK(split || graph.size() == before);
  check_ids(graph);
  ask(graph);
  for (const auto* btf : {&base, &split}) {
    const auto prototype = *btf ? (*btf)->prototype("vfs_read") : std::nullopt;
    CHECK(!prototype || graph[*prototype].kind == TypeKind::Function);
  }

  TypeGraph again;
  CHECK(Btf::read(of_kernel, nullptr, again).has_value() == base.has_value());
  CHECK(again.size() == before);
  return graph.size() - built_in;
}

namespace {

struct BtfKind {
  static constexpr unsigned kPointer = 2, kArray = 3, kUnion = 5, kEnum = 6, kForward = 7,
                            kTypedef = 8, kVolatile = 9, kConst = 10, kRestrict = 11,
                            kFunction = 12, kPrototype = 13, kVariable = 14, kSection = 15,
                            kFloat = 16, kDeclTag = 17, kTypeTag = 18, kEnum64 = 19;
};

fakes::BtfWriter kernel_types() {
  using Kind = BtfKind;
  fakes::BtfWriter btf;
  const auto number = btf.integer("int", 4, true);
  const auto word = btf.integer("long unsigned int", 8, false);
  const auto letter = btf.integer("char", 1, true);
  const auto text = btf.type(Kind::kArray, "", 0);
  btf.word(letter).word(word).word(56);
  const auto pointer = btf.type(Kind::kPointer, "", 0);
  const auto list = btf.structure("list_head", 16, {{"next", pointer, 0}, {"prev", pointer, 64}});
  const auto tables = btf.structure(
      "mod_kallsyms", 32, {{"symtab", word, 0}, {"num_symtab", number, 64}, {"strtab", word, 128}});
  const auto layout = btf.structure("module_layout", 16, {{"base", word, 0}, {"size", number, 64}});
  (void)tables;
  btf.structure("module", 160,
                {{"state", number, 0},
                 {"list", list, 64},
                 {"name", text, 192},
                 {"kallsyms", pointer, 640},
                 {"core_layout", layout, 704}});
  const auto inner = btf.structure("", 8, {{"a", number, 0}, {"b", number, 32}}, false, 5);
  btf.structure("bits", 8, {{"low", number, 3U << 24}, {"", inner, 0}}, true);
  btf.type(Kind::kForward, "unknown", 0);
  const auto alias = btf.type(Kind::kTypedef, "u64", word);
  btf.type(Kind::kConst, "", btf.type(Kind::kVolatile, "", btf.type(Kind::kRestrict, "", alias)));
  btf.type(Kind::kEnum, "system_states", 4, 2);
  btf.word(btf.string("SYSTEM_BOOTING")).word(0).word(btf.string("SYSTEM_RUNNING")).word(3);
  btf.type(Kind::kEnum64, "large", 8, 1, true);
  btf.word(btf.string("LARGE")).word(1).word(1);
  const auto prototype = btf.type(Kind::kPrototype, "", number, 2);
  btf.word(btf.string("file")).word(pointer).word(0).word(0);
  btf.type(Kind::kFunction, "vfs_read", prototype, 1);
  const auto variable = btf.type(Kind::kVariable, "jiffies", word);
  btf.word(0);
  btf.type(Kind::kSection, ".data..percpu", 64, 1);
  btf.word(variable).word(0).word(8);
  btf.type(Kind::kFloat, "double", 8);
  btf.type(Kind::kDeclTag, "user", alias);
  btf.word(~0U);
  btf.type(Kind::kPointer, "", btf.type(Kind::kTypeTag, "rcu", list));
  return btf;
}

std::vector<std::byte> both(const std::vector<std::byte>& kernel,
                            const std::vector<std::byte>& module) {
  ScriptWriter input;
  input.put(static_cast<std::uint32_t>(kernel.size()));
  for (const auto* blob : {&kernel, &module}) {
    for (const std::byte byte : *blob) input.put(byte);
  }
  return input.bytes();
}

}  // namespace

Inputs btf_inputs() {
  const fakes::BtfWriter kernel = kernel_types();
  fakes::BtfWriter module(kernel.type_count(), kernel.string_bytes());
  const auto own = module.structure("ext4_inode", 12, {{"first", 1, 0}, {"second", 2, 32}});
  const auto prototype = module.type(BtfKind::kPrototype, "", own, 1);
  module.word(module.string("inode")).word(own);
  module.type(BtfKind::kFunction, "ext4_sync_file", prototype);
  return {both(kernel.blob(), module.blob()), both(kernel.blob(), {}),
          both(fakes::BtfWriter().blob(), {})};
}

}  // namespace ringside::fuzz
