// Texts of types, and binding without a compiler. dif/d/late_binding_test.cc tests compiled
// programs that are bound.
#include "dif/bind/bind.h"

#include <gtest/gtest.h>

#include "dif/bind/c_types.h"
#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

/// Types of vmlinux and of the module net, both of which have a struct sock.
class Modules final : public KernelNames {
 public:
  explicit Modules(bool has_net) : has_net_(has_net) {
    const TypeId integer = graph.find("int").value_or(TypeId{});
    const Member members[] = {{"port", integer, 64, 0}};
    first_ = graph.size();
    sock = graph.add_struct(TypeKind::Struct, "sock", 16, members);
    graph.index(sock);
    net_ = graph.size();
    const Member own[] = {{"next", integer, 32, 0}};
    peer = graph.add_struct(TypeKind::Struct, "peer", 8, own);
    graph.index(peer);
  }
  const TypeGraph& kernel_types() override { return graph; }
  std::string type_module(TypeId id) override {
    if (id.value < first_) return "";
    return id.value >= net_ && has_net_ ? "net" : "vmlinux";
  }
  bool has_module(std::string_view name) override {
    return name == "vmlinux" || (has_net_ && name == "net");
  }
  std::optional<KernelVariable> kernel_variable(std::string_view module,
                                                std::string_view name) override {
    if (name != "seed" || module != (has_net_ ? "net" : "vmlinux")) return std::nullopt;
    return KernelVariable{std::string(module), GuestVirt(0xffff'8000'0000'1000), std::nullopt};
  }
  Argument argument(const ProbeDescription&, unsigned) override { return {}; }

  TypeGraph graph;
  TypeId sock, peer;

 private:
  const bool has_net_;
  std::size_t first_ = 0, net_ = 0;
};

std::string bound(KernelNames& kernel, KernelName name) {
  Program program;
  program.kernel_names.push_back(std::move(name));
  Difo object;
  object.integers = {1};
  object.relocations = {{Relocation::Place::Integer, 0, 0}};
  Clause clause;
  clause.predicate = object;
  program.clauses.push_back(clause);
  const auto made = bind(program, kernel);
  if (!made) return made.error().message;
  return std::to_string(made->clauses[0].predicate->integers[0]);
}

KernelName member(std::string module, std::string type, std::string path) {
  return {.kind = KernelName::Kind::Member,
          .module = std::move(module),
          .name = std::move(type),
          .path = std::move(path)};
}

TEST(Bind, TypesAreFoundInTheirModuleOrBuiltIn) {
  Modules loaded(true), built_in(false);
  EXPECT_EQ(bound(loaded, member("net", "struct peer", "next")), "4");
  EXPECT_EQ(bound(built_in, member("net", "struct peer", "next")), "4");
  EXPECT_EQ(bound(loaded, member("vmlinux", "struct sock", "port")), "8");
  EXPECT_EQ(bound(built_in, member("net", "struct other", "x")),
            "this kernel has no struct other of the module net");
}

TEST(Bind, ATypeOfAnotherModuleIsNotTaken) {
  Modules loaded(true);
  EXPECT_EQ(bound(loaded, member("net", "struct sock", "port")),
            "struct sock is vmlinux's in this kernel and was net's where the program was compiled: "
            "compile it again here");
  EXPECT_EQ(
      bound(loaded, member("vmlinux", "int", "port")),
      "int is D's in this kernel and was vmlinux's where the program was compiled: compile it "
      "again here");
}

TEST(Bind, SymbolsOfModulesMayBeBuiltIn) {
  Modules loaded(true), built_in(false);
  const KernelName seed{.kind = KernelName::Kind::Symbol, .module = "net", .name = "seed"};
  EXPECT_EQ(bound(loaded, seed), std::to_string(0xffff'8000'0000'1000));
  EXPECT_EQ(bound(built_in, seed), std::to_string(0xffff'8000'0000'1000));
  KernelName other = seed;
  other.name = "none";
  EXPECT_EQ(bound(loaded, other), "this kernel has no symbol net`none");
  other.name = "seed";
  other.type = "int";
  EXPECT_EQ(bound(loaded, other),
            "net`seed is of unknown type here and int where the program was compiled: compile it "
            "again here");
}

TEST(Bind, AProgramWithoutNamesIsCopied) {
  Modules kernel(false);
  const Program source = testing::count_by_execname();
  const auto made = bind(source, kernel);
  ASSERT_TRUE(made);
  EXPECT_TRUE(*made == source);
}

TEST(TypeText, SaysWhatCodeReliesOn) {
  TypeGraph graph;
  const auto type = [&](std::string_view name) { return graph.find(name).value_or(TypeId{}); };
  const auto add = [&](Type made) { return graph.add(std::move(made)); };
  EXPECT_EQ(type_text(graph, type("size_t")), "unsigned long");
  EXPECT_EQ(type_text(graph, type("pid_t")), "int");
  EXPECT_EQ(
      type_text(graph, graph.pointer_to(add({.kind = TypeKind::Const, .target = type("char")}))),
      "char *");
  EXPECT_EQ(type_text(graph, graph.array_of(type("unsigned short"), 7)), "unsigned short []");
  const TypeId file = graph.add_struct(TypeKind::Struct, "file", 8, {});
  EXPECT_EQ(type_text(graph, graph.pointer_to(graph.pointer_to(file))), "struct file * *");
  const TypeId declared = add({.kind = TypeKind::Forward, .name = "file"});
  EXPECT_EQ(type_text(graph, declared), type_text(graph, file));
  const TypeId nameless = graph.add_struct(TypeKind::Union, "", 8, {});
  EXPECT_EQ(type_text(graph, nameless), "union {...}");
  EXPECT_EQ(
      type_text(graph, add({.kind = TypeKind::Typedef, .name = "pair_t", .target = nameless})),
      "pair_t");
  const TypeId unsigned_char = add({.kind = TypeKind::Integer, .name = "char", .size = 1});
  EXPECT_EQ(type_text(graph, unsigned_char), "unsigned char");
  EXPECT_EQ(type_text(graph, graph.array_of(unsigned_char, 16)), "char []");
  EXPECT_EQ(type_text(graph, graph.pointer_to(type("unsigned char"))), "unsigned char *");
  const TypeId state = graph.add_enum("state", 4, false, {});
  EXPECT_EQ(type_text(graph, state), "unsigned enum int");
}

TEST(TypeText, EndsWhereHostileTypesDoNot) {
  TypeGraph graph;
  const TypeId loop = graph.add({.kind = TypeKind::Typedef, .name = "loop"});
  graph.replace(loop, {.kind = TypeKind::Typedef, .name = "loop", .target = loop});
  EXPECT_EQ(type_text(graph, loop), "void");
  const TypeId ring = graph.add({.kind = TypeKind::Pointer});
  graph.replace(ring, {.kind = TypeKind::Pointer, .target = ring});
  EXPECT_LT(type_text(graph, ring).size(), 64u);
}

}  // namespace
}  // namespace ringside::dif
