#include "engine/devices/virtual_gpu/values/small_values.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offprof {

void SmallValues::write(const void* to, const void* host, Bytes bytes) {
  forget(to, bytes);
  if (bytes <= 0 || bytes > kLargest) return;
  if (sum_ + bytes > kLargestSum) forget_all();
  const auto* const begin = static_cast<const char*>(host);
  pieces_.emplace(static_cast<const char*>(to), std::vector<char>(begin, begin + bytes));
  sum_ += bytes;
}

void SmallValues::fill(const void* to, int value, Bytes bytes) {
  if (bytes > kLargest) {
    forget(to, bytes);
  } else {
    const std::vector<char> contents(static_cast<std::size_t>(bytes), static_cast<char>(value));
    write(to, contents.data(), bytes);
  }
}

void SmallValues::copy(const void* to, const void* from, Bytes bytes) {
  const std::vector<char> contents = read(from, bytes);
  if (contents.empty()) {
    forget(to, bytes);
  } else {
    write(to, contents.data(), bytes);
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
    const std::vector<char> come = later.contents();
    write(address, come.data(), static_cast<Bytes>(come.size()));
  }
  if (contents = read_kept(static_cast<const char*>(from), bytes); !contents.empty()) return contents;
  if (pieces_.empty()) return contents;
  const auto* at = static_cast<const char*>(from);
  const char* const end = at + bytes;
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return contents;
  for (--piece; at < end; ++piece) {
    if (piece == pieces_.end() || piece->first > at) return {};
    const char* const piece_end = piece->first + piece->second.size();
    if (piece_end <= at) return {};
    const char* const until = std::min(end, piece_end);
    contents.insert(contents.end(), piece->second.begin() + (at - piece->first),
                    piece->second.begin() + (until - piece->first));
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
  forget_kept(static_cast<const char*>(from), bytes);
  if (pieces_.empty()) return;
  const auto* const begin = static_cast<const char*>(from);
  const char* const end = begin + bytes;
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin()) --piece;
  while (piece != pieces_.end() && piece->first < end) {
    const char* const at = piece->first;
    const std::vector<char> contents = std::move(piece->second);
    const char* const piece_end = at + contents.size();
    if (piece_end <= begin) {
      piece->second = contents;
      ++piece;
      continue;
    }
    piece = pieces_.erase(piece);
    sum_ -= static_cast<Bytes>(contents.size());
    if (at < begin) {
      pieces_.emplace(at, std::vector<char>(contents.begin(), contents.begin() + (begin - at)));
      sum_ += begin - at;
    }
    if (piece_end > end) {
      pieces_.emplace(end, std::vector<char>(contents.end() - (piece_end - end), contents.end()));
      sum_ += piece_end - end;
    }
  }
}

void SmallValues::keep(const void* to, std::vector<char> contents) {
  forget(to, static_cast<Bytes>(contents.size()));
  kept_[static_cast<const char*>(to)] = std::move(contents);
}

std::vector<char> SmallValues::read_kept(const char* from, Bytes bytes) const {
  const auto after = kept_.upper_bound(from);
  if (after == kept_.begin()) return {};
  const auto& [begin, contents] = *std::prev(after);
  if (from + bytes > begin + contents.size()) return {};
  return {contents.begin() + (from - begin), contents.begin() + (from - begin) + bytes};
}

/// A piece that is partly written is forgotten as a whole.
void SmallValues::forget_kept(const char* from, Bytes bytes) {
  std::erase_if(kept_, [&](const auto& piece) {
    return piece.first < from + bytes && from < piece.first + piece.second.size();
  });
}

void SmallValues::forget_all() {
  pieces_.clear();
  later_.clear();
  sum_ = 0;
}

}  // namespace offprof
