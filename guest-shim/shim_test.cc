// The shim's real code, run natively: the test builds the frame that a CPU pushes for int3, jumps
// to the entry, or to a jump's record without cli, and plays the host by hand. Three instructions
// cannot run in user mode and are replaced in the copy: the test for a user-mode frame looks at an
// unused bit, CR3 reads as 0 or is r15, and the doorbell's OUT is an int3, whose signal handler
// stands for whoever runs the vCPU.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <variant>
#include <vector>

#include "guest-shim/mailbox_abi.h"

// Registers in x86's numbering, [16] is rflags; where: 1 the slot, 2 the kernel's own handler.
extern "C" {
std::uint64_t shim_test_in[17], shim_test_out[17];
std::uint64_t shim_test_rip, shim_test_entry, shim_test_where, shim_test_stack;
void shim_test_run();
void shim_test_run_jump();
void shim_test_slot();
void shim_test_original();
}

asm(R"(
  .macro load_registers
  mov shim_test_in + 8 * 0(%rip), %rax
  mov shim_test_in + 8 * 1(%rip), %rcx
  mov shim_test_in + 8 * 2(%rip), %rdx
  mov shim_test_in + 8 * 3(%rip), %rbx
  mov shim_test_in + 8 * 5(%rip), %rbp
  mov shim_test_in + 8 * 6(%rip), %rsi
  mov shim_test_in + 8 * 7(%rip), %rdi
  mov shim_test_in + 8 * 8(%rip), %r8
  mov shim_test_in + 8 * 9(%rip), %r9
  mov shim_test_in + 8 * 10(%rip), %r10
  mov shim_test_in + 8 * 11(%rip), %r11
  mov shim_test_in + 8 * 12(%rip), %r12
  mov shim_test_in + 8 * 13(%rip), %r13
  mov shim_test_in + 8 * 14(%rip), %r14
  mov shim_test_in + 8 * 15(%rip), %r15
  .endm
  .text
  .globl shim_test_run, shim_test_run_jump, shim_test_slot, shim_test_original
shim_test_run:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq
  mov %rsp, shim_test_stack(%rip)
  mov shim_test_in + 8 * 4(%rip), %rsp
  and $-16, %rsp
  mov %ss, %eax
  push %rax
  pushq shim_test_in + 8 * 4(%rip)
  pushq shim_test_in + 8 * 16(%rip)
  mov %cs, %eax
  push %rax
  pushq shim_test_rip(%rip)
  load_registers
  jmp *shim_test_entry(%rip)
shim_test_run_jump:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq
  mov %rsp, shim_test_stack(%rip)
  pushq shim_test_in + 8 * 16(%rip)
  popfq
  mov shim_test_in + 8 * 4(%rip), %rsp
  load_registers
  jmp *shim_test_entry(%rip)
shim_test_slot:
  movq $1, shim_test_where(%rip)
  jmp 1f
shim_test_original:
  movq $2, shim_test_where(%rip)
1:
  mov %rax, shim_test_out + 8 * 0(%rip)
  mov %rcx, shim_test_out + 8 * 1(%rip)
  mov %rdx, shim_test_out + 8 * 2(%rip)
  mov %rbx, shim_test_out + 8 * 3(%rip)
  mov %rsp, shim_test_out + 8 * 4(%rip)
  mov %rbp, shim_test_out + 8 * 5(%rip)
  mov %rsi, shim_test_out + 8 * 6(%rip)
  mov %rdi, shim_test_out + 8 * 7(%rip)
  mov %r8, shim_test_out + 8 * 8(%rip)
  mov %r9, shim_test_out + 8 * 9(%rip)
  mov %r10, shim_test_out + 8 * 10(%rip)
  mov %r11, shim_test_out + 8 * 11(%rip)
  mov %r12, shim_test_out + 8 * 12(%rip)
  mov %r13, shim_test_out + 8 * 13(%rip)
  mov %r14, shim_test_out + 8 * 14(%rip)
  mov %r15, shim_test_out + 8 * 15(%rip)
  mov shim_test_stack(%rip), %rsp
  pushfq
  popq shim_test_out + 8 * 16(%rip)
  popfq
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
  ret
)");

namespace ringside {
namespace {

constexpr std::uint64_t kAddress = 0x10001000;  // of the int3; a key is the low half of an address
constexpr std::uint64_t kForever = std::uint64_t{UINT32_MAX} << SHIM_WAIT_SHIFT;

std::uint64_t address_of(const void* what) {
  return reinterpret_cast<std::uint64_t>(what);
}

void put_jump(unsigned char* at, void (*to)()) {
  const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};  // to the address after it
  const auto target = reinterpret_cast<std::uint64_t>(to);
  std::memcpy(at, jump, sizeof jump);
  std::memcpy(at + sizeof jump, &target, sizeof target);
}
void put_jump_to_slot_end(unsigned char* at) {
  put_jump(at, &shim_test_slot);
}

struct Rings {
  unsigned count = 0;
  std::uint64_t value = 0, port = 0;
  volatile shim_head* to_answer = nullptr;  // null: nobody is at home
};
Rings rings;

void answer_head(volatile shim_head& head) {
  head.answered = head.head & ~std::uint64_t{0xff};
}

/// The int3 in place of OUT: what the vCPU's thread does at such an exit.
void on_ring(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  ++rings.count;
  rings.value = static_cast<std::uint64_t>(registers[REG_RAX]);
  rings.port = static_cast<std::uint64_t>(registers[REG_RDX]);
  if (rings.to_answer != nullptr) answer_head(*rings.to_answer);
}

/// The host's changes while a CPU stands in the shim: the first before it reads the text, which
/// cannot be read until then, the others after each instruction from there on.
struct Changes {
  std::vector<std::function<void()>> left;
  std::function<void()> let_read;
};
Changes changes;

void change(ucontext_t* context) {
  constexpr greg_t kTrapFlag = 0x100;
  changes.left.front()();
  changes.left.erase(changes.left.begin());
  greg_t& flags = context->uc_mcontext.gregs[REG_EFL];
  flags = changes.left.empty() ? flags & ~kTrapFlag : flags | kTrapFlag;
}
void on_read(int, siginfo_t*, void* context) {
  changes.let_read();
  change(static_cast<ucontext_t*>(context));
}
void on_step(int, siginfo_t*, void* context) {
  change(static_cast<ucontext_t*>(context));
}

/// While one lives, the signal leads to the function, on a stack of its own: the trapped one is the
/// test's own small one, and the kernel needs room for a signal frame.
class SignalHandler {
 public:
  SignalHandler(int signal, void (*function)(int, siginfo_t*, void*)) : signal_(signal) {
    struct sigaction action {};
    action.sa_sigaction = function;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal_, &action, &before_);
    stack_t stack{};
    stack.ss_sp = room_.data();
    stack.ss_size = room_.size();
    sigaltstack(&stack, &stack_before_);
  }
  ~SignalHandler() {
    sigaltstack(&stack_before_, nullptr);
    sigaction(signal_, &before_, nullptr);
  }
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

 private:
  const int signal_;
  std::vector<char> room_ = std::vector<char>(64 << 10);
  struct sigaction before_ {};
  stack_t stack_before_{};
};

/// Where the test puts the parts of the region. The slots begin with the table; the one at kSlots
/// ends at shim_test_slot, the other one, of another trap point, like the kernel's own handler.
constexpr std::size_t kTable = SHIM_FETCH_AT + SHIM_PAGE, kPages = kTable + SHIM_PAGE,
                      kPagesBytes = SHIM_PAGES_WORDS * sizeof(std::uint16_t),
                      kBlocks = kPages + SHIM_PAGE, kSlots = kBlocks + 2 * SHIM_PAGE,
                      kOtherSlot = kSlots + 0x40, kData = kSlots + SHIM_PAGE;
constexpr std::size_t kRings = kData + SHIM_DATA_SIZE, kCpus = 2;
constexpr std::uint64_t kMost = 3;  // records of a ring, less one
constexpr std::size_t kRecordBytes = 256;
constexpr std::size_t kRecords = kRings + kCpus * SHIM_RING_SIZE;
constexpr std::size_t kRegion = kRecords + kCpus * 2 * (kMost + 1) * kRecordBytes;

/// A jump to where a slot ends, at an address that the table can hold; with another first byte.
class TrappedText {
 public:
  explicit TrappedText(unsigned char first) {
    constexpr std::size_t kPage = 4096;
    void* mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    bytes_ = static_cast<unsigned char*>(mapped);
    put_jump_to_slot_end(bytes_);
    bytes_[0] = first;
  }
  ~TrappedText() { munmap(bytes_, 4096); }
  TrappedText(const TrappedText&) = delete;
  TrappedText& operator=(const TrappedText&) = delete;
  std::uint64_t address() const { return address_of(bytes_); }
  void write(unsigned char first) const { bytes_[0] = first; }
  /// PROT_NONE: nobody can read it.
  void protect(int how) const { EXPECT_EQ(mprotect(bytes_, 4096, how), 0); }

 private:
  unsigned char* bytes_;
};

class ShimCode : public testing::Test {
 protected:
  static constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  void SetUp() override {
    void* mapped = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    region_ = static_cast<unsigned char*>(mapped);
    std::memcpy(region_, shim_image, shim_image_size);
    header().original = reinterpret_cast<std::uint64_t>(&shim_test_original);
    header().this_cpu_off = address_of(&percpu_);  // GS starts at 0 in user mode
    header().data = address_of(region_ + kData);
    header().slots = address_of(region_ + kTable);
    if (!is_of_process()) take_for_the_kernels();
    replace_tables();
    ASSERT_EQ(replace_all({0x0f, 0x01, 0xf8}, {0x0f, 0x1f, 0x00}), 3u);
    replace({0xc1, 0xe8, SHIM_HEAD_SHIFT, 0xef}, {0xc1, 0xe8, SHIM_HEAD_SHIFT, 0xcc});
    rings = {};
    add_entry(kAddress);
    put_jump_to_slot_end(region_ + kSlots);
    put_jump(region_ + kOtherSlot, &shim_test_original);
    control().active = 1;
    control().heartbeat = 1;
    wait_for(kForever);
    shim_test_entry = address_of(region_) + header().entry;
  }
  void TearDown() override { munmap(region_, kRegion); }
  virtual bool is_of_process() const { return false; }
  /// CR3, which reads as 0, and whose writes are lost; or r15, which the shim leaves alone.
  virtual bool has_tables_in_r15() const { return false; }
  void replace_tables() {
    const bool in_r15 = has_tables_in_r15();
    using Code = std::vector<unsigned char>;
    const Code to_rax = in_r15 ? Code{0x4c, 0x89, 0xf8} : Code{0x31, 0xc0, 0x90};
    const Code to_rdx = in_r15 ? Code{0x4c, 0x89, 0xfa} : Code{0x31, 0xd2, 0x90};
    const Code of_rax = in_r15 ? Code{0x49, 0x89, 0xc7} : Code{0x0f, 0x1f, 0x00};
    ASSERT_EQ(replace_all({0x0f, 0x20, 0xd8}, to_rax), 5u);
    ASSERT_EQ(replace_all({0x0f, 0x20, 0xda}, to_rdx), 2u);
    ASSERT_EQ(replace_all({0x0f, 0x22, 0xd8}, of_rax), 3u);
  }
  /// Our own traps as if they were in kernel mode.
  void take_for_the_kernels() {
    replace({0xf6, 0x44, 0x24, 0x08, 0x03}, {0xf6, 0x44, 0x24, 0x08, 0x40});
    // Bits 0 and 1 of cs are set in user mode. Those of the second byte are not, and of the flags
    // it is IF.
    for (const unsigned char bit : {1, 2}) {
      ASSERT_EQ(replace_all({0xf6, 0x44, 0x24, 40, bit}, {0xf6, 0x44, 0x24, 41, bit}), 2u);
      ASSERT_EQ(replace_all({0xf6, 0x44, 0x24, 48, bit}, {0xf6, 0x44, 0x24, 49, bit}), 1u);
    }
  }
  /// Without a heartbeat: so many ticks, or looks.
  void wait_for(std::uint64_t ticks, std::uint64_t looks = kForever) {
    control().timeout = ticks >> SHIM_WAIT_SHIFT | looks >> SHIM_WAIT_SHIFT << 32;
  }

  shim_header& header() { return *reinterpret_cast<shim_header*>(region_); }
  volatile shim_control& control() {
    return *reinterpret_cast<volatile shim_control*>(region_ + kData);
  }
  volatile shim_head& head(unsigned i) {
    return *reinterpret_cast<volatile shim_head*>(region_ + kData + SHIM_HEAD_AT(i));
  }
  volatile shim_box& box(unsigned i) {
    return *reinterpret_cast<volatile shim_box*>(region_ + kData + SHIM_BOX_AT(i));
  }
  unsigned state(unsigned i) { return head(i).head & 0xff; }
  unsigned char& before_slot(unsigned which) { return region_[kSlots - which]; }

  void replace(std::vector<unsigned char> what, std::vector<unsigned char> by) {
    auto* end = region_ + shim_image_size;
    auto* at = std::search(region_, end, what.begin(), what.end());
    ASSERT_NE(at, end);
    std::copy(by.begin(), by.end(), at);
  }
  /// Returns how many there were.
  unsigned replace_all(std::vector<unsigned char> what, std::vector<unsigned char> by) {
    auto* end = region_ + shim_image_size;
    unsigned count = 0;
    for (auto* at = region_; (at = std::search(at, end, what.begin(), what.end())) != end;
         ++count) {
      std::copy(by.begin(), by.end(), at);
    }
    return count;
  }
  /// Addresses of tasks are kernel addresses; those of a test are not. So JNS becomes JO, of either
  /// length.
  void take_any_task() {
    for (const unsigned char which : {0xc0, 0xd2}) {
      const unsigned count =
          replace_all({0x48, 0x85, which, 0x79}, {0x48, 0x85, which, 0x70}) +
          replace_all({0x48, 0x85, which, 0x0f, 0x89}, {0x48, 0x85, which, 0x0f, 0x80});
      ASSERT_NE(count, 0u);
    }
  }
  /// `slot`: 0 for a disabled entry.
  void add_entry(std::uint64_t address, std::size_t slot = kSlots) {
    const auto key = static_cast<std::uint32_t>(address);
    table_[key >> SHIM_PAGE_SHIFT][key % SHIM_PAGE] = slot;
    write_table();
  }
  template <class Word>
  void put_word(std::size_t array, std::size_t index, std::size_t value) {
    const auto word = static_cast<Word>(value);
    std::memcpy(region_ + array + sizeof word * index, &word, sizeof word);
  }
  void write_table() {
    std::memset(region_ + kTable, 0, kBlocks - kTable);
    std::size_t block = kBlocks, pages = kPages - kPagesBytes;
    const auto units = [](std::size_t at) { return (at - kTable) >> SHIM_BLOCK_SHIFT; };
    std::uint32_t part = UINT32_MAX;
    for (const auto& [page, entries] : table_) {
      if (part != page >> (SHIM_TABLE_SHIFT - SHIM_PAGE_SHIFT)) {
        part = page >> (SHIM_TABLE_SHIFT - SHIM_PAGE_SHIFT);
        pages += kPagesBytes;
        put_word<std::uint16_t>(kTable, part, units(pages));
      }
      put_word<std::uint16_t>(pages, page % SHIM_PAGES_WORDS, units(block));
      put_word<std::uint32_t>(block, 0, entries.size());
      std::size_t n = 0;
      for (const auto& [at, slot] : entries) {
        put_word<std::uint32_t>(block, ++n,
                                at << SHIM_ENTRY_SLOT_BITS | (slot == 0 ? 0 : slot - kTable));
      }
      block += (4 * (n + 1) + 7) / 8 * 8;
    }
    ASSERT_LE(block, kSlots - SHIM_SLOT_HEADER);
  }
  /// As the host does: the entry, then the count, then the int3.
  void arm(const TrappedText& text) {
    add_entry(text.address());
    control().armings = control().armings + 1;
    text.write(0xcc);
  }
  void take_out(std::uint64_t address) { add_entry(address, 0); }
  /// From now on trap() comes by a jump at this address, through a record behind the slot.
  void come_by_jump(std::uint64_t address) {
    unsigned char* record = region_ + kSlots + 0x100;
    *record++ = list_;
    std::memcpy(record, &address, 4);
    const unsigned char code[] = {0x9c, 0x90, 0xe8, 0, 0, 0, 0, 0x9d};
    unsigned char* entry = record + 4 + SHIM_JUMP_BYTES;
    std::memcpy(entry, code, sizeof code);
    const std::size_t called = records_ ? SHIM_RECORDING_JUMP_ENTRY : SHIM_JUMP_ENTRY;
    const auto distance =
        static_cast<std::int32_t>(region_ + called - (entry + SHIM_JUMP_CALL_END));
    std::memcpy(entry + 3, &distance, sizeof distance);
    put_jump_to_slot_end(entry + sizeof code);
    shim_test_entry = address_of(entry);
    by_jump_ = true;
  }
  /// One trap at `address` with random registers.
  void trap(std::uint64_t address = kAddress) {
    std::mt19937_64 random(7);
    for (auto& value : shim_test_in) value = random();
    for (const auto& [number, value] : registers_) shim_test_in[number] = value;
    constexpr std::uint64_t kStatusFlags = 0x8d5, kDirection = 0x400;
    shim_test_in[16] = (shim_test_in[16] & kStatusFlags) | kDirection | 0x202;
    shim_test_in[4] = (address_of(stack_ + sizeof stack_ / 2) & ~std::uint64_t{15}) + below_stack_;
    shim_test_rip = address + 1;
    shim_test_where = 0;
    by_jump_ ? shim_test_run_jump() : shim_test_run();
  }
  /// A trap at the text, which is changed while it is looked at.
  void trap_and_change(const TrappedText& text, std::vector<std::function<void()>> by) {
    changes = {std::move(by), [&] { text.protect(PROT_READ | PROT_WRITE | PROT_EXEC); }};
    const SignalHandler reads(SIGSEGV, on_read), steps(SIGTRAP, on_step);
    text.protect(PROT_NONE);
    trap(text.address());
    EXPECT_TRUE(changes.left.empty());
  }
  /// Runs `trap` while another thread does `host`.
  void trap_with(const std::function<void()>& host) {
    std::thread other(host);
    trap();
    other.join();
  }
  void wait_until_raised(unsigned i) {
    while (state(i) != SHIM_RAISED) std::this_thread::yield();
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  void answer(unsigned i) { answer_head(head(i)); }

  void expect_resumed() {
    EXPECT_EQ(shim_test_where, 1u);
    for (unsigned r = 0; r < 16; ++r) EXPECT_EQ(shim_test_out[r], shim_test_in[r]) << r;
    EXPECT_EQ(shim_test_out[16], shim_test_in[16]);
  }

  void expect_at_the_kernels_own(std::uint64_t int3) {
    EXPECT_EQ(shim_test_where, 2u);
    for (unsigned r = 0; r < 16; ++r) {
      const std::uint64_t frame = r == 4 ? 40 : 0;  // rsp stands at the CPU's own frame
      EXPECT_EQ(shim_test_out[r], shim_test_in[r] - frame) << r;
    }
    std::uint64_t pushed_rip;
    std::memcpy(&pushed_rip, reinterpret_cast<void*>(shim_test_out[4]), sizeof pushed_rip);
    EXPECT_EQ(pushed_rip, int3 + 1);
  }

  using Entries = std::map<std::uint32_t, std::size_t>;  // slots by the address in the page
  std::map<std::uint32_t, Entries> table_;               // by page
  std::uint64_t below_stack_ = 0;                        // 8: the frame has a word above it
  bool by_jump_ = false, records_ = false;
  unsigned char list_ = 0;                       // what a jump's record names
  std::map<unsigned, std::uint64_t> registers_;  // those that are not random
  unsigned char* region_ = nullptr;
  std::uint64_t percpu_ = 0xffff888012340000;
  alignas(16) unsigned char stack_[4096] = {};
};

/// As mailbox_abi.h says it, word by word.
std::uint64_t seal_of(const volatile shim_head& head, const volatile shim_box& box,
                      std::uint64_t seal) {
  const auto add = [&seal](std::uint64_t word) {
    seal = (seal << SHIM_SEAL_TURN | seal >> (64 - SHIM_SEAL_TURN)) + word;
  };
  add(box.start_time);
  add(box.pid | std::uint64_t{box.tgid} << 32);
  add(box.comm[1]);
  add(box.comm[0]);
  add(box.task);
  for (unsigned r = SHIM_REGISTERS; r-- > 0;) add(box.regs[r]);
  for (const std::uint64_t word :
       {head.segments, head.rflags, head.cr3, head.percpu, head.tsc, head.address}) {
    add(word);
  }
  return seal;
}

TEST_F(ShimCode, HandsEveryRegisterOverAndResumesInTheSlot) {
  shim_head seen{};
  shim_box registers{};
  trap_with([&] {
    wait_until_raised(0);
    std::memcpy(&seen, const_cast<shim_head*>(&head(0)), sizeof seen);
    std::memcpy(&registers, const_cast<shim_box*>(&box(0)), sizeof registers);
    answer(0);
  });

  expect_resumed();
  EXPECT_EQ(seen.address, kAddress);
  EXPECT_EQ(seen.head, SHIM_CLAIM | SHIM_RAISED);
  EXPECT_EQ(seen.answered, 0u);
  EXPECT_EQ(seen.percpu, percpu_);
  EXPECT_NE(seen.tsc, 0u);
  EXPECT_EQ(seen.rflags, shim_test_in[16]);
  for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(registers.regs[r], shim_test_in[r]) << r;
  EXPECT_EQ(registers.seal, seal_of(head(0), box(0), SHIM_CLAIM));
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

/// A page that ends with a pointer to a task, and that task.
class Tasks {
 public:
  Tasks() {
    void* mapped =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    words_ = static_cast<std::uint64_t*>(mapped);
    point_to(address_of(words_ + 1));
    std::memcpy(words_ + 10, "0123456789abcdef", 16);
    const std::uint32_t numbers[] = {7, 6};
    std::memcpy(words_ + 20, numbers, sizeof numbers);
    words_[21] = 5'000'000'000;
  }
  ~Tasks() { munmap(words_, 4096); }
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  void point_to(std::uint64_t task) { words_[0] = task; }
  void describe(shim_header& header) const {
    header.current = static_cast<std::int32_t>(address_of(words_));  // GS starts at 0
    header.comm = 9 * 8, header.pid = 19 * 8, header.tgid = 19 * 8 + 4;
    header.start_time = 20 * 8;
  }
  std::uint64_t address() const { return address_of(words_ + 1); }

 private:
  std::uint64_t* words_;
};

TEST_F(ShimCode, TellsWhatTheTaskIsAndSaysOfItself) {
  const Tasks tasks;
  tasks.describe(header());
  take_any_task();
  shim_box seen{};
  trap_with([&] {
    wait_until_raised(0);
    std::memcpy(&seen, const_cast<shim_box*>(&box(0)), sizeof seen);
    answer(0);
  });

  expect_resumed();
  EXPECT_EQ(seen.task, tasks.address());
  EXPECT_EQ(std::memcmp(seen.comm, "0123456789abcdef", 16), 0);
  EXPECT_EQ(seen.pid, 7u);
  EXPECT_EQ(seen.tgid, 6u);
  EXPECT_EQ(seen.start_time, 5'000'000'000u);
  for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(seen.regs[r], shim_test_in[r]) << r;
}

/// A trap point that records, on CPU 1 of two.
class RecordingShim : public ShimCode {
 protected:
  void SetUp() override {
    ShimCode::SetUp();
    void* mapped =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    number_ = static_cast<std::uint32_t*>(mapped);
    *number_ = 1;
    header().cpu_number = static_cast<std::int32_t>(address_of(number_));
    header().rings = kCpus;
    header().ring_controls = address_of(region_ + kRings);
    header().current = static_cast<std::int32_t>(address_of(number_ + 2));  // no task
    set_copies(SHIM_COPY_IDS | SHIM_COPY_REGISTERS | SHIM_COPY_PERCPU);
    std::ranges::fill(facts().lists, address_of(&header().full_list));
    for (unsigned n = 0; n < 2 * kCpus; ++n) {
      ring(n).most = kMost;
      ring(n).record_bytes = kRecordBytes;
      ring(n).data = address_of(region_ + kRecords + n * (kMost + 1) * kRecordBytes);
    }
    before_slot(SHIM_SLOT_LIST) = SHIM_SLOT_RECORDS;
    records_ = true;
  }
  void TearDown() override {
    munmap(number_, 4096);
    ShimCode::TearDown();
  }
  /// One trap that waits instead of being recorded, and is answered.
  void expect_trap_in_mailbox() {
    trap_with([&] {
      wait_until_raised(0);
      EXPECT_EQ(ring(2).busy, 0u);
      EXPECT_EQ(head(0).address, kAddress);
      answer(0);
    });
    expect_resumed();
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(box(0).regs[r], shim_test_in[r]) << r;
  }
  /// The first one of CPU n / 2, or its nested one.
  volatile shim_ring_words& ring(unsigned n) {
    return reinterpret_cast<volatile shim_ring_words*>(region_ + kRings)[n];
  }
  const shim_record& record(unsigned n, std::uint64_t number) {
    return *reinterpret_cast<const shim_record*>(ring(n).data + number * kRecordBytes);
  }
  shim_fetch& facts() { return *reinterpret_cast<shim_fetch*>(region_ + SHIM_FETCH_AT); }
  void set_copies(unsigned copies) {
    header().full_list = {.copies = static_cast<std::uint8_t>(copies),
                          .task_checks = 0,
                          .runs = SHIM_RECORD_RUNS,
                          .entries = SHIM_LIST_SIZE,
                          .unused = 0};
  }
  /// The trap's record, and nothing else was touched.
  void expect_recorded(unsigned n, std::uint64_t number) {
    expect_resumed();
    EXPECT_EQ(ring(n).head, number + 1);
    EXPECT_EQ(ring(n).busy, 0u);
    EXPECT_EQ(ring(n).dropped, 0u);
    const shim_record& seen = record(n, number & kMost);
    EXPECT_EQ(seen.head, number);
    EXPECT_EQ(seen.address, kAddress);
    EXPECT_EQ(seen.percpu, percpu_);
    EXPECT_NE(seen.tsc, 0u);
    EXPECT_EQ(seen.rflags, shim_test_in[16]);
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(seen.regs[r], shim_test_in[r]) << r;
    EXPECT_EQ(head(0).head, 0u) << "no mailbox";
  }
  /// One trap, which is recorded in ring 2 or judged as not wanted. Whether it is recorded.
  bool trap_is_recorded() {
    const std::uint64_t recorded = ring(2).head, unwanted = ring(2).unwanted;
    ring(2).tail = recorded;
    trap();
    expect_resumed();
    EXPECT_EQ(ring(2).busy, 0u);
    EXPECT_EQ(ring(2).head + ring(2).unwanted, recorded + unwanted + 1);
    EXPECT_EQ(head(0).head, 0u) << "nobody waits";
    return ring(2).head != recorded;
  }
  void expect_dropped(unsigned n, std::uint64_t count) {
    expect_resumed();
    EXPECT_EQ(ring(n).dropped, count);
    EXPECT_EQ(head(0).head, 0u) << "no mailbox";
  }

  std::uint32_t* number_ = nullptr;
};

TEST_F(RecordingShim, WritesEveryRegisterIntoTheRingOfItsCpuAndGoesOn) {
  trap();
  expect_recorded(2, 0);
  trap();
  expect_recorded(2, 1);
  *number_ = 0;
  trap();
  expect_recorded(0, 0);
  EXPECT_EQ(ring(2).head, 2u);
}

TEST_F(RecordingShim, DoesTheSameForAJump) {
  come_by_jump(kAddress);
  trap();
  expect_recorded(2, 0);
}

TEST_F(RecordingShim, TellsOfTheTaskAsAMailboxDoes) {
  const Tasks tasks;
  tasks.describe(header());
  take_any_task();
  trap();
  expect_recorded(2, 0);
  const shim_record& seen = record(2, 0);
  EXPECT_EQ(seen.task, tasks.address());
  EXPECT_EQ(std::memcmp(seen.comm, "0123456789abcdef", 16), 0);
  EXPECT_EQ(seen.pid, 7u);
  EXPECT_EQ(seen.tgid, 6u);
  EXPECT_EQ(seen.start_time, 5'000'000'000u);
}

TEST_F(RecordingShim, CopiesTheNameAndNothingElseWhereTheListSaysSo) {
  const Tasks tasks;
  tasks.describe(header());
  take_any_task();
  for (const bool jumps : {false, true}) {
    if (jumps) come_by_jump(kAddress);
    for (const unsigned copies : {0U, SHIM_COPY_IDS + 0U, SHIM_COPY_REGISTERS + 0U}) {
      set_copies(copies);
      ring(2).head = 0;
      std::memset(region_ + kRecords, 0xee, kRegion - kRecords);
      trap();
      expect_resumed();
      const shim_record& seen = record(2, 0);
      EXPECT_EQ(ring(2).head, 1u);
      EXPECT_EQ(seen.head, 0u);
      EXPECT_EQ(seen.address, kAddress);
      EXPECT_EQ(seen.percpu, 0xeeee'eeee'eeee'eeee);
      EXPECT_EQ(seen.task, tasks.address());
      EXPECT_EQ(std::memcmp(seen.comm, "0123456789abcdef", 16), 0);
      const bool has_ids = copies == SHIM_COPY_IDS, has_registers = copies == SHIM_COPY_REGISTERS;
      EXPECT_EQ(seen.tgid, has_ids ? 6 : 0xeeeeeeee);
      EXPECT_EQ(seen.rflags, has_registers ? shim_test_in[16] : 0xeeee'eeee'eeee'eeee);
      for (unsigned r = 0; r < SHIM_REGISTERS; ++r) {
        EXPECT_EQ(seen.regs[r], has_registers ? shim_test_in[r] : 0xeeee'eeee'eeee'eeee) << r;
      }
    }
  }
}

/// By a list that stands in the place of the default one.
class TaskCheckingShim : public RecordingShim {
 protected:
  void SetUp() override {
    RecordingShim::SetUp();
    tasks_.describe(header());
    take_any_task();
    facts().lists[0] = address_of(region_ + kSlots + 0x200);
  }
  static shim_check check(std::uint64_t with, std::uint16_t how = 0, std::uint64_t mask = ~0ULL) {
    constexpr std::uint16_t kPid = 19 * 8;  // as Tasks describes it
    return {kPid, how, 0, 0, 0, mask, with};
  }
  void set_checks(const std::vector<shim_check>& checks) {
    unsigned char* const at = region_ + kSlots + 0x200;
    const shim_list list{.copies = 0,
                         .task_checks = static_cast<std::uint8_t>(checks.size()),
                         .runs = SHIM_RECORD_CR3,
                         .entries = 0,
                         .unused = 0};
    std::memcpy(at, &list, sizeof list);
    std::memcpy(at + sizeof list, checks.data(), checks.size() * sizeof checks[0]);
  }
  bool records(const std::vector<shim_check>& checks) {
    set_checks(checks);
    return trap_is_recorded();
  }
  static constexpr std::uint64_t kBoth = 7 | std::uint64_t{6} << 32;  // pid and tgid
  const Tasks tasks_;
};

TEST_F(TaskCheckingShim, RecordsWhereAllChecksHold) {
  for (const bool jumps : {false, true}) {
    if (jumps) come_by_jump(kAddress);
    EXPECT_TRUE(records({check(kBoth)}));
    EXPECT_FALSE(records({check(kBoth + 1)}));
    EXPECT_FALSE(records({check(kBoth, SHIM_CHECK_NEGATED)}));
    EXPECT_TRUE(records({check(kBoth + 1, SHIM_CHECK_NEGATED)}));
    EXPECT_TRUE(records({check(7, 0, UINT32_MAX)}));
    EXPECT_FALSE(records({check(7)})) << "tgid is beside it";
    EXPECT_TRUE(records({check(kBoth), check(7, 0, UINT32_MAX), check(0, SHIM_CHECK_NEGATED)}));
    EXPECT_FALSE(records({check(8, 0, UINT32_MAX), check(kBoth), check(kBoth)}));
    EXPECT_FALSE(records({check(kBoth), check(8, 0, UINT32_MAX), check(kBoth)}));
    EXPECT_FALSE(records({check(kBoth), check(kBoth), check(8, 0, UINT32_MAX)}));
  }
}

TEST_F(TaskCheckingShim, TakesNoRingForWhatIsNotWanted) {
  set_checks({check(8, 0, UINT32_MAX)});
  ring(2).busy = 1;
  trap();
  expect_resumed();
  EXPECT_EQ(ring(2).busy, 1u) << "it is another trap's";
  EXPECT_EQ(ring(2).unwanted, 1u);
  EXPECT_EQ(ring(2).head + ring(3).head, 0u);
}

TEST_F(TaskCheckingShim, RecordsWhereTheTaskIsNotKnown) {
  header().current = static_cast<std::int32_t>(address_of(number_ + 2));
  for (const unsigned char which : {0xc0, 0xd2}) {
    replace_all({0x48, 0x85, which, 0x70}, {0x48, 0x85, which, 0x79});
    replace_all({0x48, 0x85, which, 0x0f, 0x80}, {0x48, 0x85, which, 0x0f, 0x89});
  }
  EXPECT_TRUE(records({check(8, 0, UINT32_MAX)}));
}

TEST_F(RecordingShim, GoesRoundAndRound) {
  ring(2).head = kMost + 4;
  ring(2).tail = kMost + 4;
  trap();
  expect_recorded(2, kMost + 4);
  ring(2).head = ~std::uint64_t{0};
  ring(2).tail = ~std::uint64_t{0};
  trap();
  expect_resumed();
  EXPECT_EQ(ring(2).head, 0u);
  EXPECT_EQ(record(2, kMost).head, ~std::uint64_t{0});
}

TEST_F(RecordingShim, AFullRingDropsUntilTheHostMakesRoom) {
  for (std::uint64_t n = 0; n <= kMost; ++n) {
    trap();
    expect_recorded(2, n);
  }
  const std::uint64_t first = record(2, 0).tsc;
  trap();
  expect_dropped(2, 1);
  EXPECT_EQ(ring(2).head, kMost + 1);
  EXPECT_EQ(ring(2).busy, 0u);
  EXPECT_EQ(record(2, 0).tsc, first) << "not written over";
  ring(2).tail = 1;
  ring(2).dropped = 0;
  trap();
  expect_recorded(2, kMost + 1);
}

TEST_F(RecordingShim, WhereAFullRingWaitsTheTrapTakesAMailbox) {
  ring(2).head = kMost + 1;
  control().full_waits = 1;
  for (const bool jumps : {false, true}) {
    if (jumps) come_by_jump(kAddress);
    expect_trap_in_mailbox();
  }
  EXPECT_EQ(ring(2).dropped, 0u);
  EXPECT_EQ(ring(2).head, kMost + 1);
}

TEST_F(RecordingShim, ATrapInsideOfATrapTakesTheSecondRing) {
  ring(2).busy = 1;
  trap();
  expect_recorded(3, 0);
  EXPECT_EQ(ring(2).busy, 1u) << "it is another trap's";
  EXPECT_EQ(ring(2).head, 0u);
  ring(3).busy = 1;
  trap();
  expect_dropped(3, 1);
  EXPECT_EQ(ring(3).busy, 1u);
  EXPECT_EQ(ring(3).head, 1u);
}

TEST_F(RecordingShim, RecordsNothingWhileInactive) {
  for (const bool jumps : {false, true}) {
    if (jumps) come_by_jump(kAddress);
    control().active = 0;
    trap();
    expect_resumed();
    EXPECT_EQ(ring(2).late, jumps ? 2u : 1u);
    EXPECT_EQ(ring(2).head, 0u);
    EXPECT_EQ(ring(2).busy, 0u);
  }
}

TEST_F(RecordingShim, NeedsNobodyWhoLives) {
  control().silent = control().heartbeat;
  trap();
  expect_recorded(2, 0);
}

TEST_F(RecordingShim, CountsATrapOfACpuWithoutARing) {
  *number_ = kCpus;
  trap();
  expect_resumed();
  EXPECT_EQ(control().overflows, 1u);
  EXPECT_EQ(ring(2).head + ring(0).head, 0u);
}

/// A guest's RAM, which the test's own process has as its direct map, and page tables in it. The
/// kernel's tables have the root kKernelRoot; the process's have 0, as CR3 reads here.
class GuestRam {
 public:
  static constexpr std::uint64_t kBytes = 16 << 20, kPage = 4096, kKernelRoot = kPage;
  static constexpr std::uint64_t kPresent = 1, kLarge = 0x80;

  explicit GuestRam(unsigned levels) : levels_(levels) {
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    bytes_ = static_cast<unsigned char*>(mapped);
  }
  ~GuestRam() { munmap(bytes_, kBytes); }
  GuestRam(const GuestRam&) = delete;
  GuestRam& operator=(const GuestRam&) = delete;

  std::uint64_t direct_map() const { return address_of(bytes_); }
  std::uint64_t& word(std::uint64_t physical) const {
    return *reinterpret_cast<std::uint64_t*>(bytes_ + physical);
  }
  /// The entry that maps the address, in a page of 1 << `shift` bytes; tables are made on the way.
  std::uint64_t& entry(std::uint64_t root, std::uint64_t at, unsigned shift) {
    std::uint64_t table = root;
    for (unsigned level = 12 + 9 * (levels_ - 1);; level -= 9) {
      std::uint64_t& found = word(table + 8 * (at >> level & 511));
      if (level == shift) return found;
      if (found == 0) found = (next_table_ += kPage) | kPresent | extra_bits;
      table = found & kFrames;
    }
  }
  void map(std::uint64_t root, std::uint64_t at, std::uint64_t physical, unsigned shift = 12) {
    entry(root, at, shift) = physical | kPresent | extra_bits | (shift == 12 ? 0 : kLarge);
  }
  /// In the process's tables or the kernel's, and in the direct map.
  void map_both(std::uint64_t root, std::uint64_t at, std::uint64_t physical) {
    map(root, at, physical);
    map(kKernelRoot, direct_map() + physical, physical);
  }
  shim_fetch facts() const {
    shim_fetch facts{};
    facts.root = kKernelRoot;
    facts.direct_map = direct_map();
    facts.frames = kFrames;
    facts.top_shift = 12 + 9 * (levels_ - 1);
    facts.ram_count = 2;
    facts.ram[0] = {0, kBytes / 2};
    facts.ram[1] = {kBytes / 2 + 0x10000, kBytes};
    return facts;
  }

  std::uint64_t extra_bits = 0;  // of each entry

 private:
  static constexpr std::uint64_t kFrames = 0x0007'ffff'ffff'f000;
  const unsigned levels_;
  unsigned char* bytes_ = nullptr;
  std::uint64_t next_table_ = 0x20000;
};

/// The trap point of RecordingShim with fetch list 5, in a guest of four or five levels.
class FetchingShim : public RecordingShim, public testing::WithParamInterface<unsigned> {
 protected:
  static constexpr std::uint64_t kProcess = 0, kKernel = GuestRam::kKernelRoot;
  static constexpr std::uint64_t kAt = 0xffffc90000123000, kFrame = 0x400000;
  static constexpr std::uint64_t kUserAt = 0x00007f0000456000, kUserFrame = 0x401000;
  static constexpr unsigned kNumber = 5, kRecordShift = 10;
  static constexpr std::uint16_t kRdi = SHIM_RECORD_REGS / 8 + SHIM_RDI;

  void SetUp() override {
    RecordingShim::SetUp();
    facts() = ram_.facts();
    facts().lists[0] = address_of(&header().full_list);
    facts().lists[kNumber] = address_of(region_ + kSlots + 0x200);
    const shim_list list{.copies = SHIM_COPY_REGISTERS | SHIM_COPY_RUNS,
                         .task_checks = 0,
                         .runs = SHIM_RECORD_RUNS,
                         .entries = SHIM_LIST_SIZE,
                         .unused = 0};
    std::memcpy(region_ + kSlots + 0x200, &list, sizeof list);
    ring(2).record_bytes = 1 << kRecordShift;
    ring(2).data = address_of(records_of_two_.data());
    before_slot(SHIM_SLOT_LIST) = SHIM_SLOT_RECORDS | kNumber;
    list_ = kNumber;
    for (unsigned n = 0; n < 512; ++n) ram_.word(kFrame + 8 * n) = 1000 + n;
    for (unsigned n = 0; n < 512; ++n) ram_.word(kUserFrame + 8 * n) = 2000 + n;
    registers_[SHIM_RDI] = kAt;
  }
  /// Of the list.
  unsigned char* entries() const { return region_ + kSlots + 0x200 + SHIM_LIST_SIZE; }
  void fetch(std::vector<shim_load> loads) {
    loads.push_back({});
    std::memcpy(entries(), loads.data(), loads.size() * sizeof loads[0]);
    trap();
    expect_resumed();
    ASSERT_EQ(ring(2).busy, 0u);
  }
  /// Of the record that was written last: `offset` bytes behind where the first run begins.
  std::uint64_t written(std::size_t offset) {
    const std::uint64_t record = (ring(2).head - 1) & kMost;
    std::uint64_t word = 0;
    std::memcpy(&word,
                records_of_two_.data() + (record << kRecordShift) + SHIM_RECORD_RUNS + offset, 8);
    return word;
  }
  void expect_run(std::size_t offset, std::uint64_t at, std::vector<std::uint64_t> words) {
    EXPECT_EQ(written(offset), at);
    EXPECT_EQ(written(offset + 8), at + 8 * words.size());
    for (std::size_t n = 0; n < words.size(); ++n) {
      EXPECT_EQ(written(offset + 16 + 8 * n), words[n]) << n;
    }
  }
  void expect_nothing_from(std::uint64_t at, std::uint16_t words = 1) {
    registers_[SHIM_RDI] = at;
    fetch({{kRdi, words, 0}});
    expect_run(0, at, {});
    EXPECT_EQ(written(16), 0u);
  }

  GuestRam ram_{GetParam()};
  alignas(16) std::array<unsigned char, (kMost + 1) << kRecordShift> records_of_two_{};
};

INSTANTIATE_TEST_SUITE_P(Levels, FetchingShim, testing::Values(4, 5));

TEST_P(FetchingShim, CopiesWordsAtAnAddressOfTheKernels) {
  ram_.map_both(kKernel, kAt, kFrame);
  fetch({{kRdi, 3, 0x10}});
  expect_run(0, kAt + 0x10, {1002, 1003, 1004});
  const auto& head = *reinterpret_cast<const shim_record*>(records_of_two_.data());
  EXPECT_EQ(head.address, kAddress);
  EXPECT_EQ(head.head, 0u);
}

TEST_P(FetchingShim, DoesTheSameForAJump) {
  ram_.map_both(kKernel, kAt, kFrame);
  come_by_jump(kAddress);
  fetch({{kRdi, 1, 0x10}});
  expect_run(0, kAt + 0x10, {1002});
}

TEST_P(FetchingShim, BeginsAtTheWordThatHasTheAddress) {
  ram_.map_both(kKernel, kAt, kFrame);
  fetch({{kRdi, 2, 0x0f}});
  expect_run(0, kAt + 0x08, {1001, 1002});
}

TEST_P(FetchingShim, FollowsPointers) {
  constexpr std::uint64_t kOther = 0xffffc90000777000, kOtherFrame = 0x402000;
  ram_.map_both(kKernel, kAt, kFrame);
  ram_.map_both(kKernel, kOther, kOtherFrame);
  ram_.word(kFrame + 0x18) = kOther + 0x100;
  ram_.word(kOtherFrame + 0xf8) = 77;
  fetch({{kRdi, 2, 0x18}, {SHIM_RECORD_RUNS / 8 + 2, 1, -8}});
  expect_run(0, kAt + 0x18, {kOther + 0x100, 1004});
  expect_run(32, kOther + 0xf8, {77});
}

TEST_P(FetchingShim, AddsAPartOfAnotherWordToAnAddress) {
  ram_.map_both(kKernel, kAt, kFrame);
  ram_.word(kFrame + 0x18) = 0x1234'0028'5678'9abc;
  constexpr std::uint16_t kWord = SHIM_RECORD_RUNS / 8 + 2, kMiddle = 16 | 48 << 8;
  fetch({{kRdi, 1, 0x18}, {kRdi, 1 | SHIM_LOAD_INDEXED, 0x101}, {kWord, kMiddle, 0}, {kRdi, 1, 8}});
  expect_run(0, kAt + 0x18, {0x1234'0028'5678'9abc});
  expect_run(24, kAt + 0x128, {1037});
  expect_run(48, kAt + 8, {1001});
  registers_[SHIM_RDI] = kAt + 0x5000;
  fetch({{kRdi, 1, 0x18}, {kRdi, 1 | SHIM_LOAD_INDEXED, -0x5000}, {kWord, kMiddle, 0}});
  expect_run(24, kAt, {1000});  // a number that could not be read is 0
}

TEST_P(FetchingShim, FollowsNoPointerThatCouldNotBeRead) {
  std::memset(records_of_two_.data(), 0xff, records_of_two_.size());
  fetch({{kRdi, 1, 0x18}, {SHIM_RECORD_RUNS / 8 + 2, 1, 8}});
  expect_run(0, kAt + 0x18, {});
  expect_run(24, 8, {});
}

TEST_P(FetchingShim, TakesAnAddressWithoutASource) {
  constexpr std::uint64_t kVariable = 0xffffffff82001000;
  ram_.map_both(kKernel, kVariable, kFrame);
  fetch({{0, 1, static_cast<std::int32_t>(kVariable + 0x40)}});
  expect_run(0, kVariable + 0x40, {1008});
}

TEST_P(FetchingShim, LooksTheProcesssAddressesUpInItsOwnTables) {
  ram_.map_both(kProcess, kUserAt, kUserFrame);
  registers_[SHIM_RDI] = kUserAt;
  fetch({{kRdi, 2 | SHIM_LOAD_USER, 8}});
  expect_run(0, kUserAt + 8, {2001, 2002});
}

TEST_P(FetchingShim, TakesNoAddressOfTheProcesssForTheKernelsNorTheOtherWayRound) {
  ram_.map_both(kProcess, kUserAt, kUserFrame);
  ram_.map_both(kKernel, kUserAt, kUserFrame);
  ram_.map_both(kKernel, kAt, kFrame);
  expect_nothing_from(kUserAt);
  expect_nothing_from(kAt, 1 | SHIM_LOAD_USER);
}

TEST_P(FetchingShim, LooksEachPageUpAndEndsWhereOneIsMissing) {
  ram_.map_both(kKernel, kAt, kFrame);
  ram_.map_both(kKernel, kAt + 0x1000, kUserFrame);
  fetch({{kRdi, 4, 0xff0}});
  expect_run(0, kAt + 0xff0, {1510, 1511, 2000, 2001});
  ram_.entry(kKernel, kAt + 0x1000, 12) = 0;
  fetch({{kRdi, 4, 0xff0}, {kRdi, 1, 0}});
  expect_run(0, kAt + 0xff0, {1510, 1511});
  expect_run(48, kAt, {1000});
}

TEST_P(FetchingShim, ReadsLargePages) {
  for (const unsigned shift : {21, 30}) {
    const std::uint64_t at = 0xffff888040000000 + 0x400000;
    ram_.entry(kKernel, at, 30) = 0;
    ram_.map(kKernel, at, shift == 30 ? 0 : kFrame, shift);
    ram_.map(kKernel, ram_.direct_map() + kFrame, kFrame);
    registers_[SHIM_RDI] = at;
    fetch({{kRdi, 1, 0x20}});
    expect_run(0, at + 0x20, {1004});
  }
}

TEST_P(FetchingShim, ReadsTheDirectMapItselfByOneLook) {
  const std::uint64_t at = ram_.direct_map() + kUserFrame;
  ram_.map(kProcess, at, kUserFrame);
  registers_[SHIM_RDI] = at;
  fetch({{kRdi, 1 | SHIM_LOAD_USER, 0x10}});
  expect_run(0, at + 0x10, {2002});
}

TEST_P(FetchingShim, ReadsNoPageThatIsNotInTheDirectMap) {
  ram_.map(kKernel, kAt, kFrame);
  expect_nothing_from(kAt);
  ram_.map(kKernel, ram_.direct_map() + kFrame, kFrame + 0x1000);
  expect_nothing_from(kAt);
  ram_.map(kKernel, ram_.direct_map() + kFrame, kFrame);
  fetch({{kRdi, 1, 0}});
  expect_run(0, kAt, {1000});
}

TEST_P(FetchingShim, ReadsNothingThatIsNotRam) {
  constexpr std::uint64_t kHole = GuestRam::kBytes / 2;
  ram_.map_both(kKernel, kAt, kHole);
  expect_nothing_from(kAt);
  ram_.map_both(kKernel, kAt, GuestRam::kBytes);
  expect_nothing_from(kAt);
  ram_.map_both(kKernel, kAt, kHole + 0x10000);
  ram_.word(kHole + 0x10000) = 5;
  fetch({{kRdi, 1, 0}});
  expect_run(0, kAt, {5});
  ram_.entry(kKernel, kAt, 21) = kHole | GuestRam::kPresent;
  expect_nothing_from(kAt);
}

TEST_P(FetchingShim, ReadsNothingWhereTablesAreMissingOrWrong) {
  for (const unsigned shift : {12, 21, 30, 39}) {
    ram_.map_both(kKernel, kAt, kFrame);
    std::uint64_t& entry = ram_.entry(kKernel, kAt, shift);
    const std::uint64_t before = entry;
    entry = before & ~GuestRam::kPresent;
    expect_nothing_from(kAt);
    if (shift == 39) {
      entry = before | GuestRam::kLarge;
      expect_nothing_from(kAt);
    }
    entry = before;
  }
}

TEST_P(FetchingShim, ReadsNothingAtAnAddressThatNoCpuWouldTake) {
  ram_.map_both(kKernel, kAt, kFrame);
  const std::uint64_t beyond = std::uint64_t{1} << (GetParam() == 4 ? 48 : 57);
  expect_nothing_from(kAt ^ beyond);
  ram_.map_both(kProcess, kUserAt, kUserFrame);
  expect_nothing_from(kUserAt ^ beyond, 1 | SHIM_LOAD_USER);
}

TEST_P(FetchingShim, LeavesOutTheBitThatSaysEncrypted) {
  ram_.extra_bits = std::uint64_t{1} << 51;
  ram_.map_both(kKernel, kAt, kFrame);
  fetch({{kRdi, 1, 0}});
  expect_run(0, kAt, {1000});
}

/// The same, whose list is the stack of a task. It ends in the page of the stack pointer, a frame
/// of the guest, and no more than kWords above it.
class StackShim : public FetchingShim {
 protected:
  static constexpr std::uint64_t kTaskStack = 0x700, kWords = 40;

  void SetUp() override {
    FetchingShim::SetUp();
    tasks_.describe(header());
    take_any_task();
    facts().task_stack = kTaskStack;
    facts().stack_bytes = static_cast<std::uint32_t>(stack_pointer() - page() + 8 * words_to_end());
    set_stack(page());
    ram_.map_both(kProcess, page(), kFrame);
  }
  /// The page that the test's own stack pointer is in at the trap.
  std::uint64_t page() const { return stack_pointer() & ~(GuestRam::kPage - 1); }
  std::uint64_t stack_pointer() const {
    return address_of(stack_ + sizeof stack_ / 2) & ~std::uint64_t{15};
  }
  std::uint64_t words_to_end() const {
    return std::min(kWords, (page() + GuestRam::kPage - stack_pointer()) / 8);
  }
  void set_stack(std::uint64_t address) {
    std::memcpy(reinterpret_cast<void*>(tasks_.address() + kTaskStack), &address, sizeof address);
  }
  void set_list(std::uint16_t room) {
    const std::array<shim_load, 3> list = {
        {{0, 1, 0}, {0, static_cast<std::uint16_t>(room | SHIM_LOAD_STACK), 0}, {}}};
    std::memcpy(entries(), list.data(), sizeof list);
  }
  void expect_waits(std::uint16_t room) {
    set_list(room);
    const std::uint64_t claims = head(0).head / SHIM_CLAIM;
    trap_with([&] {
      wait_until_raised(0);
      EXPECT_EQ(head(0).address, kAddress);
      EXPECT_EQ(ring(2).busy, 0u);
      answer(0);
    });
    expect_resumed();
    EXPECT_EQ(head(0).head / SHIM_CLAIM, claims + 1);
    EXPECT_EQ(ring(2).head, 0u) << "not recorded";
    EXPECT_EQ(ring(2).dropped, 0u);
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(box(0).regs[r], shim_test_in[r]) << r;
  }

  const Tasks tasks_;
};

INSTANTIATE_TEST_SUITE_P(Levels, StackShim, testing::Values(4, 5));

TEST_P(StackShim, CopiesAllOfIt) {
  const auto words = static_cast<std::uint16_t>(words_to_end());
  for (const bool jumps : {false, true}) {
    if (jumps) come_by_jump(kAddress);
    set_list(words);
    trap();
    expect_resumed();
    const std::uint64_t first = 1000 + (stack_pointer() - page()) / 8;
    std::vector<std::uint64_t> all(words);
    for (std::uint64_t n = 0; n < words; ++n) all[n] = first + n;
    expect_run(24, stack_pointer(), all);
  }
  EXPECT_EQ(ring(2).head, 2u);
  EXPECT_EQ(head(0).head, 0u) << "no mailbox";
}

TEST_P(StackShim, WaitsWhereItHasNoRoom) {
  const auto words = static_cast<std::uint16_t>(words_to_end());
  expect_waits(words - 1);
  come_by_jump(kAddress);
  expect_waits(0);
}

TEST_P(StackShim, WaitsOnAnotherStack) {
  const std::uint64_t bytes = facts().stack_bytes;
  for (const std::uint64_t stack : {stack_pointer() + 8, stack_pointer() - bytes,
                                    stack_pointer() - 2 * bytes, std::uint64_t{0}}) {
    set_stack(stack);
    expect_waits(0x1ff);
  }
}

TEST_P(StackShim, CopiesItFromItsLowestAddressOn) {
  set_stack(stack_pointer());
  facts().stack_bytes = 16;
  set_list(2);
  trap();
  expect_resumed();
  EXPECT_EQ(ring(2).head, 1u);
  EXPECT_EQ(written(24 + 8), stack_pointer() + 16);
}

/// The same, whose list has checks. The task is known.
class CheckingShim : public FetchingShim {
 protected:
  using Entry = std::variant<shim_load, shim_check>;

  void SetUp() override {
    FetchingShim::SetUp();
    tasks_.describe(header());
    know_task();
    ram_.map_both(kKernel, kAt, kFrame);
  }
  void know_task() {
    take_any_task();
    replace({0x41, 0x0f, 0x99, 0xc6}, {0x41, 0x0f, 0x90, 0xc6});
  }
  static shim_check check(std::uint16_t source, std::uint64_t with, unsigned how = 0) {
    return {source, static_cast<std::uint16_t>(SHIM_LOAD_CHECK | how), 0, 0, 0, UINT64_MAX, with};
  }
  void set_list(const std::vector<Entry>& list) {
    unsigned char* to = entries();
    for (const Entry& entry : list) {
      std::visit([&to](const auto& one) { to = put(to, one); }, entry);
    }
    put(to, shim_load{});
  }
  bool records(const std::vector<Entry>& list) {
    set_list(list);
    return trap_is_recorded();
  }
  void expect_waits(const std::vector<Entry>& list) {
    set_list(list);
    const std::uint64_t recorded = ring(2).head, unwanted = ring(2).unwanted;
    expect_trap_in_mailbox();
    EXPECT_EQ(ring(2).head, recorded);
    EXPECT_EQ(ring(2).unwanted, unwanted);
  }
  static constexpr std::uint16_t kFirstRun = SHIM_RECORD_RUNS / 8 + 2;

  const Tasks tasks_;

 private:
  template <class T>
  static unsigned char* put(unsigned char* to, const T& entry) {
    std::memcpy(to, &entry, sizeof entry);
    return to + sizeof entry;
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, CheckingShim, testing::Values(4, 5));

TEST_P(CheckingShim, RecordsWhereTheCheckHolds) {
  registers_[SHIM_RDI] = 7;
  EXPECT_TRUE(records({check(kRdi, 7)}));
  EXPECT_FALSE(records({check(kRdi, 8)}));
  EXPECT_TRUE(records({check(kRdi, 8, SHIM_CHECK_NEGATED)}));
  EXPECT_FALSE(records({check(kRdi, 7), check(kRdi, 7, SHIM_CHECK_NEGATED)}));
  come_by_jump(kAddress);
  EXPECT_TRUE(records({check(kRdi, 7)}));
  EXPECT_FALSE(records({check(kRdi, 8)}));
}

TEST_P(CheckingShim, ComparesAsTheHostWould) {
  std::mt19937_64 random(4711);
  const auto number = [&random] {
    const std::uint64_t value = random() >> random() % 64;
    return random() % 2 == 0 ? value : -value;
  };
  for (unsigned n = 0; n < 2000; ++n) {
    const std::uint64_t value = number();
    shim_check one = check(kRdi, 0, 0);
    const unsigned relation = std::array{0U, SHIM_CHECK_LESS, SHIM_CHECK_BELOW}[random() % 3];
    const bool is_signed = random() % 2 == 0, is_negated = random() % 2 == 0;
    one.words |= static_cast<std::uint16_t>(relation | (is_signed ? SHIM_CHECK_SIGNED : 0) |
                                            (is_negated ? SHIM_CHECK_NEGATED : 0));
    one.left = static_cast<std::uint8_t>(random() % 64);
    one.right = static_cast<std::uint8_t>(random() % 64);
    one.mask = random() % 2 == 0 ? UINT64_MAX : random();
    std::uint64_t seen = value << one.left;
    seen = is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(seen) >> one.right)
                     : seen >> one.right;
    seen &= one.mask;
    one.with = random() % 3 == 0 ? seen : number();
    const bool holds = relation == 0 ? seen == one.with
                       : relation == SHIM_CHECK_LESS
                           ? static_cast<std::int64_t>(seen) < static_cast<std::int64_t>(one.with)
                           : seen < one.with;
    registers_[SHIM_RDI] = value;
    ASSERT_EQ(records({one}), holds != is_negated) << value << ' ' << one.words << ' ' << one.with;
  }
}

TEST_P(CheckingShim, JudgesWhatALoadHasRead) {
  EXPECT_TRUE(records({shim_load{kRdi, 1, 0x18}, check(kFirstRun, 1003)}));
  EXPECT_FALSE(records({shim_load{kRdi, 1, 0x18}, check(kFirstRun, 1004), shim_load{kRdi, 1, 0}}));
}

TEST_P(CheckingShim, RecordsWhereALoadBeforeTheCheckHasFailed) {
  const std::uint64_t nowhere = kAt + 0x5000;
  const auto list = [](std::uint16_t words) {
    return std::vector<Entry>{shim_load{kRdi, words, 0}, check(kFirstRun, 12345)};
  };
  EXPECT_FALSE(records(list(1)));
  registers_[SHIM_RDI] = nowhere;
  EXPECT_TRUE(records(list(1)));
  registers_[SHIM_RDI] = kAt + 0xff8;
  EXPECT_FALSE(records(list(1)));
  EXPECT_TRUE(records(list(2))) << "the second word is in the next page";
  registers_[SHIM_RDI] = nowhere;
  EXPECT_FALSE(records({check(kRdi, 0), shim_load{kRdi, 1, 0}})) << "it comes later";
}

TEST_P(CheckingShim, WaitsWhereABoundDoesNotHold) {
  const auto list = [](std::uint64_t with) {
    return std::vector<Entry>{shim_load{kRdi, 1, 0x18},
                              check(kFirstRun, with, SHIM_CHECK_WAITS | SHIM_CHECK_BELOW),
                              shim_load{kRdi, 1, 0}};
  };
  EXPECT_TRUE(records(list(1004)));
  expect_waits(list(1003));
}

TEST_P(CheckingShim, WaitsForABoundByJump) {
  come_by_jump(kAddress);
  expect_waits({check(kRdi, 0, SHIM_CHECK_WAITS)});
}

TEST_P(CheckingShim, ABoundTakesAWordThatCannotBeReadForZero) {
  registers_[SHIM_RDI] = kAt + 0x5000;
  EXPECT_TRUE(records({shim_load{kRdi, 1, 0}, check(kFirstRun, 0, SHIM_CHECK_WAITS)}));
  EXPECT_TRUE(records({shim_load{kRdi, 1, 0}, check(kFirstRun, 1)}));
  expect_waits({shim_load{kRdi, 1, 0}, check(kFirstRun, 1, SHIM_CHECK_WAITS)});
}

TEST_P(CheckingShim, RecordsWhereAnAddressIsNotAligned) {
  registers_[SHIM_RDI] = kAt + 4;
  EXPECT_TRUE(records({shim_load{kRdi, 1, 4}, check(kFirstRun, 12345)}));
}

TEST_P(CheckingShim, RecordsWhereTheTaskIsNotKnown) {
  EXPECT_FALSE(records({check(kRdi, 8)}));
  replace({0x41, 0x0f, 0x90, 0xc6}, {0x41, 0x0f, 0x99, 0xc6});
  EXPECT_TRUE(records({check(kRdi, 8)}));
}

TEST_P(FetchingShim, WritesNoRunsWithoutAList) {
  facts().lists[kNumber] = 0;  // it would fault
  std::memset(records_of_two_.data(), 0xff, records_of_two_.size());
  before_slot(SHIM_SLOT_LIST) = SHIM_SLOT_RECORDS;
  trap();
  expect_resumed();
  EXPECT_EQ(ring(2).head, 1u);
  EXPECT_EQ(written(0), ~std::uint64_t{0});
}

/// A trap in the text of a process: a page with an int3, and behind it the code of its slot, which
/// leads to where all slots end.
class UserShim : public FetchingShim {
 protected:
  static constexpr std::uint16_t kOffset = 0x123, kCode = 0x200;

  bool is_of_process() const override { return true; }
  void SetUp() override {
    FetchingShim::SetUp();
    void* mapped = mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    lists_ = static_cast<unsigned char*>(mapped);
    header().user_points = address_of(lists_);
    put_jump_to_slot_end(text_at(kCode));
    put_jump_to_slot_end(text_at(kOffset));
    ram_.map(kProcess, text_.address(), kUserFrame);
    byte_of_page(kOffset) = 0xcc;
    word_of_page(kCode) = 0x1122334455667788;
    point_ = add_point(known_by(kCode, 0xffffffffffff, 0x334455667788));
    set_list(SHIM_SLOT_RECORDS | kNumber);
  }
  void TearDown() override {
    munmap(lists_, 2 * 4096);
    FetchingShim::TearDown();
  }
  static shim_user_point known_by(std::uint16_t code, std::uint64_t mask, std::uint64_t bytes) {
    shim_user_point point{};
    point.offset = kOffset;
    point.code = code;
    point.distance = kCode - kOffset;
    point.mask = mask;
    point.bytes = bytes;
    return point;
  }
  /// At the end of its list; returns its name.
  std::uint64_t add_point(shim_user_point point) {
    auto* const at = lists_ + 4096 + 128 * ++points_;
    std::memcpy(at, &point, sizeof point);
    auto* link = reinterpret_cast<std::uint32_t*>(lists_) + (point.offset >> SHIM_USER_LIST_SHIFT);
    while (*link != 0) link = reinterpret_cast<std::uint32_t*>(std::uintptr_t{*link});
    *link = static_cast<std::uint32_t>(address_of(at));
    return address_of(at);
  }
  void set_list(unsigned list) {
    reinterpret_cast<unsigned char*>(point_)[-SHIM_SLOT_LIST] = static_cast<unsigned char>(list);
  }
  shim_user_point& point() { return *reinterpret_cast<shim_user_point*>(point_); }
  unsigned char* text_at(std::size_t offset) {
    return reinterpret_cast<unsigned char*>(text_.address() + offset);
  }
  unsigned char& byte_of_page(std::size_t offset) {
    return reinterpret_cast<unsigned char*>(ram_.direct_map() + kUserFrame)[offset];
  }
  std::uint64_t& word_of_page(std::size_t offset) { return ram_.word(kUserFrame + offset); }
  std::uint64_t int3() const { return text_.address() + kOffset; }
  void expect_passed_on() {
    expect_at_the_kernels_own(int3());
    EXPECT_EQ(ring(2).head, 0u);
    EXPECT_EQ(head(0).head, 0u);
  }

  TrappedText text_{0x90};
  unsigned char* lists_ = nullptr;
  unsigned points_ = 0;
  std::uint64_t point_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Levels, UserShim, testing::Values(4, 5));

TEST_P(UserShim, RecordsATrapOfAProcessAndGoesOnInItsPage) {
  ram_.map_both(kKernel, kAt, kFrame);
  const shim_load loads[] = {{kRdi, 1, 0x10}, {}};
  std::memcpy(entries(), loads, sizeof loads);
  trap(int3());
  expect_resumed();
  ASSERT_EQ(ring(2).head, 1u);
  EXPECT_EQ(ring(2).busy, 0u);
  expect_run(0, kAt + 0x10, {1002});
  const auto& seen = *reinterpret_cast<const shim_record*>(records_of_two_.data());
  EXPECT_EQ(seen.address, point_);
  EXPECT_EQ(seen.cs | std::uint64_t{seen.ss} << 32, int3());
  EXPECT_EQ(seen.rflags, shim_test_in[16]);
  for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(seen.regs[r], shim_test_in[r]) << r;
}

TEST_P(UserShim, WaitsInAMailboxWhereItDoesNotRecord) {
  set_list(0);
  shim_head seen{};
  std::thread host([&] {
    wait_until_raised(0);
    std::memcpy(&seen, const_cast<shim_head*>(&head(0)), sizeof seen);
    answer(0);
  });
  trap(int3());
  host.join();
  expect_resumed();
  EXPECT_EQ(seen.address, point_);
  EXPECT_EQ(seen.segments, int3());
  EXPECT_EQ(seen.percpu, percpu_);
  for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(box(0).regs[r], shim_test_in[r]) << r;
}

TEST_P(UserShim, GoesOnInItsPageWithoutAHost) {
  control().active = 0;
  for (const unsigned list : {0u, SHIM_SLOT_RECORDS | kNumber}) {
    set_list(list);
    trap(int3());
    expect_resumed();
  }
  EXPECT_EQ(ring(2).head, 0u);
}

TEST_P(UserShim, TakesTheStackPointerDownOnceItHasRecordedIt) {
  point().down = 0x238;
  for (const unsigned list : {0u, SHIM_SLOT_RECORDS | kNumber}) {
    set_list(list);
    control().active = list != 0;
    trap(int3());
    EXPECT_EQ(shim_test_out[4], shim_test_in[4] - 0x238);
    shim_test_out[4] = shim_test_in[4];
    expect_resumed();
  }
  ASSERT_EQ(ring(2).head, 1u);
  const auto& seen = *reinterpret_cast<const shim_record*>(records_of_two_.data());
  EXPECT_EQ(seen.regs[SHIM_RSP], shim_test_in[4]);
}

TEST_P(UserShim, PassesOnWhatWouldLeadOutOfTheProcess) {
  ASSERT_LT(int3(), std::uint64_t{1} << 31);
  point().distance = -static_cast<std::int32_t>(int3()) - 8;
  trap(int3());
  expect_passed_on();
}

TEST_P(UserShim, PassesOnWhatThePageDoesNotShowToBeOurs) {
  word_of_page(kCode) ^= 1;
  trap(int3());
  expect_passed_on();
  word_of_page(kCode) ^= 1;
  point().offset = SHIM_USER_NOWHERE;
  trap(int3());
  expect_passed_on();
  point().offset = kOffset;
  header().user_points = 0;
  trap(int3());
  expect_passed_on();
}

TEST_P(UserShim, FindsTheOneOfSeveralAtAnOffsetThatThePageShows) {
  point().bytes ^= 1;
  const std::uint64_t other = add_point(known_by(kCode + 3, 0xff, 0x55));
  add_point(point());
  reinterpret_cast<unsigned char*>(other)[-SHIM_SLOT_LIST] = SHIM_SLOT_RECORDS;
  trap(int3());
  expect_resumed();
  ASSERT_EQ(ring(2).head, 1u);
  EXPECT_EQ(reinterpret_cast<const shim_record*>(records_of_two_.data())->address, other);
}

TEST_P(UserShim, RunsTheTextAgainWhereTheInt3IsGone) {
  point().offset = SHIM_USER_NOWHERE;
  byte_of_page(kOffset) = 0x55;
  trap(int3());
  expect_resumed();
  EXPECT_EQ(ring(2).head, 0u);
}

TEST_P(UserShim, TriesAgainWhereThePageIsBeingMoved) {
  ram_.entry(kProcess, text_.address(), 12) = 0;
  trap(int3());
  expect_resumed();
  EXPECT_EQ(ring(2).head, 0u);
}

TEST_P(UserShim, PassesOnWhereThePageIsNotRam) {
  ram_.map(kProcess, text_.address(), GuestRam::kBytes / 2 + 0x1000);
  trap(int3());
  expect_passed_on();
}

/// The process's own tables are empty: its root is the kernel's there, and the bits that tell them
/// apart.
class IsolatedShim : public UserShim {
 protected:
  bool has_tables_in_r15() const override { return true; }
  void SetUp() override {
    UserShim::SetUp();
    header().user_tables = SHIM_USER_TABLES;
    set_tables(SHIM_USER_TABLES);
  }
  void set_tables(std::uint64_t cr3) { registers_[SHIM_REGISTERS - 1] = cr3; }
};

INSTANTIATE_TEST_SUITE_P(Levels, IsolatedShim, testing::Values(4, 5));

TEST_P(IsolatedShim, RecordsOnTheKernelsTablesAndGoesBackToTheProcesss) {
  unsigned count = 0;
  for (const std::uint64_t cr3 : {0x1800u, 0x1000u}) {  // with PCIDs, and without
    set_tables(cr3);
    trap(int3());
    expect_resumed();
    EXPECT_EQ(ring(2).head, ++count);
    const auto* const record = records_of_two_.data() + ((count - 1) << kRecordShift);
    EXPECT_EQ(reinterpret_cast<const shim_record*>(record)->cr3, 0u);
  }
}

TEST_P(IsolatedShim, WaitsOnTheKernelsTables) {
  set_list(0);
  std::uint64_t cr3 = 1;
  std::thread host([&] {
    wait_until_raised(0);
    cr3 = head(0).cr3;
    answer(0);
  });
  trap(int3());
  host.join();
  expect_resumed();
  EXPECT_EQ(cr3, 0u);
}

TEST_P(IsolatedShim, PassesOnWithTheTablesOfTheProcess) {
  word_of_page(kCode) = 0;
  trap(int3());
  expect_passed_on();
  ram_.map(kProcess, text_.address(), GuestRam::kBytes / 2 + 0x1000);
  trap(int3());
  expect_passed_on();
}

TEST_P(IsolatedShim, LeavesTheTablesAloneWhereTheGuestIsolatesNone) {
  header().user_tables = 0;
  set_tables(0);
  trap(int3());
  expect_resumed();
  EXPECT_EQ(ring(2).head, 1u);
}

TEST_F(ShimCode, ReadsNothingOfATaskThatIsNone) {
  shim_box seen{};
  const auto look = [&] {
    wait_until_raised(0);
    std::memcpy(&seen, const_cast<shim_box*>(&box(0)), sizeof seen);
    answer(0);
  };
  seen.task = 1;
  trap_with(look);
  expect_resumed();
  EXPECT_EQ(seen.task, 0u) << "nobody told where it is";

  Tasks tasks;
  tasks.describe(header());
  tasks.point_to(0x10);  // not mapped
  trap_with(look);
  expect_resumed();
  EXPECT_EQ(seen.task, 0x10u);
  EXPECT_EQ(seen.pid, 0u);
}

TEST_F(ShimCode, HandsTheSameOverForAJump) {
  constexpr std::uint64_t kInTheTop = 0xffff'ffff'8123'4567;
  come_by_jump(kInTheTop);
  shim_head seen{};
  shim_box registers{};
  trap_with([&] {
    wait_until_raised(0);
    std::memcpy(&seen, const_cast<shim_head*>(&head(0)), sizeof seen);
    std::memcpy(&registers, const_cast<shim_box*>(&box(0)), sizeof registers);
    answer(0);
  });

  expect_resumed();
  EXPECT_EQ(seen.address, kInTheTop);
  EXPECT_EQ(seen.head, SHIM_CLAIM | SHIM_RAISED);
  EXPECT_EQ(seen.percpu, percpu_);
  EXPECT_EQ(seen.rflags, shim_test_in[16]);
  std::uint64_t cs = 0, ss = 0;
  asm("mov %%cs, %0; mov %%ss, %1" : "=r"(cs), "=r"(ss));
  EXPECT_EQ(seen.segments, cs | ss << 32);
  for (unsigned r = 0; r < SHIM_REGISTERS; ++r) EXPECT_EQ(registers.regs[r], shim_test_in[r]) << r;
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, LetsAJumpGoOnAloneAsItLetsAnInt3) {
  come_by_jump(kAddress);
  wait_for(1'000'000);
  trap();
  expect_resumed();
  EXPECT_EQ(box(0).orphans, 1u);

  control().active = 0;
  trap();
  expect_resumed();
  EXPECT_EQ(box(0).late, 1u);

  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) head(i).head = SHIM_RAISED;
  trap();
  expect_resumed();
  EXPECT_EQ(control().overflows, 1u);
  EXPECT_EQ(control().foreign, 0u);
}

TEST_F(ShimCode, PassesForeignBreakpointsOnUndisturbed) {
  for (const std::uint64_t address : {kAddress + 1, kAddress + (std::uint64_t{1} << 32)}) {
    trap(address);
    expect_at_the_kernels_own(address);
  }
  EXPECT_EQ(control().foreign, 2u);
}

TEST_F(ShimCode, FindsItsEntryAmongOthersOfItsPage) {
  constexpr std::uint64_t kAmong = kAddress + 0x800;
  control().active = 0;
  unsigned late = 0;
  for (unsigned below = 0; below < 6; ++below) {
    for (unsigned above = 0; above < 6; ++above) {
      table_.clear();
      for (unsigned n = 1; n <= below; ++n) add_entry(kAmong - n, kOtherSlot);
      for (unsigned n = 1; n <= above; ++n) add_entry(kAmong + n, kOtherSlot);
      add_entry(kAmong);

      trap(kAmong);

      expect_resumed();
      EXPECT_EQ(box(0).late, ++late) << below << " below, " << above << " above";
    }
  }
  add_entry(kAddress);
  add_entry(kAddress + 0xfff);
  for (const std::uint64_t at : {kAddress, kAddress + 0xfff}) {
    trap(at);
    expect_resumed();
    EXPECT_EQ(box(0).late, ++late) << "at an end of the page";
  }
}

TEST_F(ShimCode, FindsEntriesOfOtherPagesAndParts) {
  control().active = 0;
  unsigned late = 0;
  const auto places = {kAddress + 0x1000, kAddress + 0x20'0000, kAddress + 0x3f'f000,
                       std::uint64_t{0x7fff'ffff}, std::uint64_t{0}};
  for (const std::uint64_t at : places) add_entry(at);
  for (const std::uint64_t at : places) {
    trap(at);
    expect_resumed();
    EXPECT_EQ(box(0).late, ++late) << at;
  }
}

TEST_F(ShimCode, PassesOnABreakpointThatNoEntryIsFor) {
  add_entry(kAddress + 8);
  const std::uint64_t others[] = {kAddress - 1,      kAddress + 1,         kAddress + 4,
                                  kAddress + 9,      kAddress + 0x1000,    kAddress + 0x20'0000,
                                  kAddress + 0x1008, kAddress + 0x20'0008, 0x7fff'ffff};
  for (const std::uint64_t at : others) {
    trap(at);
    EXPECT_EQ(shim_test_where, 2u) << at;
  }
  EXPECT_EQ(control().foreign, std::size(others));
}

TEST_F(ShimCode, LooksAgainWhereAnEntryHasComeMeanwhile) {
  const TrappedText text(0xcc);
  control().active = 0;
  changes = {{[&] { arm(text); }}, [&] { mprotect(region_ + kBlocks, SHIM_PAGE, kAll); }};
  const SignalHandler reads(SIGSEGV, on_read), steps(SIGTRAP, on_step);
  table_[static_cast<std::uint32_t>(text.address()) >> SHIM_PAGE_SHIFT];
  write_table();
  mprotect(region_ + kBlocks, SHIM_PAGE, PROT_NONE);

  trap(text.address());

  expect_resumed();
  EXPECT_EQ(box(0).late, 1u) << "in its slot";
  EXPECT_EQ(control().foreign, 0u);
}

TEST_F(ShimCode, PutsTheWayBackOnTheStackForASlotThatReturns) {
  constexpr unsigned kLength = 7;
  before_slot(SHIM_SLOT_LENGTH) = kLength;
  control().active = 0;
  for (const std::uint64_t below : {0, 8}) {
    below_stack_ = below;

    trap();

    EXPECT_EQ(shim_test_where, 1u);
    std::uint64_t way_back = 0;
    std::memcpy(&way_back, reinterpret_cast<void*>(shim_test_out[4]), sizeof way_back);
    EXPECT_EQ(way_back, kAddress + kLength);
    shim_test_out[4] += sizeof way_back;
    expect_resumed();
  }
  EXPECT_EQ(box(0).late, 2u);
  control().active = 1;
  trap_with([this] {
    wait_until_raised(0);
    EXPECT_EQ(box(0).regs[SHIM_RSP], shim_test_in[4]) << "as it was at the trap";
    answer(0);
  });
}

TEST_F(ShimCode, PassesOnABreakpointWhoseEntryWasTakenOut) {
  const TrappedText text(0xcc);
  add_entry(text.address());
  take_out(text.address());

  trap(text.address());

  EXPECT_EQ(shim_test_where, 2u);
  EXPECT_EQ(control().foreign, 1u);
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, ResumesAtTheAddressWhereATakenOutBreakpointIsGoneBeforeItsTrapIsServed) {
  const TrappedText text(0xff);
  add_entry(text.address());
  take_out(text.address());

  trap(text.address());

  expect_resumed();
  EXPECT_EQ(control().foreign, 0u) << "the kernel's handler would know nothing of it";
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, TakesABreakpointThatIsOursAgainForOurs) {
  const TrappedText text(0xff);
  add_entry(text.address());
  take_out(text.address());
  control().active = 0;

  trap_and_change(text, {[&] { arm(text); }});

  expect_resumed();
  EXPECT_EQ(control().foreign, 0u);
  EXPECT_EQ(box(0).late, 1u) << "in its slot";
}

TEST_F(ShimCode, ResumesAtTheAddressWhereOurBreakpointCameAndWent) {
  const TrappedText text(0xff);
  add_entry(text.address());
  take_out(text.address());

  const auto disarm = [&] {
    text.write(0xff);
    take_out(text.address());
  };
  trap_and_change(text, {[&] { arm(text); }, disarm});

  expect_resumed();
  EXPECT_EQ(control().foreign, 0u);
  EXPECT_EQ(box(0).late, 0u);
}

TEST_F(ShimCode, PassesOnTheGuestsOwnBreakpointWhileOthersAreArmed) {
  const TrappedText text(0xcc);
  add_entry(text.address());
  take_out(text.address());

  trap_and_change(text, {[&] { control().armings = control().armings + 1; }});

  EXPECT_EQ(shim_test_where, 2u);
  EXPECT_EQ(control().foreign, 1u);
  EXPECT_EQ(box(0).late, 0u);
}

TEST_F(ShimCode, ResumesAtOnceWhileInactive) {
  control().active = 0;

  trap();

  expect_resumed();
  EXPECT_EQ(box(0).late, 1u);
  EXPECT_EQ(box(0).orphans, 0u);
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, GoesOnAloneWhenTheHostFallsSilentAndComesBackWithIt) {
  wait_for(1'000'000);
  trap();
  expect_resumed();
  EXPECT_EQ(box(0).orphans, 1u);
  EXPECT_EQ(box(0).given_up, SHIM_CLAIM) << "the host may have taken it";
  EXPECT_EQ(control().silent, 1u);

  wait_for(kForever);
  trap();
  expect_resumed();
  EXPECT_EQ(box(0).orphans, 2u) << "no wait at all while the heartbeat stands still";
  EXPECT_EQ(box(0).given_up, SHIM_CLAIM) << "it was not raised";

  control().heartbeat = 2;
  trap_with([&] {
    wait_until_raised(0);
    answer(0);
  });
  expect_resumed();
  EXPECT_EQ(box(0).orphans, 2u);
  EXPECT_EQ(head(0).head / SHIM_CLAIM, 3u) << "every claim is counted";
}

TEST_F(ShimCode, GoesOnAloneWhereTheTscHardlyMovesToo) {
  wait_for(kForever, 100'000);
  trap();
  expect_resumed();
  EXPECT_EQ(box(0).orphans, 1u);
  EXPECT_EQ(box(0).given_up, SHIM_CLAIM);
  EXPECT_EQ(control().silent, 1u);
  EXPECT_EQ(state(0), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, CountsItsLooksAnewWithEachHeartbeat) {
  // A busy host may keep a heart from beating for longer than few looks take; more tell.
  for (const std::uint64_t looks : {2'000'000UL, 20'000'000UL, 200'000'000UL, 2'000'000'000UL}) {
    TearDown();
    SetUp();
    wait_for(kForever, looks);
    trap();
    ASSERT_EQ(box(0).orphans, 1u);
    const std::uint64_t ticks_alone = __rdtsc() - head(0).tsc;
    control().heartbeat = 2;
    std::atomic<bool> over = false;
    // Beats far more often than the looks ask for, until a wait without beats would have ended.
    std::thread host([&] {
      while (state(0) != SHIM_RAISED && !over) std::this_thread::yield();
      const std::uint64_t raised = __rdtsc();
      while (!over && __rdtsc() - raised < ticks_alone * 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        control().heartbeat = control().heartbeat + 1;
      }
      if (!over) answer(0);
    });

    trap();

    over = true;
    host.join();
    expect_resumed();
    if (box(0).orphans == 1) return;
  }
  FAIL() << "it goes on alone beside a host that lives";
}

TEST_F(ShimCode, WaitsForASlowHostThatLives) {
  // A busy host may keep a heart from beating for longer than a short timeout; a longer one tells.
  for (const std::uint64_t timeout : {500'000'000UL, 5'000'000'000UL, 50'000'000'000UL}) {
    TearDown();
    SetUp();
    wait_for(timeout);
    std::atomic<bool> over = false;
    // Beats far more often than the timeout asks for, until a wait without beats would have ended.
    std::thread host([&] {
      std::uint64_t raised = 0;  // when that was seen
      while (!over && (raised == 0 || __rdtsc() - raised < timeout * 3 / 2)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        control().heartbeat = control().heartbeat + 1;
        if (raised == 0 && state(0) == SHIM_RAISED) raised = __rdtsc();
      }
      if (!over) answer(0);
    });

    trap();

    over = true;
    host.join();
    expect_resumed();
    if (box(0).orphans == 0) return;
  }
  FAIL() << "it goes on alone beside a host that lives";
}

TEST_F(ShimCode, ANestedTrapTakesAnotherMailbox) {
  head(0).head = SHIM_RAISED;

  trap_with([&] {
    wait_until_raised(1);
    answer(1);
  });

  expect_resumed();
  EXPECT_EQ(state(0), unsigned{SHIM_RAISED}) << "the outer trap still waits";
}

TEST_F(ShimCode, TakesNoAnswerToAnotherClaimForItsOwn) {
  head(0).head = 7 * SHIM_CLAIM;
  wait_for(1'000'000);
  for (const std::uint64_t other : {7 * SHIM_CLAIM, 10 * SHIM_CLAIM, 10 * SHIM_CLAIM + 1, 0u}) {
    const std::uint64_t before = box(0).orphans;
    control().heartbeat = control().heartbeat + 1;
    head(0).answered = other;

    trap();

    expect_resumed();
    EXPECT_EQ(box(0).orphans, before + 1) << other;
  }
  EXPECT_EQ(head(0).head, 11 * SHIM_CLAIM | SHIM_FREE);
}

TEST_F(ShimCode, RingsTheDoorbellWithItsMailboxsIndexAndTakesTheAnswer) {
  const SignalHandler handler(SIGTRAP, on_ring);  // in place of OUT
  control().doorbell = 0x5244;
  head(0).head = SHIM_CLAIMED;
  rings.to_answer = &head(1);

  trap();  // nobody but the ringer answers, and the timeout never comes

  expect_resumed();
  EXPECT_EQ(rings.count, 1u);
  EXPECT_EQ(rings.value, 1u);
  EXPECT_EQ(rings.port & 0xffff, 0x5244u);
  EXPECT_EQ(head(1).address, kAddress) << "all of the trap is there before the bell";
  EXPECT_EQ(state(1), unsigned{SHIM_FREE});
}

TEST_F(ShimCode, FillsTheBoxOfEachMailboxAndRingsForIt) {
  const SignalHandler handler(SIGTRAP, on_ring);  // in place of OUT
  control().doorbell = 0x5244;
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    rings.to_answer = &head(i);

    trap();

    expect_resumed();
    EXPECT_EQ(rings.value, i);
    EXPECT_EQ(box(i).seal, seal_of(head(i), box(i), SHIM_CLAIM)) << i;
    EXPECT_EQ(box(i).regs[SHIM_RDI], shim_test_in[7]) << i;
    head(i).head = SHIM_CLAIMED;
  }
  EXPECT_EQ(control().overflows, 0u);
}

TEST_F(ShimCode, WaitsAsWithoutADoorbellWhereNobodyHearsIt) {
  const SignalHandler handler(SIGTRAP, on_ring);  // in place of OUT
  control().doorbell = 0x5244;

  trap_with([&] {
    wait_until_raised(0);
    answer(0);
  });

  expect_resumed();
  EXPECT_EQ(rings.count, 1u);
  EXPECT_EQ(box(0).orphans, 0u);
}

TEST_F(ShimCode, DoesNotRingWhereNobodyWantsTheTrap) {
  const SignalHandler handler(SIGTRAP, on_ring);  // in place of OUT
  control().doorbell = 0x5244;
  control().active = 0;
  trap();
  control().active = 1;
  control().silent = 1;
  trap();
  trap(kAddress + 1);

  EXPECT_EQ(rings.count, 0u) << "late, orphaned and foreign traps";
}

TEST_F(ShimCode, CountsATrapThatFindsNoMailbox) {
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) head(i).head = SHIM_CLAIMED;

  trap();

  expect_resumed();
  EXPECT_EQ(control().overflows, 1u);
}

TEST(ShimImage, CarriesTheHeaderThatTheHostChecks) {
  shim_header header;
  ASSERT_GE(shim_image_size, sizeof header);
  std::memcpy(&header, shim_image, sizeof header);

  EXPECT_EQ(header.magic, SHIM_MAGIC);
  EXPECT_EQ(header.version, SHIM_VERSION);
  EXPECT_EQ(header.image_bytes, shim_image_size);
  EXPECT_LE(shim_image_size, SHIM_CODE_SIZE);
  const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  EXPECT_EQ(std::memcmp(shim_image + header.entry, endbr64, sizeof endbr64), 0);
}

}  // namespace
}  // namespace ringside
