// In this file, top to bottom: shared words, table and slots, whether the shim is still there,
// switching on and off, serving traps, counters and the profiler's questions.
#include "vmm/shim/shim_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "vmm/base/check.h"
#include "vmm/paging.h"

namespace ringside::vmm {
namespace {

/// TSC ticks without a heartbeat after which the guest goes on alone: between 1 and 3 s on CPUs of
/// 2 to 6 GHz. The guest's TSC stands still while the machine is paused.
constexpr std::uint64_t kPatienceTicks = 6'000'000'000;
/// A heartbeat that lies further from the one that we know is none of another thread of ours.
constexpr std::uint64_t kBeatsAtOnce = 1024;
/// Mailboxes beyond those that were ever seen in use are looked at this seldom. A nested trap that
/// takes a new one waits for it once.
constexpr unsigned kFullScanEvery = 64;
/// Above this load, open addressing makes long walks inside the guest.
constexpr std::size_t kMaxEntries = SHIM_TABLE_ENTRIES / 4 * 3;
/// Addresses must lie in the top 2 GiB: the table's keys are their low halves.
constexpr std::uint64_t kLowestAddress = 0xffff'ffff'8000'0000;

std::uint32_t first_bucket(std::uint64_t address) {
  return static_cast<std::uint32_t>(address) * SHIM_HASH >> (32 - SHIM_TABLE_BITS);
}

std::uint8_t state_of(std::uint64_t head) {
  return static_cast<std::uint8_t>(head);
}

Registers registers_of(const shim_mailbox& box) {
  const auto& regs = box.regs;
  Registers out;
  out.rax = regs[SHIM_RAX], out.rbx = regs[SHIM_RBX], out.rcx = regs[SHIM_RCX];
  out.rdx = regs[SHIM_RDX], out.rsi = regs[SHIM_RSI], out.rdi = regs[SHIM_RDI];
  out.rbp = regs[SHIM_RBP], out.rsp = regs[SHIM_RSP];
  out.r8 = regs[SHIM_R8], out.r9 = regs[SHIM_R9], out.r10 = regs[SHIM_R10];
  out.r11 = regs[SHIM_R11], out.r12 = regs[SHIM_R12], out.r13 = regs[SHIM_R13];
  out.r14 = regs[SHIM_R14], out.r15 = regs[SHIM_R15];
  out.rip = box.address;
  out.rflags = box.rflags;
  out.cs = box.segments & 0xffff;
  out.ss = box.segments >> 32 & 0xffff;
  out.gs_base = box.percpu;  // a trap of ours is in kernel mode, where GS is the per-cpu base
  out.cr3 = box.cr3;
  return out;
}

}  // namespace

SpinShim::SpinShim(std::span<std::byte> region, GuestPhys place, GuestVirt base, unsigned vcpus,
                   SavedGate gate)
    : region_(region),
      place_(place),
      base_(base),
      gate_(gate),
      table_(SHIM_TABLE_ENTRIES),
      scan_limit_(std::clamp(vcpus, 1u, SHIM_MAILBOXES)) {
  CHECK(region_.size() >= SHIM_REGION_SIZE);
  std::memcpy(header_.data(), region_.data(), sizeof header_);
  word(SHIM_DATA_OFFSET + SHIM_CONTROL_PATIENCE).store(kPatienceTicks, std::memory_order_relaxed);
  heartbeat();
}

std::atomic_ref<std::uint64_t> SpinShim::word(std::size_t offset) const {
  CHECK(offset % 8 == 0 && offset + 8 <= region_.size());
  // SAFETY: aligned and inside the region, which outlives us; the guest changes it at any time,
  // hence atomic.
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(region_.data() + offset));
}

std::atomic_ref<std::uint64_t> SpinShim::head_of(unsigned mailbox) const {
  return word(SHIM_MAILBOX_OFFSET + mailbox * SHIM_MAILBOX_SIZE);
}

/// The one copy of what a trap wrote, if `head` is still the mailbox's. A shim that lost patience
/// takes its request back, and the mailbox may be another trap's while we copy. The counters behind
/// it are not part of it.
std::optional<shim_mailbox> SpinShim::copy_trap(unsigned mailbox, std::uint64_t head) const {
  std::optional<shim_mailbox> copy(std::in_place);
  const std::size_t offset = SHIM_MAILBOX_OFFSET + mailbox * SHIM_MAILBOX_SIZE;
  std::memcpy(&*copy, region_.data() + offset, SHIM_BOX_TRAP_BYTES);
  // Neither may the second look move before the copy, nor the compiler go back to the shared bytes
  // for a field that it wants again.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (head_of(mailbox).load(std::memory_order_relaxed) != head) copy.reset();
  return copy;
}

Result<GuestVirt> SpinShim::allocate_slot(std::size_t size) {
  if (size > SHIM_SLOTS_SIZE - slot_bytes_) {
    return fail(
        ErrorCode::Limit,
        fmt::format("the {} MiB for displaced instructions are used up: enable fewer probes",
                    SHIM_SLOTS_SIZE >> 20));
  }
  const GuestVirt slot(base_.raw() + SHIM_SLOTS_OFFSET + slot_bytes_);
  slot_bytes_ += size;
  return slot;
}

Result<void> SpinShim::write_slot(GuestVirt slot, std::span<const std::byte> code) {
  const std::uint64_t offset = slot.raw() - base_.raw() - SHIM_SLOTS_OFFSET;
  if (offset > slot_bytes_ || code.size() > slot_bytes_ - offset) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no slot", slot.raw()));
  }
  std::copy(code.begin(), code.end(), region_.begin() + SHIM_SLOTS_OFFSET + offset);
  return {};
}

Result<void> SpinShim::add_entry(GuestVirt address, GuestVirt slot) {
  const std::uint64_t offset = slot.raw() - base_.raw();
  if (address.raw() < kLowestAddress || offset < SHIM_SLOTS_OFFSET ||
      offset >= SHIM_SLOTS_OFFSET + slot_bytes_) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  if (entries_ >= kMaxEntries) {
    return fail(
        ErrorCode::Limit,
        fmt::format("{} tracepoints are the most that fit: enable fewer probes", kMaxEntries));
  }
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address.raw());
  while (table_[bucket] != 0) {
    if (static_cast<std::uint32_t>(table_[bucket]) == key) {
      return fail(ErrorCode::Invalid, fmt::format("{:#x} is a tracepoint already", address.raw()));
    }
    bucket = (bucket + 1) % SHIM_TABLE_ENTRIES;
  }
  table_[bucket] = key | offset << 32;
  // Release: the slot's bytes are there before the entry that leads to them.
  word(SHIM_TABLE_OFFSET + std::size_t{8} * bucket)
      .store(table_[bucket], std::memory_order_release);
  ++entries_;
  return {};
}

std::optional<std::uint32_t> SpinShim::bucket_of(GuestVirt address) const {
  if (address.raw() < kLowestAddress) return std::nullopt;
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address.raw());
  while (table_[bucket] != 0) {  // ends: a quarter of the buckets is always empty
    if (static_cast<std::uint32_t>(table_[bucket]) == key) return bucket;
    bucket = (bucket + 1) % SHIM_TABLE_ENTRIES;
  }
  return std::nullopt;
}

/// Only the shared word changes: our own copy must stay as it is beside a thread that polls, and a
/// trap that looked its slot up before still waits for an answer.
void SpinShim::remove_entry(GuestVirt address) {
  const auto bucket = bucket_of(address);
  if (!bucket || fate() != ShimFate::There) return;
  std::uint64_t expected = table_[*bucket];
  word(SHIM_TABLE_OFFSET + std::size_t{8} * *bucket)
      .compare_exchange_strong(expected, static_cast<std::uint32_t>(address.raw()),
                               std::memory_order_release, std::memory_order_relaxed);
}

std::vector<std::byte> SpinShim::farewell(GuestVirt slot) const {
  std::vector<std::byte> code;
  // C7 /0: mov imm32 to memory at rip + disp32, from the instruction's end; REX.W for 64 bits.
  const auto move = [&](std::initializer_list<unsigned char> opcode, unsigned field,
                        std::uint32_t value) {
    for (const unsigned char byte : opcode) code.push_back(std::byte{byte});
    const std::uint64_t end = slot.raw() + code.size() + 2 * sizeof(std::uint32_t);
    const std::uint64_t to = base_.raw() + SHIM_DATA_OFFSET + field;
    const std::uint32_t operands[] = {static_cast<std::uint32_t>(to - end), value};
    const auto bytes = std::as_bytes(std::span(operands));
    code.insert(code.end(), bytes.begin(), bytes.end());
  };
  move({0x48, 0xc7, 0x05}, SHIM_CONTROL_LEFT, 1);
  move({0x48, 0xc7, 0x05}, SHIM_CONTROL_ACTIVE, 0);
  return code;
}

bool SpinShim::has_header() const {
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (word(8 * i).load(std::memory_order_relaxed) != header_[i]) return false;
  }
  return true;
}

/// The memory of a kernel that the guest has left keeps what was in it for a while, hence the
/// guest's own word first.
ShimFate SpinShim::look() const {
  const std::uint64_t left =
      word(SHIM_DATA_OFFSET + SHIM_CONTROL_LEFT).load(std::memory_order_acquire);
  if (left == 1) return ShimFate::GuestLeft;
  const std::uint64_t patience =
      word(SHIM_DATA_OFFSET + SHIM_CONTROL_PATIENCE).load(std::memory_order_relaxed);
  const bool gate = std::equal(gate_.now.begin(), gate_.now.end(), gate_.ours.begin());
  const bool ours = left == 0 && patience == kPatienceTicks && gate && has_header();
  return ours ? ShimFate::There : ShimFate::Overwritten;
}

ShimFate SpinShim::fate() const {
  const ShimFate known = fate_.load(std::memory_order_relaxed);
  if (known != ShimFate::There) return known;
  const ShimFate now = look();
  if (now != ShimFate::There) fate_.store(now, std::memory_order_relaxed);
  return now;
}

Result<void> SpinShim::check_mapped(PausedMachine& machine) const {
  const unsigned vcpus = fate() == ShimFate::There ? 1 : machine.vcpu_count();
  for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    const bool paged = pages(registers) && in_long_mode(registers);
    if (!paged && vcpu != 0) continue;  // it was never started, or waits to be
    const auto at = paged ? translate(machine.memory(), page_table_of(registers), base_)
                          : std::optional<Translation>();
    if (!at || at->address != place_ || !has_header()) {
      return fail(
          ErrorCode::Invalid,
          fmt::format("vCPU {} of the guest does not run the kernel that was looked at when "
                      "tracing began, so nothing is written there",
                      vcpu));
    }
  }
  return {};
}

void SpinShim::activate() {
  heartbeat();
  if (fate() != ShimFate::There) return;
  std::uint64_t expected = 0;
  word(SHIM_DATA_OFFSET + SHIM_CONTROL_ACTIVE)
      .compare_exchange_strong(expected, 1, std::memory_order_release, std::memory_order_relaxed);
}

void SpinShim::deactivate() {
  if (fate() != ShimFate::There) return;
  std::uint64_t expected = 1;
  // Sequentially consistent with the loads of quiescent(): a trap whose claim those do not see has
  // not read `active` yet, and will read 0.
  word(SHIM_DATA_OFFSET + SHIM_CONTROL_ACTIVE)
      .compare_exchange_strong(expected, 0, std::memory_order_seq_cst);
}

Result<void> SpinShim::retire(PausedMachine& machine) {
  deactivate();
  TRY(check_mapped(machine));
  // Where the gate lay may be something else by now, after a kexec say.
  std::array<std::byte, sizeof gate_.ours> now;
  if (!machine.memory().read(gate_.at, now) || now != gate_.ours) {
    return fail(ErrorCode::Invalid,
                "the guest changed its interrupt table; its breakpoints stay as they are");
  }
  if (!machine.memory().write(gate_.at, gate_.bytes)) {
    return fail(ErrorCode::Io, "the guest's interrupt table is not in its memory any more");
  }
  return {};
}

unsigned SpinShim::poll(TrapSink& sink) {
  if (fate_.load(std::memory_order_relaxed) != ShimFate::There) return 0;
  const unsigned limit = ++polls_ % kFullScanEvery == 0 ? SHIM_MAILBOXES : scan_limit_;
  unsigned served = 0;
  for (unsigned i = 0; i < limit; ++i) {
    const std::uint64_t head = head_of(i).load(std::memory_order_acquire);
    if (state_of(head) != SHIM_RAISED) continue;
    scan_limit_ = std::max(scan_limit_, i + 1);
    serve(i, head, sink);
    ++served;
  }
  return served;
}

void SpinShim::set_doorbell(std::uint16_t port) {
  if (fate() != ShimFate::There) return;
  std::uint64_t expected = doorbell_.exchange(port);
  word(SHIM_DATA_OFFSET + SHIM_CONTROL_DOORBELL)
      .compare_exchange_strong(expected, port, std::memory_order_relaxed);
}

void SpinShim::answer(std::uint32_t mailbox, TrapSink& sink) {
  if (mailbox >= SHIM_MAILBOXES) return;
  const std::uint64_t head = head_of(mailbox).load(std::memory_order_acquire);
  if (state_of(head) == SHIM_RAISED) serve(mailbox, head, sink);
}

void SpinShim::serve(unsigned mailbox, std::uint64_t head, TrapSink& sink) {
  const auto box = copy_trap(mailbox, head);
  if (!box) return;  // the trap has gone on alone and is counted; what came after it is raised anew
  if (fate() != ShimFate::There) return;
  const GuestVirt address(box->address);
  if (knows(address)) {
    sink.on_trap(Trap{address, box->tsc, GuestVirt(box->percpu), registers_of(*box)});
  } else {
    rejected_.fetch_add(1, std::memory_order_relaxed);
  }
  // Fails when the guest gave up on us meanwhile and has counted an orphan; with the count of
  // claims in the word, a later trap in the same mailbox cannot be answered by mistake.
  std::uint64_t expected = head;
  head_of(mailbox).compare_exchange_strong(expected, (head & ~std::uint64_t{0xff}) | SHIM_ANSWERED,
                                           std::memory_order_release, std::memory_order_relaxed);
}

void SpinShim::heartbeat() {
  if (fate() != ShimFate::There) return;
  const std::uint64_t last = heartbeat_.load(std::memory_order_relaxed);
  std::uint64_t now = last;
  if (word(SHIM_DATA_OFFSET + SHIM_CONTROL_HEARTBEAT)
          .compare_exchange_strong(now, last + 1, std::memory_order_release)) {
    heartbeat_.store(last + 1, std::memory_order_relaxed);
  } else if (now - last >= kBeatsAtOnce) {
    fate_.store(ShimFate::Overwritten, std::memory_order_relaxed);
  }
}

bool SpinShim::quiescent() const {
  if (fate() != ShimFate::There) return true;
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const std::uint8_t state = state_of(head_of(i).load(std::memory_order_seq_cst));
    if (state == SHIM_CLAIMED || state == SHIM_RAISED) return false;
  }
  return true;
}

ShimCounters SpinShim::counters() const {
  const ShimCounters now = sum_counters();
  const std::lock_guard lock(counters_lock_);
  // Looked at after the words were read: of another kernel's memory none counts.
  if (fate() == ShimFate::There) last_counters_ = now;
  return last_counters_;
}

ShimCounters SpinShim::sum_counters() const {
  const auto at = [this](std::size_t offset) {
    return word(offset).load(std::memory_order_relaxed);
  };
  ShimCounters sum;
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const std::size_t box = SHIM_MAILBOX_OFFSET + i * SHIM_MAILBOX_SIZE;
    sum.firings += at(box) >> 8;
    sum.orphans += at(box + SHIM_BOX_ORPHANS);
    sum.late += at(box + SHIM_BOX_LATE);
  }
  const std::uint64_t overflows = at(SHIM_DATA_OFFSET + SHIM_CONTROL_OVERFLOWS);
  sum.firings += overflows;
  sum.orphans += overflows;
  sum.foreign = at(SHIM_DATA_OFFSET + SHIM_CONTROL_FOREIGN);
  sum.rejected = rejected_.load(std::memory_order_relaxed);
  return sum;
}

bool SpinShim::contains(GuestVirt pc) const {
  return pc >= base_ && pc.raw() - base_.raw() < SHIM_REGION_SIZE;
}

std::optional<Registers> SpinShim::waiting(GuestVirt percpu_base) const {
  if (fate() != ShimFate::There) return std::nullopt;
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const std::uint64_t head = head_of(i).load(std::memory_order_acquire);
    if (state_of(head) != SHIM_RAISED && state_of(head) != SHIM_ANSWERED) continue;
    const auto box = copy_trap(i, head);
    if (box && box->percpu == percpu_base.raw() && knows(GuestVirt(box->address))) {
      return registers_of(*box);
    }
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
