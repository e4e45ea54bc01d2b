#include "vmm/saved/saved_machine.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {
namespace {

/// Before the program headers.
constexpr std::size_t kHeaders = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr);

/// A file that goes with the test.
class File {
 public:
  explicit File(const std::vector<std::byte>& bytes, std::uint64_t size = 0) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (size != 0) {
      EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
    }
    close(fd);
  }
  ~File() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "/savedXXXXXX";
};

class CoreBuilder {
 public:
  CoreBuilder& note(std::string_view name, std::uint32_t type, std::vector<std::byte> data) {
    const Elf64_Nhdr header{static_cast<std::uint32_t>(name.size() + 1),
                            static_cast<std::uint32_t>(data.size()), type};
    add(notes_, &header, sizeof header);
    add(notes_, name.data(), name.size());
    notes_.resize((notes_.size() + 1 + 3) / 4 * 4);
    add(notes_, data.data(), data.size());
    notes_.resize((notes_.size() + 3) / 4 * 4);
    return *this;
  }
  /// A page whose first byte is `mark`.
  CoreBuilder& page(std::uint64_t at, char mark, std::uint64_t pages = 1) {
    segments_.push_back({at, memory_.size(), pages * 4096});
    for (std::uint64_t i = 0; i < pages; ++i) {
      memory_.resize(memory_.size() + 4096);
      memory_[memory_.size() - 4096] = static_cast<std::byte>(mark + static_cast<char>(i));
    }
    return *this;
  }
  /// Names the page again that was put as number `which`.
  CoreBuilder& again(std::uint64_t at, std::uint64_t which) {
    segments_.push_back({at, which * 4096, 4096});
    return *this;
  }
  std::vector<std::byte> build(std::uint16_t type = ET_CORE) const {
    Elf64_Ehdr head = arch::elf_header(type);
    head.e_phoff = sizeof head;
    head.e_phentsize = sizeof(Elf64_Phdr);
    const std::uint64_t count = 1 + segments_.size();
    Elf64_Shdr first{};  // has the number where the header has no room for it
    first.sh_info = static_cast<std::uint32_t>(count);
    head.e_phoff += sizeof first;
    head.e_shoff = sizeof head;
    head.e_phnum = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, PN_XNUM));
    std::vector<std::byte> file;
    add(file, &head, sizeof head);
    add(file, &first, sizeof first);
    const std::uint64_t notes_at = sizeof head + sizeof first + count * sizeof(Elf64_Phdr);
    Elf64_Phdr notes{};
    notes.p_type = PT_NOTE;
    notes.p_offset = notes_at;
    notes.p_filesz = notes_.size();
    add(file, &notes, sizeof notes);
    for (const Segment& segment : segments_) {
      Elf64_Phdr load{};
      load.p_type = PT_LOAD;
      load.p_paddr = segment.at;
      load.p_offset = notes_at + notes_.size() + segment.offset;
      load.p_filesz = load.p_memsz = segment.size;
      add(file, &load, sizeof load);
    }
    file.insert(file.end(), notes_.begin(), notes_.end());
    file.insert(file.end(), memory_.begin(), memory_.end());
    return file;
  }

 private:
  struct Segment {
    std::uint64_t at, offset, size;
  };
  static void add(std::vector<std::byte>& to, const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    to.insert(to.end(), bytes, bytes + size);
  }
  std::vector<std::byte> notes_, memory_;
  std::vector<Segment> segments_;
};

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> status(std::uint64_t rip, std::uint64_t rsp) {
  std::vector<std::byte> note(core_notes::kPrStatusBytes);
  put(note, core_notes::kPrStatusRegisters + std::size_t{16} * 8, rip);
  put(note, core_notes::kPrStatusRegisters + std::size_t{19} * 8, rsp);
  return note;
}

char mark_at(SavedMachine& machine, std::uint64_t at) {
  char mark = 0;
  const bool read =
      machine.memory().read(GuestPhys(at), std::as_writable_bytes(std::span(&mark, 1)));
  return read ? mark : '-';
}

TEST(SavedMachine, ACoresMemoryLiesWhereItsHeadersSayAndEachPageOnce) {
  const File file(
      CoreBuilder().page(0x4000, 'c').page(0x1000, 'a', 2).page(0x2000, 'x', 2).build());
  auto machine = SavedMachine::open(file.path());

  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ(mark_at(**machine, 0), '-');
  EXPECT_EQ(mark_at(**machine, 0x1000), 'a');
  EXPECT_EQ(mark_at(**machine, 0x2000), 'b') << "the first that names a page has it";
  EXPECT_EQ(mark_at(**machine, 0x3000), 'y');
  EXPECT_EQ(mark_at(**machine, 0x4000), 'c');
  EXPECT_EQ((*machine)->vcpu_count(), 0u);
  EXPECT_EQ((*machine)->missing(), 0u);
}

TEST(SavedMachine, ACoreThatWasCutShortSaysHowMuchIsMissing) {
  auto core = CoreBuilder().page(0x1000, 'a').page(0x2000, 'b', 3).build();
  core.resize(core.size() - 2 * 4096);
  const File file(core);
  auto machine = SavedMachine::open(file.path());

  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ((*machine)->missing(), 2 * 4096u);
  EXPECT_EQ(mark_at(**machine, 0x2000), 'b');
  EXPECT_EQ(mark_at(**machine, 0x3000), '-');
}

TEST(SavedMachine, RegistersAreThoseOfTheStatusNotes) {
  const File file(CoreBuilder()
                      .note("CORE", NT_PRSTATUS, status(0x1234, 0x5678))
                      .note("CORE", NT_PRSTATUS, status(0x9abc, 0))
                      .note("VMCOREINFO", 0, std::vector<std::byte>(10))
                      .page(0, 'a')
                      .build());
  auto machine = SavedMachine::open(file.path());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  auto paused = PausedMachine::pause(**machine);

  EXPECT_EQ((*machine)->vcpu_count(), 2u);
  EXPECT_FALSE((*machine)->has_control_registers());
  EXPECT_EQ(paused->registers(0)->rip, 0x1234u);
  EXPECT_EQ(paused->registers(0)->rsp, 0x5678u);
  EXPECT_EQ(paused->registers(1)->rip, 0x9abcu);
  EXPECT_FALSE(paused->registers(2).has_value());
}

TEST(SavedMachine, QemusNotesTellControlRegistersAsWell) {
  using namespace core_notes;
  std::vector<std::byte> note(kQemuBytes);
  put(note, 0, kQemuVersion);
  put(note, kQemuRegisters + std::size_t{16} * 8, std::uint64_t{0xffff'ffff'8100'0000});  // rip
  put(note, kQemuSegments, std::uint32_t{0x10});                                          // cs
  put(note, kQemuSegments + Gs * kSegmentBytes + kSegmentBase,
      std::uint64_t{0xffff'8880'0000'0000});
  put(note, kQemuControl, std::uint64_t{0x8000'0001});
  put(note, kQemuControl + 24, std::uint64_t{0x3000});
  put(note, kQemuKernelGs, std::uint64_t{77});
  const File file(CoreBuilder()
                      .note("CORE", NT_PRSTATUS, status(1, 2))
                      .note("QEMU", 0, note)
                      .page(0, 'a')
                      .build());
  auto machine = SavedMachine::open(file.path());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  const Registers registers = *PausedMachine::pause(**machine)->registers(0);

  EXPECT_TRUE((*machine)->has_control_registers());
  EXPECT_EQ(registers.rip, 0xffff'ffff'8100'0000u);
  EXPECT_EQ(registers.cs, 0x10u);
  EXPECT_EQ(registers.gs_base, 0xffff'8880'0000'0000u);
  EXPECT_EQ(registers.kernel_gs_base, 77u);
  EXPECT_EQ(registers.cr3, 0x3000u);
  EXPECT_TRUE(arch::in_long_mode(registers));
}

TEST(SavedMachine, DamagedCoresAreRefusedInOneLine) {
  const auto whole = CoreBuilder().note("CORE", NT_PRSTATUS, status(1, 2)).page(0, 'a').build();
  for (const std::size_t size : {std::size_t{20}, sizeof(Elf64_Ehdr), kHeaders + 60,
                                 kHeaders + 2 * sizeof(Elf64_Phdr) + 100}) {
    const File file({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    const auto machine = SavedMachine::open(file.path());

    ASSERT_FALSE(machine.has_value()) << size;
    EXPECT_EQ(machine.error().message.find('\n'), std::string::npos);
    EXPECT_TRUE(machine.error().message.starts_with(file.path())) << machine.error().message;
  }
  const File executable(CoreBuilder().page(0, 'a').build(ET_EXEC));
  EXPECT_FALSE(SavedMachine::open(executable.path()).has_value());
  EXPECT_FALSE(SavedMachine::open("/does/not/exist").has_value());
  EXPECT_FALSE(SavedMachine::open("/dev/null").has_value());
}

TEST(SavedMachine, ADumpByVirtualMemoryHasMoreSegmentsThanItsHeaderCanCount) {
  CoreBuilder builder;
  constexpr std::uint64_t kCount = 66'500;
  builder.page(0x1000, 'a').page(0x3000, 'c');
  for (std::uint64_t i = 2; i < kCount; ++i) builder.again(0x1000 + (i % 2) * 0x2000, i % 2);
  auto core = builder.build();
  const File file(core);
  auto machine = SavedMachine::open(file.path());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ(mark_at(**machine, 0x1000), 'a');
  EXPECT_EQ(mark_at(**machine, 0x3000), 'c');

  put(core, sizeof(Elf64_Ehdr) + offsetof(Elf64_Shdr, sh_info), std::uint32_t{1} << 31);
  const File liar(core);
  EXPECT_FALSE(SavedMachine::open(liar.path()).has_value());
}

TEST(SavedMachine, LyingHeadersNeverLeadBehindTheFile) {
  auto core = CoreBuilder().page(0x1000, 'a').page(0x8000, 'b').build();
  const std::size_t first = kHeaders + sizeof(Elf64_Phdr);
  put(core, first + offsetof(Elf64_Phdr, p_filesz), std::uint64_t{1} << 63);
  put(core, first + sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, p_paddr), ~std::uint64_t{4095});
  const File file(core);
  auto machine = SavedMachine::open(file.path());

  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ(mark_at(**machine, 0x1000), 'a');
  EXPECT_EQ(mark_at(**machine, std::uint64_t{1} << 40), '-');
}

TEST(SavedMachine, OtherFormsAreNamedWithTheWayOut) {
  for (const std::string_view magic : {"KDUMP   ", "DISKDUMP"}) {
    const auto bytes = std::as_bytes(std::span(magic.data(), magic.size()));
    const File file({bytes.begin(), bytes.end()}, 16 << 20);
    const auto machine = SavedMachine::open(file.path());

    ASSERT_FALSE(machine.has_value()) << magic;
    EXPECT_NE(machine.error().message.find("an ELF core instead"), std::string::npos);
  }
}

TEST(SavedMachine, ARawFileIsSplitWhereItsRamEnds) {
  constexpr std::uint64_t kGib = 1 << 30;
  const File small({}, 16 << 20), large({}, 5 * kGib);
  auto machine = SavedMachine::open(large.path());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  ASSERT_TRUE(SavedMachine::open(small.path()).has_value());

  EXPECT_TRUE((*machine)->is_raw());
  EXPECT_EQ((*machine)->split_for(6 * kGib), 3 * kGib);
  EXPECT_EQ((*machine)->split_for(4 * kGib), std::nullopt);
  EXPECT_EQ((*machine)->split_for(64 * kGib), std::nullopt);
  (*machine)->split_at(3 * kGib);
  EXPECT_EQ(mark_at(**machine, 3 * kGib), '-');
  EXPECT_EQ(mark_at(**machine, 6 * kGib - 1), '\0');
}

}  // namespace
}  // namespace ringside::vmm
