#include "dif/record_buffer.h"

namespace ringside::dif {

namespace {
constexpr std::size_t round_up(std::size_t n) {
  return (n + 7) & ~std::size_t{7};
}
}  // namespace

std::span<std::byte> RecordBuffer::reserve(std::size_t data_size) {
  const auto bytes = memory_.bytes();
  if (bytes.size() - used_ < sizeof(Header) + round_up(data_size)) return {};
  reserved_ = data_size;
  return bytes.subspan(used_ + sizeof(Header), data_size);
}

void RecordBuffer::commit(EcbId ecb, std::uint64_t timestamp) {
  const Header header{ecb.value, static_cast<std::uint32_t>(reserved_), timestamp};
  std::memcpy(memory_.bytes().data() + used_, &header, sizeof header);
  used_ += sizeof header + round_up(reserved_);
}

void RecordBuffer::drain(std::uint32_t vcpu, std::vector<std::byte>& storage,
                         std::vector<Record>& records) {
  const auto used = memory_.bytes().first(used_);
  storage.assign(used.begin(), used.end());
  for (std::size_t at = 0; at < storage.size();) {
    Header header;
    std::memcpy(&header, storage.data() + at, sizeof header);
    at += sizeof header;
    records.push_back({EcbId{header.ecb}, vcpu, header.timestamp,
                       std::span<const std::byte>(storage).subspan(at, header.size)});
    at += round_up(header.size);
  }
  used_ = 0;
}

}  // namespace ringside::dif
