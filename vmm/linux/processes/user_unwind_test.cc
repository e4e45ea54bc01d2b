#include "vmm/linux/processes/user_unwind.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vmm/linux/processes/host_files.h"
#include "vmm/linux/processes/user_unwind_fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

using fakes::RuleWriter;
using fakes::UnwindGuest;
using fakes::UnwindImage;
using Frames = std::vector<std::uint64_t>;

constexpr std::uint64_t kMain = 0x40'0000, kLibc = 0x7f00'0000'0000, kVdso = 0x7f01'0000'0000;
constexpr std::uint64_t kTop = UnwindGuest::kStack;

/// main() at 0x1000, which saves rbx; helper() at 0x1100 with a frame of 32 bytes; leaf() at
/// 0x1200; start() at 0x1300, which nobody calls; code without a table from 0x1400 on.
UnwindImage program() {
  UnwindImage image;
  image.functions = {
      {0x1000, 0x40, RuleWriter().advance(1).def_cfa_offset(16).saved(3, 16)},
      {0x1100, 0x40, RuleWriter().advance(4).def_cfa_offset(40)},
      {0x1200, 0x40, {}},
      {0x1300, 0x40, RuleWriter().byte(7).uleb(16)},
  };
  return image;
}

class UserUnwind : public testing::Test {
 protected:
  /// A program at kMain, which is PIE, and the same code as a library.
  void map_both() {
    main_inode_ = guest_.map(program(), kMain);
    libc_inode_ = guest_.map(program(), kLibc);
    guest_.finish();
  }
  /// libc's leaf() called by its helper() by main() by start().
  void stand_in_leaf() {
    guest_.stand_at(kLibc + 0x1210,
                    {kLibc + 0x1120, 0, 0, 0, 0, kMain + 0x1020, 0xb, kMain + 0x1310});
  }
  const Frames in_leaf_{kLibc + 0x1210, kLibc + 0x1120, kMain + 0x1020, kMain + 0x1310};

  Frames walk() { return guest_.walk(unwinder_); }

  UnwindGuest guest_;
  UserUnwinder unwinder_{guest_.files.memory(), fakes::user_unwind_layout()};
  std::uint64_t main_inode_ = 0, libc_inode_ = 0;
};

TEST_F(UserUnwind, GoesThroughCodeWithoutFramePointersByTablesInThePageCache) {
  map_both();
  stand_in_leaf();

  EXPECT_EQ(walk(), in_leaf_);
  EXPECT_EQ(unwinder_.counts().read, 4u);
}

TEST_F(UserUnwind, TheSecondTimeRulesAreKnown) {
  map_both();
  stand_in_leaf();
  walk();

  EXPECT_EQ(walk(), in_leaf_);
  EXPECT_EQ(unwinder_.counts().read, 4u);
  EXPECT_EQ(unwinder_.counts().cached, 4u);
}

TEST_F(UserUnwind, AStackThatIsKnownTakesFewReads) {
  map_both();
  stand_in_leaf();
  walk();
  guest_.kernel.reads = guest_.memory.reads = 0;

  walk();

  // Of each of two mappings: the tree's root and its node, the area, the file's inode, the inode.
  EXPECT_EQ(guest_.kernel.reads, 2 * 5u);
  EXPECT_EQ(guest_.memory.reads, 3u) << "one of each frame";
}

TEST_F(UserUnwind, AnotherFileInTheInodesPlaceHasRulesOfItsOwn) {
  map_both();
  stand_in_leaf();
  walk();
  guest_.kernel.put(libc_inode_ + 24, std::uint64_t{1700000009});  // it was written to

  EXPECT_EQ(walk(), in_leaf_);
  EXPECT_EQ(unwinder_.counts().read, 6u);
}

TEST_F(UserUnwind, PagesThatTheCacheLostAreTheProcesses) {
  map_both();
  stand_in_leaf();
  // The page cache has nothing any more.
  for (const std::uint64_t page : {0, 1, 3}) {
    guest_.kernel.put(guest_.files.slot(libc_inode_, page), std::uint64_t{0});
  }
  EXPECT_EQ(walk().size(), 1u) << "no table is in memory, and rbp is 0";

  const auto bytes = program().file();
  for (std::size_t n = 0; n < bytes.size(); ++n) guest_.memory.put(kLibc + n, bytes[n]);
  EXPECT_EQ(walk(), in_leaf_);
}

/// Folders of the host with files, which are looked in when a walk has lacked something.
class UserUnwindByHost : public UserUnwind {
 protected:
  UserUnwindByHost() {
    std::string name = testing::TempDir() + "user_unwind.XXXXXX";
    root_ = ::mkdtemp(name.data());
    layout_.process.file_mount = 0x18;
    layout_.process.file_dentry = 8;
    image_.has_sections = true;
    host_ = std::move(*HostFiles::open({.sysroots = {root_}}));
    main_inode_ = guest_.map(program(), kMain);
    libc_inode_ = guest_.map(image_, kLibc);
    guest_.finish();
    stand_in_leaf();
    guest_.kernel.put(guest_.files.slot(libc_inode_, 3), std::uint64_t{0});  // its tables
  }
  ~UserUnwindByHost() override { std::filesystem::remove_all(root_); }

  void put_copy(const UnwindImage& image) const {
    const auto bytes = image.file();
    std::ofstream(root_ + "/image", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void serve() {
    const PageCacheLayout& pages = layout_.pages;
    host_->unwind_tables().serve(*host_, [&](const FileIdentity& file, const FilePathPlace&) {
      const auto now =
          FilePages::of_inode(guest_.files.memory(), guest_.kernel, pages, GuestVirt(file.inode));
      return std::optional(HostUnwindTables::Opened{*now, "/image"});
    });
  }

  std::string root_;
  UserUnwindLayout layout_ = fakes::user_unwind_layout();
  UnwindImage image_ = program();
  std::unique_ptr<HostFiles> host_;
};

TEST_F(UserUnwindByHost, TablesThatAreNotInMemoryAreThereTheNextTime) {
  put_copy(image_);
  UserUnwinder unwinder(guest_.files.memory(), layout_, &host_->unwind_tables());
  EXPECT_FALSE(host_->unwind_tables().is_asked());
  EXPECT_EQ(guest_.walk(unwinder).size(), 1u);
  EXPECT_TRUE(host_->unwind_tables().is_asked());
  serve();
  EXPECT_FALSE(host_->unwind_tables().is_asked());
  EXPECT_EQ(guest_.walk(unwinder), in_leaf_);
  const auto read = unwinder.counts().read;
  EXPECT_EQ(guest_.walk(unwinder), in_leaf_);
  EXPECT_EQ(unwinder.counts().read, read) << "rules by the host's copy are known, too";
}

TEST_F(UserUnwindByHost, AFileThatTheHostHasNotIsAskedForOnce) {
  UnwindImage other = image_;
  other.functions.pop_back();
  put_copy(other);
  UserUnwinder unwinder(guest_.files.memory(), layout_, &host_->unwind_tables());
  for (unsigned n = 0; n < 3; ++n) {
    EXPECT_EQ(guest_.walk(unwinder).size(), 1u);
    EXPECT_EQ(host_->unwind_tables().is_asked(), n == 0);
    serve();
  }
  EXPECT_EQ(host_->take_notices().size(), 1u) << "it is another version";
  guest_.kernel.put(libc_inode_ + 24, std::uint64_t{1700000009});  // and was written to
  EXPECT_EQ(guest_.walk(unwinder).size(), 1u);
  EXPECT_TRUE(host_->unwind_tables().is_asked());
}

TEST_F(UserUnwindByHost, MoreFilesThanThereIsRoomForGoWithout) {
  HostUnwindTables& tables = host_->unwind_tables();
  for (std::uint64_t n = 1; n <= 100; ++n) {
    const FileIdentity file{.inode = n};
    EXPECT_EQ(tables.tables_of(file).has_value(), n > 64);
    tables.want(file, {});
  }
  tables.serve(*host_, [](const FileIdentity&, const FilePathPlace&) {
    return std::optional<HostUnwindTables::Opened>();
  });
  EXPECT_FALSE(tables.is_asked());
  EXPECT_EQ(tables.tables_of({.inode = 1}),
            std::optional<const HostUnwindTables::Tables*>(nullptr));
}

TEST_F(UserUnwind, AProcessThatChangesItsTableChangesNobodyElses) {
  map_both();
  stand_in_leaf();
  auto bytes = program().file();
  std::fill(bytes.begin() + 0x3020, bytes.end(), std::byte{0});
  for (std::size_t n = 0; n < bytes.size(); ++n) guest_.memory.put(kLibc + n, bytes[n]);
  EXPECT_EQ(walk(), in_leaf_) << "the file's comes first";

  // Without the file's it is the process's own, and is forgotten.
  const std::uint64_t slot = guest_.files.slot(libc_inode_, 3);
  const auto entry = *load<std::uint64_t>(guest_.kernel, GuestVirt(slot));
  UserUnwinder fresh(guest_.files.memory(), fakes::user_unwind_layout());
  guest_.kernel.put(slot, std::uint64_t{0});
  EXPECT_EQ(guest_.walk(fresh).size(), 1u);
  guest_.kernel.put(slot, entry);
  EXPECT_EQ(guest_.walk(fresh), in_leaf_);
}

TEST_F(UserUnwind, AProgramThatIsNotMovedHasItsOwnAddresses) {
  UnwindImage fixed = program();
  fixed.linked_at = kMain;
  for (auto& each : fixed.functions) each.begin += kMain;
  guest_.map(fixed, kMain);
  guest_.finish();
  guest_.stand_at(kMain + 0x1210, {kMain + 0x1120, 0, 0, 0, 0, kMain + 0x1310});

  EXPECT_EQ(walk(), (Frames{kMain + 0x1210, kMain + 0x1120, kMain + 0x1310}));
}

TEST_F(UserUnwind, CodeWithoutATableHasItsFramePointerFollowed) {
  map_both();
  const std::uint64_t code = 0x1234'5000;  // made at run time
  guest_.registers.rbp = kTop + 16;
  guest_.stand_at(code, {0, 0, kTop + 0x100, kMain + 0x1120, 0, 0, 0, 0, kMain + 0x1310});
  EXPECT_EQ(walk(), (Frames{code, kMain + 0x1120, kMain + 0x1310}));

  guest_.stand_at(kMain + 0x1500, {0, 0, kTop + 0x100, kMain + 0x1120, 0, 0, 0, 0, kMain + 0x1310});
  EXPECT_EQ(walk(), (Frames{kMain + 0x1500, kMain + 0x1120, kMain + 0x1310}));
  EXPECT_EQ(walk().size(), 3u) << "known not to be covered";
  guest_.registers.rbp = kTop - 16;
  EXPECT_EQ(walk().size(), 1u) << "frame pointers only go up";
}

TEST_F(UserUnwind, AnImageWithoutAnIndexIsFollowedByFramePointers) {
  UnwindImage without = program();
  without.has_index = false;
  guest_.map(without, kMain);
  guest_.finish();
  guest_.registers.rbp = kTop;
  guest_.stand_at(kMain + 0x1210, {0, kMain + 0x1120});

  EXPECT_EQ(walk(), (Frames{kMain + 0x1210, kMain + 0x1120}));
}

TEST_F(UserUnwind, ACallThatNeverReturnsBelongsToItsCaller) {
  map_both();
  // helper() ends with the call: the return address is beyond it.
  guest_.stand_at(kLibc + 0x1200, {kMain + 0x1140, 0, 0, 0, 0, kMain + 0x1310});

  EXPECT_EQ(walk(), (Frames{kLibc + 0x1200, kMain + 0x1140, kMain + 0x1310}));
}

TEST_F(UserUnwind, GoesThroughASignalFrameIntoTheInterruptedInstruction) {
  // As glibc's __restore_rt, whose table begins a byte before it: the CFA is what rsp was, and each
  // register lies in struct ucontext.
  UnwindImage libc = program();
  RuleWriter rules;
  const std::uint8_t cfa[] = {0x77, 0xa0, 1, 0x06}, sp[] = {0x77, 0xa0, 1}, pc[] = {0x77, 0xa8, 1},
                     bx[] = {0x77, 0x80, 1};
  rules.expression(0x0f, cfa).register_expression(0x10, 7, sp);
  rules.register_expression(0x10, 16, pc).register_expression(0x10, 3, bx);
  libc.functions.push_back({0x13ff, 0x11, rules, "zRS"});
  guest_.map(program(), kMain);
  guest_.map(libc, kLibc);
  guest_.finish();
  Frames words(64, 0);
  words[0] = kLibc + 0x1400;            // the handler's return address
  words[1 + 168 / 8] = kMain + 0x1100;  // rip: helper()'s first instruction
  words[1 + 160 / 8] = kTop + 50 * 8;   // rsp
  words[50] = kMain + 0x1020, words[51] = 7, words[52] = kMain + 0x1310;

  guest_.stand_at(kMain + 0x1200, words);
  const Frames wanted{kMain + 0x1200, kLibc + 0x1400, kMain + 0x1100, kMain + 0x1020,
                      kMain + 0x1310};
  EXPECT_EQ(walk(), wanted);
  words[1 + 160 / 8] = kTop - 0x1000 + 50 * 8;  // the handler ran on a stack of its own, above
  guest_.stand_at(kMain + 0x1200, words);
  for (const std::size_t n : {50, 51, 52}) {
    guest_.memory.put(kTop - 0x1000 + n * 8, words[n]);
  }
  EXPECT_EQ(walk(), wanted);
}

TEST_F(UserUnwind, AReturnFromASignalIsKnownByItsCode) {
  UnwindImage libc = program();
  libc.code.assign(0x400, 0x90);
  libc.code.insert(libc.code.end(), {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05});
  guest_.map(program(), kMain);
  guest_.map(libc, kLibc);
  guest_.finish();
  Frames words(64, 0);
  words[0] = kLibc + 0x1400;
  words[1 + 168 / 8] = kMain + 0x1100, words[1 + 160 / 8] = kTop + 50 * 8;
  words[50] = kMain + 0x1310;

  guest_.stand_at(kMain + 0x1200, words);

  EXPECT_EQ(walk(), (Frames{kMain + 0x1200, kLibc + 0x1400, kMain + 0x1100, kMain + 0x1310}));
}

TEST_F(UserUnwind, TheVdsoHasItsTableInTheKernel) {
  guest_.map(program(), kMain);
  guest_.map_vdso(program(), kVdso);
  guest_.finish();
  guest_.stand_at(kVdso + 0x1110, {0, 0, 0, 0, kMain + 0x1310});

  EXPECT_EQ(walk(), (Frames{kVdso + 0x1110, kMain + 0x1310}));
}

TEST_F(UserUnwind, AStackThatDoesNotGoUpEnds) {
  UnwindImage image = program();
  // The CFA is rbp, and rbp is never changed.
  image.functions.push_back({0x1500, 0x40, RuleWriter().def_cfa(6, 16)});
  guest_.map(image, kMain);
  guest_.finish();
  guest_.registers.rbp = kTop;
  guest_.stand_at(kMain + 0x1510, {0, kMain + 0x1510});

  EXPECT_EQ(walk(), (Frames{kMain + 0x1510, kMain + 0x1510}));
}

TEST_F(UserUnwind, AtMostSoManyFramesAreFilled) {
  map_both();
  stand_in_leaf();

  EXPECT_EQ(guest_.walk(unwinder_, 2), Frames(in_leaf_.begin(), in_leaf_.begin() + 2));
  EXPECT_EQ(guest_.walk(unwinder_, 1).size(), 1u);
  EXPECT_TRUE(guest_.walk(unwinder_, 0).empty());
}

TEST_F(UserUnwind, AStackPageThatIsAbsentEndsTheWalk) {
  map_both();
  stand_in_leaf();
  guest_.registers.rsp = kTop - 0x10'0000;

  EXPECT_EQ(walk(), Frames{kLibc + 0x1210});
}

TEST_F(UserUnwind, AFileThatIsNoImageHasNoTable) {
  map_both();
  stand_in_leaf();
  const auto frame = FilePages::of_inode(guest_.files.memory(), guest_.kernel,
                                         fakes::page_cache_layout(), GuestVirt(libc_inode_))
                         ->frame(0);
  for (std::byte& each : guest_.files.page(frame->raw() / 4096)) each = std::byte{0x55};

  EXPECT_EQ(walk(), Frames{kLibc + 0x1210});
}

TEST(UserUnwindLayouts, NeedProcessesAndFiles) {
  SymbolTable symbols;
  symbols.seal();
  fakes::BtfWriter btf = fakes::process_types();
  TypeGraph only_processes;
  ASSERT_TRUE(Btf::read(btf.blob(), nullptr, only_processes));

  EXPECT_FALSE(UserUnwindLayout::from(only_processes, symbols));
  EXPECT_FALSE(UserUnwindLayout::from(TypeGraph(), symbols));
}

}  // namespace
}  // namespace ringside::guest_linux
