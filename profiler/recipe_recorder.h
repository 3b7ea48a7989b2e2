#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/offload_step.h"
#include "engine/random_draws.h"
#include "engine/remake.h"
#include "profiler/operator_notes.h"
#include "traces/program.h"
#include "traces/recipe.h"

namespace offprof {

/// More operators in a recipe than so many are not worth it.
inline constexpr std::size_t kLongestRecipe = 8;

/// A recipe that was found in a step, and tried.
struct FoundRecipe {
  Recipe recipe;
  ExecutableRecipe executable;
};

/// Finds out in a step of which nothing is offloaded how its saved contents could be made again: it notes
/// what operators take and give, and, when backward asks for the first saved tensor, runs those that made a
/// saved content once more on the contents as they were saved. What comes of it must be the content to the
/// bit (on a device without values: as large and laid out alike).
///
/// There is no recipe for what was made by an operator that is not deterministic, nor draws its random
/// numbers from a default generator (remakeable_ops.h, random_draws.h), or by more than kLongestRecipe of
/// them; nor where one takes what is neither made so nor held anyway: a saved content, saved before, or a
/// parameter, buffer or input of the step, none of them changed in place by then.
///
/// Listens from its construction on the thread that made it; one at a time in the process.
class RecipeRecorder final : public StepListener {
 public:
  /// `residents`: of the step. Both must outlive it.
  RecipeRecorder(Device& device, const Residents& residents) : device_(device), notes_(device, residents) {}

  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override;
  void on_unpack(SavedId tensor) override;

  /// In the order of their tensors; once, after the step.
  std::vector<FoundRecipe> take() { return std::move(found_); }
  /// Whether what the step saved is what the program saves.
  bool saw(const Program& program) const;

 private:
  struct Saved {
    PackRequest request;
    WatchedContent content{};
    at::Tensor value;                   ///< until backward begins
    std::size_t digest = 0;             ///< of the bytes as they were saved, of the first of a content
    std::optional<bool> is_as_saved{};  ///< the bytes in backward, once somebody has asked
  };

  void find();
  void try_recipe(SavedId tensor, const std::shared_ptr<const std::vector<Draw>>& draws);
  bool is_first_of_content(SavedId tensor) const;
  std::size_t digest_of(const at::Tensor& value) const;
  SavedId first_of_content(AllocationId allocation, const WatchedContent& content) const;
  bool is_as_saved(SavedId tensor);
  SavedId source_of(const NotedArgument& argument, SavedId before);
  bool proves(FoundRecipe& found) const;
  bool has_content_of(const at::Tensor& made, SavedId tensor) const;

  Device& device_;
  bool is_forward_ = true;
  OperatorNotes notes_;
  std::vector<Saved> saved_;
  std::map<AllocationId, std::vector<SavedId>> saved_of_;
  std::vector<FoundRecipe> found_;
};

/// Recipes that two steps of the program agree on but for times; nobody knows what others would make of a
/// third.
std::vector<FoundRecipe> agreed(std::vector<FoundRecipe> first, const std::vector<FoundRecipe>& second);

}  // namespace offprof
