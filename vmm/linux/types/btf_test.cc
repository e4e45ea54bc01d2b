#include "vmm/linux/types/btf.h"

#include <gtest/gtest.h>

#include <random>

#include "vmm/base/c_type.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/types/clang_btf_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::BtfWriter;

// BTF kinds, as include/uapi/linux/btf.h numbers them.
constexpr unsigned kPtr = 2, kArray = 3, kEnum = 6, kFwd = 7, kTypedef = 8, kConst = 10;
constexpr unsigned kFunc = 12, kFuncProto = 13, kVar = 14, kFloat = 16, kDeclTag = 17;
constexpr unsigned kDatasec = 15, kTypeTag = 18, kEnum64 = 19;

/// ssize_t vfs_read(struct file *file, char *buf, ...), and types of every kind around it.
BtfWriter kernel_like() {
  BtfWriter btf;
  const auto ulong_id = btf.integer("long unsigned int", 8, false);                          // 1
  const auto char_id = btf.integer("char", 1, true);                                         // 2
  const auto file = btf.structure("file", 16, {{"f_mode", 3, 0}, {"f_pos", ulong_id, 64}});  // 3!
  const auto file_pointer = btf.type(kPtr, "", file);
  const auto tag = btf.type(kTypeTag, "user", char_id);
  const auto buffer = btf.type(kPtr, "", tag);
  const auto ssize = btf.type(kTypedef, "kernel_ssize_t", ulong_id);
  const auto proto = btf.type(kFuncProto, "", ssize, 3);
  btf.word(btf.string("file")).word(file_pointer).word(btf.string("buf")).word(buffer);
  btf.word(0).word(0);
  btf.type(kFunc, "vfs_read", proto, 1);
  btf.type(kEnum, "system_states", 4, 2);
  btf.word(btf.string("SYSTEM_BOOTING")).word(0).word(btf.string("SYSTEM_RUNNING")).word(3);
  btf.type(kEnum64, "big", 8, 1, true);
  btf.word(btf.string("BIG")).word(0).word(0xffff'ffff);
  btf.type(kArray, "", 0);
  btf.word(char_id).word(ulong_id).word(16);
  btf.type(kVar, "runqueues", ulong_id);
  btf.word(1);
  btf.type(kFloat, "half", 2);
  btf.type(kDeclTag, "kfunc", proto);
  btf.word(0);
  btf.type(kFwd, "opaque", 0, 0, true);
  btf.structure("flags", 4, {{"low", ulong_id, 3U << 24}, {"high", ulong_id, 5U << 24 | 3}}, true);
  btf.structure("either", 8, {{"a", ulong_id, 0}, {"b", char_id, 0}}, false, 5);
  return btf;
}

TEST(Btf, VariablesHaveTheirTypesByName) {
  BtfWriter btf;
  const auto word = btf.integer("long unsigned int", 8, false);
  const auto rq = btf.structure("rq", 8, {{"cpu", word, 0}});
  const auto variable = [&](std::string_view name, std::uint32_t type) {
    const auto id = btf.type(kVar, name, type);
    btf.word(1);
    return id;
  };
  const auto jiffies = variable("total_swap_pages", word);
  const auto runqueues = variable("runqueues", rq);
  variable("twin", word);
  variable("twin", rq);
  variable("pair", rq);
  variable("pair", rq);
  variable("", rq);
  variable("lost", 4711);
  const auto section = [&](std::string_view name, std::vector<std::uint32_t> members) {
    btf.type(kDatasec, name, 64, static_cast<std::uint32_t>(members.size()));
    for (const std::uint32_t id : members) btf.word(id).word(0).word(8);
  };
  section(".data", {jiffies});
  section(".data..percpu", {runqueues, 0, 4711});
  TypeGraph graph;

  ASSERT_TRUE(Btf::read(btf.blob(), nullptr, graph));

  const auto spelled = [&](const std::string& key) {
    const auto type = graph.find(key);
    return type ? graph.to_string(*type) : "";
  };
  EXPECT_EQ(spelled(variable_key("total_swap_pages")), "unsigned long");
  EXPECT_EQ(spelled(percpu_variable_key("runqueues")), "struct rq");
  EXPECT_EQ(spelled(variable_key("runqueues")), "") << "its symbol is not its address";
  EXPECT_EQ(spelled(variable_key("twin")), "") << "one of two types";
  EXPECT_EQ(spelled(variable_key("pair")), "struct rq");
  EXPECT_EQ(spelled(variable_key("lost")), "");
  EXPECT_EQ(spelled(variable_key("")), "");
}

TEST(Btf, NamesAreBoundedAndDoNotSteerTheTerminal) {
  BtfWriter btf;
  btf.structure("a\x1b[2J\xff b", 4, {{std::string(100'000, 'm'), 1, 0}});
  btf.integer(std::string(100'000, 'n'), 4, true);
  TypeGraph graph;

  ASSERT_TRUE(Btf::read(btf.blob(), nullptr, graph));

  const auto found = graph.find(TypeKind::Struct, "a?[2J? b");
  ASSERT_TRUE(found);
  EXPECT_EQ(graph.members(*found)[0].name, std::string(512, 'm'));
  EXPECT_TRUE(graph.find(std::string(512, 'n')));
}

TEST(Btf, PrototypesKeepNamesAndTypes) {
  TypeGraph graph;

  const auto btf = Btf::read(kernel_like().blob(), nullptr, graph);

  ASSERT_TRUE(btf) << btf.error().message;
  const auto proto = btf->prototype("vfs_read");
  ASSERT_TRUE(proto);
  EXPECT_EQ(graph.to_string(*proto), "kernel_ssize_t (struct file *, char *, ...)");
  EXPECT_EQ(graph.parameters(*proto)[1].name, "buf");
  EXPECT_FALSE(btf->prototype("vfs_write"));
}

TEST(Btf, StructsUnionsAndBitFieldsKeepTheirLayout) {
  TypeGraph graph;
  ASSERT_TRUE(Btf::read(kernel_like().blob(), nullptr, graph));

  EXPECT_EQ(offset_of(graph, "file", {"f_pos"}), 8u);
  EXPECT_EQ(offset_of(graph, "file", {"nosuch"}), std::nullopt);
  const auto high = graph.find_member(*graph.find(TypeKind::Struct, "flags"), "high");
  ASSERT_TRUE(high);
  EXPECT_EQ(high->bit_offset, 3u);
  EXPECT_EQ(high->bit_width, 5u);
  EXPECT_EQ(offset_of(graph, "flags", {"high"}), std::nullopt) << "a bit-field has no byte offset";
  EXPECT_EQ(graph.members(*graph.find(TypeKind::Union, "either")).size(), 2u);
  EXPECT_EQ(graph[*graph.find(TypeKind::Union, "opaque")].kind, TypeKind::Forward);
}

TEST(Btf, EnumsGiveTheirConstants) {
  TypeGraph graph;
  ASSERT_TRUE(Btf::read(kernel_like().blob(), nullptr, graph));

  EXPECT_EQ(graph.find_enumerator("SYSTEM_RUNNING")->second, 3);
  EXPECT_EQ(graph.find_enumerator("BIG")->second, std::int64_t{0xffff'ffff} << 32);
}

TEST(Btf, IntegersOfCAreTheGraphsOwn) {
  TypeGraph graph;
  ASSERT_TRUE(Btf::read(kernel_like().blob(), nullptr, graph));

  const auto pos = graph.find_member(*graph.find(TypeKind::Struct, "file"), "f_pos");
  EXPECT_EQ(pos->type, *graph.find("unsigned long"));
}

TEST(Btf, TagsOfClangsLeaveEveryTypeItsId) {
  TypeGraph graph;

  const auto btf = Btf::read(std::as_bytes(std::span(fakes::kClangBtf)), nullptr, graph);

  ASSERT_TRUE(btf) << btf.error().message;
  const auto member = [&](std::string_view structure, std::string_view name) {
    const auto found = graph.find_member(*graph.find(TypeKind::Struct, structure), name);
    return found ? graph.to_string(found->type) : "none";
  };
  EXPECT_EQ(member("outer", "one"), "struct inner *");
  EXPECT_EQ(member("outer", "two"), "inner_t *");
  EXPECT_EQ(member("outer", "three"), "struct inner **");
  EXPECT_EQ(member("outer", "four"), "const struct inner *");
  EXPECT_EQ(member("outer", "five"), "struct ahead *");
  EXPECT_EQ(member("outer", "six"), "double");
  EXPECT_EQ(member("ahead", "back"), "struct outer *");
  EXPECT_EQ(member("ahead", "last"), "long");
  EXPECT_EQ(member("inner", "first"), "int");
  EXPECT_EQ(graph.to_string(*btf->prototype("function")), "long (struct outer *, struct inner *)");
}

/// A tag before and after its type, for every kind that can be tagged, and what follows.
TEST(Btf, ATagOfAnyTypeShiftsNoOther) {
  TypeGraph graph;
  BtfWriter btf;
  std::vector<std::pair<std::uint32_t, std::string>> tagged;
  const auto surround = [&](std::string_view spelled, auto&& define) {
    const auto before = btf.type(kTypeTag, "before", btf.type_count() + 2);
    const std::uint32_t target = define();
    const auto behind = btf.type(kTypeTag, "behind", target);
    const auto twice = btf.type(kTypeTag, "twice", behind);
    for (const std::uint32_t id : {before, target, behind, twice}) tagged.emplace_back(id, spelled);
  };
  surround("struct s", [&] { return btf.structure("s", 8, {}); });
  surround("union u", [&] { return btf.structure("u", 8, {}, false, 5); });
  surround("struct s *", [&] { return btf.type(kPtr, "", 2); });
  surround("named", [&] { return btf.type(kTypedef, "named", 2); });
  surround("const struct s", [&] { return btf.type(kConst, "", 2); });
  surround("enum e", [&] { return btf.type(kEnum, "e", 4); });
  surround("enum e64", [&] { return btf.type(kEnum64, "e64", 8); });
  surround("struct f", [&] { return btf.type(kFwd, "f", 0); });
  surround("half", [&] { return btf.type(kFloat, "half", 2); });
  surround("int", [&] { return btf.integer("int", 4, true); });
  surround("int_of_16", [&] { return btf.integer("int_of_16", 16, true); });
  btf.type(kDeclTag, "of a structure", 2);
  btf.word(0xffff'ffff);
  const auto proto = btf.type(kFuncProto, "", 2, static_cast<std::uint32_t>(tagged.size()));
  for (const auto& [id, spelled] : tagged) btf.word(btf.string("p")).word(id);
  btf.type(kFunc, "asks", proto);

  const auto read = Btf::read(btf.blob(), nullptr, graph);

  ASSERT_TRUE(read) << read.error().message;
  const auto parameters = graph.parameters(*read->prototype("asks"));
  ASSERT_EQ(parameters.size(), tagged.size());
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    EXPECT_EQ(graph.to_string(parameters[i].type), tagged[i].second) << "id " << tagged[i].first;
  }
}

TEST(Btf, AModulesTagsOfItsBasesTypesShiftNothing) {
  TypeGraph graph;
  const BtfWriter base = kernel_like();
  const auto vmlinux = Btf::read(base.blob(), nullptr, graph);
  ASSERT_TRUE(vmlinux);
  BtfWriter module(base.type_count(), base.string_bytes());
  const auto tag = module.type(kTypeTag, "rcu", 3);  // struct file of the base
  const auto pointer = module.type(kPtr, "", tag);
  const auto own = module.structure("own", 8, {{"filp", pointer, 0}});
  const auto proto = module.type(kFuncProto, "", module.type(kTypeTag, "user", own));
  module.type(kFunc, "lo_get", proto);

  const auto loop = Btf::read(module.blob(), &*vmlinux, graph);

  ASSERT_TRUE(loop) << loop.error().message;
  EXPECT_EQ(graph.to_string(*loop->prototype("lo_get")), "struct own (void)");
  const auto filp = graph.find_member(*graph.find(TypeKind::Struct, "own"), "filp");
  ASSERT_TRUE(filp);
  EXPECT_EQ(graph.to_string(filp->type), "struct file *");
}

TEST(Btf, ASplitBlobContinuesItsBase) {
  TypeGraph graph;
  const BtfWriter base = kernel_like();
  const auto vmlinux = Btf::read(base.blob(), nullptr, graph);
  ASSERT_TRUE(vmlinux);
  BtfWriter module(base.type_count(), base.string_bytes());
  const auto pointer = module.type(kPtr, "", 3);  // struct file of the base
  const auto proto = module.type(kFuncProto, "", 1, 1);
  module.word(module.string("filp")).word(pointer);
  module.type(kFunc, "lo_open", proto, 1);

  const auto loop = Btf::read(module.blob(), &*vmlinux, graph);

  ASSERT_TRUE(loop) << loop.error().message;
  const auto found = loop->prototype("lo_open");
  ASSERT_TRUE(found);
  EXPECT_EQ(graph.to_string(*found), "unsigned long (struct file *)");
  EXPECT_EQ(graph.parameters(*found)[0].name, "filp");
}

TEST(Btf, IdsAndStringsThatDoNotExistBecomeVoidAndNothing) {
  TypeGraph graph;
  BtfWriter btf;
  btf.structure("victim", 8, {{"m", 0xffff'fff0, 0}});
  const auto proto = btf.type(kFuncProto, "", 77777, 1);
  btf.word(0xffff'fff0).word(88888);
  btf.type(kFunc, "f", proto);
  btf.type(kFunc, "g", 99999);

  const auto read = Btf::read(btf.blob(), nullptr, graph);

  ASSERT_TRUE(read);
  EXPECT_EQ(graph.to_string(*read->prototype("f")), "void (void)");
  EXPECT_EQ(graph.parameters(*read->prototype("f"))[0].name, "");
  EXPECT_FALSE(read->prototype("g"));
  EXPECT_EQ(graph.find_member(*graph.find(TypeKind::Struct, "victim"), "m")->type, TypeId{0});
}

TEST(Btf, CyclesOfTagsAndTypedefsEnd) {
  TypeGraph graph;
  BtfWriter btf;
  btf.type(kTypeTag, "a", 2);
  btf.type(kTypeTag, "b", 1);
  btf.type(kTypedef, "loop_t", 4);
  btf.type(kConst, "", 3);

  ASSERT_TRUE(Btf::read(btf.blob(), nullptr, graph));

  EXPECT_EQ(graph.resolve(*graph.find("loop_t")), TypeId{0});
  EXPECT_EQ(graph.size_of(*graph.find("loop_t")), 0u);
}

TEST(Btf, RefusesATypeThatLeavesItsSectionAndLeavesTheGraphAlone) {
  TypeGraph graph;
  const std::size_t before = graph.size();
  BtfWriter btf;
  btf.integer("int", 4, true);
  btf.type(4, "huge", 8, 0xffff);  // 65,535 members that are not there

  const auto read = Btf::read(btf.blob(), nullptr, graph);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::Invalid);
  EXPECT_EQ(graph.size(), before);
}

TEST(Btf, RefusesWhatIsNoBtf) {
  TypeGraph graph;
  const auto refused = [&](const std::vector<std::byte>& blob) {
    return !Btf::read(blob, nullptr, graph);
  };
  auto blob = kernel_like().blob();
  auto unended = blob;
  unended.back() = std::byte{'x'};
  auto outside = blob;
  outside[12] = outside[13] = outside[14] = outside[15] = std::byte{0xff};

  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(std::vector<std::byte>(64)));
  EXPECT_TRUE(refused(unended)) << "the last string has no end";
  EXPECT_TRUE(refused(outside)) << "the type section leaves the blob";
}

TEST(Btf, CorruptedAnywhereNeverReadsOutsideTheBlob) {
  const auto blob = kernel_like().blob();
  std::mt19937 random(3);
  std::size_t questions = 0;

  for (int round = 0; round < 3000; ++round) {
    auto damaged = blob;
    for (unsigned i = 0; i <= random() % 6; ++i) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    if (round % 8 == 0) damaged.resize(random() % damaged.size());
    TypeGraph graph;
    const auto read = Btf::read(damaged, nullptr, graph);
    for (std::uint32_t id = 0; read && id < graph.size(); ++id) {
      questions += graph.to_string(TypeId{id}).size() + graph.size_of(TypeId{id});
      questions += graph.find_member(TypeId{id}, "f_pos").has_value();
    }
  }

  EXPECT_GT(questions, 0u);
}

}  // namespace
}  // namespace ringside::guest_linux
