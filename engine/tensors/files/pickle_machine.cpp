#include "engine/tensors/files/pickle_machine.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "traces/error.h"
#include "traces/printable.h"

namespace offprof {
namespace {

/// A tensor takes some twenty.
constexpr std::size_t kMostPickleValues = 4'000'000;
/// Of a class, of a storage's key.
constexpr std::size_t kLongestName = 1000;
/// at::MAX_DIMS
constexpr std::size_t kMostSizes = 64;
constexpr const char* kSaveHint =
    "Save a dictionary of tensors, torch.save(model.state_dict(), 'model.pt'), or a safetensors file.";

/// Python's opcodes (CPython, Lib/pickle.py) as far as they are taken.
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

struct StorageClass {
  std::string_view name;
  std::string_view dtype;
};

/// Of torch/storage.py, `_dtype_to_storage_type_map`, without the quantised ones.
constexpr std::array<StorageClass, 12> kStorageClasses = {{{"torch.FloatStorage", "float32"},
                                                           {"torch.DoubleStorage", "float64"},
                                                           {"torch.HalfStorage", "float16"},
                                                           {"torch.BFloat16Storage", "bfloat16"},
                                                           {"torch.LongStorage", "int64"},
                                                           {"torch.IntStorage", "int32"},
                                                           {"torch.ShortStorage", "int16"},
                                                           {"torch.CharStorage", "int8"},
                                                           {"torch.ByteStorage", "uint8"},
                                                           {"torch.BoolStorage", "bool"},
                                                           {"torch.ComplexFloatStorage", "complex64"},
                                                           {"torch.ComplexDoubleStorage", "complex128"}}};

}  // namespace

void PickleMachine::refuse(const std::string& what, const std::string& hint) const {
  throw input_error(fmt::format("{}: {}", name_, what),
                    hint.empty() ? "The file is damaged, or torch.save did not write it." : hint);
}

PickleMachine::Id PickleMachine::run() {
  for (;;) {
    const auto opcode = number<unsigned char>();
    if (opcode == kStop) return pop();
    if (!scalar(opcode) && !text(opcode) && !container(opcode) && !memo(opcode)) call(opcode);
  }
}

std::string_view PickleMachine::take(std::size_t bytes) {
  if (bytes > rest_.size()) refuse("its pickle ends in the middle");
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
  if (values_.size() == kMostPickleValues) refuse("its pickle has too many values for a checkpoint's");
  values_.push_back(std::move(value));
  push(static_cast<Id>(values_.size() - 1));
}

PickleMachine::Id PickleMachine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("its pickle takes what it has not made");
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
  if (marks_.empty()) refuse("its pickle has no mark where it needs one");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  Items items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::top(Kind kind) {
  const Id id = pop();
  push(id);
  if (values_[id].kind != kind) refuse("its pickle puts things into what is no list or dictionary");
  return values_[id];
}

/// Little-endian, in two's complement.
std::int64_t PickleMachine::long_integer(std::string_view bytes) const {
  if (bytes.size() > sizeof(std::int64_t)) refuse("its pickle has a whole number beyond 64 bits");
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
  if (module.size() + name.size() > kLongestName) refuse("its pickle names a class without end");
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
    if (found == memo_.end()) refuse("its pickle asks for what it has not kept");
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
      refuse_call(argument(pop_items(2), 0, Kind::kGlobal).text);
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

const PickleValue& PickleMachine::argument(const Items& arguments, std::size_t index, Kind kind) const {
  if (index >= arguments.size() || values_[arguments[index]].kind != kind)
    refuse("its pickle describes a tensor or a storage otherwise than torch.save does");
  return values_[arguments[index]];
}

/// What an OrderedDict has beside its members: the versions of modules.
void PickleMachine::build() {
  pop();
  if (stack_.empty() || values_[stack_.back()].kind != Kind::kDict)
    refuse("its pickle gives a state to what is no dictionary", kSaveHint);
}

/// A storage: ('storage', its class, its key, its device, its length).
void PickleMachine::persistent_id() {
  const Items tuple = {pop()};
  const Items items = argument(tuple, 0, Kind::kTuple).items;
  if (argument(items, 0, Kind::kText).text != "storage") refuse("its pickle refers to what is no storage");
  argument(items, 1, Kind::kGlobal);
  const std::string& key = argument(items, 2, Kind::kText).text;
  if (key.size() > kLongestName) refuse("its pickle names a storage without end");
  make({.kind = Kind::kStorage, .text = key, .items = {items[1]}});
}

void PickleMachine::reduce() {
  const Items items = pop_items(2);
  const std::string& callee = argument(items, 0, Kind::kGlobal).text;
  const Items& arguments = argument(items, 1, Kind::kTuple).items;
  if (rebuild(callee, arguments)) return;
  refuse_call(callee);
}

void PickleMachine::refuse_call(const std::string& callee) const {
  if (callee == "torch._utils._rebuild_qtensor")
    refuse("has a quantised tensor", "Save its int_repr() and its scale, or dequantise it.");
  if (callee.starts_with("torch._utils._rebuild_sparse"))
    refuse("has a sparse tensor", "Save its indices and values, or to_dense() it.");
  refuse(fmt::format("has a '{}', which only code could make, and none is run", printable(callee)),
         kSaveHint);
}

/// False: it is nothing that may be called.
bool PickleMachine::rebuild(const std::string& callee, const Items& arguments) {
  if (callee == "collections.OrderedDict" && arguments.empty()) return make({.kind = Kind::kDict}), true;
  if (callee == "torch._utils._rebuild_tensor" || callee == "torch._utils._rebuild_tensor_v2")
    return rebuild_tensor(arguments, false), true;
  if (callee == "torch._utils._rebuild_tensor_v3") return rebuild_tensor(arguments, true), true;
  if (callee.starts_with("torch._utils._rebuild_parameter") && !arguments.empty()) {
    argument(arguments, 0, Kind::kTensor);
    return push(arguments[0]), true;
  }
  // A list or a dictionary with its type, as LibTorch's pickle_save has them; a Size is a tuple.
  if ((callee.starts_with("torch.jit._pickle.") || callee == "torch.Size") && !arguments.empty())
    return push(arguments[0]), true;
  if (callee == "torch.device") return make({}), true;
  return false;
}

std::string PickleMachine::dtype_of(const PickleValue& storage) const {
  const std::string& name = values_[storage.items[0]].text;
  for (const StorageClass& known : kStorageClasses)
    if (known.name == name) return std::string(known.dtype);
  refuse(fmt::format("has a storage of class '{}', which this program does not know", printable(name)),
         kSaveHint);
}

/// (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] [metadata]), as in torch/_utils.py.
void PickleMachine::rebuild_tensor(const Items& arguments, bool has_dtype) {
  const PickleValue& storage = argument(arguments, 0, Kind::kStorage);
  constexpr std::string_view kModule = "torch.";
  PickledTensor tensor{.storage = storage.text, .offset = argument(arguments, 1, Kind::kInteger).integer};
  argument(arguments, 2, Kind::kTuple);
  argument(arguments, 3, Kind::kTuple);
  tensor.sizes = integers(arguments[2]);
  tensor.strides = integers(arguments[3]);
  if (tensor.sizes.size() != tensor.strides.size())
    refuse(fmt::format("a tensor has {} sizes and {} strides", tensor.sizes.size(), tensor.strides.size()));
  if (has_dtype) {
    const std::string& dtype = argument(arguments, 6, Kind::kGlobal).text;
    tensor.dtype = dtype.starts_with(kModule) ? dtype.substr(kModule.size()) : dtype;
  } else {
    tensor.dtype = dtype_of(storage);
  }
  const std::size_t metadata = has_dtype ? 7 : 6;
  if (arguments.size() > metadata && !values_[arguments[metadata]].items.empty())
    refuse("has a tensor that is a conjugate or negative view",
           "resolve_conj() and resolve_neg() it, then save it.");
  tensors_.push_back(std::move(tensor));
  make({.kind = Kind::kTensor, .integer = static_cast<std::int64_t>(tensors_.size() - 1)});
}

std::vector<std::int64_t> PickleMachine::integers(Id id) const {
  std::vector<std::int64_t> numbers;
  if (values_[id].items.size() > kMostSizes) refuse("has a tensor of more dimensions than any");
  for (std::size_t i = 0; i < values_[id].items.size(); ++i)
    numbers.push_back(argument(values_[id].items, i, Kind::kInteger).integer);
  return numbers;
}

}  // namespace offprof
