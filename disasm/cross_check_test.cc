#include "disasm/cross_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>

namespace ringside::disasm {
namespace {

/// The executable segments of every library in this process, the C library's among them.
std::vector<std::span<const std::byte>> host_text() {
  std::vector<std::span<const std::byte>> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (std::strstr(info->dlpi_name, "libc.so") == nullptr) return 0;
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          // SAFETY: the loader says that these bytes are mapped, for the life of the process.
          const auto* base = reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr);
          static_cast<std::vector<std::span<const std::byte>>*>(out)->emplace_back(base,
                                                                                   segment.p_memsz);
        }
        return 0;
      },
      &found);
  return found;
}

TEST(CrossCheck, DecodersAgreeOnTheHostsCLibrary) {
  CrossCheck all;

  for (const auto text : host_text()) all.add(cross_check(text, GuestVirt(0x400000)));

  EXPECT_GT(all.instructions, 100'000u) << "the corpus is the text of the C library";
  for (const auto& difference : all.unexplained) {
    ADD_FAILURE() << fmt::format("{:#x}: Zydis {}, Capstone {}", difference.address.raw(),
                                 difference.zydis, difference.capstone);
  }
}

TEST(CrossCheck, KnowsTheOneDocumentedDifference) {
  const std::byte text[] = {std::byte{0x0f}, std::byte{0xb9}, std::byte{0xcc}, std::byte{0xc3}};

  const CrossCheck result = cross_check(text, GuestVirt(0));

  EXPECT_EQ(result.ud1, 1u);
  EXPECT_EQ(result.instructions, 2u);
  EXPECT_TRUE(result.unexplained.empty());
}

TEST(CrossCheck, CountsBytesThatNobodyKnows) {
  const std::byte text[] = {std::byte{0x06}, std::byte{0x90}};

  const CrossCheck result = cross_check(text, GuestVirt(0));

  EXPECT_EQ(result.neither, 1u);
  EXPECT_EQ(result.instructions, 1u);
}

}  // namespace
}  // namespace ringside::disasm
