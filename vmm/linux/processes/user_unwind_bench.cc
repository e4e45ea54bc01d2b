// Measures ustack() of 20 frames without frame pointers, in three files: with warm tables, and with
// none known. Memory is read through page tables, as in a guest whose RAM is mapped.
#include <benchmark/benchmark.h>

#include <cstring>

#include "vmm/base/check.h"
#include "vmm/linux/processes/user_unwind_fakes_for_tests.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

using fakes::RuleWriter;
using fakes::UnwindGuest;
using fakes::UnwindImage;

constexpr std::size_t kFrames = 20, kFunctions = 2000;
constexpr std::array<std::uint64_t, 3> kBases = {0x5555'0000'0000, 0x7f00'0000'0000,
                                                 0x7f10'0000'0000};
constexpr std::uint64_t kPageBytes = 4096;

/// RAM with these pages, and page tables of four levels that map them.
class MappedPages {
 public:
  explicit MappedPages(std::initializer_list<const fakes::PagedGuest*> guests)
      : ram_(std::size_t{16} << 20), memory_({{GuestPhys(0), ram_}}) {
    for (const auto* guest : guests) {
      for (const auto& [number, page] : guest->pages()) {
        const std::uint64_t frame = fresh();
        std::memcpy(&ram_[frame], page.data(), page.size());
        map(number * kPageBytes, frame);
      }
    }
  }
  const vmm::GuestMemory& memory() const { return memory_; }
  static vmm::PageTable table() { return {GuestPhys(kRoot), 4, 0}; }

 private:
  static constexpr std::uint64_t kRoot = 0x1000;

  std::uint64_t fresh() {
    CHECK(next_ + kPageBytes <= ram_.size());
    return std::exchange(next_, next_ + kPageBytes);
  }
  void map(std::uint64_t at, std::uint64_t frame) {
    std::uint64_t table = kRoot;
    for (unsigned shift = 39; shift > 12; shift -= 9) {
      std::uint64_t entry = 0;
      std::byte* const place = &ram_[table + (at >> shift & 511) * 8];
      std::memcpy(&entry, place, sizeof entry);
      if (entry == 0) entry = fresh() | 7;
      std::memcpy(place, &entry, sizeof entry);
      table = entry & ~std::uint64_t{4095};
    }
    frame |= 7;
    std::memcpy(&ram_[table + (at >> 12 & 511) * 8], &frame, sizeof frame);
  }

  std::vector<std::byte> ram_;
  vmm::GuestMemory memory_;
  std::uint64_t next_ = kRoot + kPageBytes;
};

/// Each function has a frame of 64 bytes and saves rbx, rbp and r12.
UnwindImage large_image() {
  UnwindImage image;
  RuleWriter rules;
  rules.advance(1).def_cfa_offset(16).saved(6, 16).advance(1).def_cfa_offset(24).saved(3, 24);
  rules.advance(1).saved(12, 32).def_cfa_offset(64);
  for (std::uint64_t n = 0; n < kFunctions; ++n) {
    image.functions.push_back({UnwindImage::kCode + n * 4, 4, {}});
  }
  for (std::uint64_t n = 0; n < kFrames; ++n) image.functions[n * 50].rules = rules;
  return image;
}

std::uint64_t code_of(std::uint64_t frame) {
  return kBases[frame % kBases.size()] + UnwindImage::kCode + frame * 200 + 4;
}

class Stack20 {
 public:
  Stack20() : guest_(256) {
    for (const std::uint64_t base : kBases) guest_.map(large_image(), base);
    mm_ = guest_.finish();
    std::vector<std::uint64_t> words;
    for (std::uint64_t n = 1; n < kFrames; ++n) {
      words.insert(words.end(), 7, n);
      words.push_back(code_of(n));
    }
    words.insert(words.end(), 8, 0);
    guest_.stand_at(code_of(0) - 1, words);
    pages_ = std::make_unique<MappedPages>(
        std::initializer_list<const fakes::PagedGuest*>{&guest_.kernel, &guest_.memory});
  }
  std::unique_ptr<UserUnwinder> unwinder() {
    return std::make_unique<UserUnwinder>(guest_.files.memory(), fakes::user_unwind_layout());
  }
  void walk(UserUnwinder& unwinder) {
    const vmm::PageTableReader kernel(pages_->memory(), MappedPages::table()),
        process(pages_->memory(), MappedPages::table());
    CHECK(unwinder.walk({kernel, process, mm_}, guest_.registers, frames_) == kFrames);
    benchmark::DoNotOptimize(frames_);
  }

 private:
  UnwindGuest guest_;
  GuestVirt mm_;
  std::unique_ptr<MappedPages> pages_;
  std::array<std::uint64_t, kFrames> frames_{};
};

void twenty_frames_warm(benchmark::State& state) {
  Stack20 stack;
  const auto unwinder = stack.unwinder();
  stack.walk(*unwinder);
  for (auto _ : state) stack.walk(*unwinder);
}
BENCHMARK(twenty_frames_warm);

void twenty_frames_never_seen(benchmark::State& state) {
  Stack20 stack;
  for (auto _ : state) {
    state.PauseTiming();
    const auto unwinder = stack.unwinder();
    state.ResumeTiming();
    stack.walk(*unwinder);
  }
}
BENCHMARK(twenty_frames_never_seen);

}  // namespace
}  // namespace ringside::guest_linux

BENCHMARK_MAIN();
