#include "vmm/linux/processes/static_probes.h"

#include <gtest/gtest.h>

#include <random>

#include "vmm/linux/processes/elf_file_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::ElfFile;

constexpr std::uint64_t kProbesAt = 0x1000, kDataAt = 0x2f00;

std::vector<StaticProbe> probes_of(std::span<const std::byte> file) {
  fakes::PagedGuest guest;
  fakes::PageCacheWriter cache(guest);
  const PageCacheLayout layout = fakes::page_cache_layout();
  const auto pages =
      FilePages::of_inode(cache.memory(), guest, layout, GuestVirt(cache.whole(file)));
  const auto elf = pages ? FileElf::read(*pages) : std::nullopt;
  return elf ? read_static_probes(*pages, *elf) : std::vector<StaticProbe>();
}

class StaticProbes : public testing::Test {
 protected:
  StaticProbes() { file_.data = 0x100; }
  ElfFile file_{kProbesAt, 0x2000};
};

TEST_F(StaticProbes, HaveWhatTheirNotesSay) {
  file_.add_static_probe("sample", "call__start", "8@%rdi -4@$5", kProbesAt + 0x40);
  file_.add_note("GNU", 3, "another's");
  file_.add_note("stapsdt", 4, "of another type");
  file_.add_static_probe("other", "end", "", kProbesAt + 0x50, kDataAt + 2);
  const auto found = probes_of(file_.encode());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].provider, "sample");
  EXPECT_EQ(found[0].name, "call__start");
  EXPECT_EQ(found[0].arguments, "8@%rdi -4@$5");
  EXPECT_EQ(found[0].offset, kProbesAt + 0x40);
  EXPECT_FALSE(found[0].semaphore);
  EXPECT_EQ(found[1].provider, "other");
  EXPECT_EQ(found[1].semaphore, kDataAt + 2);
}

TEST_F(StaticProbes, MoveWithTheirBase) {
  file_.probes_base = 0x1200;
  file_.add_static_probe("sample", "one", "", kProbesAt + 0x40, kDataAt - 0x100, 0x1100);
  const auto found = probes_of(file_.encode());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].offset, kProbesAt + 0x140);
  EXPECT_EQ(found[0].semaphore, kDataAt);
}

TEST_F(StaticProbes, VariablesAreNamedByTheirDistance) {
  file_.add_function("total", kDataAt + 0x10, 8, STT_OBJECT);
  file_.add_function("at.0", kDataAt, 8, STT_OBJECT);
  file_.add_static_probe("sample", "one",
                         "8@total(%rip) -4@at.0+4(%rip) 4@-8+total(%rip) 8@other(%rip) 8@%rdi "
                         "8@total-at.0(%rip) 8@8(%rip)",
                         kDataAt);
  const auto found = probes_of(file_.encode());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].arguments,
            "8@16(%rip) -4@4(%rip) 4@8(%rip) 8@other(%rip) 8@%rdi 8@total-at.0(%rip) 8@8(%rip)");
}

TEST_F(StaticProbes, AreNoneWhereTheNoteContradictsTheFile) {
  file_.add_static_probe("sample", "nowhere", "", 0x800000);
  file_.add_static_probe("sample", "no_data", "", kProbesAt, kProbesAt);
  file_.add_static_probe("sample", "in_two_pages", "", kProbesAt, 0x2fff);
  file_.add_static_probe("", "one", "", kProbesAt);
  file_.add_static_probe("sam:ple", "one", "", kProbesAt);
  file_.add_static_probe("sample", "two words", "", kProbesAt);
  file_.add_static_probe("sample", "one", "8@%rdi\n", kProbesAt);
  file_.add_note("stapsdt", 3, "short");
  file_.add_static_probe("sample", "right", "", kProbesAt);
  const auto found = probes_of(file_.encode());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "right");
}

TEST_F(StaticProbes, ABentFileDoesNoHarm) {
  for (unsigned n = 0; n < 20; ++n) {
    file_.add_static_probe("sample", "p" + std::to_string(n), "8@%rdi", kProbesAt + n, kDataAt);
  }
  const auto whole = file_.encode();
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 2000; ++round) {
    auto bent = whole;
    for (unsigned n = 0; n < 1 + round % 8; ++n) {
      const std::uint64_t at = random() % (bent.size() - 0x2000);
      bent[at < kProbesAt ? at % 180 : at + 0x2000] = static_cast<std::byte>(random());
    }
    for (const StaticProbe& each : probes_of(bent)) {
      EXPECT_FALSE(each.provider.empty());
      EXPECT_LT(each.offset, bent.size());
      EXPECT_LT(each.semaphore.value_or(0), bent.size());
    }
  }
}

}  // namespace
}  // namespace ringside::guest_linux
