// A guest of a few bytes for tests: kernel and user memory that is mapped byte by byte and faults
// like the real thing, answers that the test sets, and a count of reads.
// Fire context: reads allocate nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dif/evaluate/guest_context.h"

namespace ringside::dif::testing {

class FakeMemory final : public GuestReader {
 public:
  /// Maps bytes; neighbouring extents make one.
  void put(std::uint64_t at, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[at + i] = bytes[i];
  }
  void put_text(std::uint64_t at, std::string_view text) {
    put(at, std::as_bytes(std::span(text)));
    bytes_[at + text.size()] = std::byte{0};
  }
  template <class T>
  void put_value(std::uint64_t at, T value) {
    put(at, std::as_bytes(std::span(&value, 1)));
  }
  void unmap(std::uint64_t at) { bytes_.erase(at); }

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto found = bytes_.find(at.raw() + i);
      if (found == bytes_.end()) {
        return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw() + i});
      }
      out[i] = found->second;
    }
    return {};
  }

  mutable unsigned reads = 0;

 private:
  std::map<std::uint64_t, std::byte> bytes_;
};

class FakeGuest : public GuestContext {
 public:
  Result<std::uint64_t, Fault> variable(ContextVariable which) const override {
    ++variable_reads;
    return variables[static_cast<std::size_t>(which)];
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    ++execname_reads;
    const std::size_t length = std::min(out.size(), command.size());
    std::copy_n(command.begin(), length, out.begin());
    return length;
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override { return arguments[n]; }
  const GuestReader& kernel() const override { return kernel_memory; }
  const GuestReader& user() const override { return user_memory; }
  bool is_on_vcpu() const override { return trapped; }
  Result<std::uint64_t, Fault> machine_register(RegisterSet set, std::uint64_t n) const override {
    const auto found = registers.find({set, n});
    if (found != registers.end()) return found->second;
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  std::uint64_t address_space() const override { return space; }
  Result<void, Fault> keep_still() const override {
    ++kept;
    return {};
  }
  Result<std::uint64_t, Fault> lock(LockFact which, GuestVirt at) const override {
    const auto found = locks.find({which, at.raw()});
    if (found != locks.end()) return found->second;
    return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
  }
  Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                  std::span<char> out) const override {
    const auto found = paths.find({dentry.raw(), mount.raw()});
    if (found == paths.end()) {
      return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, dentry.raw()});
    }
    return found->second.copy(out.data(), out.size());
  }
  Result<CopiedPacket, Fault> packet(GuestVirt skb, PacketPart part,
                                     std::span<std::byte> out) const override {
    const auto found = packets.find({skb.raw(), part});
    if (found == packets.end()) {
      return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, skb.raw()});
    }
    const auto& [copied, bytes] = found->second;
    CopiedPacket packet = copied;
    packet.captured = bytes.copy(reinterpret_cast<char*>(out.data()), out.size());
    return packet;
  }
  Result<std::size_t, Fault> kernel_stack(std::span<std::uint64_t> frames) const override {
    return copy_frames(kernel_frames, frames);
  }
  Result<std::size_t, Fault> user_stack(std::span<std::uint64_t> frames) const override {
    return copy_frames(user_frames, frames);
  }
  Result<bool, Fault> progeny_of(std::int64_t pid) const override { return pid == ancestor; }
  Result<void, Fault> write_user(GuestVirt at, std::span<const std::byte> bytes) const override {
    if (at.raw() == 0 || bytes.size() > written.size()) {
      return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    written_at = at.raw();
    written_size = bytes.size();
    std::ranges::copy(bytes, written.begin());
    return {};
  }
  Result<void, Fault> perform(ActionKind action, std::uint64_t argument) const override {
    performed[performed_count++ % performed.size()] = {action, argument};
    return {};
  }
  Result<void, Fault> wait(std::uint64_t nanoseconds) const override {
    waited += nanoseconds;
    return {};
  }

  void set(ContextVariable which, std::uint64_t value) {
    variables[static_cast<std::size_t>(which)] = value;
  }

  FakeMemory kernel_memory, user_memory;
  std::array<std::uint64_t, kContextVariables> variables{};
  std::array<std::uint64_t, 10> arguments{};
  std::string command = "workload";
  std::vector<std::uint64_t> kernel_frames, user_frames;
  bool trapped = false;                                                      // else the host fires
  std::map<std::pair<RegisterSet, std::uint64_t>, std::uint64_t> registers;  // by D's number
  std::map<std::pair<LockFact, std::uint64_t>, std::uint64_t> locks;         // by address
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> paths;      // by dentry and mount
  std::map<std::pair<std::uint64_t, PacketPart>, std::pair<CopiedPacket, std::string>> packets;
  std::uint64_t space = 0;
  std::int64_t ancestor = 0;             // a process that current descends from
  mutable std::uint64_t written_at = 0;  // what copyout() wrote last
  mutable std::size_t written_size = 0;
  mutable std::array<std::byte, 64> written{};
  mutable unsigned variable_reads = 0, execname_reads = 0;
  mutable std::array<std::pair<ActionKind, std::uint64_t>, 8> performed{};
  mutable std::size_t performed_count = 0;
  mutable unsigned kept = 0;
  mutable std::uint64_t waited = 0;  // ns of chill()

 private:
  static std::size_t copy_frames(const std::vector<std::uint64_t>& from,
                                 std::span<std::uint64_t> to) {
    const std::size_t count = std::min(from.size(), to.size());
    std::copy_n(from.begin(), count, to.begin());
    return count;
  }
};

}  // namespace ringside::dif::testing
