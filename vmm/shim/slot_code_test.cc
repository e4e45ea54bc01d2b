// The code of special slots, to the byte: a guest runs it in its kernel. The search is run by
// fault_search_test.cc.
#include "vmm/shim/slot_code.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "vmm/shim/shim.h"

namespace ringside::vmm {
namespace {

constexpr GuestVirt kCodeSlot{0xffffffff9f201000};

std::vector<std::byte> bytes_of(std::initializer_list<unsigned char> values) {
  std::vector<std::byte> out;
  for (const unsigned char value : values) out.push_back(std::byte{value});
  return out;
}

TEST(SlotCode, AKexecNoticeWritesTwoWordsThatLieBeforeIt) {
  const auto code = kexec_notice_code(kCodeSlot, GuestVirt(0xffffffff9f200000));

  EXPECT_EQ(code, bytes_of({
                      0x48, 0xc7, 0x05, 0x3d, 0xf0, 0xff, 0xff, 1, 0, 0, 0,  // movq $1, left
                      0x48, 0xc7, 0x05, 0xea, 0xef, 0xff, 0xff, 0, 0, 0, 0,  // movq $0, active
                  }));
}

TEST(SlotCode, AFaultSearchBeginsAtAWordThatLiesAfterIt) {
  const auto code = fault_search_code(kCodeSlot, GuestVirt(0xffffffff9f201028));

  EXPECT_EQ(code, bytes_of({
                      0x50,                             // 0: push rax
                      0x9c,                             // 1: pushfq
                      0x48, 0x8b, 0x05, 0x1f, 0, 0, 0,  // 2: mov rax, [rip + first]
                      0x48, 0x85, 0xc0,                 // 9: test rax, rax
                      0x74, 15,                         // 12: jz 29
                      0x48, 0x3b, 0x78, 8,              // 14: cmp rdi, [rax + 8]
                      0x74, 5,                          // 18: je 25
                      0x48, 0x8b, 0x00,                 // 20: mov rax, [rax]
                      0xeb, 0xf0,                       // 23: jmp 9
                      0x48, 0x8b, 0x78, 16,             // 25: mov rdi, [rax + 16]
                      0x9d,                             // 29: popfq
                      0x58,                             // 30: pop rax
                  }));
  EXPECT_EQ(code.size(), TrapTable::kFaultSearchBytes);
}

}  // namespace
}  // namespace ringside::vmm
