// The list of faults, searched by the code that the guest searches it with.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "vmm/base/check.h"
#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

class FaultsInSlots : public ShimChannel {};

INSTANTIATE_TEST_SUITE_P(Every, FaultsInSlots, kEveryReach, reach_name);

/// The code of TrapTable::fault_search() with a list of ours, as a function of its first argument.
class RunnableSearch {
 public:
  RunnableSearch(std::span<const std::byte> code, std::uint64_t first)
      : page_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0)) {
    CHECK(page_ != MAP_FAILED);
    constexpr std::uint8_t kAnswer[] = {0x48, 0x89, 0xf8, 0xc3};  // mov rax, rdi; ret
    constexpr std::uint32_t kFirst = 0x800;
    auto* const bytes = static_cast<std::byte*>(page_);
    std::ranges::copy(code, bytes);
    std::memcpy(bytes + code.size(), kAnswer, sizeof kAnswer);
    const std::uint32_t distance = kFirst - SHIM_FAULT_SEARCH_FIRST_END;
    std::memcpy(bytes + SHIM_FAULT_SEARCH_FIRST_END - sizeof distance, &distance, sizeof distance);
    std::memcpy(bytes + kFirst, &first, sizeof first);
  }
  RunnableSearch(const RunnableSearch&) = delete;
  RunnableSearch& operator=(const RunnableSearch&) = delete;
  ~RunnableSearch() { munmap(page_, kPage); }

  std::uint64_t operator()(std::uint64_t address) const {
    // SAFETY: the page begins with code that keeps to the calling convention.
    return reinterpret_cast<std::uint64_t (*)(std::uint64_t)>(page_)(address);
  }

 private:
  static constexpr std::size_t kPage = 4096;
  void* page_;
};

TEST_P(FaultsInSlots, AreSearchedByTheInstructionsOwnPlace) {
  const auto search = shim_.allocate_slot(TrapTable::kFaultSearchBytes);
  const auto code = shim_.fault_search(*search);
  ASSERT_TRUE(code);
  ASSERT_EQ(code->size(), TrapTable::kFaultSearchBytes);
  for (const std::uint64_t n : {1, 2, 3}) {
    ASSERT_TRUE(shim_.add_fault(GuestVirt(slot_.raw() + n), GuestVirt(kText.raw() + n)));
  }
  std::int32_t distance;
  std::memcpy(&distance, code->data() + 5, sizeof distance);
  const std::uint64_t first = search->raw() + 9 + static_cast<std::uint64_t>(distance);

  // The list as the guest reads it, moved to where we can run the code.
  const auto word = [this](std::uint64_t at) {
    std::uint64_t value;
    std::memcpy(&value, bytes().data() + (at - kBase.raw()), sizeof value);
    return value;
  };
  std::vector<std::array<std::uint64_t, 3>> list;
  for (std::uint64_t at = word(first); at != 0; at = word(at)) {
    EXPECT_EQ(at % 8, 0u) << "else the guest could see half of it";
    list.push_back({0, word(at + 8), word(at + 16)});
  }
  ASSERT_EQ(list.size(), 3u);
  for (std::size_t n = 1; n < list.size(); ++n) {
    list[n - 1][0] = reinterpret_cast<std::uint64_t>(&list[n]);
  }
  const RunnableSearch run(*code, reinterpret_cast<std::uint64_t>(list.data()));

  for (const std::uint64_t n : {1, 2, 3}) EXPECT_EQ(run(slot_.raw() + n), kText.raw() + n);
  for (const std::uint64_t other : {slot_.raw(), slot_.raw() + 4, kText.raw() + 1}) {
    EXPECT_EQ(run(other), other);
  }
  EXPECT_EQ(RunnableSearch(*code, 0)(slot_.raw() + 1), slot_.raw() + 1) << "nothing may fault yet";
}

}  // namespace
}  // namespace ringside::vmm
