#include "vmm/kvm/boot/aml.h"

#include <initializer_list>

namespace ringside::vmm::kvm::aml {
namespace {

constexpr std::uint8_t kNameOp = 0x08, kBytePrefix = 0x0a, kWordPrefix = 0x0b, kDwordPrefix = 0x0c,
                       kStringPrefix = 0x0d, kQwordPrefix = 0x0e, kScopeOp = 0x10, kBufferOp = 0x11,
                       kPackageOp = 0x12, kExtension = 0x5b, kDeviceOp = 0x82;

void append(Code& code, const Code& more) {
  code.insert(code.end(), more.begin(), more.end());
}

void append_number(Code& code, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) code.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

Code joined(const std::vector<Code>& parts) {
  Code code;
  for (const Code& part : parts) append(code, part);
  return code;
}

/// The opcode and its body with their length before the body. PkgLength counts itself: in one byte
/// up to 63, else four bits of it in the first byte and eight in each that follows.
Code with_length(std::initializer_list<std::uint8_t> opcode, const Code& body) {
  Code code(opcode);
  std::size_t more = 0;
  if (body.size() + 1 > 63) {
    more = 1;
    while (body.size() + 1 + more >= std::size_t{1} << (4 + 8 * more)) ++more;
  }
  const std::size_t length = body.size() + 1 + more;
  const std::size_t first = more == 0 ? length : (more << 6 | (length & 0x0f));
  code.push_back(static_cast<std::uint8_t>(first));
  append_number(code, length >> 4, static_cast<unsigned>(more));
  append(code, body);
  return code;
}

Code path_code(std::string_view path) {
  return Code(path.begin(), path.end());  // NameSeg and RootChar are their ASCII characters
}

Code with_body(std::initializer_list<std::uint8_t> opcode, std::string_view path,
               const std::vector<Code>& body) {
  Code inside = path_code(path);
  append(inside, joined(body));
  return with_length(opcode, inside);
}

}  // namespace

Code name(std::string_view path, const Code& object) {
  Code code{kNameOp};
  append(code, path_code(path));
  append(code, object);
  return code;
}

Code scope(std::string_view path, const std::vector<Code>& body) {
  return with_body({kScopeOp}, path, body);
}

Code device(std::string_view path, const std::vector<Code>& body) {
  return with_body({kExtension, kDeviceOp}, path, body);
}

Code integer(std::uint64_t value) {
  if (value <= 1) return {static_cast<std::uint8_t>(value)};  // ZeroOp, OneOp
  Code code;
  if (value <= 0xff) {
    code = {kBytePrefix};
    append_number(code, value, 1);
  } else if (value <= 0xffff) {
    code = {kWordPrefix};
    append_number(code, value, 2);
  } else if (value <= 0xffff'ffff) {
    code = {kDwordPrefix};
    append_number(code, value, 4);
  } else {
    code = {kQwordPrefix};
    append_number(code, value, 8);
  }
  return code;
}

Code text(std::string_view characters) {
  Code code(characters.begin(), characters.end());
  code.insert(code.begin(), kStringPrefix);
  code.push_back(0);
  return code;
}

Code package(const std::vector<Code>& elements) {
  Code body{static_cast<std::uint8_t>(elements.size())};
  append(body, joined(elements));
  return with_length({kPackageOp}, body);
}

Code eisa_id(std::string_view id) {
  std::uint32_t value = 0;  // three letters of five bits, four digits; its bytes are swapped
  for (std::size_t i = 0; i < 3; ++i)
    value = value << 5 | (static_cast<unsigned char>(id[i]) & 0x1fu);
  for (std::size_t i = 3; i < 7; ++i) {
    const unsigned c = static_cast<unsigned char>(id[i]);
    value = value << 4 | (c >= 'A' ? c - 'A' + 10 : c - '0');
  }
  return integer(__builtin_bswap32(value));
}

Code resources(const std::vector<Code>& descriptors) {
  Code bytes = joined(descriptors);
  append(bytes, {0x79, 0});  // end tag; a checksum of 0 is taken as right
  Code body = integer(bytes.size());
  append(body, bytes);
  return with_length({kBufferOp}, body);
}

Code io(std::uint16_t port, std::uint8_t count) {
  Code code{0x47, 1};  // decodes 16 bits
  append_number(code, port, 2);
  append_number(code, port, 2);
  append(code, {1, count});  // aligned to 1
  return code;
}

Code isa_irq(unsigned line) {
  Code code{0x22};
  append_number(code, std::uint64_t{1} << line, 2);
  return code;
}

Code memory32_fixed(std::uint32_t base, std::uint32_t size) {
  Code code{0x86, 9, 0, 1};  // writable
  append_number(code, base, 4);
  append_number(code, size, 4);
  return code;
}

Code interrupt(std::uint32_t gsi) {
  Code code{0x89, 6, 0, 1, 1};  // a consumer, level, high, exclusive; one interrupt
  append_number(code, gsi, 4);
  return code;
}

}  // namespace ringside::vmm::kvm::aml
