#include "engine/tensors/files/checkpoint_pickle.h"

#include <fmt/format.h>

#include <utility>

#include "engine/tensors/files/pickle_machine.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// Maximum nesting; the names of a model's parts have far fewer levels.
constexpr int kMostLevels = 100;
/// Limits on the result: a pickle can refer to a value repeatedly, so a few bytes can expand without end.
constexpr std::size_t kMostNamed = 4'000'000;
constexpr std::size_t kMostNameBytes = std::size_t{64} << 20;
constexpr std::size_t kMostTensors = 1'000'000;

class Names {
 public:
  explicit Names(const PickleMachine& machine) : machine_(machine) {}

  void collect(PickleValue::Id id, const std::string& name, int level) {
    name_bytes_ += name.size();
    if (level > kMostLevels || ++named_ > kMostNamed || name_bytes_ > kMostNameBytes)
      machine_.refuse("its dictionaries are nested too deeply");
    const PickleValue& value = machine_.value(id);
    if (value.kind == PickleValue::Kind::kTensor) return add(value, name);
    if (value.kind == PickleValue::Kind::kDict) return collect_members(value, name, level);
    if (value.kind == PickleValue::Kind::kObject) {
      for (const PickleValue::Id state : value.items) collect(state, name, level + 1);
      return;
    }
    if (value.kind != PickleValue::Kind::kList && value.kind != PickleValue::Kind::kTuple) return;
    for (std::size_t i = 0; i < value.items.size(); ++i)
      collect(value.items[i], joined(name, std::to_string(i)), level + 1);
  }

  PickledTensors take() { return std::move(tensors_); }

 private:
  static std::string joined(const std::string& name, const std::string& key) {
    return name.empty() ? key : name + "." + key;
  }

  void collect_members(const PickleValue& dict, const std::string& name, int level) {
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
      collect(dict.items[i + 1], joined(name, key_text(machine_.value(dict.items[i]))), level + 1);
  }

  std::string key_text(const PickleValue& key) const {
    if (key.kind == PickleValue::Kind::kInteger) return std::to_string(key.integer);
    return key.kind == PickleValue::Kind::kText ? printable(key.text) : "?";
  }

  void add(const PickleValue& value, const std::string& name) {
    if (tensors_.size() == kMostTensors) machine_.refuse("has too many tensors for a checkpoint");
    const auto& tensor = machine_.tensors()[static_cast<std::size_t>(value.integer)];
    if (!tensors_.emplace(name, tensor).second)
      machine_.refuse(fmt::format("two tensors are named '{}'", name), "Rename one of them.");
  }

  const PickleMachine& machine_;
  PickledTensors tensors_;
  std::size_t named_ = 0;
  std::size_t name_bytes_ = 0;
};

PickledTensors read_pickle(std::string_view pickle, PickleContent content, const std::string& name) {
  PickleMachine machine(pickle, content, name);
  if (pickle.size() > kMostPickleBytes) machine.refuse("its pickle is too long for a checkpoint");
  const PickleValue::Id root = machine.run();
  const bool is_module = content == PickleContent::kModule;
  if (machine.value(root).kind != (is_module ? PickleValue::Kind::kObject : PickleValue::Kind::kDict))
    machine.refuse(is_module ? "holds something other than a module"
                             : "holds something other than a dictionary of tensors",
                   is_module ? "" : "Write one with torch.save(model.state_dict(), 'model.pt').");
  Names names(machine);
  names.collect(root, "", 0);
  return names.take();
}

}  // namespace

PickledTensors read_checkpoint_pickle(std::string_view pickle, const std::string& name) {
  return read_pickle(pickle, PickleContent::kDictionary, name);
}

PickledTensors read_module_pickle(std::string_view pickle, const std::string& name) {
  return read_pickle(pickle, PickleContent::kModule, name);
}

}  // namespace offprof
