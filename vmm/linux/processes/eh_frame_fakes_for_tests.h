// Writes unwind tables as compilers and linkers do, for tests: .eh_frame_hdr and .eh_frame.
// Not linked into the product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux::fakes {

/// Rules of functions, as bytes. Offsets are from the CFA, in bytes.
class RuleWriter {
 public:
  RuleWriter& advance(std::uint32_t bytes) {
    out_.add(std::uint8_t{4}).add(bytes);
    return *this;
  }
  RuleWriter& def_cfa(std::uint8_t number, std::uint32_t offset) {
    out_.add(std::uint8_t{0x0c}).add(number);
    return uleb(offset);
  }
  RuleWriter& def_cfa_offset(std::uint32_t offset) {
    out_.add(std::uint8_t{0x0e});
    return uleb(offset);
  }
  /// Saved at the CFA less so many bytes, a multiple of 8.
  RuleWriter& saved(std::uint8_t number, std::uint32_t below) {
    out_.add(static_cast<std::uint8_t>(0x80 | number));
    return uleb(below / 8);
  }
  RuleWriter& expression(std::uint8_t code, std::span<const std::uint8_t> bytes) {
    out_.add(code);
    return block(bytes);
  }
  RuleWriter& register_expression(std::uint8_t code, std::uint8_t number,
                                  std::span<const std::uint8_t> bytes) {
    out_.add(code).add(number);
    return block(bytes);
  }
  RuleWriter& byte(std::uint8_t value) {
    out_.add(value);
    return *this;
  }
  RuleWriter& uleb(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.add(static_cast<std::uint8_t>(value | 0x80));
    out_.add(static_cast<std::uint8_t>(value));
    return *this;
  }
  std::span<const std::byte> bytes() const { return out_.bytes(); }

 private:
  RuleWriter& block(std::span<const std::uint8_t> bytes) {
    uleb(bytes.size());
    for (const std::uint8_t each : bytes) out_.add(each);
    return *this;
  }
  Bytes out_;
};

/// One image's tables: the header at `at`, then .eh_frame.
class EhFrameWriter {
 public:
  struct Function {
    std::uint64_t begin, size;
    RuleWriter rules;
    std::string_view augmentation = "zR";
  };

  /// All of CIEs say: the CFA is rsp + 8, and the return address lies below it.
  static Bytes write(std::uint64_t at, std::vector<Function> functions) {
    std::ranges::sort(functions, {}, &Function::begin);
    const std::uint64_t frames_at = at + 12 + functions.size() * 8;
    Bytes frames;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
    for (const Function& each : functions) {
      const std::uint64_t cie = frames_at + frames.size();
      add_cie(frames, each.augmentation);
      const std::uint64_t fde = frames_at + frames.size();
      entries.emplace_back(each.begin, fde);
      Bytes body;
      body.add(static_cast<std::uint32_t>(fde + 4 - cie));
      body.add(static_cast<std::int32_t>(each.begin - (fde + 8)));
      body.add(static_cast<std::uint32_t>(each.size));
      if (!each.augmentation.empty()) body.add(std::uint8_t{0});
      body.add_bytes(each.rules.bytes());
      add_entry(frames, body);
    }
    frames.add(std::uint32_t{0});
    Bytes all;
    all.add(std::uint8_t{1}).add(std::uint8_t{0x1b}).add(std::uint8_t{3}).add(std::uint8_t{0x3b});
    all.add(static_cast<std::int32_t>(frames_at - (at + 4)));
    all.add(static_cast<std::uint32_t>(functions.size()));
    for (const auto& [code, fde] : entries) {
      all.add(static_cast<std::int32_t>(code - at)).add(static_cast<std::int32_t>(fde - at));
    }
    return all.add_bytes(frames.bytes());
  }

 private:
  static void add_entry(Bytes& to, Bytes& body) {
    while (body.size() % 4 != 0) body.add(std::uint8_t{0});  // DW_CFA_nop
    to.add(static_cast<std::uint32_t>(body.size())).add_bytes(body.bytes());
  }
  static void add_cie(Bytes& to, std::string_view augmentation) {
    Bytes body;
    body.add(std::uint32_t{0}).add(std::uint8_t{1}).add_text(augmentation);
    body.add(std::uint8_t{1}).add(std::uint8_t{0x78}).add(std::uint8_t{16});  // 1, -8, rip
    if (!augmentation.empty()) {
      Bytes data;
      for (const char letter : augmentation) {
        if (letter == 'R') data.add(std::uint8_t{0x1b});
        if (letter == 'L') data.add(std::uint8_t{0x1b});
        if (letter == 'P') data.add(std::uint8_t{0x9b}).add(std::uint32_t{0x1234});
      }
      body.add(static_cast<std::uint8_t>(data.size())).add_bytes(data.bytes());
    }
    body.add_bytes(RuleWriter().def_cfa(7, 8).saved(16, 8).bytes());
    add_entry(to, body);
  }
};

}  // namespace ringside::guest_linux::fakes
