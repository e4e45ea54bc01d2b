// Guests of some dozen instructions for tests on a real /dev/kvm: assembled with the test program,
// wrapped into an ELF file, booted as a plain ELF64 kernel at 1 MiB (vmm/kvm/boot/boot.h).
// Not linked into the product.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vmm/arch/x86_64/elf_header.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/kvm_machine.h"

namespace ringside::vmm::kvm {

/// Defines `extern const unsigned char name[], name_end[]`, the code of a guest. Loaded at
/// kGuestCode; labels in it are 1: and so on. GNU assembler, Intel syntax.
#define MINI_GUEST(name, code)                                                     \
  extern "C" const unsigned char name[], name##_end[];                             \
  asm(".pushsection .rodata\n.balign 16\n.global " #name ", " #name "_end\n" #name \
      ":\n.intel_syntax noprefix\n" code "\n.att_syntax prefix\n" #name            \
      "_end:\n.byte 0\n.popsection\n")

/// Starts the second vCPU at what lies between the labels 5: and 6:, copied to 0x8000, in real
/// mode. Changes rcx, rsi and rdi.
#define MINI_GUEST_START_SECOND_VCPU                                                \
  "lea rsi, [rip + 5f]\n mov rdi, 0x8000\n mov ecx, 6f - 5f\n cld\n rep movsb\n"    \
  "mov rdi, 0xfee00000\n mov dword ptr [rdi + 0xf0], 0x1ff\n"                       \
  "mov dword ptr [rdi + 0x310], 0x01000000\n mov dword ptr [rdi + 0x300], 0x4500\n" \
  "mov dword ptr [rdi + 0x310], 0x01000000\n mov dword ptr [rdi + 0x300], 0x4608\n"

/// Ends the guest: ACPI's power-off.
#define MINI_GUEST_POWER_OFF "mov dx, 0x604\n mov ax, 0x2000\n out dx, ax\n 99: jmp 99b\n"

inline constexpr std::uint64_t kGuestCode = 0x10'0000;
inline constexpr std::uint64_t kGuestData = 0x20'0000;

/// A file with an ELF64 kernel of that code; its path lives as long as it.
class MiniKernel {
 public:
  explicit MiniKernel(std::span<const unsigned char> code)
      : fd_(memfd_create("mini-guest", 0)), path_("/proc/self/fd/" + std::to_string(fd_.get())) {
    constexpr std::size_t kOffset = 0x1000;
    Elf64_Ehdr header = arch::elf_header(ET_EXEC);
    header.e_entry = kGuestCode;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_W | PF_X;
    segment.p_offset = kOffset;
    segment.p_vaddr = segment.p_paddr = kGuestCode;
    segment.p_filesz = segment.p_memsz = code.size();
    segment.p_align = kOffset;
    std::vector<unsigned char> file(kOffset + code.size());
    std::memcpy(file.data(), &header, sizeof header);
    std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
    std::memcpy(file.data() + kOffset, code.data(), code.size());
    ok_ = pwrite(fd_.get(), file.data(), file.size(), 0) == static_cast<ssize_t>(file.size());
  }
  bool ok() const { return ok_; }
  const std::string& path() const { return path_; }

 private:
  UniqueFd fd_;
  std::string path_;
  bool ok_ = false;
};

/// Whether `fd` becomes readable; generous, because a loaded host that emulates is slow.
inline bool becomes_readable(int fd, int seconds = 120) {
  pollfd entry{fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, seconds * 1000);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace ringside::vmm::kvm
