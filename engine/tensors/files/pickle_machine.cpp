#include "engine/tensors/files/pickle_machine.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Maximum number of values; a tensor takes some twenty.
constexpr std::size_t kMostPickleValues = 4'000'000;

/// The supported opcodes of Python's pickle (CPython, Lib/pickle.py).
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

}  // namespace

void PickleMachine::refuse(const std::string& what, const std::string& hint) const {
  throw input_error(fmt::format("{}: {}", name_, what),
                    hint.empty() ? "The file is damaged or cut off, or PyTorch did not write it." : hint);
}

PickleMachine::Id PickleMachine::run() {
  for (;;) {
    const auto opcode = number<unsigned char>();
    if (opcode == kStop) return pop();
    if (!scalar(opcode) && !text(opcode) && !container(opcode) && !memo(opcode)) call(opcode);
  }
}

std::string_view PickleMachine::take(std::size_t bytes) {
  if (bytes > rest_.size()) refuse("its pickle is truncated");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

template <typename Number>
Number PickleMachine::number() {
  Number number{};
  std::memcpy(&number, take(sizeof number).data(), sizeof number);
  return number;
}

std::string_view PickleMachine::line() {
  const std::string_view taken = rest_.substr(0, rest_.find('\n'));
  take(taken.size() + 1);
  return taken;
}

void PickleMachine::make(PickleValue value) {
  if (values_.size() == kMostPickleValues) refuse("its pickle has too many values");
  values_.push_back(std::move(value));
  push(static_cast<Id>(values_.size() - 1));
}

PickleMachine::Id PickleMachine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("its pickle pops from an empty stack");
  const Id id = stack_.back();
  stack_.pop_back();
  return id;
}

PickleMachine::Items PickleMachine::pop_items(std::size_t count) {
  Items items(count);
  for (std::size_t i = count; i > 0; --i) items[i - 1] = pop();
  return items;
}

PickleMachine::Items PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse("its pickle lacks a mark where an opcode needs one");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  Items items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::top(Kind kind) {
  const Id id = pop();
  push(id);
  if (values_[id].kind != kind)
    refuse("its pickle adds items to an object that is not a list or a dictionary");
  return values_[id];
}

/// Decodes a little-endian two's complement integer.
std::int64_t PickleMachine::long_integer(std::string_view bytes) const {
  if (bytes.size() > sizeof(std::int64_t)) refuse("its pickle has a whole number of more than 64 bits");
  if (bytes.empty()) return 0;
  std::int64_t value = (bytes.back() & 0x80) != 0 ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

bool PickleMachine::scalar(unsigned char opcode) {
  switch (opcode) {
    case kNone:
    case kNewTrue:
    case kNewFalse:
      return make({}), true;
    case kBinFloat:
      return take(sizeof(double)), make({}), true;
    case kBinInt:
      return make_integer(number<std::int32_t>()), true;
    case kBinInt1:
      return make_integer(number<std::uint8_t>()), true;
    case kBinInt2:
      return make_integer(number<std::uint16_t>()), true;
    case kLong1:
      return make_integer(long_integer(take(number<std::uint8_t>()))), true;
    default:
      return false;
  }
}

bool PickleMachine::text(unsigned char opcode) {
  switch (opcode) {
    case kShortBinString:
    case kShortBinUnicode:
      return make_text(take(number<std::uint8_t>())), true;
    case kBinString:
    case kBinUnicode:
      return make_text(take(number<std::uint32_t>())), true;
    case kBinUnicode8:
      return make_text(take(number<std::uint64_t>())), true;
    case kShortBinBytes:
      return take(number<std::uint8_t>()), make({}), true;
    case kBinBytes:
      return take(number<std::uint32_t>()), make({}), true;
    default:
      return false;
  }
}

void PickleMachine::make_global(std::string_view module, std::string_view name) {
  if (module.size() + name.size() > kLongestName) refuse("its pickle has a class name that is too long");
  make({.kind = Kind::kGlobal, .text = fmt::format("{}.{}", module, name)});
}

void PickleMachine::put_items(const Items& items) {
  if (items.size() % 2 != 0) refuse("its pickle has a key without a value");
  auto& members = top(Kind::kDict).items;
  members.insert(members.end(), items.begin(), items.end());
}

bool PickleMachine::container(unsigned char opcode) {
  if (opcode >= kTuple1 && opcode <= kTuple3)
    return make({.kind = Kind::kTuple, .items = pop_items(opcode - kTuple1 + 1U)}), true;
  switch (opcode) {
    case kMark:
      return marks_.push_back(stack_.size()), true;
    case kEmptyTuple:
      return make({.kind = Kind::kTuple}), true;
    case kTuple:
      return make({.kind = Kind::kTuple, .items = pop_to_mark()}), true;
    case kEmptyList:
      return make({.kind = Kind::kList}), true;
    case kAppend:
    case kAppends: {
      const Items items = opcode == kAppend ? pop_items(1) : pop_to_mark();
      auto& members = top(Kind::kList).items;
      return members.insert(members.end(), items.begin(), items.end()), true;
    }
    case kEmptyDict:
      return make({.kind = Kind::kDict}), true;
    case kSetItem:
      return put_items(pop_items(2)), true;
    case kSetItems:
      return put_items(pop_to_mark()), true;
    default:
      return false;
  }
}

bool PickleMachine::memo(unsigned char opcode) {
  const auto put = [&](std::uint32_t key) {
    const Id id = pop();
    push(id);
    memo_[key] = id;
  };
  const auto get = [&](std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("its pickle reads a memo entry that does not exist");
    push(found->second);
  };
  switch (opcode) {
    case kBinPut:
      return put(number<std::uint8_t>()), true;
    case kLongBinPut:
      return put(number<std::uint32_t>()), true;
    case kMemoize:
      return put(static_cast<std::uint32_t>(memo_.size())), true;
    case kBinGet:
      return get(number<std::uint8_t>()), true;
    case kLongBinGet:
      return get(number<std::uint32_t>()), true;
    default:
      return false;
  }
}

void PickleMachine::call(unsigned char opcode) {
  const bool is_call = opcode != kProto && opcode != kFrame && opcode != kPop;
  if (is_call && content_ == PickleContent::kPlain)
    refuse(fmt::format("its pickle has an opcode {:#04x}, which plain lists and dictionaries do not need",
                       opcode),
           "offprof runs no code of a file.");
  switch (opcode) {
    case kProto:
      take(1);
      return;
    case kFrame:
      take(sizeof(std::uint64_t));
      return;
    case kPop:
      pop();
      return;
    case kGlobal: {
      const std::string_view module = line();
      return make_global(module, line());
    }
    case kStackGlobal: {
      const Items names = pop_items(2);
      return make_global(argument(names, 0, Kind::kText).text, argument(names, 1, Kind::kText).text);
    }
    case kNewObj:
      return new_object();
    case kReduce:
      return reduce();
    case kBinPersId:
      return persistent_id();
    case kBuild:
      return build();
    default:
      refuse(fmt::format("its pickle has an opcode {:#04x}, which no checkpoint of tensors needs", opcode),
             kSaveHint);
  }
}

}  // namespace offprof
