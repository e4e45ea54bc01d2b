// The fuzz targets without a fuzzer: they take their seeds, and damaged ones.
#include "tests/fuzz/seeds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "tests/fuzz/boot_input.h"
#include "tests/fuzz/device_input.h"

// Each target under its file's name; see meson.build.
extern "C" int fuzz_d(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_dof(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_run(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_elf_boot(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_bz_image(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_ports(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_uart(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_virtio_block(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_virtio_console(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_virtio_rng(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed);

/// What libFuzzer brings along for a mutator of one's own: here, one byte changes.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  static std::mt19937 random(5);
  if (size > most || size == 0) return size;
  data[random() % size] = static_cast<std::uint8_t>(random());
  return size;
}

namespace ringside::fuzz {
namespace {

std::vector<std::vector<std::uint8_t>> compiled_seeds() {
  std::vector<std::vector<std::uint8_t>> result;
  for (const std::string& source : programs(GOLDEN)) {
    const auto bytes = compiled(source);
    if (bytes.empty()) continue;
    result.emplace_back(bytes.size());
    std::memcpy(result.back().data(), bytes.data(), bytes.size());
  }
  return result;
}

TEST(FuzzTargets, TakeEveryScript) {
  const auto scripts = programs(GOLDEN);
  EXPECT_GT(scripts.size(), 400u);
  for (const std::string& source : scripts) {
    // SAFETY: unsigned char may alias.
    fuzz_d(reinterpret_cast<const std::uint8_t*>(source.data()), source.size());
  }
}

TEST(FuzzTargets, TakeCompiledAndDamagedPrograms) {
  const auto seeds = compiled_seeds();
  EXPECT_GT(seeds.size(), 100u) << "what the fuzzer starts from hardly compiles";
  unsigned number = 0;
  for (const auto& seed : seeds) {
    fuzz_dof(seed.data(), seed.size());
    fuzz_run(seed.data(), seed.size());
    std::vector<std::uint8_t> damaged = seed;
    damaged.resize(seed.size() + 1024);
    const auto size =
        LLVMFuzzerCustomMutator(damaged.data(), seed.size(), damaged.size(), ++number);
    fuzz_dof(damaged.data(), size);
    fuzz_run(damaged.data(), size);
  }
}

/// Each input whole, cut at many places, and with one byte changed at a time.
void feed(int (*target)(const std::uint8_t*, std::size_t),
          const std::vector<std::vector<std::byte>>& inputs) {
  for (const auto& input : inputs) {
    std::vector<std::uint8_t> bytes(input.size());
    std::memcpy(bytes.data(), input.data(), input.size());
    target(bytes.data(), bytes.size());
    for (std::size_t size = 0; size < bytes.size(); size += 7) target(bytes.data(), size);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      const std::uint8_t before = bytes[at];
      bytes[at] = static_cast<std::uint8_t>(~before);
      target(bytes.data(), bytes.size());
      bytes[at] = before;
    }
  }
}

TEST(FuzzTargets, TakeWholeAndDamagedElfKernels) {
  feed(fuzz_elf_boot, elf_kernels());
}

TEST(FuzzTargets, TakeWholeAndDamagedBzImages) {
  feed(fuzz_bz_image, bz_images());
}

TEST(FuzzTargets, TakeWholeAndDamagedScriptsForPortDevices) {
  feed(fuzz_ports, port_scripts());
  feed(fuzz_uart, uart_scripts());
}

TEST(FuzzTargets, TakeWholeAndDamagedScriptsForVirtioDevices) {
  feed(fuzz_virtio_block, virtio_scripts());
  feed(fuzz_virtio_console, virtio_scripts());
  feed(fuzz_virtio_rng, virtio_scripts());
}

}  // namespace
}  // namespace ringside::fuzz
