#include "vmm/linux/processes/user_names.h"

#include <gtest/gtest.h>

#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/linux/processes/elf_file_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/text/small_elf_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::SmallLibrary;

constexpr std::uint64_t kLibrary = 0x7f00'0000'0000, kProgram = 0x40'0000;

/// A guest with process 7, which runs a program and has a library; page tables are told apart by
/// number.
class UserNamesOf : public testing::Test {
 protected:
  UserNamesOf() {
    program_.linked_at = kProgram;
    program_.build_id = "program";
    program_.map(memory_[1], kProgram, {});
    SmallLibrary().map(memory_[1], kLibrary, {{"read", 0x100, 0x20}});
    task_ = write_.task(7, write_.memory(tree("lib.so"), 1, 0x9000));
  }
  std::uint64_t tree(std::string_view library) {
    const std::uint64_t file = write_.file("a.out"), lib = write_.file(library);
    return write_.small_tree({{0x9000, 0xa000, 0, 0},
                              {kProgram, kProgram + 0x1000, 0, file},
                              {kProgram + 0x1000, kProgram + 0x3000, 1, file},
                              {kProgram + 0x3000, kProgram + 0x4000, 0, 0},
                              {kLibrary, kLibrary + 0x4000, 0, lib},
                              {kLibrary + 0x8000, kLibrary + 0x9000, 0, lib}});
  }
  UserNames names(UserNames::Clock::duration fresh = {}, std::size_t most_bytes = 1 << 20) {
    return {access(), fakes::process_layout(), GuestVirt(fakes::kInitTask), fresh, most_bytes};
  }
  UserNames::Access access() {
    UserNames::Access access;
    access.kernel = [this] { return std::make_unique<Through>(kernel_); };
    access.process = [this](GuestVirt root) -> std::unique_ptr<GuestReader> {
      const auto found = memory_.find(root.raw());
      if (found == memory_.end()) return nullptr;
      ++opened_;
      return std::make_unique<Through>(found->second);
    };
    return access;
  }
  void end_process() { kernel_.put(task_ + 0x28, std::uint64_t{0}); }

  class Through final : public GuestReader {
   public:
    explicit Through(const GuestReader& guest) : guest_(guest) {}
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
      return guest_.read(at, out);
    }

   private:
    const GuestReader& guest_;
  };

  fakes::PagedGuest kernel_;
  std::map<std::uint64_t, fakes::PagedGuest> memory_;
  fakes::ProcessWriter write_{kernel_};
  SmallLibrary program_;
  std::uint64_t task_ = 0;
  int opened_ = 0;
};

TEST_F(UserNamesOf, FunctionsAreThoseOfTheFileWhereItIsInMemory) {
  fakes::ElfFile file(0x1000, 0x1000);
  file.add_function("__alias", 0x1010, 0x10);
  file.add_function("_ZN4wars5fightEi", 0x1010, 0x10);
  file.add_function("alone", 0x1040, 0);
  unsigned reads = 0;
  const auto named = [&](UserNames::Form form, std::uint64_t offset) {
    UserNames::Access by = access();
    by.identity = [](GuestVirt) { return FileIdentity{.inode = 1}; };
    by.functions = [&](GuestVirt, const FileIdentity& content) {
      EXPECT_EQ(content.inode, 1u);
      ++reads;
      return file.functions();
    };
    UserNames user(std::move(by), fakes::process_layout(), GuestVirt(fakes::kInitTask), {}, 1 << 20,
                   form);
    (void)user.describe(7, GuestVirt(kLibrary + offset));
    return user.describe(7, GuestVirt(kLibrary + offset));
  };
  using Form = UserNames::Form;
  EXPECT_EQ(named(Form::AsInFile, 0x1018), "lib.so`_ZN4wars5fightEi+0x8") << "fewer underscores";
  EXPECT_EQ(reads, 1u) << "for the program and the library, which have one content here";
  EXPECT_EQ(named(Form::Demangled, 0x1018), "lib.so`wars::fight(int)+0x8");
  EXPECT_EQ(named(Form::AsInFile, 0x1020), "lib.so`0x7f0000001020") << "behind it";
  EXPECT_EQ(named(Form::AsInFile, 0x1050), "lib.so`alone+0x10") << "its size is not known";
  EXPECT_EQ(named(Form::AsInFile, 0x100), "lib.so`read") << "by the process's own memory";
}

TEST_F(UserNamesOf, ServersAreAskedOnceOfAFileInWhichAnAddressHasNoName) {
  fakes::ElfFile stripped(0x1000, 0x1000), whole(0x1000, 0x1000), empty(0x1000, 0x1000);
  stripped.table_type = SHT_DYNSYM;
  stripped.add_function("exported", 0x1010, 0x10);
  whole.add_function("exported", 0x1010, 0x10);
  whole.add_function("hidden", 0x1040, 0x10);
  unsigned fetches = 0;
  const auto names = [&](const fakes::ElfFile& in_guest, const fakes::ElfFile& served) {
    UserNames::Access by = access();
    by.identity = [](GuestVirt) { return FileIdentity{.inode = 1}; };
    by.functions = [&](GuestVirt, const FileIdentity&) { return in_guest.functions(); };
    by.fetch = [&](const FileIdentity& content, std::string_view name) {
      EXPECT_EQ(content.inode, 1u);
      EXPECT_EQ(name, "lib.so");
      ++fetches;
      return served.functions();
    };
    return UserNames(std::move(by), fakes::process_layout(), GuestVirt(fakes::kInitTask), {},
                     1 << 20);
  };
  UserNames user = names(stripped, whole);
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x1018)), "lib.so`exported+0x8");
  EXPECT_EQ(fetches, 0u) << "it has a name";
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x1044)), "lib.so`hidden+0x4");
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x1080)), "lib.so`0x7f0000001080");
  EXPECT_EQ(fetches, 1u);

  UserNames in_vain = names(stripped, empty);
  for (unsigned n = 0; n < 2; ++n) {
    EXPECT_EQ(in_vain.describe(7, GuestVirt(kLibrary + 0x1044)), "lib.so`0x7f0000001044");
  }
  EXPECT_EQ(fetches, 2u);
  EXPECT_EQ(in_vain.describe(7, GuestVirt(kLibrary + 0x1018)), "lib.so`exported+0x8");

  UserNames all = names(whole, whole);
  EXPECT_EQ(all.describe(7, GuestVirt(kLibrary + 0x1080)), "lib.so`0x7f0000001080");
  EXPECT_EQ(fetches, 2u) << "the guest has the whole .symtab";
}

TEST_F(UserNamesOf, AddressesAreNamedAsFarAsTheyAreKnown) {
  UserNames user = names();

  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`read");
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x10d)), "lib.so`read+0xd");
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x200)), "lib.so`0x7f0000000200");
  EXPECT_EQ(user.describe(7, GuestVirt(kProgram + 0x20)), "a.out`0x400020");
  EXPECT_EQ(user.describe(7, GuestVirt(kProgram + 0x5fff)), "a.out`0x405fff") << ".bss";
  EXPECT_EQ(user.describe(7, GuestVirt(kProgram + 0x6000)), "0x406000");
  EXPECT_EQ(user.describe(7, GuestVirt(0x9010)), "[vdso]`0x9010");
  EXPECT_EQ(user.describe(7, GuestVirt(0xb000)), "0xb000");
  EXPECT_EQ(user.describe(8, GuestVirt(kLibrary + 0x100)), "0x7f0000000100");
}

TEST_F(UserNamesOf, CodeOfNoFileIsNamedByTheProcesssOwnMap) {
  struct Lines final : FileBytes {
    std::uint64_t size() const override { return text.size(); }
    std::size_t read(std::uint64_t offset, std::span<std::byte> out) const override {
      const auto rest = std::string_view(text).substr(offset, out.size());
      std::ranges::copy(std::as_bytes(std::span(rest)), out.begin());
      return rest.size();
    }
    std::string text = "b000 100 made here\n";
  } lines;
  UserNames::Access by = access();
  by.map_of_code = [&](const ProcessAddressSpace& process, UserNames::MapOfCode& map) {
    EXPECT_EQ(process.task.raw(), task_);
    map.process = 3;
    map.map.read_more(lines);
  };
  UserNames user(std::move(by), fakes::process_layout(), GuestVirt(fakes::kInitTask), {}, 1 << 20);
  EXPECT_EQ(user.describe(7, GuestVirt(0xb000)), "perf-3.map`made here");
  EXPECT_EQ(user.describe(7, GuestVirt(0xb010)), "perf-3.map`made here+0x10");
  EXPECT_EQ(user.describe(7, GuestVirt(0xb100)), "0xb100");
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`read");
  lines.text += "b100 8 later\n";
  EXPECT_EQ(user.describe(7, GuestVirt(0xb100)), "perf-3.map`later");
}

TEST_F(UserNamesOf, ASecondMappingFromTheFilesStartIsAModuleOfItsOwn) {
  EXPECT_EQ(names().describe(7, GuestVirt(kLibrary + 0x7000)), "0x7f0000007000");
  EXPECT_EQ(names().describe(7, GuestVirt(kLibrary + 0x8100)), "lib.so`0x7f0000008100");
}

TEST_F(UserNamesOf, AProcessThatHasEndedIsKnownAsItWasLookedAtLast) {
  UserNames user = names();
  user.look_at(7);
  end_process();

  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x10d)), "lib.so`read+0xd");
  EXPECT_EQ(names().describe(7, GuestVirt(kLibrary + 0x10d)), "0x7f000000010d")
      << "nobody looked while it lived";
}

TEST_F(UserNamesOf, BothProgramsOfAProcessAreKnownTheLaterFirst) {
  UserNames user = names();
  user.look_at(7);
  SmallLibrary().map(memory_[2], kLibrary, {{"write", 0x100, 0x20}});
  const std::uint64_t lib = write_.file("other.so");
  const std::uint64_t root = write_.small_tree({{kLibrary, kLibrary + 0x4000, 0, lib}});
  kernel_.put(task_ + 0x28, write_.memory(root, 2));

  EXPECT_EQ(user.describe(7, GuestVirt(kProgram + 0x20)), "a.out`0x400020");
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x10d)), "other.so`read+0xd")
      << "the same first page is the same file, whatever it is called";
}

TEST_F(UserNamesOf, WhatIsKnownIsLookedAtAgainOnlyWhenItIsOld) {
  UserNames user = names(std::chrono::hours(1000));
  for (int n = 0; n < 100; ++n) user.describe(7, GuestVirt(kLibrary + 0x100));
  for (int n = 0; n < 100; ++n) user.describe(7, GuestVirt(0xb000));

  EXPECT_EQ(opened_, 1);
}

TEST_F(UserNamesOf, AFileThatIsWhollyKnownIsNotReadAgain) {
  UserNames user = names();
  memory_[1].remove_page(kProgram + SmallLibrary::kStrings);
  user.look_at(7);
  program_.map(memory_[1], kProgram, {});
  user.look_at(7);
  memory_[1].reads = 0;
  user.look_at(7);

  EXPECT_EQ(memory_[1].reads, 4u) << "the first page of each module, which tells what file it is";
}

TEST_F(UserNamesOf, WhatOneProcessHasInMemoryNamesAnothersToo) {
  UserNames user = names();
  memory_[1].remove_page(kLibrary + SmallLibrary::kStrings);
  user.look_at(7);
  end_process();
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`0x7f0000000100");

  SmallLibrary().map(memory_[2], kLibrary, {{"read", 0x100, 0x20}});
  write_.task(8, write_.memory(tree("lib.so"), 2));
  user.look_at(8);

  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`read");
}

TEST_F(UserNamesOf, OneLookReadsSoManySymbolsOnlyWhateverAProcessMaps) {
  UserNames user = names({}, 4);
  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`0x7f0000000100")
      << "the program's come first";
  SmallLibrary().map(memory_[2], kLibrary, {{"read", 0x100, 0x20}});
  const std::uint64_t lib = write_.file("lib.so");
  write_.task(8, write_.memory(write_.small_tree({{kLibrary, kLibrary + 0x4000, 0, lib}}), 2));

  EXPECT_EQ(user.describe(8, GuestVirt(kLibrary + 0x100)), "lib.so`read");
}

TEST_F(UserNamesOf, WithoutTheProcesssPageTableThereAreModulesOnly) {
  memory_.clear();

  EXPECT_EQ(names().describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`0x7f0000000100");
}

TEST_F(UserNamesOf, WhatNobodyLooksAtAnyMoreIsForgottenForNewProcesses) {
  UserNames user = names(std::chrono::hours(1));
  user.look_at(7);
  end_process();
  for (std::uint64_t pid = 100; pid < 100 + 4096; ++pid) user.look_at(pid);

  EXPECT_EQ(user.describe(7, GuestVirt(kLibrary + 0x100)), "0x7f0000000100");
}

TEST(UserNamesAtBoot, FollowAsManyLevelsOfPageTablesAsTheKernelHasByNow) {
  constexpr std::uint64_t kRoot = 0x100'0000, kStructures = 0x200'0000;
  fakes::SmallElf elf;
  elf.put_text(fakes::kText + 0x800, "Linux version 6.1.0-small (someone@somewhere)");
  const std::vector<std::byte> types = fakes::process_types().blob();
  ASSERT_LE(types.size(), 0x700u);
  elf.put(fakes::kTextOffset + 0x100, types);
  const std::uint64_t types_at = fakes::kText + 0x100;
  const auto kernel = kernel_from_file(
      fakes::kernel_file(elf.write({{"linux_banner", fakes::kText + 0x800, 0, 0x11},
                                    {"init_top_pgt", fakes::kText, 0, 0x11},
                                    {"level4_kernel_pgt", fakes::kText + 0x1000, 0, 0x11},
                                    {"__start_BTF", types_at, 0, 0x11},
                                    {"__stop_BTF", types_at + types.size(), 0, 0x11},
                                    {"init_task", fakes::kInitTask, 0, 0x11}})));
  ASSERT_TRUE(kernel) << kernel.error().message;
  fakes::PagedGuest guest;
  fakes::ProcessWriter write(guest);
  const std::uint64_t lib = write.file("lib.so");
  write.task(7, write.memory(write.small_tree({{kLibrary, kLibrary + 0x4000, 0, lib}}), 0));
  std::vector<std::byte> tables(0x4000), structures(2 << 20);
  for (std::uint64_t at = 0; at < structures.size(); at += 0x1000) {
    (void)guest.read(GuestVirt(fakes::kKernel + at), std::span(structures).subspan(at, 0x1000));
  }
  vmm::GuestMemory memory({{GuestPhys(kRoot), tables}, {GuestPhys(kStructures), structures}});
  const auto entry = [&](std::uint64_t at, std::uint64_t value) {
    return memory.write(GuestPhys(kRoot + at), std::as_bytes(std::span(&value, 1)));
  };
  ASSERT_TRUE(entry(511 * 8, (kRoot + 0x1000) | 3));
  ASSERT_TRUE(entry(0x1000 + 273 * 8, (kRoot + 0x2000) | 3));
  ASSERT_TRUE(entry(0x2000, (kRoot + 0x3000) | 3));
  ASSERT_TRUE(entry(0x3000, kStructures | 0x83));

  const auto names = UserNames::create(memory, **kernel, UserNames::Form::AsInFile);

  ASSERT_TRUE(names);
  EXPECT_EQ(names->describe(7, GuestVirt(kLibrary + 0x100)), "lib.so`0x7f0000000100");
}

}  // namespace
}  // namespace ringside::guest_linux
