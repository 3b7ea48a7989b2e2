#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tensors/files/checkpoint_pickle.h"

namespace offprof {

/// A value of a pickle. Values refer to each other by id, so a pickle may build cycles.
struct PickleValue {
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t {
    kOther,  ///< None, a boolean, a float, bytes, a device: not used here
    kInteger,
    kText,
    kTuple,
    kList,
    kDict,    ///< `items` are alternating keys and values
    kGlobal,  ///< name of a class, a function or a dtype: `module.name`
    kStorage,
    kTensor,
    kObject,  ///< an object of a TorchScript class; `items` is its state, once it is set
  };

  Kind kind = Kind::kOther;
  std::int64_t integer = 0;  ///< of a tensor: its index in PickleMachine::tensors()
  std::string text{};        ///< of a storage: its key
  std::vector<Id> items{};   ///< of a storage: its class, a kGlobal
};

/// Kind of pickle: a dictionary of torch.save; a TorchScript module, whose pickle may also make objects of
/// the module's own classes; or plain dictionaries, lists, numbers and texts without any class.
enum class PickleContent { kDictionary, kModule, kPlain };

/// Python's pickle machine without its dangerous parts: see read_checkpoint_pickle.
class PickleMachine {
 public:
  using Id = PickleValue::Id;
  using Kind = PickleValue::Kind;

  PickleMachine(std::string_view pickle, PickleContent content, const std::string& name)
      : rest_(pickle), content_(content), name_(name) {}

  /// Returns the value that the pickle builds.
  Id run();

  const PickleValue& value(Id id) const { return values_[id]; }
  const std::vector<PickledTensor>& tensors() const { return tensors_; }
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const;

 private:
  /// Maximum length of the name of a class or of a storage's key.
  static constexpr std::size_t kLongestName = 1000;
  static constexpr const char* kSaveHint =
      "Save a dictionary of tensors, torch.save(model.state_dict(), 'model.pt'), or a safetensors file.";

  using Items = std::vector<Id>;

  // Reading the pickle's bytes.
  std::string_view take(std::size_t bytes);
  template <typename Number>
  Number number();
  std::string_view line();

  // Groups of opcodes. Return false if the opcode is not in the group.
  bool scalar(unsigned char opcode);
  bool text(unsigned char opcode);
  bool container(unsigned char opcode);
  bool memo(unsigned char opcode);
  void call(unsigned char opcode);

  // The stack.
  Id pop();
  Items pop_to_mark();
  Items pop_items(std::size_t count);
  PickleValue& top(Kind kind);
  void push(Id id) { stack_.push_back(id); }
  void make(PickleValue value);
  void make_integer(std::int64_t integer) { make({.kind = Kind::kInteger, .integer = integer}); }
  void make_text(std::string_view text) { make({.kind = Kind::kText, .text = std::string(text)}); }
  void make_global(std::string_view module, std::string_view name);
  void put_items(const Items& items);
  std::int64_t long_integer(std::string_view bytes) const;

  // Allowed calls.
  void reduce();
  void persistent_id();
  void new_object();
  void build();
  bool is_module_class(std::string_view name) const;
  [[noreturn]] void refuse_call(const std::string& callee) const;
  bool rebuild(const std::string& callee, const Items& arguments);
  void rebuild_tensor(const Items& arguments, bool has_dtype);
  std::vector<std::int64_t> integers(Id id) const;
  const PickleValue& argument(const Items& arguments, std::size_t index, Kind kind) const;
  std::string dtype_of(const PickleValue& storage) const;

  std::string_view rest_;
  PickleContent content_;
  const std::string& name_;
  std::deque<PickleValue> values_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Id> memo_;
  std::vector<PickledTensor> tensors_;
};

}  // namespace offprof
