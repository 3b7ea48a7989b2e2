#include "engine/checkpointing/checkpointed_modules.h"

#include <ATen/core/builtin_function.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/checkpointing/autocast_use.h"
#include "engine/checkpointing/checkpointed_call.h"
#include "engine/checkpointing/module_path.h"
#include "engine/checkpointing/written_attributes.h"

namespace offprof {
namespace {

using torch::jit::Module;
using torch::jit::Stack;

constexpr const char* kForward = "forward";
constexpr const char* kTakeAnother =
    "remove it from --checkpoint, or choose a submodule that contains it, or a submodule inside it";
/// Number of paths that an error names.
constexpr std::size_t kPathsNamed = 12;
constexpr const char* kKeepModules =
    "export the model with its submodules: torch.jit.trace or torch.jit.script, without torch.jit.freeze and "
    "without inlining";

struct Submodule {
  std::string path;
  Module module;
};

/// Adds the submodules of all depths, parents first.
void add_submodules(const Module& module, const std::string& path, std::vector<Submodule>& found) {
  for (const auto& child : module.named_children()) {
    const std::string child_path = path.empty() ? child.name : path + "." + child.name;
    found.push_back({child_path, child.value});
    add_submodules(child.value, child_path, found);
  }
}

std::vector<Submodule> submodules_of(const Module& model) {
  std::vector<Submodule> found;
  add_submodules(model, {}, found);
  return found;
}

bool can_be_checkpointed(const Submodule& submodule) {
  return submodule.module.find_method(kForward).has_value();
}

bool is_inside(const std::string& path, const std::string& outer) {
  return path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.';
}

Error matches_nothing(const std::string& pattern, const std::vector<Submodule>& submodules) {
  std::string paths;
  std::size_t named = 0;
  for (const Submodule& submodule : submodules) {
    if (!can_be_checkpointed(submodule)) continue;
    if (named++ == kPathsNamed) break;
    paths += (paths.empty() ? "" : ", ") + submodule.path;
  }
  if (named == 0)
    return input_error("checkpoint: the model calls no submodules, so no module can be checkpointed",
                       kKeepModules);
  return input_error(fmt::format("checkpoint: '{}' matches no submodule of the model", pattern),
                     fmt::format("its submodules are {}{}", paths, named > kPathsNamed ? ", ..." : ""));
}

}  // namespace

std::vector<std::string> checkpointed_paths(const Module& model, const std::vector<std::string>& patterns) {
  const std::vector<Submodule> submodules = submodules_of(model);
  std::vector<std::string> matched;
  for (const std::string& pattern : patterns) {
    const std::size_t before = matched.size();
    for (const Submodule& submodule : submodules)
      if (can_be_checkpointed(submodule) &&
          fnmatch(pattern.c_str(), submodule.path.c_str(), FNM_NOESCAPE) == 0)
        matched.push_back(submodule.path);
    if (matched.size() == before) throw matches_nothing(pattern, submodules);
  }
  std::vector<std::string> outermost;
  for (const Submodule& submodule : submodules) {
    const auto holds = [&](const std::string& outer) { return is_inside(submodule.path, outer); };
    if (std::ranges::find(matched, submodule.path) != matched.end() && std::ranges::none_of(matched, holds))
      outermost.push_back(submodule.path);
  }
  return outermost;
}

/// Replacement of a class's forward. A class may serve several submodules, checkpointed or not.
class CheckpointedModules::Replacement {
 public:
  Replacement(State& state, c10::ClassTypePtr type)
      : state_(state),
        type_(std::move(type)),
        forward_(type_->getMethod(kForward)),
        written_(written_attributes(forward_, *type_)) {}

  const c10::ClassTypePtr& type() const { return type_; }

  void add(const Submodule& submodule, bool is_checkpointed, c10::Device device) {
    Instance& instance = instances_[submodule.module._ivalue().get()];
    if (instance.is_checkpointed) return;  // one submodule may have several paths
    instance = {{submodule.path, submodule.path, submodule.path, kTakeAnother, &forward_, written_, device},
                is_checkpointed};
  }

  /// LibTorch inlines a forward only if it has TorchScript code. This function has none, so its calls stay
  /// calls.
  void install() {
    const c10::QualifiedName own("offprof_segments." + type_->name()->qualifiedName());
    function_ = std::make_unique<torch::jit::BuiltinOpFunction>(
        c10::QualifiedName(own, kForward), forward_.getSchema(), [this](Stack& stack) { call(stack); });
    type_->unsafeRemoveMethod(kForward);
    type_->addMethod(function_.get());
  }

  void remove() {
    type_->unsafeRemoveMethod(kForward);
    type_->addMethod(&forward_);
  }

 private:
  struct Instance {
    CheckpointedModule module;
    bool is_checkpointed = false;
  };

  void call(Stack& stack) const;
  c10::IValue call(const Instance& instance, std::vector<c10::IValue> arguments) const;

  State& state_;
  c10::ClassTypePtr type_;
  torch::jit::Function& forward_;
  std::vector<AttributePath> written_;
  std::unordered_map<const c10::ivalue::Object*, Instance> instances_;
  std::unique_ptr<torch::jit::BuiltinOpFunction> function_;
};

/// State shared by the replaced forwards. A graph that one of them built holds it.
struct CheckpointedModules::State : std::enable_shared_from_this<State> {
  std::atomic<int> off = 0;
  std::mutex mutex;
  std::set<std::string> called;  ///< paths
  std::optional<Error> refusal;
  std::vector<std::unique_ptr<Replacement>> replacements;

  Replacement* of(const Submodule& submodule) const {
    const auto found = std::ranges::find(
        replacements, submodule.module.type(),
        [](const std::unique_ptr<Replacement>& replacement) { return replacement->type(); });
    return found == replacements.end() ? nullptr : found->get();
  }

  void note_call(const std::string& path) {
    const std::lock_guard turn(mutex);
    called.insert(path);
  }
  void note_refusal(const Error& error) {
    const std::lock_guard turn(mutex);
    refusal = error;
  }
};

void CheckpointedModules::Replacement::call(Stack& stack) const {
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(forward_.num_inputs());
  std::vector<c10::IValue> arguments(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  const Instance& instance = instances_.at(&arguments.front().toObjectRef());
  stack.push_back(call(instance, std::move(arguments)));
}

c10::IValue CheckpointedModules::Replacement::call(const Instance& instance,
                                                   std::vector<c10::IValue> arguments) const {
  const bool is_part = CheckpointedCall::is_running() || state_.off > 0 || !at::GradMode::is_enabled();
  if (!instance.is_checkpointed || is_part) {
    const ModulePathScope path(instance.module.path, /*is_running=*/true);
    forward_.run(arguments);
    return std::move(arguments.front());
  }
  state_.note_call(instance.module.path);
  try {
    const std::shared_ptr<const CheckpointedModule> module(state_.shared_from_this(), &instance.module);
    return std::make_shared<CheckpointedCall>(module)->first_run(std::move(arguments));
  } catch (const Error& error) {
    state_.note_refusal(error);
    throw;
  }
}

CheckpointedModules::CheckpointedModules(Module& model, const std::vector<std::string>& patterns,
                                         c10::Device device)
    : paths_(checkpointed_paths(model, patterns)), state_(std::make_shared<State>()) {
  refuse_autocast(model, "checkpoint");
  const std::vector<Submodule> submodules = submodules_of(model);
  const auto is_checkpointed = [&](const Submodule& submodule) {
    return std::ranges::find(paths_, submodule.path) != paths_.end();
  };
  // Analyse all classes before one is replaced: the code of a replaced forward cannot be read.
  for (const Submodule& submodule : submodules)
    if (is_checkpointed(submodule) && state_->of(submodule) == nullptr)
      state_->replacements.push_back(std::make_unique<Replacement>(*state_, submodule.module.type()));
  for (const Submodule& submodule : submodules)
    if (Replacement* replacement = state_->of(submodule))
      replacement->add(submodule, is_checkpointed(submodule), device);
  for (const auto& replacement : state_->replacements) replacement->install();
}

CheckpointedModules::~CheckpointedModules() {
  for (const auto& replacement : state_->replacements) replacement->remove();
}

std::vector<std::string> CheckpointedModules::uncalled() const {
  const std::lock_guard turn(state_->mutex);
  std::vector<std::string> paths;
  for (const std::string& path : paths_)
    if (!state_->called.contains(path)) paths.push_back(path);
  return paths;
}

std::optional<Error> CheckpointedModules::take_refusal() {
  const std::lock_guard turn(state_->mutex);
  return std::exchange(state_->refusal, std::nullopt);
}

CheckpointedModules::Off::Off(CheckpointedModules& checkpointed) : checkpointed_(checkpointed) {
  ++checkpointed_.state_->off;
}

CheckpointedModules::Off::~Off() {
  --checkpointed_.state_->off;
}

}  // namespace offprof
