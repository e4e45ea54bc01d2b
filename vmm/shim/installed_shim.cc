// In this file, top to bottom: table and slots, whether the shim is still there,
// switching on and off, serving traps, counters and the profiler's questions.
#include "vmm/shim/installed_shim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "vmm/arch/arch.h"
#include "vmm/base/check.h"

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
/// Addresses must lie in the top 2 GiB: the table's keys are their low halves.
constexpr std::uint64_t kLowestAddress = 0xffff'ffff'8000'0000;

tl::unexpected<Error> region_gone() {
  return fail(ErrorCode::MachineGone, "the shim is not in the guest's memory any more");
}

std::uint8_t state_of(std::uint64_t head) {
  return static_cast<std::uint8_t>(head);
}

constexpr std::uint64_t kNoClaim = 1;  // claim_of() of none

std::uint64_t claim_of(std::uint64_t head) {
  return head & ~std::uint64_t{SHIM_CLAIM - 1};
}

/// Claims of a mailbox count up, and wrap. A guest that lets them go back waits in vain.
bool is_later(std::uint64_t claim, std::uint64_t than) {
  return static_cast<std::int64_t>(claim - than) > 0;
}

Registers registers_of(const MailboxCopy& box) {
  static_assert(SHIM_RAX == 0 && SHIM_R15 == 15 && SHIM_REGISTERS == arch::kByEncoding.size(),
                "the mailbox has them in the order of their encoding");
  Registers out;
  for (std::size_t n = 0; n < SHIM_REGISTERS; ++n) out.*arch::kByEncoding[n] = box.regs[n];
  out.rip = box.head.address;
  out.rflags = box.head.rflags;
  out.cs = box.head.segments & 0xffff;
  out.ss = box.head.segments >> 32 & 0xffff;
  out.gs_base = box.head.percpu;  // a trap of ours is in kernel mode, where GS is the per-cpu base
  out.cr3 = box.head.cr3;
  return out;
}

}  // namespace

InstalledShim::InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base,
                             unsigned vcpus, SavedGate gate, std::optional<ShimMapping> mapping,
                             std::vector<OccupiedSlots> occupied)
    : layout_(layout),
      region_(memory, layout.place, layout.bytes, layout.data),
      base_(base),
      gate_(gate),
      mapping_(mapping),
      gate_mapping_(memory.mapping(gate.at, gate.ours.size())),
      table_(layout.table_entries),
      occupied_(std::move(occupied)),
      scan_limit_(std::clamp(vcpus, 1u, SHIM_MAILBOXES)) {
  (void)memory.read(layout.place, std::as_writable_bytes(std::span(header_)));
  (void)region_.store(control(SHIM_CONTROL_PATIENCE), kPatienceTicks);
  heartbeat();
}

std::uint32_t InstalledShim::first_bucket(GuestVirt address) const {
  const std::uint32_t hash = static_cast<std::uint32_t>(address.raw()) * SHIM_HASH;
  return static_cast<std::uint32_t>(std::uint64_t{hash} * layout_.table_entries >> 32);
}

Result<GuestVirt> InstalledShim::allocate_slot(std::size_t size) {
  std::uint64_t begin = slot_bytes_;
  for (const OccupiedSlots& part : occupied_) {
    if (part.begin < begin + size && part.end > begin) begin = part.end;
  }
  if (begin > layout_.slots_bytes || size > layout_.slots_bytes - begin) {
    return fail(
        ErrorCode::Limit,
        fmt::format("the {} KiB for displaced instructions are used up: enable fewer probes",
                    layout_.slots_bytes >> 10));
  }
  slot_bytes_ = begin + size;
  return base_.wrapping_add(layout_.slots + begin);
}

Result<void> InstalledShim::write_slot(GuestVirt slot, std::span<const std::byte> code) {
  const std::uint64_t offset = slot.raw() - base_.raw() - layout_.slots;
  if (offset > slot_bytes_ || code.size() > slot_bytes_ - offset) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no slot", slot.raw()));
  }
  if (state() != ShimState::There || !region_.write(layout_.slots + offset, code)) {
    return region_gone();
  }
  return {};
}

Result<void> InstalledShim::add_entry(GuestVirt address, GuestVirt slot) {
  const std::uint64_t offset = slot.raw() - base_.raw();
  if (address.raw() < kLowestAddress || offset < layout_.slots ||
      offset >= layout_.slots + slot_bytes_) {
    return fail(ErrorCode::Invalid,
                fmt::format("{:#x} is not kernel text, or {:#x} no slot of ours", address.raw(),
                            slot.raw()));
  }
  if (entries_ >= layout_.most_tracepoints()) {
    return fail(ErrorCode::Limit,
                fmt::format("{} tracepoints are the most that fit: enable fewer probes",
                            layout_.most_tracepoints()));
  }
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address);
  while (entry(bucket) != 0) {
    if (static_cast<std::uint32_t>(entry(bucket)) == key) return put_back(bucket, address, offset);
    bucket = (bucket + 1) % layout_.table_entries;
  }
  table_[bucket].store(key | offset << 32, std::memory_order_release);
  ++entries_;
  if (slot == farewell_slot_) farewell_address_ = address;
  // The slot's bytes are there before the entry that leads to them.
  std::uint64_t empty = 0;
  if (state() != ShimState::There ||
      !region_.replace(layout_.table + std::uint64_t{8} * bucket, empty, entry(bucket))) {
    return region_gone();
  }
  return {};
}

/// An entry that remove_entry() took out.
Result<void> InstalledShim::put_back(std::uint32_t bucket, GuestVirt address,
                                     std::uint64_t offset) {
  if (state() != ShimState::There) return region_gone();
  const std::uint64_t key = static_cast<std::uint32_t>(address.raw());
  std::uint64_t expected = key;
  if (!region_.replace(layout_.table + std::uint64_t{8} * bucket, expected, key | offset << 32)) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is a tracepoint already", address.raw()));
  }
  table_[bucket].store(key | offset << 32, std::memory_order_release);
  return {};
}

std::optional<std::uint32_t> InstalledShim::bucket_of(GuestVirt address) const {
  if (address.raw() < kLowestAddress) return std::nullopt;
  const auto key = static_cast<std::uint32_t>(address.raw());
  std::uint32_t bucket = first_bucket(address);
  while (entry(bucket) != 0) {  // ends: a quarter of the buckets is always empty
    if (static_cast<std::uint32_t>(entry(bucket)) == key) return bucket;
    bucket = (bucket + 1) % layout_.table_entries;
  }
  return std::nullopt;
}

/// Only the shared word changes: our own copy must stay as it is beside a thread that polls, and a
/// trap that looked its slot up before still waits for an answer.
void InstalledShim::remove_entry(GuestVirt address) {
  const auto bucket = bucket_of(address);
  if (!bucket || state() != ShimState::There) return;
  std::uint64_t expected = entry(*bucket);
  region_.replace(layout_.table + std::uint64_t{8} * *bucket, expected,
                  static_cast<std::uint32_t>(address.raw()));
}

std::vector<std::byte> InstalledShim::farewell(GuestVirt slot) {
  farewell_slot_ = slot;
  std::vector<std::byte> code;
  // C7 /0: mov imm32 to memory at rip + disp32, from the instruction's end; REX.W for 64 bits.
  const auto move = [&](std::initializer_list<unsigned char> opcode, unsigned field,
                        std::uint32_t value) {
    for (const unsigned char byte : opcode) code.push_back(std::byte{byte});
    const std::uint64_t end = slot.wrapping_add(code.size() + 2 * sizeof(std::uint32_t)).raw();
    const std::uint64_t to = base_.wrapping_add(control(field)).raw();
    const std::uint32_t operands[] = {static_cast<std::uint32_t>(to - end), value};
    const auto bytes = std::as_bytes(std::span(operands));
    code.insert(code.end(), bytes.begin(), bytes.end());
  };
  move({0x48, 0xc7, 0x05}, SHIM_CONTROL_LEFT, 1);
  move({0x48, 0xc7, 0x05}, SHIM_CONTROL_ACTIVE, 0);
  return code;
}

bool InstalledShim::has_header() const {
  HeaderWords now;
  return region_.memory().read(layout_.place, std::as_writable_bytes(std::span(now))) &&
         now == header_;
}

/// The memory of a kernel that the guest has left keeps what was in it for a while, hence the
/// guest's own word first.
ShimState InstalledShim::look() const {
  // The two may be memory of different kinds.
  if (!region_.is_mapped() || gate_mapping_.empty()) return look_by_copies();
  const std::uint64_t left = region_.load(control(SHIM_CONTROL_LEFT));
  if (left == 1) return ShimState::GuestLeft;
  const bool ours = left == 0 && region_.load(control(SHIM_CONTROL_PATIENCE)) == kPatienceTicks &&
                    std::memcmp(gate_mapping_.data(), gate_.ours.data(), sizeof gate_.ours) == 0 &&
                    region_.begins_with(header_);
  return ours ? ShimState::There : ShimState::Overwritten;
}

/// What look() looks at, to be read by one call.
struct InstalledShim::CopiedLook {
  std::array<std::uint64_t, (SHIM_CONTROL_LEFT + 8) / 8> words;
  HeaderWords header;
  std::array<std::byte, sizeof gate_.ours> gate;

  std::array<GuestMemory::Part, 3> parts(const ShimLayout& layout, GuestPhys gate_at) {
    return {{{layout.place.wrapping_add(layout.data), std::as_writable_bytes(std::span(words))},
             {layout.place, std::as_writable_bytes(std::span(header))},
             {gate_at, gate}}};
  }
};

ShimState InstalledShim::look_by_copies() const {
  CopiedLook look;
  if (!region_.memory().read_each(look.parts(layout_, gate_.at))) return ShimState::Overwritten;
  return verdict(look);
}

ShimState InstalledShim::verdict(const CopiedLook& look) const {
  const std::uint64_t left = look.words[SHIM_CONTROL_LEFT / 8];
  if (left == 1) return ShimState::GuestLeft;
  const bool ours = left == 0 && look.words[SHIM_CONTROL_PATIENCE / 8] == kPatienceTicks &&
                    look.gate == gate_.ours && look.header == header_;
  return ours ? ShimState::There : ShimState::Overwritten;
}

/// Copies the mailbox of a trap and looks whether the shim is still there: by copies, each call
/// takes longer than all the rest of a firing.
bool InstalledShim::copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& box) const {
  if (region_.is_mapped()) {
    return region_.copy_mailbox(mailbox, head, box) && state() == ShimState::There;
  }
  if (state_.load(std::memory_order_relaxed) != ShimState::There) return false;
  CopiedLook look;
  if (!region_.copy_mailbox(mailbox, head, box, look.parts(layout_, gate_.at))) return false;
  const ShimState now = verdict(look);
  if (now != ShimState::There) state_.store(now, std::memory_order_relaxed);
  return now == ShimState::There;
}

ShimState InstalledShim::state() const {
  const ShimState known = state_.load(std::memory_order_relaxed);
  if (known != ShimState::There) return known;
  const ShimState now = look();
  if (now != ShimState::There) state_.store(now, std::memory_order_relaxed);
  return now;
}

Result<void> InstalledShim::check_mapped(PausedMachine& machine) const {
  const ShimState now = state();
  const bool sure = now == ShimState::There || now == ShimState::Retired;
  const unsigned vcpus = sure ? 1 : machine.vcpu_count();
  for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    const bool paged = arch::pages(registers) && arch::in_long_mode(registers);
    if (!paged && vcpu != 0) continue;  // it was never started, or waits to be
    const auto at = paged ? translate(machine.memory(), arch::page_table_of(registers), base_)
                          : std::optional<Translation>();
    if (!at || at->address != layout_.place || !has_header()) {
      return fail(
          ErrorCode::Invalid,
          fmt::format("vCPU {} of the guest does not run the kernel that was looked at when "
                      "tracing began, so nothing is written there",
                      vcpu));
    }
  }
  return {};
}

void InstalledShim::activate() {
  heartbeat();
  if (state() != ShimState::There) return;
  std::uint64_t expected = 0;
  region_.replace(control(SHIM_CONTROL_ACTIVE), expected, 1);
}

void InstalledShim::deactivate() {
  if (state() != ShimState::There) return;
  std::uint64_t expected = 1;
  // Sequentially consistent with the loads of quiescent(): a trap whose claim those do not see has
  // not read `active` yet, and will read 0.
  region_.replace(control(SHIM_CONTROL_ACTIVE), expected, 0);
}

Result<void> InstalledShim::retire(PausedMachine& machine) {
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
  (void)counters();  // the last ones
  state_.store(ShimState::Retired, std::memory_order_relaxed);
  give_up_ownership();
  return {};
}

/// For the next tracer, should it have to stay: we may live on.
void InstalledShim::give_up_ownership() {
  for (const std::uint64_t field :
       {offsetof(shim_header, owner), offsetof(shim_header, owner_start)}) {
    if (region_.store(field, 0)) header_[field / sizeof(std::uint64_t)] = 0;
  }
}

Result<void> InstalledShim::remove(PausedMachine& machine) {
  if (!mapping_ || state() != ShimState::Retired) {
    return fail(ErrorCode::Invalid, "the shim is still in use");
  }
  TRY(check_mapped(machine));
  TRY(mapping_->clear(machine.memory()));
  const std::uint64_t occupied = occupied_.empty() ? 0 : occupied_.back().end;
  return clear_region(machine, layout_, std::max<std::uint64_t>(slot_bytes_, occupied));
}

void InstalledShim::look_up_to(unsigned limit) {
  unsigned now = scan_limit_.load(std::memory_order_relaxed);
  while (now < limit && !scan_limit_.compare_exchange_weak(now, limit, std::memory_order_relaxed)) {
  }
}

unsigned InstalledShim::poll_share(TrapSink& sink, PollShare share) {
  if (state_.load(std::memory_order_relaxed) != ShimState::There) return 0;
  const unsigned polls = polls_[share.index].fetch_add(1, std::memory_order_relaxed);
  const unsigned usual = scan_limit_.load(std::memory_order_relaxed);
  const unsigned limit = polls % kFullScanEvery == kFullScanEvery - 1 ? SHIM_MAILBOXES : usual;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(std::span(heads).first(limit));
  unsigned served = 0;
  for (unsigned i = share.index; i < limit; i += share.count) {
    if (!wants_answer(i, heads[i])) continue;
    if (i >= usual) look_up_to(i + 1);
    serve(i, heads[i], sink);
    ++served;
  }
  return served;
}

void InstalledShim::set_doorbell(std::uint16_t port) {
  if (state() != ShimState::There) return;
  std::uint64_t expected = doorbell_.exchange(port);
  region_.replace(control(SHIM_CONTROL_DOORBELL), expected, port);
}

void InstalledShim::answer(std::uint32_t mailbox, TrapSink& sink) {
  if (mailbox >= SHIM_MAILBOXES) return;
  const std::uint64_t head = region_.load(region_.head_at(mailbox));
  if (wants_answer(mailbox, head)) serve(mailbox, head, sink);
}

bool InstalledShim::wants_answer(unsigned mailbox, std::uint64_t head) const {
  return state_of(head) == SHIM_RAISED &&
         is_later(claim_of(head), taken_[mailbox].load(std::memory_order_relaxed));
}

void InstalledShim::serve(unsigned mailbox, std::uint64_t head, TrapSink& sink) {
  MailboxCopy box;
  // Else the trap has gone on alone and is counted; what came after it is raised anew.
  if (!copy_mailbox(mailbox, head, box)) return;
  // Another thread may serve it, or have served it and later ones while we copied.
  std::uint64_t before = taken_[mailbox].load(std::memory_order_relaxed);
  if (!is_later(claim_of(head), before) ||
      !taken_[mailbox].compare_exchange_strong(before, claim_of(head))) {
    return;
  }
  const GuestVirt address(box.head.address);
  if (knows(address)) {
    sink.on_trap(Trap{address, box.head.tsc, GuestVirt(box.head.percpu), registers_of(box)});
  } else {
    rejected_.fetch_add(1, std::memory_order_relaxed);
  }
  // A guest that gave up on us meanwhile has counted an orphan, and compares with a later claim: no
  // other trap in the same mailbox takes this answer for its own.
  const std::uint64_t at = region_.head_at(mailbox) + SHIM_HEAD_ANSWERED;
  // Another thread serves a later one, so nobody waits for this answer any more.
  if (taken_[mailbox].load() != claim_of(head)) return;
  // Noted before it is written: the guest's next claim may be another thread's at once.
  std::uint64_t answered = answered_[mailbox].load(std::memory_order_relaxed);
  answered_[mailbox].store(claim_of(head), std::memory_order_relaxed);
  if (farewell_address_ == address) {
    region_.end_with(at, answered, claim_of(head));
    state_.store(ShimState::GuestLeft, std::memory_order_relaxed);
  } else if (!region_.replace(at, answered, claim_of(head))) {
    answered_[mailbox].store(answered, std::memory_order_relaxed);
  }
}

void InstalledShim::heartbeat() {
  if (state() != ShimState::There) return;
  const std::uint64_t last = heartbeat_.load(std::memory_order_relaxed);
  std::uint64_t now = last;
  if (region_.replace(control(SHIM_CONTROL_HEARTBEAT), now, last + 1)) {
    heartbeat_.store(last + 1, std::memory_order_relaxed);
  } else if (now - last >= kBeatsAtOnce) {
    state_.store(ShimState::Overwritten, std::memory_order_relaxed);
  }
}

/// A mailbox without such a trap: no claim's count has the lowest bit.
TrapsUnderWay InstalledShim::under_way() const {
  TrapsUnderWay traps;
  if (state() != ShimState::There) return traps;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    traps.push_back(is_under_way(i, heads[i]) ? claim_of(heads[i]) : kNoClaim);
  }
  return traps;
}

bool InstalledShim::have_answers(const TrapsUnderWay& traps) const {
  if (state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES && i < traps.size(); ++i) {
    if (claim_of(heads[i]) == traps[i] && is_under_way(i, heads[i])) return false;
  }
  return true;
}

bool InstalledShim::is_under_way(unsigned mailbox, std::uint64_t head) const {
  const bool claimed = state_of(head) == SHIM_RAISED || state_of(head) == SHIM_CLAIMED;
  return claimed && answered_[mailbox].load(std::memory_order_relaxed) != claim_of(head);
}

bool InstalledShim::quiescent() const {
  if (state() != ShimState::There) return true;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    const bool answered = answered_[i].load(std::memory_order_relaxed) == claim_of(heads[i]);
    const bool raised = state_of(heads[i]) == SHIM_RAISED && !answered;
    if (raised || state_of(heads[i]) == SHIM_CLAIMED) return false;
  }
  return true;
}

ShimCounters InstalledShim::counters() const {
  const ShimCounters now = sum_counters();
  const std::lock_guard lock(counters_lock_);
  // Looked at after the words were read: of another kernel's memory none counts.
  if (state() == ShimState::There) last_counters_ = now;
  return last_counters_;
}

ShimCounters InstalledShim::sum_counters() const {
  ShimCounters sum;
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    sum.firings += region_.load(region_.head_at(i)) / SHIM_CLAIM;
    sum.orphans += region_.load(region_.box_at(i) + SHIM_BOX_ORPHANS);
    sum.late += region_.load(region_.box_at(i) + SHIM_BOX_LATE);
  }
  const std::uint64_t overflows = region_.load(control(SHIM_CONTROL_OVERFLOWS));
  sum.firings += overflows;
  sum.orphans += overflows;
  sum.foreign = region_.load(control(SHIM_CONTROL_FOREIGN));
  sum.rejected = rejected_.load(std::memory_order_relaxed);
  return sum;
}

bool InstalledShim::contains(GuestVirt pc) const {
  return pc >= base_ && pc.raw() - base_.raw() < layout_.bytes;
}

std::optional<Registers> InstalledShim::waiting(GuestVirt percpu_base) const {
  if (state() != ShimState::There) return std::nullopt;
  std::array<std::uint64_t, SHIM_MAILBOXES> heads;
  region_.load_heads(heads);
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) {
    if (state_of(heads[i]) != SHIM_RAISED) continue;
    MailboxCopy box;
    const bool copied = region_.copy_mailbox(i, heads[i], box);
    if (copied && box.head.percpu == percpu_base.raw() && knows(GuestVirt(box.head.address))) {
      return registers_of(box);
    }
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
