#include "engine/tensors/files/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// Maximum size of a directory. A record takes some 100 bytes in it.
constexpr Bytes kMostDirectoryBytes = 256 * kMiB;

constexpr std::uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                        kLocator64Signature = 0x07064b50, kRecordSignature = 0x02014b50,
                        kLocalSignature = 0x04034b50;
constexpr Bytes kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kLocalBytes = 30;
constexpr std::size_t kRecordBytes = 46;
/// A comment of this length may follow the end of the directory.
constexpr Bytes kMostCommentBytes = 0xffff;
constexpr std::uint16_t kExtra64 = 1;  ///< id of the extra field with 64-bit sizes
constexpr std::uint32_t kIn64Bits = 0xffffffff;
constexpr std::uint16_t kStored = 0;

[[noreturn]] void refuse_archive(const ReadableFile& file, const std::string& why) {
  throw input_error(fmt::format("{}: a damaged or truncated archive, or a zip that PyTorch did not write: {}",
                                file.name(), why),
                    "Copy or save it again.");
}

/// Little-endian number at a place in a structure whose size has been checked.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t place) {
  Number number{};
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

/// Reads part of the file; the result is empty if the part is not completely inside it.
std::string read_part(const ReadableFile& file, Bytes offset, Bytes bytes) {
  if (offset < 0 || bytes < 0 || offset > file.size() || bytes > file.size() - offset) return {};
  std::string part(static_cast<std::size_t>(bytes), '\0');
  read_all(file, offset, part);
  return part;
}

bool has_signature(std::string_view part, std::uint32_t signature) {
  return part.size() >= sizeof signature && number_at<std::uint32_t>(part, 0) == signature;
}

/// Finds the end of the directory: the last 22 bytes, or before that if a comment follows.
std::optional<Bytes> find_end(const ReadableFile& file) {
  const Bytes last = file.size() - kEndBytes;
  if (has_signature(read_part(file, last, kEndBytes), kEndSignature)) return last;
  const Bytes first = std::max<Bytes>(last - kMostCommentBytes, 0);
  const std::string tail = read_part(file, first, file.size() - first);
  for (std::size_t at = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1; at > 0; --at)
    if (has_signature(std::string_view(tail).substr(at - 1), kEndSignature))
      return first + static_cast<Bytes>(at - 1);
  return std::nullopt;
}

struct DirectoryPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

DirectoryPlace find_directory(const ReadableFile& file) {
  const std::optional<Bytes> end = find_end(file);
  if (!end) refuse_archive(file, "it has no directory");
  const std::string locator = read_part(file, *end - kLocator64Bytes, kLocator64Bytes);
  if (!has_signature(locator, kLocator64Signature)) {
    const std::string place = read_part(file, *end, kEndBytes);
    return {number_at<std::uint32_t>(place, 16), number_at<std::uint32_t>(place, 12)};
  }
  const auto offset = number_at<std::uint64_t>(locator, 8);
  const std::string place = offset > static_cast<std::uint64_t>(*end)
                                ? ""
                                : read_part(file, static_cast<Bytes>(offset), kEnd64Bytes);
  if (!has_signature(place, kEnd64Signature)) refuse_archive(file, "its directory is not where its end says");
  return {number_at<std::uint64_t>(place, 48), number_at<std::uint64_t>(place, 40)};
}

/// Returns the extra field with 64-bit sizes; empty if there is none.
std::string_view extra_64(std::string_view extra) {
  constexpr std::size_t kHead = 4;
  while (extra.size() >= kHead) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const std::size_t bytes = number_at<std::uint16_t>(extra, 2);
    extra.remove_prefix(kHead);
    if (id == kExtra64) return extra.substr(0, bytes);
    extra.remove_prefix(std::min(bytes, extra.size()));
  }
  return {};
}

}  // namespace

ZipDirectory::ZipDirectory(const ReadableFile& file) : file_(file) {
  const DirectoryPlace place = find_directory(file);
  const auto size = static_cast<std::uint64_t>(file.size());
  if (place.offset > size || place.bytes > size - place.offset)
    refuse_archive(file, "its directory is beyond its end");
  if (place.bytes > static_cast<std::uint64_t>(kMostDirectoryBytes))
    refuse_archive(file, "its directory is too long");
  read_directory(static_cast<Bytes>(place.offset), static_cast<Bytes>(place.bytes));
}

void ZipDirectory::read_directory(Bytes offset, Bytes bytes) {
  const std::string directory = read_part(file_, offset, bytes);
  std::string_view rest = directory;
  while (!rest.empty()) {
    if (rest.size() < kRecordBytes || !has_signature(rest, kRecordSignature))
      refuse_archive(file_, "its directory has something other than records");
    const std::size_t name_bytes = number_at<std::uint16_t>(rest, 28),
                      extra_bytes = number_at<std::uint16_t>(rest, 30),
                      comment_bytes = number_at<std::uint16_t>(rest, 32);
    if (rest.size() - kRecordBytes < name_bytes + extra_bytes + comment_bytes)
      refuse_archive(file_, "its directory ends within a record");
    const std::string name(rest.substr(kRecordBytes, name_bytes));
    std::string_view wide = extra_64(rest.substr(kRecordBytes + name_bytes, extra_bytes));
    const auto field = [&](std::size_t at) -> std::uint64_t {
      const auto narrow = number_at<std::uint32_t>(rest, at);
      if (narrow != kIn64Bits || wide.size() < sizeof(std::uint64_t)) return narrow;
      const auto value = number_at<std::uint64_t>(wide, 0);
      wide.remove_prefix(sizeof value);
      return value;
    };
    const std::uint64_t content = field(24), stored = field(20), header = field(42);
    const auto size = static_cast<std::uint64_t>(file_.size());
    const bool is_compressed = number_at<std::uint16_t>(rest, 10) != kStored;
    if (header > size || stored > size || (!is_compressed && content != stored) ||
        content > static_cast<std::uint64_t>(std::numeric_limits<Bytes>::max()))
      refuse_archive(file_, fmt::format("its record '{}' is beyond its end", printable(name)));
    if (!records_
             .emplace(name, ZipRecord{static_cast<Bytes>(header), static_cast<Bytes>(content), is_compressed})
             .second)
      refuse_archive(file_, fmt::format("two records are named '{}'", printable(name)));
    rest.remove_prefix(kRecordBytes + name_bytes + extra_bytes + comment_bytes);
  }
}

Bytes ZipDirectory::content_offset(const std::string& name, const ZipRecord& record) const {
  if (record.is_compressed)
    throw input_error(fmt::format("{}: its record '{}' is compressed, so it cannot be read in place",
                                  file_.name(), printable(name)),
                      "Save it again with torch.save, and do not compress it.");
  const std::string header = read_part(file_, record.header_offset, kLocalBytes);
  if (!has_signature(header, kLocalSignature))
    refuse_archive(file_, fmt::format("its record '{}' is not where its directory says", printable(name)));
  const Bytes offset = record.header_offset + kLocalBytes + number_at<std::uint16_t>(header, 26) +
                       number_at<std::uint16_t>(header, 28);
  if (offset > file_.size() || record.bytes > file_.size() - offset)
    refuse_archive(
        file_, fmt::format("it is truncated: its record '{}' should have {} bytes from byte {} on, but the "
                           "file has {}",
                           printable(name), record.bytes, offset, file_.size()));
  return offset;
}

std::string ZipDirectory::read(const std::string& name, const ZipRecord& record) const {
  return read_part(file_, content_offset(name, record), record.bytes);
}

}  // namespace offprof
