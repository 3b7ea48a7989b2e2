#include "simulator/other_engines/policy_use.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

class PlaceNotes final : public ReplayListener {
 public:
  explicit PlaceNotes(std::vector<Place>& places) : places_(places) {}
  void on_placement(SavedId tensor, const PackDecision& decision) override {
    places_[tensor] = decision.place;
  }

 private:
  std::vector<Place>& places_;
};

/// Returns the path of the module that saved the tensor; empty: the model itself, or not known.
std::string module_of(const StepProgram& program, const SavedTensor& saved) {
  return saved.module < 0 ? std::string() : program.names[saved.module];
}

}  // namespace

PolicyUse::PolicyUse(const StepProgram& program, const Step& step, const Policy& policy)
    : program_(program), places_(program.saved.size(), Place::kDevice) {
  PlaceNotes notes(places_);
  replay(step, policy, kAnyLink, &notes);
  for (std::size_t i = 0; i < places_.size(); ++i) note(static_cast<SavedId>(i), places_[i]);
}

void PolicyUse::note(SavedId tensor, Place place) {
  const SavedTensor& saved = program_.saved[tensor];
  const std::string module = module_of(program_, saved);
  if (place == Place::kRecompute) {
    recomputing_.insert(module);
    if (!program_.recomputations) return;
    for (const Recomputation& recomputation : *program_.recomputations) {
      const SavedTensor& first = program_.saved[recomputation.tensor];
      if (first.storage != saved.storage || first.version != saved.version) continue;
      std::istringstream ops(recomputation.op);
      for (std::string op; std::getline(ops >> std::ws, op, ',');) recomputed_ops_.insert(op);
    }
    return;
  }
  if (place == Place::kDevice) return;
  moving_.insert(module);
  smallest_moved_bytes_ = std::min(smallest_moved_bytes_.value_or(saved.bytes), saved.bytes);
}

std::set<std::string> PolicyUse::keeping_modules(Bytes min_bytes) const {
  std::set<std::string> keeping;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const SavedTensor& saved = program_.saved[i];
    if (places_[i] != Place::kDevice || saved.movability != Movability::kMovable || saved.bytes < min_bytes)
      continue;
    keeping.insert(module_of(program_, saved));
  }
  for (const std::string& module : moving_) keeping.erase(module);
  keeping.erase("");
  return keeping;
}

std::set<std::string> saving_modules(const StepProgram& program) {
  std::set<std::string> modules;
  for (const SavedTensor& saved : program.saved) modules.insert(module_of(program, saved));
  modules.erase("");
  return modules;
}

std::set<std::string> checkpointed_modules(const StepProgram& program) {
  std::set<std::string> modules;
  for (const SavedTensor& saved : program.saved) {
    const std::string& op = program.names[saved.op];
    if (op == kCheckpointOp || op == kTorchCheckpointOp) modules.insert(module_of(program, saved));
  }
  modules.erase("");
  return modules;
}

std::string main_dtype(const StepProgram& program) {
  std::map<std::string, Bytes> bytes;
  for (const SavedTensor& saved : program.saved) bytes[saved.layout->dtype] += saved.bytes;
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return most == bytes.end() ? std::string() : most->first;
}

}  // namespace offprof
