#include "vmm/linux/processes/host_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "vmm/linux/processes/elf_file_for_tests.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/static_probes.h"

namespace ringside::guest_linux {
namespace {

using fakes::ElfFile, fakes::MemoryFile;

constexpr std::uint64_t kTextOfX = 0x1000;
const std::string kBuild("\xab\xcd\xef\x01\x23", 5), kOtherBuild("\xab\xcd\xef\x01\x24", 5);

/// A program with some functions. Stripped, it is what a guest has.
ElfFile program(const std::string& build_id, unsigned functions = 0) {
  ElfFile file(kTextOfX, 0x1000);
  file.build_id = build_id;
  for (unsigned n = 0; n < functions; ++n) {
    file.add_function("function" + std::to_string(n), kTextOfX + std::uint64_t{16} * n, 16);
  }
  return file;
}

class HostFilesIn : public testing::Test {
 protected:
  HostFilesIn() {
    std::string name = testing::TempDir() + "host_files.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directory(root());
  }
  ~HostFilesIn() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path root() const { return folder_ / "root"; }
  std::filesystem::path put(const std::string& path, std::span<const std::byte> bytes) const {
    std::filesystem::path place = root() / path;
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return place;
  }
  HostFiles& files() {
    if (!files_) {
      auto opened = HostFiles::open({.sysroots = {root().string()}});
      EXPECT_TRUE(opened);
      files_ = std::move(*opened);
    }
    return *files_;
  }
  /// Of a file of the guest that has it all in memory.
  FileFunctions functions_of(const ElfFile& in_guest, std::string_view path = "/usr/bin/x") {
    return FileFunctions::read(MemoryFile(in_guest.encode()), &files(), path);
  }

  std::filesystem::path folder_;
  std::unique_ptr<HostFiles> files_;
};

TEST_F(HostFilesIn, HaveTheFunctionsThatTheGuestsFileLacks) {
  put("usr/bin/x", program(kBuild, 20).encode());
  const FileFunctions found = functions_of(program(kBuild));
  ASSERT_EQ(found.all().size(), 20u);
  EXPECT_TRUE(found.is_whole());
  EXPECT_EQ(found.at(kTextOfX + 0x18)->name, "function1");
  EXPECT_EQ(found.searched(),
            "no functions in the page cache, 20 by .symtab of " + (root() / "usr/bin/x").string());
  EXPECT_TRUE(files().take_notices().empty());
}

TEST_F(HostFilesIn, AreAlsoFoundByTheBuildId) {
  ElfFile split = program(kBuild, 3);
  split.is_split_off = true;
  const auto place = put("usr/lib/debug/.build-id/ab/cdef0123.debug", split.encode());
  ElfFile exporting = program(kBuild, 1);
  exporting.table_type = SHT_DYNSYM;
  const FileFunctions found = functions_of(exporting, "/elsewhere/y (deleted)");
  ASSERT_EQ(found.all().size(), 3u);
  EXPECT_EQ(found.all()[2].offset, kTextOfX + 0x20) << "as the guest's own file has its segments";
  EXPECT_TRUE(found.is_text(kTextOfX));
  EXPECT_EQ(found.searched(),
            "1 function by .dynsym in the page cache, 3 by .symtab of " + place.string());
}

TEST_F(HostFilesIn, AreNotAskedWhereTheGuestHasAll) {
  put("usr/bin/x", program(kOtherBuild, 20).encode());
  EXPECT_EQ(functions_of(program(kBuild, 2)).searched(),
            "2 functions by .symtab in the page cache");
  EXPECT_TRUE(files().take_notices().empty());
}

TEST_F(HostFilesIn, TheOneWithMoreIsTaken) {
  put("usr/bin/x", program(kBuild).encode());
  put("usr/lib/debug/.build-id/ab/cdef0123.debug", program(kBuild, 2).encode());
  ElfFile exporting = program(kBuild, 5);
  exporting.table_type = SHT_DYNSYM;
  const FileFunctions found = functions_of(exporting);
  EXPECT_EQ(found.all().size(), 5u) << "more than the host's";
  EXPECT_EQ(found.source(), FileFunctions::Source::DynamicSymbols);
  EXPECT_NE(
      found.searched().find(", none by " + (root() / "usr/bin/x").string() + ", 2 by .symtab"),
      std::string::npos)
      << found.searched();
}

TEST_F(HostFilesIn, AnotherBuildIsRefusedAndToldOnce) {
  const auto place = put("usr/bin/x", program(kOtherBuild, 20).encode());
  for (unsigned n = 0; n < 2; ++n) {
    const FileFunctions found = functions_of(program(kBuild));
    EXPECT_TRUE(found.all().empty());
    EXPECT_EQ(found.searched(),
              "no functions in the page cache; " + place.string() +
                  " is another version: it has build id abcdef0124, and the guest's file build id "
                  "abcdef0123; " +
                  root().string() + " has no usr/lib/debug/.build-id/ab/cdef0123.debug");
  }
  EXPECT_EQ(files().take_notices(),
            std::vector<std::string>{place.string() +
                                     " is another version: it has build id abcdef0124, and the "
                                     "guest's file build id abcdef0123: it is not used"});
  EXPECT_TRUE(files().take_notices().empty());
}

TEST_F(HostFilesIn, WithoutABuildIdSizeAndFirstPageDecide) {
  ElfFile hidden = program("", 4);
  hidden.forget_page(0x2000);  // the symbols
  const auto functions = [&] {
    return FileFunctions::read(MemoryFile(hidden), &files(), "usr/bin/x");
  };
  put("usr/bin/x", program("", 4).encode());
  EXPECT_EQ(functions().all().size(), 4u);
  ElfFile same_size = program("", 4);
  same_size.byte(0x800) = std::byte{1};
  put("usr/bin/x", same_size.encode());
  EXPECT_TRUE(functions().all().empty());
  put("usr/bin/x", program("", 5).encode());
  EXPECT_TRUE(functions().all().empty());
  put("usr/bin/x", program(kBuild, 4).encode());
  EXPECT_TRUE(functions().all().empty());
  EXPECT_EQ(files().take_notices().size(), 2u);
}

TEST_F(HostFilesIn, WithABuildIdThatIsNotInMemoryNoneIsTaken) {
  ElfFile hidden = program(kBuild, 4);
  hidden.build_id_at = kTextOfX + 0x800;
  put("usr/bin/x", hidden.encode());
  hidden.forget_page(kTextOfX);
  hidden.forget_page(0x2000);
  const auto found = FileFunctions::read(MemoryFile(hidden), &files(), "usr/bin/x");
  EXPECT_TRUE(found.all().empty());
  EXPECT_NE(found.searched().find("build id is not in the guest's memory"), std::string::npos)
      << found.searched();
}

TEST_F(HostFilesIn, HaveTheFileWithWhichACopySharesItsTypes) {
  ElfFile shared = program(kBuild);
  shared.file_type = ET_REL;
  const auto seen = [this](const SharedTypesLink& link) {
    std::string name;
    const std::string report =
        files().visit(link, HostFiles::Servers::NotAsked, [&](const HostFiles::Copy& copy) {
          name = copy.file.name();
          return true;
        });
    return name.empty() ? report : name;
  };
  const auto place = put("usr/lib/debug/.dwz/x.debug", shared.encode());
  EXPECT_EQ(seen({"/usr/lib/debug/.dwz/x.debug", kBuild}), place.string());
  EXPECT_NE(seen({"/usr/lib/debug/.dwz/x.debug", kOtherBuild}).find("another version"),
            std::string::npos);
  EXPECT_NE(seen({"../x.debug", kBuild}).find("has no usr/lib/debug/.build-id"), std::string::npos);
  const auto by_id = put("usr/lib/debug/.build-id/ab/cdef0123.debug", shared.encode());
  EXPECT_EQ(seen({"../x.debug", kBuild}), by_id.string());
}

TEST_F(HostFilesIn, LinksLeadToNothingOutsideOfTheFolder) {
  const auto outside = folder_ / "outside";
  const auto inside = put("opt/x-1.0", program(kBuild, 7).encode());
  std::filesystem::copy(inside, outside);
  std::filesystem::create_directories(root() / "usr/bin");
  for (const std::string& target : {outside.string(), std::string("../../../outside"),
                                    std::string("../../../../../../../..") + outside.string()}) {
    std::filesystem::create_symlink(target, root() / "usr/bin/x");
    EXPECT_TRUE(functions_of(program(kBuild)).all().empty()) << target;
    std::filesystem::remove(root() / "usr/bin/x");
  }
  EXPECT_TRUE(functions_of(program(kBuild), "/../outside").all().empty());
  EXPECT_TRUE(functions_of(program(kBuild), "../outside").all().empty());
  std::filesystem::create_symlink("/opt/x-1.0", root() / "usr/bin/x");
  EXPECT_EQ(functions_of(program(kBuild)).all().size(), 7u) << "as the guest's own root has it";
}

TEST_F(HostFilesIn, NothingButRegularFilesIsOpened) {
  std::filesystem::create_directories(root() / "usr/bin/x");
  EXPECT_NE(functions_of(program(kBuild)).searched().find("x is no regular file"),
            std::string::npos);
  ASSERT_EQ(::mkfifo((root() / "pipe").c_str(), 0600), 0);
  EXPECT_NE(functions_of(program(kBuild), "/pipe").searched().find("pipe is no regular file"),
            std::string::npos)
      << "and nobody waits for a writer";
}

TEST_F(HostFilesIn, PathsOfTheGuestCannotForgeMessages) {
  const std::string text = functions_of(program(kBuild), "/a\nb\x1b[2J").searched();
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; })) << text;
  EXPECT_TRUE(functions_of(program(kBuild), std::string(5000, 'x')).all().empty());
}

TEST_F(HostFilesIn, HaveTheStaticProbesWhoseNotesAreNotInTheGuestsMemory) {
  ElfFile in_guest = program(kBuild, 1);
  in_guest.data = 0x100;
  ElfFile split = in_guest;
  split.add_static_probe("sample", "first", "8@%rdi 8@total(%rip)", kTextOfX + 0x10, 0x1f00);
  split.add_function("total", 0x1f10, 8, STT_OBJECT);
  split.is_split_off = true;
  put("usr/lib/debug/.build-id/ab/cdef0123.debug", split.encode());
  const auto probes = [&] {
    const MemoryFile file(in_guest);
    const auto elf = FileElf::read(file);
    return elf ? read_static_probes(file, *elf, &files(), "/usr/bin/x")
               : std::vector<StaticProbe>();
  };
  EXPECT_TRUE(probes().empty()) << "the guest has all notes: there are none";
  in_guest.forget_page(0x2000);
  const auto found = probes();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "first");
  EXPECT_EQ(found[0].arguments, "8@%rdi 8@3840(%rip)") << "0x1f10 - 0x1010";
  EXPECT_EQ(found[0].offset, kTextOfX + 0x10);
  EXPECT_EQ(found[0].semaphore, 0x1f00u);
  put("usr/lib/debug/.build-id/ab/cdef0123.debug", program(kOtherBuild).encode());
  EXPECT_TRUE(probes().empty());
}

TEST_F(HostFilesIn, ABentFileDoesNoHarm) {
  const auto whole = program(kBuild, 20).encode();
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 500; ++round) {
    auto bent = whole;
    bent.resize(whole.size() - random() % 200);
    for (unsigned n = 0; n < 1 + round % 8; ++n) {
      const std::uint64_t at = random() % (bent.size() - 0x1000);
      bent[at < kTextOfX ? at % 0x400 : at + 0x1000] = static_cast<std::byte>(random());
    }
    put("usr/bin/x", bent);
    const FileFunctions functions = functions_of(program(kBuild));
    for (const FileFunction& each : functions.all()) {
      EXPECT_FALSE(each.name.empty());
      EXPECT_TRUE(functions.is_text(each.offset));
    }
  }
}

TEST_F(HostFilesIn, SearchesAreToldToWhoAsksForThem) {
  auto verbose = HostFiles::open({.is_verbose = true});
  ASSERT_TRUE(verbose);
  EXPECT_FALSE((*verbose)->any());
  for (unsigned n = 0; n < 2; ++n) (*verbose)->note_search("libx.so", "2 functions");
  EXPECT_EQ((*verbose)->take_notices(), std::vector<std::string>{"libx.so: 2 functions"});
  for (unsigned n = 0; n < 1000; ++n) (*verbose)->note_search("lib", std::to_string(n));
  EXPECT_EQ((*verbose)->take_notices().size(), 64u) << "63, and that there are more";
  files().note_search("libx.so", "2 functions");
  EXPECT_TRUE(files().take_notices().empty());
}

TEST_F(HostFilesIn, AFolderThatIsNotThereIsAnError) {
  const auto missing = HostFiles::open({.sysroots = {root().string() + "/no"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "--sysroot " + root().string() + "/no: No such file or directory");
  EXPECT_FALSE(HostFiles::open({.sysroots = {put("file", {}).string()}}));
}

}  // namespace
}  // namespace ringside::guest_linux
