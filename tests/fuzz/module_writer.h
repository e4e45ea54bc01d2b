// Writes modules as a kernel keeps them, for first inputs. Offsets of struct module: state 0, list
// 8, name 24, kallsyms 80, core_layout 88, and from 104 on a pointer and a count each of jump
// labels, static calls and exceptions.
#pragma once

#include <cstdint>
#include <string_view>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::fuzz {

struct ModuleWriter {
  guest_linux::fakes::PagedGuest& guest;
  std::uint64_t text;    // of every module
  std::uint64_t tables;  // two KiB: what the modules point to, all the same

  /// A struct module, and the next entry of the list after it.
  void module(std::uint64_t at, std::uint64_t next, std::string_view name) const {
    guest.put(at, std::uint32_t{0});
    guest.put(at + 8, next);
    guest.put_text(at + 24, name);
    guest.put(at + 80, tables);
    guest.put(at + 88, text);
    guest.put(at + 96, std::uint32_t{0x800});
    for (std::uint64_t n = 0; n < 3; ++n) {
      const std::uint64_t entries = tables + 0x100 + n * 0x40;
      guest.put(at + 104 + n * 16, entries);
      guest.put(at + 112 + n * 16, std::uint32_t{2});
      for (std::uint64_t entry = entries; entry < entries + 0x30; entry += 8) {
        guest.put(entry, static_cast<std::int32_t>(text + 0x20 + n * 16 - entry));
        guest.put(entry + 4, static_cast<std::int32_t>(text + 0x40 - entry - 4));
      }
    }
  }
  void symbols() const {
    const std::uint64_t symtab = tables + 0x200, strtab = tables + 0x300, typetab = tables + 0x400;
    guest.put(tables, symtab);
    guest.put(tables + 8, std::uint32_t{4});
    guest.put(tables + 16, strtab);
    guest.put(tables + 24, typetab);
    guest.put(symtab + 24, ElfSymbol{.name = 1, .section = 2, .value = text + 0x10});
    guest.put(symtab + 48, ElfSymbol{.name = 10, .section = 0, .value = 0});
    guest.put(symtab + 72, ElfSymbol{.name = 10, .section = 2, .value = text + 0x40});
    guest.put_text(strtab + 1, "lo_ioctl");
    guest.put_text(strtab + 10, "__SCT__lo_release");
    guest.put_text(typetab, "?tUt");
  }
  /// Split BTF that goes on after a base with that many types and bytes of strings, in the list
  /// with this head.
  void types(std::uint64_t module, std::uint64_t head, std::uint32_t base_types = 0,
             std::uint32_t base_strings = 0) const {
    const std::uint64_t entry = tables + 0x600, btf = entry + 0x40, data = entry + 0x80;
    guest.put(head, entry);
    guest.put(entry, head);
    guest.put(entry + 16, module);
    guest.put(entry + 24, btf);
    guest_linux::fakes::BtfWriter writer(base_types, base_strings);
    writer.structure("loop_device", 8, {{"number", writer.integer("int", 4, true), 0}});
    const auto blob = writer.blob();
    guest.put(btf, data);
    guest.put(btf + 8, static_cast<std::uint32_t>(blob.size()));
    for (std::size_t n = 0; n < blob.size(); ++n) guest.put(data + n, blob[n]);
  }

 private:
  struct ElfSymbol {
    std::uint32_t name;
    std::uint8_t info = 0, other = 0;
    std::uint16_t section;
    std::uint64_t value, size = 0;
  };
};

}  // namespace ringside::fuzz
