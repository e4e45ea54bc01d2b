// The fuzz targets without a fuzzer: they take their seeds, and damaged ones.
#include "tests/fuzz/seeds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "tests/fuzz/boot_input.h"
#include "tests/fuzz/device_input.h"
#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/host_input.h"
#include "tests/fuzz/kernel_input.h"

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
extern "C" int fuzz_vmcoreinfo(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_kernel(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_kallsyms(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_btf(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_modules(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_stack(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_text(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_health(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_processes(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_user_elf(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_user_file(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_dwarf(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_user_stack(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_mailbox(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_gdbstub(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_monitor(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_memory_map(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_saved(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t fuzz_run_mutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                        unsigned seed);

/// libFuzzer brings this along for a mutator of one's own: here, one byte changes.
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
    const auto size = fuzz_run_mutator(damaged.data(), seed.size(), damaged.size(), ++number);
    fuzz_dof(damaged.data(), size);
    fuzz_run(damaged.data(), size);
  }
}

using Target = int (*)(const std::uint8_t*, std::size_t);

/// Each input whole, cut at many places, and with one byte changed at a time.
void feed(Target target, const std::vector<std::vector<std::byte>>& inputs) {
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

/// Each input whole, which is understood; cut at some places, and bent by the mutator.
void bend(Target target, std::size_t (*read)(std::span<const std::byte>), const Inputs& inputs) {
  constexpr std::size_t kTimes = 200;
  for (std::size_t number = 0; number < inputs.size(); ++number) {
    const auto& input = inputs[number];
    EXPECT_GT(read(input), 0u) << "the fuzzer would start from nothing: input " << number;
    std::vector<std::uint8_t> bytes(input.size());
    std::memcpy(bytes.data(), input.data(), input.size());
    target(bytes.data(), bytes.size());
    for (std::size_t n = 0; n < kTimes; ++n) {
      target(bytes.data(), bytes.size() * n / kTimes);
      auto bent = bytes;
      const auto seed = static_cast<unsigned>(n);
      target(bent.data(), mutate_guest(bent.data(), bent.size(), bent.size(), seed));
    }
  }
}

TEST(FuzzTargets, TakeWholeAndBentKernelMemory) {
  bend(fuzz_vmcoreinfo, read_vmcoreinfo, vmcoreinfo_inputs());
  bend(fuzz_kernel, read_kernel, kernel_inputs());
  bend(fuzz_kallsyms, read_kallsyms, kallsyms_inputs());
  bend(fuzz_btf, read_btf, btf_inputs());
  bend(fuzz_modules, read_modules, module_inputs());
  bend(fuzz_stack, walk_stack, stack_inputs());
  bend(fuzz_text, read_text, text_inputs());
  bend(fuzz_health, read_health, health_inputs());
}

TEST(FuzzTargets, TakeWholeAndBentProcesses) {
  bend(fuzz_processes, read_processes, process_inputs());
  bend(fuzz_user_elf, read_user_elf, user_elf_inputs());
  bend(fuzz_user_file, read_user_file, user_file_inputs());
  bend(fuzz_dwarf, read_dwarf, dwarf_inputs());
  bend(fuzz_user_stack, walk_user_stack, user_stack_inputs());
}

TEST(FuzzTargets, TakeWholeAndBentWordsOfGuestsAndQemu) {
  bend(fuzz_mailbox, serve_mailboxes, mailbox_inputs());
  bend(fuzz_gdbstub, talk_to_gdbstub, gdbstub_inputs());
  bend(fuzz_monitor, talk_to_monitor, monitor_inputs());
  bend(fuzz_memory_map, read_monitor_memory, memory_map_inputs());
  bend(fuzz_saved, read_saved_memory, saved_inputs());
}

}  // namespace
}  // namespace ringside::fuzz
