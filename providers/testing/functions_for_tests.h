// Functions in a fake guest's text: what the tests of providers that stand on functions share. Not
// linked into the product.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "providers/provider.h"
#include "providers/testing/fake_guest.h"
#include "providers/testing/recording_points.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

inline constexpr std::uint64_t kText = 0x100000;  // guest-physical; each function gets 64 bytes
inline constexpr std::uint64_t kNopSize = 5;

class FunctionProviders : public ::testing::Test {
 protected:
  /// Adds a function that starts with an ftrace nop; returns its address.
  GuestVirt function(std::string_view name, std::vector<std::uint8_t> body) {
    const std::uint64_t at = kText + functions_.size() * 64;
    std::vector<std::uint8_t> code = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    code.insert(code.end(), body.begin(), body.end());
    code.resize(64, 0xcc);
    memory_.put(at, code.data(), code.size());
    functions_.push_back(
        {kernel_address(at), 64, kernel_.symbols_to_fill().intern(std::string(name)), 't', 0});
    return kernel_address(at);
  }
  void data(std::string_view name, std::uint64_t at) {
    functions_.push_back(
        {kernel_address(at), 0, kernel_.symbols_to_fill().intern(std::string(name)), 'D', 0});
  }
  void seal() {
    auto& table = kernel_.symbols_to_fill();
    table.add_module({"vmlinux", kernel_address(kText), 0x80000, 0}, functions_);
    table.seal();
  }
  static std::vector<std::string> listed(Provider& provider, const dif::ProbeDescription& pattern) {
    std::vector<std::string> names;
    EXPECT_TRUE(provider.provide(pattern, [&](const Probe& probe) {
      names.push_back(probe.name.function + ":" + probe.name.name);
    }));
    return names;
  }
  static std::vector<std::string> refused(Provider& provider,
                                          const dif::ProbeDescription& pattern) {
    std::vector<std::string> names;
    EXPECT_TRUE(provider.refusals(pattern, [&](const Refusal& refusal) {
      names.push_back(refusal.name.function + ":" + refusal.name.name + ": " + refusal.reason);
    }));
    return names;
  }
  static Probe find(Provider& provider, const std::string& function, const std::string& name) {
    Probe found;
    EXPECT_TRUE(provider.provide({"", "", function, name}, [&](const Probe& p) { found = p; }));
    EXPECT_EQ(found.name.function, function) << "not published";
    return found;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  RecordingPoints points_;
  vmm::PageTableReader text_{memory_.memory(), kernel_.table()};
  std::vector<guest_linux::Symbol> functions_;
};

inline const std::vector<std::uint8_t> kReturnsOne = {0xb8, 1, 0, 0, 0, 0xc3};  // mov eax, 1; ret
inline const std::vector<std::uint8_t> kNeverReturns = {0x0f, 0x0b};            // ud2
using Names = std::vector<std::string>;

}  // namespace ringside::providers
