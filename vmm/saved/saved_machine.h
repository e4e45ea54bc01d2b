// A machine that is memory only: a file in which somebody saved a guest. An ELF core (elf_core.h)
// says what lies where, and what the vCPUs' registers were; a raw file is guest RAM from address 0
// on, and nothing is known of its vCPUs; a migration stream is read into such a file
// (migration_stream.h). It stands still for ever and cannot be written to.
// Used to look at saved guests. Does not: know the guest, trace anything.
// Threads: any. Fire context: as Machine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/machine.h"

namespace ringside::vmm {

class SavedMachine final : public Machine,
                           private Vcpus,
                           private CodeWriter,
                           private MachineStatus {
 public:
  /// Errors are one line that names the file, and for a known form that cannot be read, what to
  /// write instead.
  static Result<std::unique_ptr<SavedMachine>> open(const std::string& path);

  std::string_view kind() const override { return raw_ ? "raw memory" : "core"; }
  GuestMemory& memory() override { return memory_; }
  using Machine::vcpus;
  Vcpus& vcpus() override { return *this; }
  CodeWriter& code() override { return *this; }
  using Machine::status;
  MachineStatus& status() override { return *this; }
  void shut_down() override {}

  /// Whether the registers of the vCPUs are known, CR3 and the GS bases included.
  bool has_control_registers() const { return has_control_registers_; }

  /// Bytes of memory that the file ends before, as when the disk was full.
  std::uint64_t missing() const { return missing_; }

  bool is_raw() const { return raw_; }
  /// Guest RAM of more than 2 GiB or so is split: what is not below `low` lies from 4 GiB on. The
  /// board decides, and a raw file does not say, so open() takes it as one piece. These are the
  /// places where boards split it; a caller that knows the kernel can try them.
  std::vector<std::uint64_t> possible_splits() const;
  /// The one where RAM ends at guest-physical `end`; empty when that needs no split, or none fits.
  std::optional<std::uint64_t> split_for(std::uint64_t end) const;
  void split_at(std::uint64_t low);

 private:
  SavedMachine(std::shared_ptr<CopiedBytes> file, std::uint64_t size)
      : file_(std::move(file)), size_(size) {}

  unsigned count() const override { return static_cast<unsigned>(registers_.size()); }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  MachineState state() const override { return MachineState::Running; }
  int event_fd() const override { return -1; }
  std::string console_tail() const override { return {}; }

  std::shared_ptr<CopiedBytes> file_;
  std::uint64_t size_, missing_ = 0;
  bool raw_ = false, has_control_registers_ = false;
  GuestMemory memory_;
  std::vector<Registers> registers_;
};

}  // namespace ringside::vmm
