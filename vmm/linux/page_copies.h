// A reader of kernel memory that copies whole pages and keeps them. Where guest RAM is only copied,
// each read is a system call, and structures that a list is made of lie beside each other: a list
// of a thousand processes takes a fifth of the calls. A page is of the moment of its first read,
// until forget(). Used for lists of guests whose RAM is copied. Does not: fit readers that look
// twice whether something has changed, as that of the kernel's log does. Threads: each needs its
// own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

class PageCopies final : public GuestReader {
 public:
  /// `reader` must outlive it.
  explicit PageCopies(const GuestReader& reader) : reader_(&reader), pages_(kKept) {}

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t offset = at.raw() % arch::kPageSize;
      const auto piece = out.first(std::min<std::size_t>(out.size(), arch::kPageSize - offset));
      const Page* const page = page_of(at.wrapping_sub(offset));
      if (page != nullptr) {
        std::memcpy(piece.data(), page->bytes.data() + offset, piece.size());
      } else {
        TRY(reader_->read(at, piece));
      }
      out = out.subspan(piece.size());
      at = at.wrapping_add(piece.size());
    }
    return {};
  }
  void forget() const {
    for (auto& page : pages_) page.reset();
  }

 private:
  static constexpr std::size_t kKept = 1024;  // pages, by the low bits of their number
  struct Page {
    GuestVirt at;
    std::array<std::byte, arch::kPageSize> bytes;
  };

  /// Null where the page is not there.
  const Page* page_of(GuestVirt at) const {
    auto& page = pages_[at.raw() / arch::kPageSize % kKept];
    if (page && page->at == at) return page.get();
    if (!page) page = std::make_unique<Page>();
    page->at = at;
    if (reader_->read(at, page->bytes)) return page.get();
    page.reset();
    return nullptr;
  }

  const GuestReader* reader_;
  mutable std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace ringside::guest_linux
