// The reader of DWARF, on files of this build's compilers. They know where their members and
// arguments are: dwarf_sample_for_tests.h.
#include "vmm/linux/processes/dwarf_types.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "vmm/linux/processes/dwarf_image.h"
#include "vmm/linux/processes/dwarf_sample_for_tests.h"
#include "vmm/linux/processes/elf_file_for_tests.h"
#include "vmm/linux/processes/host_files.h"

namespace ringside::guest_linux {
namespace {

/// A library of this build, in our process and as a file.
class Sample {
 public:
  explicit Sample(const std::string& name)
      : library_(dlopen(path(name).c_str(), RTLD_NOW), &dlclose), file_(open(path(name))) {
    if (library_ == nullptr) ADD_FAILURE() << dlerror();
    elf_ = FileElf::read(file_);
    types_ =
        std::make_unique<DwarfTypes>(*DwarfTypes::read({file_, *elf_}, DwarfTypes::kMostOfHost));
  }

  static std::string path(const std::string& name) {
    return std::string(DWARF_SAMPLES) + "/" + name;
  }
  static HostFile open(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    EXPECT_EQ(fstat(fd.get(), &status), 0) << path;
    return {std::move(fd), static_cast<std::uint64_t>(status.st_size), path};
  }
  template <class T>
  T* symbol(const char* name) const {
    // SAFETY: the library's header declares it so.
    return reinterpret_cast<T*>(dlsym(library_.get(), name));
  }
  /// At which address it is linked.
  std::uint64_t link_address(const void* function) const {
    link_map* map = nullptr;
    EXPECT_EQ(dlinfo(library_.get(), RTLD_DI_LINKMAP, &map), 0);
    return reinterpret_cast<std::uint64_t>(function) - map->l_addr;
  }
  Result<FunctionTypes> types_of(const char* function) {
    return types_->function_at(link_address(symbol<void>(function)), function, graph);
  }

  TypeGraph graph;

 private:
  std::unique_ptr<void, int (*)(void*)> library_;
  HostFile file_;
  std::optional<FileElf> elf_;
  std::unique_ptr<DwarfTypes> types_;
};

/// A member by its path: "packed.inside".
std::optional<FoundMember> find_path(const TypeGraph& graph, TypeId type, std::string path) {
  const std::size_t dot = path.find('.');
  auto found = graph.find_member(type, path.substr(0, dot));
  if (dot == path.npos || !found) return found;
  auto inner = find_path(graph, found->type, path.substr(dot + 1));
  if (inner) inner->bit_offset += found->bit_offset;
  return inner;
}

void compare_layout(Sample& sample, const sample_layout& layout) {
  SCOPED_TRACE(layout.function);
  const auto function = sample.types_of(layout.function);
  ASSERT_TRUE(function) << function.error().message;
  const Type& pointer = sample.graph[sample.graph.resolve(function->types.at(0))];
  ASSERT_EQ(pointer.kind, TypeKind::Pointer);
  EXPECT_TRUE(sample.graph.is_userland(pointer.target));
  EXPECT_EQ(sample.graph.size_of(pointer.target), layout.size);
  for (const sample_member* each = layout.members; each->name != nullptr; ++each) {
    SCOPED_TRACE(each->name);
    const auto found = find_path(sample.graph, pointer.target, each->name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->bit_offset, each->bit_offset);
    const std::uint64_t bits =
        found->bit_width != 0 ? found->bit_width : sample.graph.size_of(found->type) * 8;
    EXPECT_EQ(bits, each->bits);
  }
}

void compare_call(Sample& sample, const sample_call& call, const unsigned long* saved) {
  SCOPED_TRACE(call.name);
  const auto function = sample.types_of(call.name);
  ASSERT_TRUE(function) << function.error().message;
  const auto count = static_cast<std::size_t>(call.count);
  ASSERT_EQ(function->types.size(), count);
  ASSERT_EQ(function->places.size(), count);
  call.run();
  for (std::size_t n = 0; n < count; ++n) {
    SCOPED_TRACE(function->names.at(n));
    const auto place = function->places[n];
    ASSERT_EQ(place.has_value(), call.arguments[n].has_place != 0);
    if (!place) continue;
    const std::uint64_t size = sample.graph.size_of(function->types[n]);
    ASSERT_GT(size, 0u);
    ASSERT_LT(*place, std::size_t{kSavedWords});
    std::uint64_t value = 0;
    std::memcpy(&value, &saved[*place], size);
    if (call.arguments[n].value == kAnyValue) continue;
    EXPECT_EQ(value, call.arguments[n].value);
  }
}

class DwarfOfCompilers : public testing::TestWithParam<const char*> {};

TEST_P(DwarfOfCompilers, HasMembersWhereTheProgramHasThem) {
  Sample sample(GetParam());
  auto* const layouts = sample.symbol<const sample_layout*()>("sample_layouts");
  ASSERT_NE(layouts, nullptr);

  int compared = 0;
  for (const sample_layout* each = layouts(); each->function != nullptr; ++each, ++compared) {
    compare_layout(sample, *each);
  }

  EXPECT_GT(compared, 0);
}

TEST_P(DwarfOfCompilers, FindsArgumentsWhereTheProgramPassesThem) {
  Sample sample(GetParam());
  auto* const calls = sample.symbol<const sample_call*()>("sample_calls");
  auto* const saved = sample.symbol<const unsigned long*()>("sample_saved_words");
  ASSERT_NE(calls, nullptr);
  ASSERT_NE(saved, nullptr);

  int compared = 0;
  for (const sample_call* each = calls(); each->name != nullptr; ++each, ++compared) {
    compare_call(sample, *each, saved());
  }

  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Samples, DwarfOfCompilers,
                         testing::Values("libdwarf_sample_c4.so", "libdwarf_sample_c5.so",
                                         "libdwarf_sample_packed.so", "libdwarf_sample_cc4.so",
                                         "libdwarf_sample_cc5.so", "libdwarf_sample_cc_units.so"));

class DwarfOfC : public testing::TestWithParam<const char*> {};

TEST_P(DwarfOfC, SpellsTypesAsTheSourceDoes) {
  Sample sample(GetParam());
  const auto function = sample.types_of("layout_of_everything");
  ASSERT_TRUE(function);
  const TypeGraph& graph = sample.graph;
  const TypeId everything = graph[function->types.at(0)].target;
  const auto spelled = [&](const char* member) {
    const auto found = graph.find_member(everything, member);
    return found ? graph.to_string(found->type) : "none";
  };

  EXPECT_EQ(function->result, *graph.find("int"));
  EXPECT_EQ(function->names.at(0), "it");
  EXPECT_EQ(graph.to_string(function->types.at(0)), "struct everything *");
  EXPECT_EQ(spelled("character"), "char");
  EXPECT_EQ(spelled("word"), "word_t");
  EXPECT_EQ(spelled("matrix"), "int [3][5]");
  EXPECT_EQ(spelled("unknown"), "struct unknown *");
  EXPECT_EQ(spelled("alone"), "int *restrict");
  EXPECT_EQ(spelled("counter"), "int");
  EXPECT_EQ(spelled("flexible"), "char [0]");
  EXPECT_EQ(graph.to_string(graph.find_member(everything, "huge")->type), "__int128");
  const auto compare = graph.find_member(everything, "compare");
  EXPECT_EQ(graph.to_string(graph[compare->type].target),
            "int (*)(const void *, const void *, ...)");
}

TEST_P(DwarfOfC, ReadsConstantsOfEnumerations) {
  Sample sample(GetParam());
  const auto function = sample.types_of("scalars");
  ASSERT_TRUE(function);
  const auto constants = sample.graph.enumerators(function->types.at(5));

  ASSERT_EQ(constants.size(), 3u);
  EXPECT_EQ(constants[0].name, "Red");
  EXPECT_EQ(constants[0].value, -1);
  EXPECT_EQ(constants[2].value, 200);
  EXPECT_TRUE(sample.graph[function->types.at(5)].is_signed);
}

TEST_P(DwarfOfC, LeavesTheIndexOfNamesAlone) {
  Sample sample(GetParam());
  ASSERT_TRUE(sample.types_of("layout_of_everything"));

  EXPECT_FALSE(sample.graph.find(TypeKind::Struct, "everything"));
  EXPECT_FALSE(sample.graph.find("word_t"));
  EXPECT_FALSE(sample.graph.find_enumerator("Red"));
}

TEST_P(DwarfOfC, ReadsEachTypeOnce) {
  Sample sample(GetParam());
  const auto first = sample.types_of("layout_of_everything");
  ASSERT_TRUE(first);
  const std::size_t types = sample.graph.size();
  const auto second = sample.types_of("layout_of_everything");
  ASSERT_TRUE(second);

  EXPECT_EQ(first->types, second->types);
  EXPECT_EQ(sample.graph.size(), types);
}

INSTANTIATE_TEST_SUITE_P(Samples, DwarfOfC,
                         testing::Values("libdwarf_sample_c4.so", "libdwarf_sample_c5.so",
                                         "libdwarf_sample_packed.so"));

/// Bytes of a file, which tests damage.
std::vector<std::byte> bytes_of_sample(const std::string& name) {
  const HostFile file = Sample::open(Sample::path(name));
  std::vector<std::byte> bytes(file.size());
  EXPECT_EQ(file.read(0, bytes), bytes.size());
  return bytes;
}

std::string problem_with(const FileBytes& file, std::uint64_t most = DwarfTypes::kMostOfGuest) {
  const auto elf = FileElf::read(file);
  if (!elf) return "no ELF file";
  const auto types = DwarfTypes::read({file, *elf}, most);
  return types ? "" : types.error().message;
}

TEST(DwarfTypes, AFileWithoutDwarfHasNoTypes) {
  EXPECT_EQ(problem_with(fakes::MemoryFile(fakes::ElfFile(0x1000, 0x1000))),
            "it has no DWARF (compile it with -g)");
}

TEST(DwarfTypes, RefusesMoreBytesThanItMayRead) {
  const fakes::MemoryFile file(bytes_of_sample("libdwarf_sample_packed.so"));

  EXPECT_EQ(problem_with(file, 1024), "its DWARF has more than 0 MiB");
}

TEST(DwarfTypes, NeedsAllOfItsSectionsInMemory) {
  auto bytes = bytes_of_sample("libdwarf_sample_c5.so");
  const fakes::MemoryFile whole(bytes);
  const auto elf = FileElf::read(whole);
  ASSERT_TRUE(elf);
  const Elf64_Shdr* const info = elf->section(".debug_info");
  ASSERT_NE(info, nullptr);

  class WithoutInfo final : public FileBytes {
   public:
    WithoutInfo(const FileBytes& whole, const Elf64_Shdr& missing)
        : whole_(whole), missing_(missing) {}
    std::uint64_t size() const override { return whole_.size(); }
    std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override {
      const std::uint64_t hole = missing_.sh_offset + missing_.sh_size / 2;
      if (offset > hole) return whole_.read(offset, out);
      return whole_.read(offset, out.first(std::min<std::uint64_t>(out.size(), hole - offset)));
    }

   private:
    const FileBytes& whole_;
    const Elf64_Shdr& missing_;
  };
  EXPECT_EQ(problem_with(WithoutInfo(whole, *info)), "only " + std::to_string(info->sh_size / 2) +
                                                         " of " + std::to_string(info->sh_size) +
                                                         " bytes of .debug_info are in memory");
}

#ifdef __clang__
TEST(DwarfTypes, RefusesAFunctionThatMayLackAnArgument) {
  const fakes::MemoryFile file(bytes_of_sample("libdwarf_sample_packed.so"));
  const auto elf = FileElf::read(file);
  ASSERT_TRUE(elf);
  const auto symbols = FileSymbols::read(file, *elf, *elf->symbol_tables().front());
  const auto found = std::ranges::find_if(symbols.symbols, [&](const Elf64_Sym& each) {
    return symbols.name_of(each) == "uses_second";
  });
  ASSERT_NE(found, symbols.symbols.end());
  auto types = DwarfTypes::read({file, *elf}, DwarfTypes::kMostOfHost);
  ASSERT_TRUE(types);
  TypeGraph graph;

  const auto function = types->function_at(found->st_value, "uses_second", graph);

  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::Unsupported);
}
#endif

TEST(DwarfTypes, TellsWhichFileHasTheTypesThatAreShared) {
  const fakes::MemoryFile file(bytes_of_sample("libdwarf_sample_c5.so"));
  const fakes::MemoryFile other(bytes_of_sample("libdwarf_sample_cc5.so"));

  const auto link = shared_types_link(file, *FileElf::read(file));
  ASSERT_TRUE(link);
  EXPECT_EQ(link->build_id, std::string("a build id\0", 11));
  EXPECT_FALSE(link->path.empty());
  EXPECT_FALSE(shared_types_link(other, *FileElf::read(other)));
}

TEST(DwarfTypes, AFileWithSharedTypesIsNoProgram) {
  auto bytes = bytes_of_sample("libdwarf_sample_c5.so");
  EXPECT_FALSE(FileElf::read_shared_types(fakes::MemoryFile(bytes)));
  const Elf64_Half type = ET_REL;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_type), &type, sizeof type);
  const fakes::MemoryFile shared(bytes);

  EXPECT_FALSE(FileElf::read(shared));
  const auto elf = FileElf::read_shared_types(shared);
  ASSERT_TRUE(elf);
  EXPECT_TRUE(DwarfTypes::read({shared, *elf}, DwarfTypes::kMostOfHost));
}

TEST(DwarfTypes, KnowsFunctionsByTheFirstAddressOnly) {
  Sample sample("libdwarf_sample_c5.so");
  const std::uint64_t address = sample.link_address(sample.symbol<void>("scalars"));
  const fakes::MemoryFile file(bytes_of_sample("libdwarf_sample_c5.so"));
  const auto elf = FileElf::read(file);
  auto types = DwarfTypes::read({file, *elf}, DwarfTypes::kMostOfHost);
  ASSERT_TRUE(types);

  EXPECT_TRUE(types->function_at(address, "scalars", sample.graph));
  const auto inside = types->function_at(address + 1, "scalars", sample.graph);
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.error().message, "DWARF has no function at its address");
  const auto changed = types->function_at(address, "scalars.constprop.0", sample.graph);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().message, "the compiler has changed its arguments (.constprop)");
}

}  // namespace
}  // namespace ringside::guest_linux
