#include "traces/io/pickle_writer.h"

#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

// Opcodes of Python's pickletools.
constexpr char kProto = '\x80', kStop = '.', kNone = 'N', kTrue = '\x88', kFalse = '\x89';
constexpr char kInteger8 = 'K', kInteger16 = 'M', kInteger32 = 'J', kLong = '\x8a', kUnicode = 'X';
constexpr char kEmptyDict = '}', kEmptyList = ']', kMark = '(', kSetItems = 'u', kAppends = 'e';
constexpr char kTuple2 = '\x86', kPut = 'q', kLongPut = 'r', kGet = 'h', kLongGet = 'j';
constexpr std::size_t kMostAppended = 1000;

}  // namespace

PickleWriter::PickleWriter() : bytes_{kProto, '\2'} {}

/// Begins a new batch of elements if the last one is full.
void PickleWriter::begin_value() {
  if (open_.empty()) return;
  Open& list = open_.back();
  if (list.is_list && list.elements == kMostAppended) {
    bytes_ += kAppends;
    bytes_ += kMark;
    list.elements = 0;
  }
  ++list.elements;
}

void PickleWriter::put_number(std::uint64_t value, std::size_t bytes) {
  for (; bytes > 0; --bytes, value >>= 8) bytes_ += static_cast<char>(value & 255);
}

void PickleWriter::text(std::string_view value) {
  if (const auto known = texts_.find(std::string(value)); known != texts_.end()) return repeat(known->second);
  begin_value();
  bytes_ += kUnicode;
  put_number(value.size(), 4);
  bytes_ += value;
  texts_.emplace(value, remember());
}

void PickleWriter::integer(std::int64_t value) {
  begin_value();
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < 1 << 8) {
    bytes_ += kInteger8;
    put_number(bits, 1);
  } else if (value >= 0 && value < 1 << 16) {
    bytes_ += kInteger16;
    put_number(bits, 2);
  } else if (value == static_cast<std::int32_t>(value)) {
    bytes_ += kInteger32;
    put_number(bits, 4);
  } else {
    bytes_ += kLong;
    bytes_ += '\10';
    put_number(bits, 8);
  }
}

void PickleWriter::boolean(bool value) {
  begin_value();
  bytes_ += value ? kTrue : kFalse;
}

void PickleWriter::none() {
  begin_value();
  bytes_ += kNone;
}

void PickleWriter::begin_dict() {
  begin_value();
  bytes_ += kEmptyDict;
  bytes_ += kMark;
  open_.push_back({});
}

void PickleWriter::end_dict() {
  OFFPROF_CHECK(!open_.empty() && !open_.back().is_list);
  bytes_ += kSetItems;
  open_.pop_back();
}

void PickleWriter::begin_list() {
  begin_value();
  bytes_ += kEmptyList;
  bytes_ += kMark;
  open_.push_back({.is_list = true});
}

void PickleWriter::end_list() {
  OFFPROF_CHECK(!open_.empty() && open_.back().is_list);
  bytes_ += kAppends;
  open_.pop_back();
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  begin_value();
  open_.push_back({});  // the two integers are no elements of the open list
  integer(first);
  integer(second);
  open_.pop_back();
  bytes_ += kTuple2;
}

PickleWriter::Memo PickleWriter::remember() {
  const bool is_short = remembered_ < 256;
  bytes_ += is_short ? kPut : kLongPut;
  put_number(remembered_, is_short ? 1 : 4);
  return remembered_++;
}

void PickleWriter::repeat(Memo value) {
  begin_value();
  const bool is_short = value < 256;
  bytes_ += is_short ? kGet : kLongGet;
  put_number(value, is_short ? 1 : 4);
}

std::string PickleWriter::take() {
  OFFPROF_CHECK(open_.empty());
  bytes_ += kStop;
  return std::move(bytes_);
}

}  // namespace offprof
