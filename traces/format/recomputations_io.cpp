#include "traces/format/recomputations_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "traces/format/transforms_io.h"

namespace offprof {
namespace {

/// Returns the bytes of the allocations that are not freed.
Bytes result_bytes(const TransformUse& use) {
  Bytes left = 0;
  std::vector<Bytes> allocated;
  for (const TransformMemory& step : use.memory) {
    left += step.bytes > 0 ? step.bytes : -allocated[step.freed];
    if (step.bytes > 0) allocated.push_back(step.bytes);
  }
  return left;
}

class RecomputeReader {
 public:
  explicit RecomputeReader(const StepProgram& program) : program_(program) {
    for (std::size_t i = 0; i < program.saved.size(); ++i)
      first_of_.try_emplace(content_of(static_cast<std::int32_t>(i)), static_cast<std::int32_t>(i));
  }

  std::vector<Recomputation> read(const JsonValue& json) {
    std::vector<Recomputation> recomputations;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const JsonValue element = json.element(i);
      Recomputation recomputation = recomputation_from_json(element);
      if (!recomputations.empty() && recomputation.tensor <= recomputations.back().tensor)
        element.fail("is not sorted after the previous recomputation");
      if (first_of_.at(content_of(recomputation.tensor)) != recomputation.tensor)
        element.fail(fmt::format("recomputes saved tensor {}, which is not the first with its content",
                                 recomputation.tensor));
      recomputations.push_back(std::move(recomputation));
    }
    return recomputations;
  }

 private:
  std::pair<std::int32_t, std::uint32_t> content_of(std::int32_t tensor) const {
    return {program_.saved[tensor].storage, program_.saved[tensor].version};
  }

  Recomputation recomputation_from_json(const JsonValue& json) const {
    Recomputation recomputation;
    const auto last = static_cast<std::int64_t>(program_.saved.size()) - 1;
    if (last < 0) json.fail("belongs to a step program that saves no tensor");
    recomputation.tensor = static_cast<std::int32_t>(json.at("tensor").as_integer(0, last));
    const SavedTensor& saved = program_.saved[recomputation.tensor];
    if (saved.movability != Movability::kMovable || saved.storage < 0)
      json.fail(fmt::format("recomputes saved tensor {}, which cannot be offloaded", recomputation.tensor));
    recomputation.op = json.at("op").as_string();
    const JsonValue sources = json.at("sources");
    for (std::size_t i = 0; i < sources.size(); ++i)
      recomputation.sources.push_back(source_from_json(sources.element(i), recomputation));
    recomputation.use = use_from_json(json.at("use"));
    if (result_bytes(recomputation.use) != program_.storages[saved.storage].bytes)
      json.fail(fmt::format("produces {} bytes for a storage of {}", result_bytes(recomputation.use),
                            program_.storages[saved.storage].bytes));
    return recomputation;
  }

  std::int32_t source_from_json(const JsonValue& json, const Recomputation& recomputation) const {
    const auto source = static_cast<std::int32_t>(json.as_integer(0, recomputation.tensor - 1));
    if (content_of(source) == content_of(recomputation.tensor))
      json.fail("has the content that is recomputed");
    if (std::ranges::find(recomputation.sources, source) != recomputation.sources.end())
      json.fail("names a source for the second time");
    return source;
  }

  const StepProgram& program_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::int32_t> first_of_;  ///< first tensor by content
};

}  // namespace

nlohmann::ordered_json recomputations_to_json(const std::vector<Recomputation>& recomputations) {
  auto json = nlohmann::ordered_json::array();
  for (const Recomputation& recomputation : recomputations)
    json.push_back({{"tensor", recomputation.tensor},
                    {"op", recomputation.op},
                    {"sources", recomputation.sources},
                    {"use", use_to_json(recomputation.use)}});
  return json;
}

std::vector<Recomputation> recomputations_from_json(const JsonValue& json, const StepProgram& program) {
  return RecomputeReader(program).read(json);
}

}  // namespace offprof
