// Where do_syscall_64 stores a call's result, in code as compilers and the kernel's own patching
// leave it.
#include "providers/functions/syscall_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "providers/testing/functions_for_tests.h"

namespace ringside::providers {
namespace {

using CodeBytes = std::vector<std::uint8_t>;

const CodeBytes kCallRax{0xff, 0xd0};               // call rax
const CodeBytes kStoreRax{0x48, 0x89, 0x43, 0x50};  // mov [rbx + 0x50], rax

class SharedReturns : public FunctionProviders {
 protected:
  /// Where the result is stored, from the ftrace nop on, by which register.
  std::vector<SharedReturn> found_in(std::initializer_list<CodeBytes> parts) {
    CodeBytes body;
    for (const CodeBytes& part : parts) body.insert(body.end(), part.begin(), part.end());
    body.push_back(0xc3);
    begin_ = function("do_syscall_64", body);
    seal();
    return find_shared_returns(text_, kernel_.symbols(), find_pt_regs(kernel_.types()));
  }
  GuestVirt at(std::size_t offset) const { return begin_.wrapping_add(kNopSize + offset); }

 private:
  GuestVirt begin_;
};

TEST_F(SharedReturns, AStoreRightAfterACallIsOne) {
  const auto found = found_in({kCallRax, kStoreRax, kStoreRax});

  ASSERT_EQ(found.size(), 1u) << "the second store is after no call";
  EXPECT_EQ(found[0].address, at(2));
  EXPECT_EQ(found[0].pt_regs, &Registers::rbx);
}

TEST_F(SharedReturns, NopsThatFillAPatchedCallAreBetween) {
  const auto found = found_in({kCallRax, {0x0f, 0x1f, 0x00}, {0x66, 0x90}, {0x90}, kStoreRax});

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].address, at(8));
}

TEST_F(SharedReturns, CodeThatIsNoNopIsNotBetween) {
  EXPECT_TRUE(found_in({kCallRax, {0x66, 0x89, 0xc0}, kStoreRax}).empty()) << "mov ax, ax";
}

TEST_F(SharedReturns, TheRegistersMayBeHeldByAnyRegister) {
  const auto found = found_in({kCallRax, {0x49, 0x89, 0x44, 0x24, 0x50}});  // mov [r12 + 0x50], rax

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pt_regs, &Registers::r12);
}

TEST_F(SharedReturns, OtherStoresAreNone) {
  // Of another word, of half of it, and of rbx.
  EXPECT_TRUE(found_in({kCallRax,
                        {0x48, 0x89, 0x43, 0x58},
                        kCallRax,
                        {0x89, 0x43, 0x50},
                        kCallRax,
                        {0x48, 0x89, 0x5b, 0x50}})
                  .empty());
}

}  // namespace
}  // namespace ringside::providers
