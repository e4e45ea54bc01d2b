// Measures a disk request without KVM: rings by the book in RAM of ours, a file in /dev/shm, and
// either the notifying thread that serves the queue or the disk's worker, to which it hands over.
// Arguments: bytes a request, requests a notification.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "vmm/base/check.h"
#include "vmm/kvm/devices/testing/fake_driver.h"
#include "vmm/kvm/devices/virtio_block.h"
#include "vmm/kvm/devices/virtio_device.h"
#include "vmm/kvm/devices/virtio_mmio.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kFileSize = 64 << 20;
constexpr std::uint32_t kIn = 0, kOut = 1;

/// A file without holes, deleted afterwards.
class SharedMemoryFile {
 public:
  SharedMemoryFile() : path_("/dev/shm/virtio_block_bench-" + std::to_string(::getpid())) {
    const UniqueFd fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    CHECK(fd && ::posix_fallocate(fd.get(), 0, kFileSize) == 0);
  }
  ~SharedMemoryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A disk and the driver that has brought it up.
class Disk {
 public:
  explicit Disk(bool with_worker) : block_(*DiskFile::open({file_.path(), false}), "bench") {
    std::function<void(unsigned)> kick;
    if (with_worker) {
      worker_ = *VirtioWorker::create(block_);
      kick = [this](unsigned) { worker_->kick(); };
    }
    mmio_ = std::make_unique<VirtioMmio>(line_, driver_.memory(), block_, std::move(kick));
    CHECK(driver_.bring_up(*mmio_) == 15);
  }

  /// `count` requests of `size` bytes, at sectors that jump about, and their completion.
  void run(std::uint32_t type, std::uint32_t size, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t head = FakeDriver::kData + i * std::uint64_t{32}, buffer = kBuffers;
      const auto first = static_cast<std::uint16_t>(i * 3);
      at_ = (at_ + 7919 * std::uint64_t{size}) % (kFileSize - size) / 512 * 512;
      driver_.put(head, type);
      driver_.put(head + 8, at_ / 512);
      const std::uint16_t data = type == kIn ? FakeDriver::kWrite : 0;
      driver_.offer(first, {{head, 16}, {buffer, size, data}, {head + 16, 1, FakeDriver::kWrite}});
    }
    expected_ = static_cast<std::uint16_t>(expected_ + count);
    write_to(*mmio_, VirtioMmio::kQueueNotify, 0, 4);
    while (driver_.used_index() != expected_) std::this_thread::yield();
    write_to(*mmio_, 0x064, 1, 4);
    CHECK(driver_.get<std::uint8_t>(FakeDriver::kData + 16) == 0);
  }

 private:
  static constexpr std::uint64_t kBuffers = FakeDriver::kRam + (1 << 20);

  SharedMemoryFile file_;
  FakeLine line_;
  FakeDriver driver_{256};
  VirtioBlock block_;
  std::unique_ptr<VirtioWorker> worker_;
  std::unique_ptr<VirtioMmio> mmio_;
  std::uint64_t at_ = 0;
  std::uint16_t expected_ = 0;
};

void requests(benchmark::State& state, std::uint32_t type, bool with_worker) {
  Disk disk(with_worker);
  const auto size = static_cast<std::uint32_t>(state.range(0));
  const auto count = static_cast<unsigned>(state.range(1));
  for (auto _ : state) disk.run(type, size, count);
  state.SetItemsProcessed(state.iterations() * state.range(1));
  state.SetBytesProcessed(state.iterations() * state.range(1) * state.range(0));
}

void read_at_once(benchmark::State& state) {
  requests(state, kIn, false);
}
void write_at_once(benchmark::State& state) {
  requests(state, kOut, false);
}
void read_by_worker(benchmark::State& state) {
  requests(state, kIn, true);
}
void write_by_worker(benchmark::State& state) {
  requests(state, kOut, true);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({512, 32})->Args({4096, 1})->Args({4096, 32})->Args({65536, 32})->UseRealTime();
}
BENCHMARK(read_at_once)->Apply(shapes);
BENCHMARK(write_at_once)->Apply(shapes);
BENCHMARK(read_by_worker)->Apply(shapes);
BENCHMARK(write_by_worker)->Apply(shapes);

}  // namespace
}  // namespace ringside::vmm::kvm

BENCHMARK_MAIN();
