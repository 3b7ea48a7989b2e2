#include "profiler/recorder/recompute_builder.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

namespace offprof {
namespace {

std::string text_of(const StorageView& view) {
  std::ostringstream text;
  text << c10::toString(view.type) << at::IntArrayRef(view.sizes) << at::IntArrayRef(view.strides)
       << view.offset << ';';
  return text.str();
}

std::string text_of(const RecomputeArgument& argument) {
  std::ostringstream text;
  text << argument.source << ':' << argument.step << ':';
  if (argument.source >= 0 || argument.step >= 0)
    text << text_of(argument.view);
  else if (argument.value.isTensor())
    text << static_cast<const void*>(argument.value.toTensor().storage().unsafeGetStorageImpl())
         << text_of(view_of(argument.value.toTensor()));
  else
    text << argument.value;
  return text.str();
}

}  // namespace

std::string text_of_steps(const FoundRecomputation& found) {
  std::ostringstream text;
  text << found.own_save << ' ';
  for (const RecomputeStep& step : found.executable.steps) {
    text << step.op.operator_name() << step.output << text_of(step.view);
    for (const RecomputeArgument& argument : step.arguments) text << text_of(argument);
    if (step.draw) text << "draw " << *step.draw;
  }
  return text.str();
}

RecomputeBuilder::RecomputeBuilder(SavedId tensor, SourceOf source_of) : source_of_(std::move(source_of)) {
  found_.recomputation.tensor = tensor;
}

std::optional<FoundRecomputation> RecomputeBuilder::build(const NotedResult& result) {
  if (step_of(result) < 0 || !changes_only_its_own()) return std::nullopt;
  found_.recomputation.op = found_.executable.name();
  found_.own_save = result.own_save;
  return std::move(found_);
}

/// Returns the number of the step that computes the result; -1: it cannot be recomputed.
std::int32_t RecomputeBuilder::step_of(const NotedResult& result) {
  if (const auto known = steps_.find(&result); known != steps_.end()) return known->second;
  if (++begun_ > kMostRecomputeSteps) return -1;
  RecomputeStep step = {result.call->op, {}, result.output, result.view, result.call->draw};
  for (const NotedArgument& argument : result.call->arguments) {
    auto taken = argument_for(argument);
    if (!taken) return -1;
    step.arguments.push_back(std::move(*taken));
  }
  if (result.call->changes_first) changed_.push_back(step.arguments.front().step);
  found_.executable.steps.push_back(std::move(step));
  return steps_[&result] = static_cast<std::int32_t>(found_.executable.steps.size()) - 1;
}

std::optional<RecomputeArgument> RecomputeBuilder::argument_for(const NotedArgument& argument) {
  RecomputeArgument taken = {argument.value, -1, -1, argument.view};
  if (argument.allocation == 0) return taken;
  if (argument.is_resident && !argument.is_own)
    return argument.content.is_unchanged() ? std::optional(taken) : std::nullopt;
  taken.value = c10::IValue();
  if (!argument.is_own) taken.source = source_of_(argument);
  if (taken.source >= 0) {
    auto& sources = found_.recomputation.sources;
    if (std::ranges::find(sources, taken.source) == sources.end()) sources.push_back(taken.source);
    return taken;
  }
  if (argument.made_by != nullptr) taken.step = step_of(*argument.made_by);
  return taken.step >= 0 ? std::optional(taken) : std::nullopt;
}

/// Returns true if each result that a later step changes is used by that step alone.
bool RecomputeBuilder::changes_only_its_own() const {
  return std::ranges::all_of(changed_, [&](std::int32_t changed) {
    std::ptrdiff_t users = 0;
    for (const RecomputeStep& step : found_.executable.steps)
      users += std::ranges::count(step.arguments, changed, &RecomputeArgument::step);
    return users == 1;
  });
}

}  // namespace offprof
