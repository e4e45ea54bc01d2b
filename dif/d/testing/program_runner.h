// For the compiler's tests: a small made-up kernel to compile against, and a way to fire what was
// compiled and look at the values it recorded.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "dif/d/compile.h"
#include "dif/engine/engine.h"
#include "dif/evaluate/guest_context.h"
#include "dif/verify/verify.h"

namespace ringside::d {

/// Types, symbols and probes: struct task_struct { int pid; char comm[16]; struct file *file; ...}.
class FakeKernel final : public Environment {
 public:
  std::string_view kernel_release() const override { return "6.1.0-fake"; }
  FakeKernel();
  TypeGraph& types() override { return types_; }
  ProbeSignature signature(const dif::ProbeDescription& pattern) override;
  void for_each_signature(const dif::ProbeDescription& pattern,
                          const std::function<bool(const ProbeSignature&)>& visit) override;
  std::uint64_t register_indices() const override { return 28; }
  std::string type_module(TypeId id) override;
  std::optional<KernelVariable> kernel_variable(std::string_view module,
                                                std::string_view name) override;

 private:
  TypeGraph types_;
  std::size_t first_own_,
      end_own_ = 0;  // of the kernel's types, without those that a program adds
  TypeId task_;
};

inline constexpr std::uint64_t kGuestBase = 0xffff'8880'0000'0000;
inline constexpr std::uint64_t kTask = kGuestBase + 0x100;    // a struct task_struct
inline constexpr std::uint64_t kFile = kGuestBase + 0x200;    // its struct file
inline constexpr std::uint64_t kName = kGuestBase + 0x300;    // "hello"
inline constexpr std::uint64_t kNumber = kGuestBase + 0x400;  // `number: int -7
inline constexpr std::uint64_t kUser = 0x40'0000;             // "from user" in the user's memory
/// There, too: two of struct node { int id; char name[8]; unsigned low : 3, high : 5; struct node
/// *next; char *text; int values[3]; }, the first leads to the second; `text` is kUser.
inline constexpr std::uint64_t kUserNode = kUser + 0x100;

/// Guest memory with the objects above; arg0 is 100, arg1 kTask, arg2 -5 (as an int), arg3 kUser.
class FakeGuest final : public dif::GuestContext {
 public:
  FakeGuest();
  Result<std::uint64_t, Fault> variable(dif::ContextVariable which) const override;
  Result<std::size_t, Fault> execname(std::span<char> out) const override;
  Result<std::uint64_t, Fault> argument(unsigned n) const override;
  const GuestReader& kernel() const override { return kernel_; }
  const GuestReader& user() const override { return user_; }

 private:
  struct Memory final : GuestReader {
    std::uint64_t base = 0;
    std::vector<std::byte> bytes;
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;
    template <class T>
    void put(std::uint64_t at, const T& value) {
      std::memcpy(bytes.data() + (at - base), &value, sizeof value);
    }
  };
  Memory kernel_, user_;
};

using Recorded = std::variant<std::int64_t, std::string>;

struct Outcome {
  std::string error;             // of the compiler or verifier; empty when both were content
  std::string tagged;            // the compiler's, with its tag
  std::vector<Recorded> values;  // what trace() and friends recorded, in order
  std::vector<dif::FaultReport> faults;
  std::vector<dif::AggregateEntry> aggregates;
  dif::Program program;
};

Outcome run(std::string_view source, const CompileOptions& options = {}, int firings = 1);
/// The value of one expression, as trace() records it in BEGIN.
Outcome evaluate(const std::string& expression);
/// The message of a program that must not compile, with its tag.
std::string error_of(std::string_view source, const CompileOptions& options = {});

}  // namespace ringside::d
