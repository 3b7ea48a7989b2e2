#pragma once

#include <ATen/record_function.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/offload_step.h"
#include "engine/remake.h"
#include "traces/program.h"
#include "traces/recipe.h"

namespace offprof {

/// A recipe that was found in a step, and tried.
struct FoundRecipe {
  Recipe recipe;
  ExecutableRecipe executable;
};

/// Finds out in a step of which nothing is offloaded how its saved contents could be made again: it notes
/// what operators take and give, and, when backward asks for the first saved tensor, runs each that gave a
/// saved content once more on the contents as they were saved. What comes of it must be the content to the
/// bit (on a device without values: as large and laid out alike).
///
/// There is no recipe for what an operator made that is not deterministic (remakeable_ops.h), that changes or
/// returns what it is given, or takes what is not held anyway: a saved content, saved before, or a parameter,
/// buffer or input of the step; nor where anything of it was changed in place by then.
///
/// Listens from its construction on the thread that made it; one at a time in the process.
class RecipeRecorder final : public StepListener {
 public:
  /// `residents`: of the step. Both must outlive it.
  RecipeRecorder(Device& device, const Residents& residents);
  ~RecipeRecorder() override;
  RecipeRecorder(const RecipeRecorder&) = delete;
  RecipeRecorder& operator=(const RecipeRecorder&) = delete;

  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override;
  void on_unpack(SavedId tensor) override;

  /// In the order of their tensors; once, after the step.
  std::vector<FoundRecipe> take() { return std::move(found_); }
  /// Whether what the step saved is what the program saves.
  bool saw(const Program& program) const;

 private:
  /// One argument of an operator that may be a tensor: its content and how it views its storage.
  struct Argument {
    c10::IValue value{};  ///< no tensor, or a resident
    AllocationId allocation = 0;
    WatchedContent content{};
    StorageView view{};
  };
  struct Call;
  /// What gave an allocation the content that the operator left in it.
  struct Producer {
    std::shared_ptr<const Call> call;
    std::size_t output = 0;
    WatchedContent content{};
    StorageView view{};
  };
  struct Saved {
    PackRequest request;
    WatchedContent content{};
    at::Tensor value;  ///< until backward begins
  };

  static std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op);
  static void op_ends(const at::RecordFunction& op, at::ObserverContext* context);
  std::shared_ptr<Call> begin(const at::RecordFunction& op) const;
  bool add_argument(Call& call, const c10::IValue& value) const;
  bool add_tensor(Call& call, const at::Tensor& value) const;
  void end(const std::shared_ptr<Call>& call, c10::ArrayRef<c10::IValue> outputs);

  void find();
  void try_recipe(SavedId tensor);
  bool is_first_of_content(SavedId tensor) const;
  bool find_sources(const Call& call, SavedId tensor, FoundRecipe& found) const;
  SavedId source_of(const Argument& argument, SavedId before) const;
  bool proves(FoundRecipe& found) const;
  bool has_content_of(const at::Tensor& made, SavedId tensor) const;

  Device& device_;
  const Residents& residents_;
  AllocationId first_allocation_;
  at::CallbackHandle callback_;
  bool is_forward_ = true;
  std::map<AllocationId, Producer> producers_;
  std::vector<Saved> saved_;
  std::map<AllocationId, std::vector<SavedId>> saved_of_;
  std::vector<FoundRecipe> found_;
};

/// Recipes that two steps of the program agree on but for times; nobody knows what others would make of a
/// third.
std::vector<FoundRecipe> agreed(std::vector<FoundRecipe> first, const std::vector<FoundRecipe>& second);

}  // namespace offprof
