// In this file, top to bottom: the shared region, the guest's and the host's steps, a guest that
// writes all the time, first inputs.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "guest-shim/mailbox_abi.h"
#include "tests/fuzz/host_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::fuzz {
namespace {

using namespace vmm;
using Word = std::uint64_t;

constexpr GuestVirt kBase{0xffff'ffff'9000'0000};
constexpr std::size_t kShared = SHIM_DATA_SIZE;
constexpr unsigned kMostSteps = 64;
constexpr unsigned kTrapPoints = 8;

GuestVirt trap_point(unsigned number) {
  return GuestVirt(0xffff'ffff'8100'0000 + number % kTrapPoints * 0x10);
}

/// The guest's side of the region, and what it must find there.
class SharedData final : public TrapSink {
 public:
  SharedData(std::span<std::byte> data, FuzzScript& script) : bytes_(data), script_(script) {
    keep();
  }

  void keep() {
    std::ranges::copy(bytes_, before_.begin());
    served_again = false;
  }
  /// The host has written nothing but its words, and answered only what was raised.
  void check() const {
    for (std::size_t line = 0; line < kShared; line += kLine) {
      if (std::memcmp(before_.data() + line, bytes_.data() + line, kLine) != 0) check_line(line);
    }
  }
  void write(std::size_t at, std::span<const std::byte> bytes) {
    const auto part = bytes_.subspan(at % kShared);
    const auto fits = bytes.first(std::min(bytes.size(), part.size()));
    std::ranges::copy(fits, part.begin());
    std::ranges::copy(fits, before_.begin() + static_cast<std::ptrdiff_t>(at % kShared));
  }
  void put(std::size_t at, Word value) { write(at, std::as_bytes(std::span(&value, 1))); }
  /// As the shim does it.
  void raise(unsigned mailbox, GuestVirt address) {
    const std::size_t at = SHIM_HEAD_AT(mailbox % SHIM_MAILBOXES);
    Word head = 0;
    std::memcpy(&head, bytes_.data() + at, sizeof head);
    put(at + SHIM_HEAD_ADDRESS, address.raw());
    put(at + SHIM_HEAD_PERCPU, 0xffff'8880'0000'0000 + mailbox * 0x1000);
    const Word claim = (head / SHIM_CLAIM + 1) * SHIM_CLAIM;
    const std::size_t box_at = SHIM_BOX_AT(mailbox % SHIM_MAILBOXES);
    shim_head sealed{};
    shim_box box{};
    std::memcpy(&sealed, bytes_.data() + at, sizeof sealed);
    std::memcpy(&box, bytes_.data() + box_at, sizeof box);
    put(box_at + SHIM_BOX_SEAL, seal_of(sealed, box, claim));
    put(at, claim | SHIM_RAISED);
  }
  /// Takes the guest's next step, as the script says it.
  void step() {
    const auto what = script_.take<std::uint8_t>();
    const auto number = script_.take<std::uint8_t>();
    switch (what % 3) {
      case 0: return raise(number, trap_point(what / 3));
      case 1: return put(SHIM_BOXES - (std::size_t{number} + 1) * 8, script_.take<Word>());
      default: {
        const std::size_t at = script_.take<std::uint16_t>();
        write(at, script_.take_bytes(number));
      }
    }
  }

  void on_trap(const Trap& trap) override {
    ++traps;
    CHECK(trap.address.raw() == trap.registers.rip);
    CHECK(trap.address >= trap_point(0) && trap.address <= trap_point(kTrapPoints - 1));
    CHECK(trap.address.raw() % 0x10 == 0);
    if (racing || script_.at_end()) return;
    step();  // while it is served
    served_again = true;
  }

  std::size_t traps = 0;
  bool racing = false;
  bool served_again = false;  // the guest wrote while a trap was served

 private:
  static constexpr std::size_t kLine = 64;

  void check_line(std::size_t from) const {
    for (std::size_t at = from; at < from + kLine; at += sizeof(Word)) {
      Word before = 0, now = 0;
      std::memcpy(&before, before_.data() + at, sizeof before);
      std::memcpy(&now, bytes_.data() + at, sizeof now);
      if (before == now || at < SHIM_CONTROL_SILENT) continue;
      CHECK(at >= SHIM_HEADS && at < SHIM_BOXES && at - from == SHIM_HEAD_ANSWERED);
      Word head = 0;
      std::memcpy(&head, before_.data() + from, sizeof head);
      // Which claims were raised since the last look, the script alone knows: of a mailbox that was
      // raised again while it was served, the former one is answered.
      CHECK(now % SHIM_CLAIM == 0 && (now == head - SHIM_RAISED || served_again));
    }
  }

  std::span<std::byte> bytes_;
  FuzzScript& script_;
  std::array<std::byte, kShared> before_;
};

void set_up(Shim& shim) {
  for (unsigned n = 0; n < kTrapPoints; n += 2) {
    const auto slot = shim.allocate_slot(32);
    CHECK(slot && shim.write_slot(*slot, std::array{std::byte{0x90}}));
    CHECK(shim.add_entry(trap_point(n), *slot));
    CHECK(shim.enable_entries(std::array{trap_point(n)}));
  }
  shim.activate();
}

void ask(const Shim& shim, Word percpu) {
  (void)shim.quiescent();
  (void)shim.counters();
  CHECK(!shim.contains(GuestVirt(kBase.raw() - 1)));
  const auto registers = shim.waiting(GuestVirt(percpu));
  CHECK(!registers || registers->gs_base == percpu);
}

void host_step(Shim& shim, SharedData& data, FuzzScript& script) {
  const auto what = script.take<std::uint8_t>();
  switch (what % 8) {
    case 0: data.step(); break;
    case 1: shim.answer(script.take<std::uint32_t>(), TrapHandlers(data)); break;
    case 2: shim.heartbeat(); break;
    case 3: what / 8 % 2 == 0 ? shim.activate() : shim.deactivate(); break;
    case 4: shim.disable_entry(trap_point(what / 8)); break;
    case 5: ask(shim, 0xffff'8880'0000'0000 + what / 8 * 0x1000); break;
    case 6: shim.set_doorbell(what); break;
    default: CHECK(shim.poll(TrapHandlers(data)) <= SHIM_MAILBOXES);
  }
}

/// A guest that scribbles over everything that it may write, while the host looks and answers.
void race(Shim& shim, SharedData& data, std::span<std::byte> boxes,
          std::span<const std::byte> noise) {
  constexpr unsigned kLooks = 32;
  std::atomic<bool> over = noise.empty();
  data.racing = true;
  std::thread guest([&] {
    for (std::size_t at = 0; !over.load(std::memory_order_relaxed); at += 8) {
      Word word = 0;
      std::memcpy(&word, noise.data() + at % noise.size(),
                  std::min(sizeof word, noise.size() - at % noise.size()));
      // SAFETY: aligned, and inside of the region.
      auto* place = reinterpret_cast<Word*>(boxes.data() + at % kShared);
      __atomic_store_n(place, word, __ATOMIC_RELAXED);
    }
  });
  for (unsigned n = 0; n < kLooks; ++n) {
    CHECK(shim.poll(TrapHandlers(data)) <= SHIM_MAILBOXES);
    shim.answer(n, TrapHandlers(data));
    ask(shim, 0xffff'8880'0000'0000);
    shim.heartbeat();
  }
  over = true;
  guest.join();
}

}  // namespace

std::size_t serve_mailboxes(std::span<const std::byte> input) {
  FuzzScript script(input);
  PlainRegion region(script.take<std::uint8_t>() % 2 == 0 ? Reach::Mapped : Reach::Copied);
  std::memcpy(region.bytes().data(), shim_image, shim_image_size);
  Shim shim(region.memory(), region.layout(), kBase, 1 + script.take<std::uint8_t>() % 4,
            PlainRegion::gate());
  set_up(shim);
  const auto bytes = region.bytes().subspan(region.layout().data);
  SharedData data(bytes, script);
  const bool races = script.take<std::uint8_t>() % 32 == 31;
  for (unsigned n = 0; n < kMostSteps && !script.at_end(); ++n) {
    host_step(shim, data, script);
    data.check();
    data.keep();
  }
  if (races) race(shim, data, bytes, input);
  return data.traps;
}

namespace {

std::vector<std::byte> steps(std::uint8_t reach, std::uint8_t races) {
  ScriptWriter input;
  const auto u8 = [](unsigned value) { return static_cast<std::uint8_t>(value); };
  input.put(reach, u8(1), races);
  input.put(u8(0), u8(0), u8(0), u8(7));          // raises mailbox 0; poll
  input.put(u8(0), u8(6), u8(1));                 // raises mailbox 1
  input.put(u8(1), std::uint32_t{1});             // answer
  input.put(u8(0), u8(3), u8(2), u8(7));          // raises for what is no trap point; poll
  input.put(u8(0), u8(0), u8(40), u8(7), u8(5));  // poll, ask
  input.put(u8(0), u8(1), u8(0), Word{0x302});    // a head
  input.put(u8(7), u8(1), u8(1), Word{0x403});    // poll; during it, another head
  input.put(u8(4), u8(2), u8(3), u8(11), u8(6));  // remove, beat, on, off, doorbell
  input.put(u8(0), u8(2), u8(8), std::uint16_t{0x1010}, Word{7}, u8(13), u8(7));
  return input.bytes();
}

}  // namespace

std::vector<std::vector<std::byte>> mailbox_inputs() {
  return {steps(0, 0), steps(0, 31), steps(1, 0), steps(1, 31)};
}

}  // namespace ringside::fuzz
