// Packets that pcap() recorded, and files of them in the form pcapng, which wireshark and tshark
// read (draft-ietf-opsawg-pcapng). A file has an interface for each device, link type and machine,
// times in ns, and with each packet two comments: the probe that recorded it, and the process.
// Files are appended to; a section of ours may follow others. Text between them would make a file
// unreadable, so a file that has any gets no packets.
// Does not: look into packets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "cli/output/sink.h"
#include "cli/output/values.h"
#include "dif/engine/packet_record.h"
#include "vmm/base/result.h"

namespace ringside::cli {

struct Packet {
  dif::PacketHeader header;
  std::uint16_t link_type = 0;
  Bytes bytes;  // that were recorded; the record's

  std::string_view device() const { return name_in(header.device); }
  std::string_view process() const { return name_in(header.process); }

 private:
  static std::string_view name_in(const std::array<char, 16>& text) {
    const std::string_view whole(text.data(), text.size());
    return whole.substr(0, whole.find('\0'));
  }
};

/// `field` is what the engine recorded of the packet. Empty: it cannot be that.
std::optional<Packet> read_packet(Bytes field, std::int64_t link_type);

/// Where and when a packet was recorded.
struct PacketOrigin {
  std::string machine, probe;
  unsigned vcpu = 0;
  std::int64_t time = 0;  // ns since the epoch
};

class CaptureFile {
 public:
  /// Made where it does not exist. Invalid: it has something that is no capture. Io: it cannot be
  /// written.
  static Result<CaptureFile> append_to(const std::string& path);

  void add(const Packet& packet, const PacketOrigin& origin);
  /// Writes what was added. Nobody reads it any more: that is no error. An error comes once, and
  /// nothing is written after it.
  Result<void> flush();
  /// Somebody has emptied the file.
  void truncated();
  const std::string& path() const { return path_; }

 private:
  CaptureFile(std::string path, Sink sink) : path_(std::move(path)), sink_(std::move(sink)) {}

  void begin_section();
  std::uint32_t interface_of(const Packet& packet, const std::string& machine);
  /// Of a regular file; empty: it is none.
  std::optional<std::uint64_t> size() const;
  tl::unexpected<Error> give_up(ErrorCode code, std::string_view why);

  std::string path_;
  Sink sink_;
  std::string pending_;
  std::optional<std::uint64_t> written_;  // its size after our last write; empty: not regular
  bool gave_up_ = false;
  // Of the section, by number: machine, device, link type.
  std::map<std::tuple<std::string, std::string, std::uint16_t>, std::uint32_t> interfaces_;
};

/// The files that a trace writes: that of pcapfile, and the one that freopen() opened last.
class CaptureFiles {
 public:
  Result<void> open(const std::string& path);
  /// From here on packets go to this file, which is opened for the first one; empty: to the first
  /// file again.
  void redirect(const std::string& path);
  /// ftruncate() emptied the file that freopen() opened.
  void truncated();
  /// False: there is no file for it.
  bool add(const Packet& packet, const PacketOrigin& origin);
  /// The errors of both, once each.
  Result<void> flush();

 private:
  std::optional<CaptureFile> first_, redirected_;
  std::string path_;               // of freopen() now; empty: none
  std::optional<Error> not_told_;  // of a file that was opened, or could not be
  std::string refused_;            // the path of one that could not be
};

}  // namespace ringside::cli
