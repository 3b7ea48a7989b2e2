#include "engine/devices/virtual_gpu/values/small_values.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace offprof {

void SmallValues::write(const void* to, const void* host, Bytes bytes, Known known) {
  forget(to, bytes);
  if (bytes <= 0 || bytes > kLargest) return;
  if (sum_ + bytes > kLargestSum) forget_all();
  const auto* const begin = static_cast<const char*>(host);
  pieces_.emplace(static_cast<const char*>(to), Piece{std::vector<char>(begin, begin + bytes), known});
  sum_ += bytes;
  forgets_at_kernel_ = forgets_at_kernel_ || known == Known::kUntilKernel;
}

void SmallValues::fill(const void* to, int value, Bytes bytes) {
  if (bytes > kLargest) {
    forget(to, bytes);
  } else {
    const std::vector<char> contents(static_cast<std::size_t>(bytes), static_cast<char>(value));
    write(to, contents.data(), bytes);
  }
}

void SmallValues::copy(const void* to, const void* from, Bytes bytes, Known known) {
  const std::vector<char> contents = read(from, bytes);
  if (contents.empty()) {
    forget(to, bytes);
  } else {
    write(to, contents.data(), bytes, known);
  }
}

void SmallValues::write_later(const void* to, Bytes bytes, std::function<std::vector<char>()> contents) {
  forget(to, bytes);
  later_.emplace(static_cast<const char*>(to), Later{bytes, std::move(contents)});
}

std::map<const char*, SmallValues::Later>::iterator SmallValues::overlapping(const char* from, Bytes bytes) {
  auto found = later_.lower_bound(from);
  if (found != later_.begin() && std::prev(found)->first + std::prev(found)->second.bytes > from)
    return --found;
  return found != later_.end() && found->first < from + bytes ? found : later_.end();
}

std::vector<char> SmallValues::read(const void* from, Bytes bytes) {
  std::vector<char> contents;
  if (bytes <= 0 || bytes > kLargest) return contents;
  for (auto found = overlapping(static_cast<const char*>(from), bytes); found != later_.end();
       found = overlapping(static_cast<const char*>(from), bytes)) {
    const auto [address, later] = *found;
    later_.erase(found);
    std::vector<char> come;
    try {
      come = later.contents();
    } catch (...) {  // whoever reads it again learns the same at once
      const auto fail = [failure = std::current_exception()]() -> std::vector<char> {
        std::rethrow_exception(failure);
      };
      later_.emplace(address, Later{later.bytes, fail});
      throw;
    }
    write(address, come.data(), static_cast<Bytes>(come.size()), Known::kUntilWritten);
  }
  if (pieces_.empty()) return contents;
  const auto* at = static_cast<const char*>(from);
  const char* const end = at + bytes;
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return contents;
  for (--piece; at < end; ++piece) {
    if (piece == pieces_.end() || piece->first > at) return {};
    const std::vector<char>& known = piece->second.contents;
    const char* const piece_end = piece->first + known.size();
    if (piece_end <= at) return {};
    const char* const until = std::min(end, piece_end);
    contents.insert(contents.end(), known.begin() + (at - piece->first),
                    known.begin() + (until - piece->first));
    at = until;
  }
  return contents;
}

// A piece that is only partly forgotten keeps its ends.
void SmallValues::forget(const void* from, Bytes bytes) {
  if (bytes <= 0) return;
  for (auto found = overlapping(static_cast<const char*>(from), bytes); found != later_.end();
       found = overlapping(static_cast<const char*>(from), bytes))
    later_.erase(found);
  if (pieces_.empty()) return;
  const auto* const begin = static_cast<const char*>(from);
  const char* const end = begin + bytes;
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin()) --piece;
  while (piece != pieces_.end() && piece->first < end) {
    const char* const at = piece->first;
    const char* const piece_end = at + piece->second.contents.size();
    if (piece_end <= begin) {
      ++piece;
      continue;
    }
    const auto [contents, known] = std::move(piece->second);
    piece = pieces_.erase(piece);
    sum_ -= static_cast<Bytes>(contents.size());
    if (at < begin) {
      pieces_.emplace(at, Piece{{contents.begin(), contents.begin() + (begin - at)}, known});
      sum_ += begin - at;
    }
    if (piece_end > end) {
      pieces_.emplace(end, Piece{{contents.end() - (piece_end - end), contents.end()}, known});
      sum_ += piece_end - end;
    }
  }
}

void SmallValues::forget_at_kernel() {
  if (!std::exchange(forgets_at_kernel_, false)) return;
  std::erase_if(pieces_, [&](const auto& piece) {
    if (piece.second.known != Known::kUntilKernel) return false;
    sum_ -= static_cast<Bytes>(piece.second.contents.size());
    return true;
  });
}

void SmallValues::forget_all() {
  pieces_.clear();
  later_.clear();
  sum_ = 0;
}

}  // namespace offprof
