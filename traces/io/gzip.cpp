#include "traces/io/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::size_t kGzipChunk = 1 << 16;
constexpr int kGzipWindow = 15 + 16;  ///< zlib.h: the largest window, plus 16 for a gzip header
constexpr std::string_view kGzipMagic = "\x1f\x8b";
/// Largest accepted expansion. Traces expand about ten times, gzip at most 1032 times.
constexpr std::size_t kMostUnpacked = 250;
/// Decompressed size in bytes up to which any expansion is accepted.
constexpr std::size_t kNeverTooMuch = std::size_t{64} << 20;

[[noreturn]] void throw_broken(const std::string& name, int code) {
  const bool short_file = code == Z_BUF_ERROR || code == Z_OK;
  throw input_error(
      fmt::format("cannot decompress '{}': {}", name,
                  short_file ? "the gzip data ends early (truncated?)" : "the gzip data is damaged"),
      "Copy or record the file again.");
}

/// Decompresses every member of a gzip file.
class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<char> room) override {
    std::size_t size = 0;
    while (size < room.size() && !at_end_) size += inflate_into(room.subspan(size));
    unpacked_bytes_ += size;
    refuse_a_bomb();
    return size;
  }

 private:
  std::size_t inflate_into(std::span<char> room) {
    if (stream_.avail_in == 0) refill();
    const auto size = static_cast<uInt>(std::min<std::size_t>(room.size(), UINT_MAX));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = size;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) throw_broken(name_, code);
    if (code == Z_STREAM_END) next_member();
    return size - stream_.avail_out;
  }

  /// Moves to the next member. Bytes after the last member are not content of the file.
  void next_member() {
    if (stream_.avail_in < kGzipMagic.size()) refill();
    const std::string_view rest(reinterpret_cast<const char*>(stream_.next_in), stream_.avail_in);
    at_end_ = !is_gzip(rest);
    inflateReset(&stream_);
  }

  /// Appends to the unread part of the input.
  void refill() {
    const std::size_t left = stream_.avail_in;
    if (left > 0) std::memmove(compact_.get(), stream_.next_in, left);
    const std::size_t got = file_->read(std::span(compact_.get(), kGzipChunk).subspan(left));
    stream_.next_in = reinterpret_cast<Bytef*>(compact_.get());
    stream_.avail_in = static_cast<uInt>(left + got);
    encoded_bytes_ += got;
  }

  void refuse_a_bomb() const {
    if (unpacked_bytes_ <= kNeverTooMuch || unpacked_bytes_ / kMostUnpacked <= encoded_bytes_) return;
    throw input_error(
        fmt::format("cannot decompress '{}': it decompresses to more than {} times its size, which no "
                    "offprof file does",
                    name_, kMostUnpacked));
  }

  std::unique_ptr<ByteSource> file_;
  std::string name_;
  std::unique_ptr<char[]> compact_ = std::make_unique_for_overwrite<char[]>(kGzipChunk);
  z_stream stream_{};
  std::size_t encoded_bytes_ = 0, unpacked_bytes_ = 0;
  bool at_end_ = false;
};

}  // namespace

bool is_gzip(std::string_view head) {
  return head.starts_with(kGzipMagic);
}

std::unique_ptr<ByteSource> decompress_gzip(std::unique_ptr<ByteSource> compact, std::string name) {
  return std::make_unique<GzipSource>(std::move(compact), std::move(name));
}

std::string compress_gzip(std::string_view content) {
  z_stream stream{};
  const int started = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, MAX_MEM_LEVEL,
                                   Z_DEFAULT_STRATEGY);
  if (started != Z_OK) throw std::bad_alloc();  // zlib.h: with these parameters only memory can be short
  std::string compact;
  std::size_t taken = 0;
  std::string chunk(kGzipChunk, '\0');
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    const std::size_t portion = std::min(content.size() - taken, kGzipChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data() + taken));
    stream.avail_in = static_cast<uInt>(portion);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = deflate(&stream, taken + portion == content.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += portion - stream.avail_in;
    compact.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return compact;
}

}  // namespace offprof
