// Memory that is only copied: a child process's and a file's, alone and as guest RAM.
#include "vmm/copied_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "vmm/guest_memory.h"
#include "vmm/process_memory.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kPage = 4096, kPages = 64, kSize = kPages * kPage;

std::uint64_t address_of(const std::byte* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

/// A child whose memory, at the same addresses as ours was at fork(), is its own: it writes a 7 to
/// page 5, says so, answers each byte that it is sent with what stands at the begin of page 9, and
/// ends with our end of the pipe.
class Child {
 public:
  Child() {
    void* mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bytes_ = static_cast<std::byte*>(mapped);
    int to_child[2], from_child[2];
    EXPECT_EQ(pipe2(to_child, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_child, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(to_child[1]);
      live(to_child[0], from_child[1]);
    }
    ask_ = UniqueFd(to_child[1]);
    answer_ = UniqueFd(from_child[0]);
    close(to_child[0]);
    close(from_child[1]);
    EXPECT_EQ(answer(), 7);
  }
  ~Child() {
    end();
    munmap(bytes_, kSize);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  std::uint64_t start() const { return address_of(bytes_); }
  /// The word that the child has at the start of page 9.
  int look() {
    EXPECT_EQ(::write(ask_.get(), "?", 1), 1);
    return answer();
  }
  void end() {
    ask_.reset();
    if (pid_ > 0) waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  [[noreturn]] void live(int ask, int answer) {
    bytes_[5 * kPage] = std::byte{7};
    char c = 0;
    for (const volatile std::byte* told = &bytes_[5 * kPage];; told = &bytes_[9 * kPage]) {
      const auto value = static_cast<unsigned char>(*told);
      if (::write(answer, &value, 1) != 1 || ::read(ask, &c, 1) != 1) _exit(0);
    }
  }
  int answer() {
    unsigned char c = 0;
    return ::read(answer_.get(), &c, 1) == 1 ? c : -1;
  }

  std::byte* bytes_ = nullptr;
  pid_t pid_ = 0;
  UniqueFd ask_, answer_;
};

std::byte byte_at(const GuestMemory& memory, std::uint64_t at) {
  std::byte value{0xee};
  EXPECT_TRUE(memory.read(GuestPhys(at), std::span(&value, 1))) << at;
  return value;
}

TEST(ProcessMemory, IsAnothersAndNotOurs) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened) << opened.error().message;
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kSize, std::move(*opened), child.start()}});
  const std::array sent{std::byte{42}};

  EXPECT_EQ(byte_at(memory, 5 * kPage), std::byte{7});
  EXPECT_EQ(child.look(), 0);
  ASSERT_TRUE(memory.write(GuestPhys(9 * kPage), sent));
  EXPECT_EQ(child.look(), 42);
  EXPECT_EQ(byte_at(memory, 9 * kPage), std::byte{42});
  ASSERT_TRUE(memory.store64(GuestPhys(9 * kPage), 0x1111111111111121));
  EXPECT_EQ(child.look(), 0x21);
  EXPECT_EQ(memory.load64(GuestPhys(9 * kPage)), 0x1111111111111121u);
}

TEST(ProcessMemory, IsReadAndWrittenAlikeInFewBytesAndInMany) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened) << opened.error().message;
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kSize, std::move(*opened), child.start()}});
  const std::vector<std::byte> pages(3 * kPage, std::byte{9});

  ASSERT_TRUE(memory.write(GuestPhys(4 * kPage), pages));

  std::vector<std::byte> many(5 * kPage), few(16), also(16);
  ASSERT_TRUE(memory.read(GuestPhys(3 * kPage), many));
  ASSERT_TRUE(memory.read(GuestPhys(7 * kPage - 8), few));
  ASSERT_TRUE(memory.read_each(std::array{GuestMemory::Part{GuestPhys(4 * kPage - 8), few},
                                          GuestMemory::Part{GuestPhys(7 * kPage - 8), also}}));
  for (std::size_t i = 0; i < many.size(); ++i) {
    EXPECT_EQ(many[i], std::byte(i / kPage >= 1 && i / kPage < 4 ? 9 : 0)) << i;
  }
  for (std::size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i], std::byte(i < 8 ? 0 : 9)) << i;
    EXPECT_EQ(also[i], std::byte(i < 8 ? 9 : 0)) << i;
  }
}

TEST(ProcessMemory, IsNotMappedHere) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened);
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kSize, std::move(*opened), child.start()}});

  EXPECT_TRUE(memory.mapping(GuestPhys(0), 8).empty());
}

TEST(ProcessMemory, TellsPagesThatWereNeverTouched) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start() + 5 * kPage);
  ASSERT_TRUE(opened);
  const auto memory =
      GuestMemory::by_copies({{GuestPhys(kSize), kSize, std::move(*opened), child.start()}});

  const auto present = memory.present_extents();

  ASSERT_EQ(present.size(), 1u);
  EXPECT_EQ(present[0].base.raw(), kSize + 5 * kPage);
  EXPECT_EQ(present[0].size, kPage);
}

/// 16 TiB of this process's, of which three pages are there: without the C library, where some
/// sanitizers would look at all of it. The last page lies in a mapping of its own.
class Reservation {
 public:
  static constexpr std::uint64_t kReserved = std::uint64_t{16} << 40, kSlice = 8 << 20;

  Reservation() {
    const long at = syscall(SYS_mmap, nullptr, kReserved, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == -1) return;
    start_ = static_cast<std::uint64_t>(at);
    syscall(SYS_madvise, start_, kReserved, MADV_NOHUGEPAGE);
    syscall(SYS_madvise, end() - kSlice, kSlice, MADV_DONTDUMP);
    for (const std::uint64_t page : pages()) *reinterpret_cast<volatile char*>(page) = 1;
  }
  ~Reservation() {
    if (start_ != 0) syscall(SYS_munmap, start_, kReserved);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  std::uint64_t start() const { return start_; }
  std::uint64_t end() const { return start_ + kReserved; }
  std::array<std::uint64_t, 3> pages() const {
    return {start_ + kPage, start_ + kReserved / 2, end() - kPage};
  }

 private:
  std::uint64_t start_ = 0;
};

TEST(ProcessMemory, FindsFewPagesInTebibytesThatAreReserved) {
  const Reservation reserved;
  if (reserved.start() == 0) GTEST_SKIP() << "this host reserves no 16 TiB";
  const UniqueFd pagemap(open("/proc/self/pagemap", O_RDONLY));
  if (!scan_pagemap(pagemap.get(), {reserved.start(), kPage})) {
    GTEST_SKIP() << "this kernel has no PAGEMAP_SCAN (Linux 6.7), and looks at each page";
  }
  const auto opened = ProcessMemory::open(getpid(), reserved.pages()[0]);
  ASSERT_TRUE(opened) << opened.error().message;

  const auto found = (*opened)->extents({reserved.start(), Reservation::kReserved});

  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].offset, reserved.pages()[i]);
    EXPECT_EQ(found[i].size, kPage);
  }
  const auto part = (*opened)->extents({reserved.pages()[0] + 8, 16});
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].offset, reserved.pages()[0] + 8);
  EXPECT_EQ(part[0].size, 16u);
}

TEST(ProcessMemory, LooksPageByPageOnlyWhereSomethingIs) {
  const Reservation reserved;
  if (reserved.start() == 0) GTEST_SKIP() << "this host reserves no 16 TiB";
  const UniqueFd pagemap(open("/proc/self/pagemap", O_RDONLY));
  const std::uint64_t slice = reserved.end() - Reservation::kSlice;
  const auto smaps = fmt::format(
      "{:x}-{:x} rw-p 00000000 00:00 0\nRss: 0 kB\nSwap: 0 kB\n"
      "{:x}-{:x} rw-p 00000000 00:00 0\nRss: 4 kB\nSwap: 0 kB\n",
      reserved.start(), slice, slice, reserved.end());

  const auto found = read_pagemap(pagemap.get(), smaps, {reserved.start(), Reservation::kReserved});

  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().offset, reserved.pages()[2]);
  EXPECT_EQ(found->front().size, kPage);
  EXPECT_FALSE(read_pagemap(pagemap.get(), "", {slice, kPage})) << "nothing is said of it";
}

TEST(ProcessMemory, RefusesWhatTheProcessHasNotMapped) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened);
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kPage, std::move(*opened), 0x10000}});
  std::array<std::byte, 8> out{};

  EXPECT_FALSE(memory.read(GuestPhys(0), out));
  EXPECT_FALSE(memory.write(GuestPhys(0), out));
  EXPECT_FALSE(memory.load64(GuestPhys(0)));
  EXPECT_FALSE(memory.store64(GuestPhys(0), 1));
}

TEST(ProcessMemory, WritesNothingOnceTheProcessHasEnded) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened);
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kSize, std::move(*opened), child.start()}});
  const std::array sent{std::byte{42}};

  child.end();

  EXPECT_FALSE(memory.write(GuestPhys(0), sent));
  std::byte value{};
  EXPECT_FALSE(memory.read(GuestPhys(0), std::span(&value, 1)));
}

TEST(ProcessMemory, SaysWhatIsWrongWithAProcess) {
  Child child;
  const pid_t gone = child.pid();
  const std::uint64_t start = child.start();
  EXPECT_FALSE(ProcessMemory::open(gone, 0x10000)) << "nothing is mapped there";
  child.end();

  const auto opened = ProcessMemory::open(gone, start);

  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::NotFound);
}

TEST(ProcessMemory, ReadsManyPartsInTheirOrder) {
  Child child;
  auto opened = ProcessMemory::open(child.pid(), child.start());
  ASSERT_TRUE(opened);
  auto memory = GuestMemory::by_copies({{GuestPhys(0), kSize, std::move(*opened), child.start()}});
  for (std::size_t page = 0; page < kPages; ++page) {
    ASSERT_TRUE(memory.store64(GuestPhys(page * kPage), page));
  }
  std::array<std::uint64_t, kPages> values{};
  std::vector<GuestMemory::Part> parts;
  for (std::size_t page = 0; page < kPages; ++page) {
    parts.push_back({GuestPhys((kPages - 1 - page) * kPage),
                     std::as_writable_bytes(std::span(&values[page], 1))});
  }

  ASSERT_TRUE(memory.read_each(parts)) << "more than one call takes";
  ASSERT_TRUE(memory.read_each(std::span(parts).first(3)));

  for (std::size_t page = 0; page < kPages; ++page) EXPECT_EQ(values[page], kPages - 1 - page);
  parts.push_back({GuestPhys(kSize), std::as_writable_bytes(std::span(&values[0], 1))});
  EXPECT_FALSE(memory.read_each(std::span(parts).last(2))) << "one of them lies outside";
}

UniqueFd sparse_file() {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), kSize), 0);
  const char seven = 7;
  EXPECT_EQ(pwrite(file.get(), &seven, 1, 5 * kPage), 1);
  return file;
}

TEST(FileMemory, IsWhatIsInTheFile) {
  UniqueFd file = sparse_file();
  const int fd = file.get();
  auto memory = GuestMemory::by_copies(
      {{GuestPhys(0x100000), kSize, std::make_shared<FileMemory>(std::move(file)), 0}});
  const std::array sent{std::byte{42}};

  EXPECT_EQ(byte_at(memory, 0x100000 + 5 * kPage), std::byte{7});
  ASSERT_TRUE(memory.write(GuestPhys(0x100000 + 9 * kPage), sent));

  char got = 0;
  EXPECT_EQ(pread(fd, &got, 1, 9 * kPage), 1);
  EXPECT_EQ(got, 42);
  EXPECT_TRUE(memory.mapping(GuestPhys(0x100000), 8).empty());
}

TEST(FileMemory, TellsHoles) {
  const auto memory = GuestMemory::by_copies(
      {{GuestPhys(0), 4 * kPage, std::make_shared<FileMemory>(sparse_file()), 4 * kPage}});

  const auto present = memory.present_extents();

  ASSERT_EQ(present.size(), 1u);
  EXPECT_EQ(present[0].base.raw(), kPage);
  EXPECT_EQ(present[0].size, kPage);
}

TEST(FileMemory, NeverGrowsAndEndsWhereTheFileEnds) {
  UniqueFd file = sparse_file();
  const int fd = file.get();
  auto memory = GuestMemory::by_copies(
      {{GuestPhys(0), 2 * kSize, std::make_shared<FileMemory>(std::move(file)), 0}});
  std::array<std::byte, 8> bytes{};

  EXPECT_FALSE(memory.read(GuestPhys(kSize - 4), bytes)) << "the file is shorter than was said";
  EXPECT_FALSE(memory.write(GuestPhys(kSize - 4), bytes));
  EXPECT_EQ(lseek(fd, 0, SEEK_END), static_cast<off_t>(kSize));
}

TEST(FileMemory, RefusesToWriteWhatIsOpenForReadingOnly) {
  const UniqueFd file = sparse_file();
  UniqueFd read_only(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY));
  ASSERT_TRUE(read_only);
  auto memory = GuestMemory::by_copies(
      {{GuestPhys(0), kSize, std::make_shared<FileMemory>(std::move(read_only)), 0}});

  EXPECT_EQ(byte_at(memory, 5 * kPage), std::byte{7});
  EXPECT_FALSE(memory.write(GuestPhys(0), std::array{std::byte{1}}));
  EXPECT_FALSE(memory.store64(GuestPhys(8), 1));
}

TEST(FileMemory, IsReadAcrossTwoRegions) {
  auto file = std::make_shared<FileMemory>(sparse_file());
  const auto memory = GuestMemory::by_copies(
      {{GuestPhys(kPage), kPage, file, 5 * kPage}, {GuestPhys(0), kPage, file, 4 * kPage}});
  std::array<std::byte, 2> across{};

  ASSERT_TRUE(memory.read(GuestPhys(kPage - 1), across));

  EXPECT_EQ(across[0], std::byte{0});
  EXPECT_EQ(across[1], std::byte{7});
}

}  // namespace
}  // namespace ringside::vmm
