// The table of io, as process_tables.cc has those of processes. Linux 5.10 to 6.12.
#include "providers/stable/stable_tables.h"

namespace ringside::providers {
namespace {

using enum PlaceKind;

// A bio ends in bio_endio() whichever device it was for, unless others of its chain go on
// (__bio_remaining). Where a bio is larger than a request may be, its beginning is split off: a
// clone (bit 1 of bi_flags), which was not asked for and ends into the bio itself (bi_private), so
// that this ends within the call for the last of its parts. A flush for which a device has no use
// (its REQ_PREFLUSH, bit 18, was taken away) ends without having been queued. A driver that makes a
// clone of a bio for its own accounting (md_account_bio()) has the clone's memory (bi_pool) inside
// of its structure for the device (gendisk.private_data), and leaves it addressed to that device:
// it was never queued. One that the driver sends on is addressed to another device, and counts
// there.

constexpr std::string_view kBioType = "struct bio *";
constexpr NativeValue kQueued[] = {{kBioType, "bio", kByType}};
constexpr NativeValue kGiven[] = {{kBioType, "bio", "arg0"}};
constexpr NativeValue kWaited[] = {{kBioType, "bio", "start0"}};
constexpr StartPlace kInWait = {.natives = kGiven};
constexpr NativeValue kEnding[] = {
    {kBioType, "bio", "arg0"},
    {"unsigned long", "driver", "bio->bi_bdev->bd_disk->private_data|bio->bi_disk->private_data"},
    {"long", "pool", "bio->bi_pool - driver"}};
constexpr NativeValue kPart[] = {{kBioType, "part", "arg0"}};
constexpr NativeValue kOfPart[] = {{kBioType, "bio", "part->bi_private"}};
constexpr NativeValue kPartOfPart[] = {{kBioType, "part", "arg0"},
                                       {kBioType, "middle", "part->bi_private"}};
constexpr NativeValue kOfMiddle[] = {{kBioType, "bio", "middle->bi_private"}};
constexpr StableArgument kIoArguments[] = {
    {"bufinfo_t *", 0}, {"devinfo_t *", 0}, {"fileinfo_t *", 0}};

constexpr StableProbe kIo[] = {
    {"start", Tracepoint, "block_bio_queue", kQueued, kIoArguments},
    {"wait-start", Entry, "submit_bio_wait", kGiven, kIoArguments},
    {"wait-done", Return, "submit_bio_wait", kWaited, kIoArguments, "", &kInWait},
    {"done", Entry, "bio_endio", kGiven, kIoArguments,
     "bio->__bi_remaining.counter == 1 && "
     "(bio->bi_end_io != &bio_chain_endio || bio->bi_flags & 2 == 0) && "
     "(bio->bi_flags & 2 == 0 || pool < 0 || pool > 4095) && "
     "(bio->bi_io_vec != 0 || bio->bi_opf & 262399 != 1)",
     nullptr, kEnding},
    {"done", Entry, "bio_endio", kOfPart, kIoArguments,
     "part->__bi_remaining.counter == 1 && part->bi_end_io == &bio_chain_endio && "
     "bio->__bi_remaining.counter == 1 && "
     "(bio->bi_end_io != &bio_chain_endio || bio->bi_flags & 2 == 0)",
     nullptr, kPart},
    {"done", Entry, "bio_endio", kOfMiddle, kIoArguments,
     "part->__bi_remaining.counter == 1 && part->bi_end_io == &bio_chain_endio && "
     "middle->__bi_remaining.counter == 1 && middle->bi_end_io == &bio_chain_endio && "
     "bio->__bi_remaining.counter == 1 && "
     "(bio->bi_end_io != &bio_chain_endio || bio->bi_flags & 2 == 0)",
     nullptr, kPartOfPart},
};

constexpr StableTable kBlockTables[] = {{"io", kIo}};

}  // namespace

std::span<const StableTable> block_tables() {
  return kBlockTables;
}

}  // namespace ringside::providers
