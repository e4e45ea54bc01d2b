// A machine that is memory only: a file in which somebody saved a guest. An ELF core (elf_core.h)
// or a compressed dump (compressed_dump.h) says what lies where, and what the vCPUs' registers
// were. A raw file is guest RAM from address 0 on, and nothing is known of its vCPUs. A migration
// stream is read into such a file (migration_stream.h). It stands still for ever and cannot be
// written to. Used to look at saved guests. Does not: know the guest, trace anything. Threads: any.
// Fire context: as Machine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"
#include "vmm/saved/elf_notes.h"

namespace ringside::vmm {

class SavedMachine final : public Machine,
                           private Vcpus,
                           private CodeWriter,
                           private MachineStatus {
 public:
  /// Errors are one line that names the file, and for a known form that cannot be read, what to
  /// write instead.
  static Result<std::unique_ptr<SavedMachine>> open(const std::string& path);

  std::string_view kind() const override { return is_raw() ? "raw memory" : "core"; }
  GuestMemory& memory() override { return memory_; }
  using Machine::vcpus;
  Vcpus& vcpus() override { return *this; }
  CodeWriter& code() override { return *this; }
  using Machine::status;
  MachineStatus& status() override { return *this; }
  void shut_down() override {}

  /// Whether the registers of the vCPUs are known, CR3 and the GS bases included.
  bool has_control_registers() const { return vcpus_.has_control_registers; }

  /// Bytes of memory that the file ends before, as when the disk was full.
  std::uint64_t missing() const { return missing_; }
  /// Bytes of memory that whoever made the dump left out (CompressedDump::left_out).
  std::uint64_t left_out() const { return left_out_; }

  bool is_raw() const { return file_ != nullptr; }
  /// Guest RAM of more than 2 GiB or so is split: what is not below `low` lies from 4 GiB on. The
  /// board decides, and a raw file does not say, so open() takes it as one piece. These are the
  /// places where boards split it; a caller that knows the kernel can try them.
  std::vector<std::uint64_t> possible_splits() const;
  /// The one where RAM ends at guest-physical `end`; empty when that needs no split, or none fits.
  std::optional<std::uint64_t> split_for(std::uint64_t end) const;
  void split_at(std::uint64_t low);

 private:
  SavedMachine() = default;
  static Result<std::unique_ptr<SavedMachine>> of_file(UniqueFd fd, std::uint64_t size);
  static Result<std::unique_ptr<SavedMachine>> of_core(UniqueFd fd);
  static Result<std::unique_ptr<SavedMachine>> of_dump(UniqueFd fd, std::uint64_t size);

  unsigned count() const override { return static_cast<unsigned>(vcpus_.registers.size()); }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<Registers> registers(unsigned vcpu) override;
  Result<void> write(std::span<const CodeWrite> writes) override;
  MachineState state() const override { return MachineState::Running; }
  int event_fd() const override { return -1; }
  std::string console_tail() const override { return {}; }

  std::shared_ptr<CopiedBytes> file_;  // of raw memory; null for a dump
  std::uint64_t size_ = 0;             // of it
  std::uint64_t missing_ = 0, left_out_ = 0;
  GuestMemory memory_;
  core_notes::NotedVcpus vcpus_;
};

}  // namespace ringside::vmm
