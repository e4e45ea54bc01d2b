// In this file: the guest, the virtio targets that drive it, their first inputs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "tests/fuzz/device_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/testing/fakes.h"
#include "vmm/kvm/devices/virtio_block.h"
#include "vmm/kvm/devices/virtio_console.h"
#include "vmm/kvm/devices/virtio_mmio.h"
#include "vmm/kvm/devices/virtio_rng.h"

namespace ringside::fuzz {
namespace {

using namespace vmm;
using namespace vmm::kvm;
using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;

constexpr std::uint64_t kRam = 0x1000;
constexpr std::size_t kRamSize = 0x4000;
constexpr std::uint64_t kData = kRam + 0x800;  // after the rings of two queues
constexpr U16 kSize = 8;

// VIRTIO 1.2, section 4.2.2.
enum Register : std::uint64_t {
  kDriverFeatures = 0x20,
  kDriverSelect = 0x24,
  kQueueSelect = 0x30,
  kQueueSize = 0x38,
  kQueueReady = 0x44,
  kQueueNotify = 0x50,
  kInterruptStatus = 0x60,
  kStatus = 0x70,
  kRings = 0x80,
};

/// The act that a byte of the script begins.
enum Act : U8 { kWriteRegister, kAccess, kMemory, kNotify, kBringUp, kDescribe, kOffer, kHost };

class Guest {
 public:
  /// `host` does what the device's other side can do, as a byte of the script says.
  Guest(VirtioDevice& device, std::function<void(U8)> host)
      : mmio_(line_, memory_, device), host_(std::move(host)) {}

  void run(FuzzScript script) {
    // Each act may move a queue's worth of data: enough of them is enough.
    for (unsigned acts = 0; acts < 400 && !script.at_end(); ++acts) {
      act(script);
      CHECK(line_.level() == (in(kInterruptStatus) != 0));
    }
    out(kStatus, 0);
    CHECK(!line_.level() && in(kStatus) == 0 && in(kInterruptStatus) == 0);
  }

 private:
  void act(FuzzScript& script) {
    switch (script.take<U8>() % 8) {
      case kWriteRegister: {
        const std::uint64_t offset = script.take<U8>() % (VirtioMmio::kSize / 4) * 4;
        return out(offset, script.take<U32>());
      }
      case kAccess: return access(script);
      case kMemory: {
        const std::size_t at = script.take<U16>() % kRamSize;
        const std::size_t size = std::min<std::size_t>(script.take<U8>(), kRamSize - at);
        std::ranges::copy(script.take_bytes(size), ram_.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
      case kNotify: return out(kQueueNotify, script.take<U8>());
      case kBringUp: return bring_up(script.take<U8>());
      case kDescribe: return describe(script);
      case kOffer: {
        const std::uint64_t ring = base(script.take<U8>()) + 0x100;
        const auto index = get16(ring + 2);
        put(ring + 4 + index % kSize * 2u, U16{script.take<U8>()});
        return put(ring + 2, static_cast<U16>(index + 1));
      }
      default: return host_(script.take<U8>());
    }
  }

  void access(FuzzScript& script) {
    const auto how = script.take<U8>();
    const std::size_t size = std::size_t{1} << (how % 4);
    const std::uint64_t offset = script.take<U16>() % (VirtioMmio::kSize - size + 1);
    if (how >= 128) {
      write_to(mmio_, offset, script.take<std::uint64_t>(), size);
    } else {
      read_from(mmio_, offset, size);
    }
  }

  /// As a driver does, so that a script comes to the queues in one step.
  void bring_up(U8 how) {
    out(kStatus, 0);
    out(kStatus, 3);
    out(kDriverSelect, 1);
    out(kDriverFeatures, 1);
    out(kDriverSelect, 0);
    out(kDriverFeatures, U32{how & 3u} << 28);  // indirect, event index
    out(kStatus, 11);
    for (U8 queue = 0; queue < 2; ++queue) {
      out(kQueueSelect, queue);
      out(kQueueSize, how >= 128 ? 4 : kSize);
      for (unsigned ring = 0; ring < 3; ++ring) {
        out(kRings + ring * 0x10, base(queue) + ring * 0x100);
      }
      out(kQueueReady, 1);
    }
    out(kStatus, 15);
  }

  void describe(FuzzScript& script) {
    const auto which = script.take<U8>();
    const std::uint64_t at = base(which) + which / 2 % kSize * std::uint64_t{16};
    put(at, kData + script.take<U16>());
    put(at + 8, U32{script.take<U16>()});
    put(at + 12, U16{script.take<U8>()});
    put(at + 14, U16{script.take<U8>()});
  }

  static std::uint64_t base(U8 queue) { return kRam + queue % 2 * std::uint64_t{0x400}; }
  U16 get16(std::uint64_t at) const {
    U16 value;
    std::memcpy(&value, &ram_.at(at - kRam), sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint64_t at, T value) {
    std::memcpy(&ram_.at(at - kRam), &value, sizeof value);
  }
  std::uint64_t in(std::uint64_t offset) { return read_from(mmio_, offset, 4); }
  void out(std::uint64_t offset, std::uint64_t value) { write_to(mmio_, offset, value, 4); }

  std::vector<std::byte> ram_ = std::vector<std::byte>(kRamSize);
  GuestMemory memory_{{{GuestPhys(kRam), ram_}}};
  FakeLine line_;
  VirtioMmio mmio_;
  const std::function<void(U8)> host_;
};

constexpr off_t kDiskSize = 64 << 10;

/// A disk in memory, under a name by which it can be opened.
std::string disk_path() {
  static const UniqueFd fd(::memfd_create("disk", MFD_CLOEXEC));
  CHECK(fd && ::ftruncate(fd.get(), kDiskSize) == 0);
  return "/proc/self/fd/" + std::to_string(fd.get());
}

}  // namespace

void drive_block(std::span<const std::byte> script) {
  static const std::string path = disk_path();
  // Emptied: what a script writes must not make the next one's disk look like another format.
  CHECK(::truncate(path.c_str(), 0) == 0 && ::truncate(path.c_str(), kDiskSize) == 0);
  auto file = DiskFile::open({path, !script.empty() && script.back() == std::byte{0xff}});
  CHECK(file.has_value());
  VirtioBlock block(std::move(*file), "serial");
  Guest(block, [](U8) {}).run(FuzzScript(script));
  struct stat status {};
  CHECK(::stat(path.c_str(), &status) == 0 && status.st_size == kDiskSize);
}

void drive_console(std::span<const std::byte> script) {
  std::size_t room = 0;
  VirtioConsole console([&room](std::span<const std::byte> bytes) {
    CHECK(!bytes.empty());
    const std::size_t taken = std::min(bytes.size(), room);
    room -= taken;
    return taken;
  });
  Guest(console, [&](U8 what) {
    if (what % 2 == 0) {
      const std::vector<std::byte> input(what * std::size_t{50});
      CHECK(console.receive(input) <= VirtioConsole::kQueue);
    } else {
      room = what * std::size_t{100};
      console.output_ready();
    }
  }).run(FuzzScript(script));
}

void drive_rng(std::span<const std::byte> script) {
  VirtioRng rng;
  Guest(rng, [](U8) {}).run(FuzzScript(script));
}

std::vector<Bytes> virtio_scripts() {
  std::vector<Bytes> result;
  const auto describe = [](ScriptWriter& to, unsigned queue, unsigned index, U16 at, U16 size,
                           U8 flags, U8 next) {
    to.put(U8{kDescribe}, static_cast<U8>(queue + index * 2), at, size, flags, next);
  };
  for (const U8 features : {0, 1, 2, 3, 128}) {
    // A block request of each type, for the others any chain.
    for (const U8 type : {0, 1, 4, 8, 11}) {
      ScriptWriter script;
      script.put(U8{kBringUp}, features);
      script.put(U8{kMemory}, U16{0x800}, U8{16}, U32{type}, U32{0}, std::uint64_t{3});
      for (unsigned queue = 0; queue < 2; ++queue) {
        describe(script, queue, 0, 0, 16, 1, 1);
        describe(script, queue, 1, 0x200, 1024, type == 1 ? 1 : 3, 2);
        describe(script, queue, 2, 0x100, 1, 2, 0);
        script.put(U8{kOffer}, static_cast<U8>(queue), U8{0});
        script.put(U8{kNotify}, static_cast<U8>(queue), U8{kHost}, U8{100}, U8{kHost}, U8{201});
        script.put(U8{kAccess}, U8{2}, U16{0x60}, U8{kWriteRegister}, U8{0x64 / 4}, U32{3});
      }
      result.push_back(script.bytes());
    }
    // A table of its own, then a cycle, then a reset.
    ScriptWriter script;
    script.put(U8{kBringUp}, features, U8{kMemory}, U16{0x900}, U8{32});
    script.put(kData + 0x400, U32{100}, U16{3}, U16{1}, kData + 0x500, U32{9}, U16{2}, U16{0});
    describe(script, 0, 0, 0x100, 32, 4, 0);
    script.put(U8{kOffer}, U8{0}, U8{0}, U8{kNotify}, U8{0});
    describe(script, 0, 1, 0, 1, 1, 1);
    script.put(U8{kOffer}, U8{0}, U8{1}, U8{kNotify}, U8{0});
    script.put(U8{kWriteRegister}, U8{0x70 / 4}, U32{0}, U8{kAccess}, U8{131}, U16{0x100});
    result.push_back(script.bytes());
  }
  return result;
}

}  // namespace ringside::fuzz
