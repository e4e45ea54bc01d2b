// Kernel text as it is without breakpoints: without ours, and without the guest's own kprobes.
// Use it wherever text is read to find sites: an int3 in the way would put a sweep out of step.
// Used by the trap point table. Does not: recover what debuggers in the guest replaced.
// Fire context: no.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/block_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

class OriginalText final : public GuestReader {
 public:
  /// Knows where our int3s and jumps stand now, and what is below them.
  class ReplacedText {
   public:
    virtual ~ReplacedText() = default;
    /// Whether there can be any: to ask for each byte of all text takes long.
    virtual bool are_there() const = 0;
    /// The text that the one which begins here has replaced; empty where none does.
    virtual std::span<const std::byte> below(GuestVirt at) const = 0;
  };

  /// `live` is the text as the guest has it now. All must outlive it.
  OriginalText(const vmm::PageTableReader& live, const ReplacedText& ours,
               guest_linux::Kernel& kernel);

  /// Waits, all calls together no longer than a moment, while the guest is changing what is read.
  /// Fault: some of it is not mapped.
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;

  /// Reads the guest's kprobes again; returns true if they have changed. From now on, reads use
  /// large copies of the text, each made once, because many places are examined: if guest RAM is
  /// only copied, each read of a few bytes is several system calls. The findings may be out of date
  /// at once; arming checks them with new copies, in its pause.
  bool look_again();
  /// Each read is the guest's own again.
  void drop_copies() { copies_.reset(); }
  /// Why the original text is not known anywhere; good until look_again().
  const Result<void>& trouble() const { return trouble_; }
  /// Whether a kprobe of the guest has changed, or may yet change, one of these bytes.
  bool has_kprobe(GuestVirt at, std::size_t size) const;
  const guest_linux::KprobeTable& kprobe_table() const { return table_; }

 private:
  void remove_ours(GuestVirt at, std::span<std::byte> copied) const;
  void remove_kprobes(GuestVirt at, std::span<std::byte> copied) const;
  bool is_being_patched(GuestVirt at, std::span<const std::byte> copied) const;
  std::size_t copy(GuestVirt at, std::span<std::byte> out, Result<void, Fault>& done) const;
  const GuestReader& source() const;

  const vmm::PageTableReader& live_;
  const ReplacedText& ours_;
  const guest_linux::Kernel& kernel_;
  const guest_linux::KprobeTable table_;
  std::vector<guest_linux::Kprobe> kprobes_;  // sorted by address
  Result<void> trouble_;
  mutable std::optional<vmm::BlockReader> copies_;  // since look_again()
  mutable unsigned waits_left_;
};

}  // namespace ringside::providers
