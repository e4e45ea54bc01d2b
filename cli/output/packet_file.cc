// In this file, top to bottom: packets, pcapng's blocks, one file, the files of a trace.
#include "cli/output/packet_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "cli/output/structured_writer.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {
namespace {

// Blocks and options of pcapng.
constexpr std::uint32_t kSectionHeader = 0x0a0d'0d0a, kInterface = 1, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b'3c4d;
constexpr std::uint16_t kEndOfOptions = 0, kComment = 1;
constexpr std::uint16_t kApplication = 4;                                  // of a section
constexpr std::uint16_t kName = 2, kDescription = 3, kTimeResolution = 9;  // of an interface
constexpr std::string_view kNanoseconds = "\x09";                          // 10^-9 s
// A guest chooses the names of its devices. A section with so many ends, and another one begins.
constexpr std::size_t kMostInterfaces = 256;

/// A block in the byte order of this host, which the section's header tells.
class Block {
 public:
  Block(std::string& out, std::uint32_t type) : out_(out), start_(out.size()) {
    number(type);
    number(std::uint32_t{0});
  }
  template <class T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }
  void bytes(std::string_view text) {
    out_ += text;
    out_.append((4 - text.size() % 4) % 4, '\0');
  }
  void option(std::uint16_t code, std::string_view text) {
    text = text.substr(0, UINT16_MAX);
    number(code);
    number(static_cast<std::uint16_t>(text.size()));
    bytes(text);
  }
  void end() {
    option(kEndOfOptions, {});
    const auto size = static_cast<std::uint32_t>(out_.size() - start_ + sizeof(std::uint32_t));
    number(size);
    std::memcpy(out_.data() + start_ + sizeof(std::uint32_t), &size, sizeof size);
  }

 private:
  std::string& out_;
  const std::size_t start_;
};

/// Whether the file is empty, no regular one, or begins as a capture does.
bool may_have_packets(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return true;
  if (status.st_size == 0) return true;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint32_t first = 0;
  return file && ::read(file.get(), &first, sizeof first) == sizeof first &&
         first == kSectionHeader;
}

}  // namespace

std::optional<Packet> read_packet(Bytes field, std::int64_t link_type) {
  Packet packet;
  if (field.size() < sizeof packet.header) return std::nullopt;
  std::memcpy(&packet.header, field.data(), sizeof packet.header);
  const Bytes bytes = field.subspan(sizeof packet.header);
  if (packet.header.captured > bytes.size()) return std::nullopt;
  packet.bytes = bytes.first(packet.header.captured);
  packet.link_type = static_cast<std::uint16_t>(link_type);
  return packet;
}

Result<CaptureFile> CaptureFile::append_to(const std::string& path) {
  if (!may_have_packets(path)) {
    return fail(ErrorCode::Invalid,
                fmt::format("{} has something in it that is no capture, and packets cannot be "
                            "appended to it: remove the file, or name another one",
                            path));
  }
  CaptureFile file(path, TRY(Sink::append_to(path)));
  file.written_ = file.size();
  file.begin_section();
  TRY(file.flush());
  return file;
}

std::optional<std::uint64_t> CaptureFile::size() const {
  struct stat status {};
  if (::fstat(sink_.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

void CaptureFile::begin_section() {
  constexpr std::uint64_t kUnknownLength = UINT64_MAX;
  interfaces_.clear();
  Block block(pending_, kSectionHeader);
  block.number(kByteOrder);
  block.number(std::uint16_t{1});  // version 1.0
  block.number(std::uint16_t{0});
  block.number(kUnknownLength);
  block.option(kApplication, "ringside");
  block.end();
}

std::uint32_t CaptureFile::interface_of(const Packet& packet, const std::string& machine) {
  const std::tuple key(machine, std::string(packet.device()), packet.link_type);
  if (const auto known = interfaces_.find(key); known != interfaces_.end()) return known->second;
  if (interfaces_.size() == kMostInterfaces) begin_section();
  Block block(pending_, kInterface);
  block.number(packet.link_type);
  block.number(std::uint16_t{0});
  block.number(std::uint32_t{0});  // pcapsize may differ in the next run, which appends
  if (!packet.device().empty()) block.option(kName, valid_utf8(packet.device()));
  if (!machine.empty()) block.option(kDescription, valid_utf8(machine));
  block.option(kTimeResolution, kNanoseconds);
  block.end();
  return interfaces_.emplace(key, static_cast<std::uint32_t>(interfaces_.size())).first->second;
}

void CaptureFile::add(const Packet& packet, const PacketOrigin& origin) {
  if (gave_up_) return;
  const std::uint32_t interface = interface_of(packet, origin.machine);
  const auto time = static_cast<std::uint64_t>(origin.time);
  Block block(pending_, kEnhancedPacket);
  block.number(interface);
  block.number(static_cast<std::uint32_t>(time >> 32));
  block.number(static_cast<std::uint32_t>(time));
  block.number(packet.header.captured);
  block.number(packet.header.length);
  block.bytes({reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()});
  block.option(kComment, valid_utf8("probe " + origin.probe));
  block.option(kComment, valid_utf8(fmt::format("process {}, pid {}, CPU {}", packet.process(),
                                                packet.header.pid, origin.vcpu)));
  block.end();
}

tl::unexpected<Error> CaptureFile::give_up(ErrorCode code, std::string_view why) {
  gave_up_ = true;
  pending_.clear();
  return fail(code, fmt::format("no more packets are written to {}: {}", path_, why));
}

Result<void> CaptureFile::flush() {
  if (gave_up_) return {};
  if (size() != written_) {
    return give_up(ErrorCode::Invalid,
                   "text was written to it, too; use -q, and print elsewhere than to that file");
  }
  const std::size_t bytes = pending_.size();
  sink_.write_safe(pending_);
  pending_.clear();
  if (!sink_.flush() && !sink_.problem().empty()) return give_up(ErrorCode::Io, sink_.problem());
  if (written_) *written_ += bytes;
  return {};
}

void CaptureFile::truncated() {
  pending_.clear();
  written_ = size();
  begin_section();
}

Result<void> CaptureFiles::open(const std::string& path) {
  first_.emplace(TRY(CaptureFile::append_to(path)));
  return {};
}

void CaptureFiles::redirect(const std::string& path) {
  path_ = path;
}

void CaptureFiles::truncated() {
  if (!path_.empty() && redirected_ && redirected_->path() == path_) redirected_->truncated();
}

bool CaptureFiles::add(const Packet& packet, const PacketOrigin& origin) {
  if (path_.empty()) {
    if (first_) first_->add(packet, origin);
    return first_.has_value();
  }
  if (path_ == refused_) return true;
  if (!redirected_ || redirected_->path() != path_) {
    const auto written = redirected_ ? redirected_->flush() : Result<void>();
    if (!written) not_told_ = written.error();
    auto file = CaptureFile::append_to(path_);
    if (!file) {
      refused_ = path_;
      not_told_ = file.error();
      return true;
    }
    redirected_.emplace(std::move(*file));
  }
  redirected_->add(packet, origin);
  return true;
}

Result<void> CaptureFiles::flush() {
  if (not_told_) {
    const Error error = *std::exchange(not_told_, std::nullopt);
    return tl::make_unexpected(error);
  }
  if (redirected_) TRY(redirected_->flush());
  if (first_) TRY(first_->flush());
  return {};
}

}  // namespace ringside::cli
