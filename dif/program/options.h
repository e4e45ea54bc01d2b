// The engine's run-time options, with dtrace's defaults; cli fills them in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ringside::dif {

/// Policies for a principal buffer that is full (Dynamic Tracing Guide, "Buffers and Buffering").
enum class BufferPolicy : std::uint8_t {
  Switch,  // two halves; a record that does not fit is dropped and counted
  Ring,    // the oldest records give way; read when tracing ends
  Fill,    // the first record that does not fit ends tracing; read when tracing ends
};

/// Policies for a buffer that the host has no room for (bufresize).
enum class BufferResize : std::uint8_t {
  Auto,    // its size is halved until there is
  Manual,  // tracing does not start
};

/// CLOCK_MONOTONIC, in ns.
inline std::uint64_t steady_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

struct EngineOptions {
  std::string machine = {};           // vmname: the name of the machine; empty without one
  std::int32_t machine_number = 0;    // vmid: in the order in which they were named
  std::int32_t machine_process = 0;   // vmpid: the host's process that runs it; 0 for none
  std::size_t buffer_size = 4 << 20;  // bufsize: bytes per vCPU
  std::size_t aggregation_size =
      4 << 20;  // aggsize: bytes of distinct keys and values, per vCPU and half
  std::size_t dynamic_size = 1 << 20;   // dynvarsize: bytes of self-> and associative elements
  std::uint32_t string_size = 256;      // strsize: most bytes of a string, its NUL not counted
  std::uint32_t packet_size = 2048;     // pcapsize: most bytes that pcap() keeps of a packet
  std::size_t scratch_size = 64 << 10;  // scratch of one firing
  BufferPolicy buffer_policy = BufferPolicy::Switch;  // bufpolicy
  std::size_t speculation_size = 32 << 10;            // specsize: bytes per vCPU and speculation
  std::uint32_t speculations = 1;                     // nspec
  std::uint64_t clean_interval = 9'900'990;  // cleanrate in ns: how often committed and discarded
                                             // speculations and freed dynamic variables come back
  std::optional<std::uint32_t> cpu = std::nullopt;  // the only vCPU that probes fire on
  bool temporal = true;  // records of all vCPUs in the order of their firing
  BufferResize buffer_resize = BufferResize::Auto;  // bufresize
  bool jit = true;  // jit: objects run as machine code, not by the interpreter
  std::uint64_t (*host_time)() = steady_time;  // ns; what bounds a firing's time goes by it
};

/// strsize as the engine uses it, whatever was asked for.
inline std::uint32_t usable_string_size(std::uint32_t wanted) {
  return std::clamp<std::uint32_t>(wanted, 2, 1 << 20);
}

inline constexpr std::uint32_t kMostPacketBytes = 1 << 20;  // of pcapsize

}  // namespace ringside::dif
