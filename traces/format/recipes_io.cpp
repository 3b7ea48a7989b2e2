#include "traces/format/recipes_io.h"

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

class RecipeReader {
 public:
  explicit RecipeReader(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.saved.size(); ++i)
      first_of_.try_emplace(content_of(static_cast<std::int32_t>(i)), static_cast<std::int32_t>(i));
  }

  std::vector<Recipe> read(const JsonValue& json) {
    std::vector<Recipe> recipes;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const JsonValue element = json.element(i);
      Recipe recipe = recipe_from_json(element);
      if (!recipes.empty() && recipe.tensor <= recipes.back().tensor)
        element.fail("is not behind the recipe before it");
      if (first_of_.at(content_of(recipe.tensor)) != recipe.tensor)
        element.fail(
            fmt::format("makes saved tensor {}, which is not the first of its content", recipe.tensor));
      recipes.push_back(std::move(recipe));
    }
    return recipes;
  }

 private:
  std::pair<std::int32_t, std::uint32_t> content_of(std::int32_t tensor) const {
    return {program_.saved[tensor].storage, program_.saved[tensor].version};
  }

  Recipe recipe_from_json(const JsonValue& json) const {
    Recipe recipe;
    const auto last = static_cast<std::int64_t>(program_.saved.size()) - 1;
    if (last < 0) json.fail("is of a program that saves no tensor");
    recipe.tensor = static_cast<std::int32_t>(json.at("tensor").as_integer(0, last));
    const SavedTensor& saved = program_.saved[recipe.tensor];
    if (saved.movability != Movability::kMovable || saved.storage < 0)
      json.fail(fmt::format("makes saved tensor {}, which may not move", recipe.tensor));
    recipe.op = json.at("op").as_string();
    const JsonValue sources = json.at("sources");
    for (std::size_t i = 0; i < sources.size(); ++i)
      recipe.sources.push_back(source_from_json(sources.element(i), recipe));
    recipe.use = use_from_json(json.at("use"));
    if (result_bytes(recipe.use) != program_.storages[saved.storage].bytes)
      json.fail(fmt::format("makes {} bytes of a storage of {}", result_bytes(recipe.use),
                            program_.storages[saved.storage].bytes));
    return recipe;
  }

  std::int32_t source_from_json(const JsonValue& json, const Recipe& recipe) const {
    const auto source = static_cast<std::int32_t>(json.as_integer(0, recipe.tensor - 1));
    if (content_of(source) == content_of(recipe.tensor)) json.fail("is of the content that is made");
    if (std::ranges::find(recipe.sources, source) != recipe.sources.end())
      json.fail("names a source for the second time");
    return source;
  }

  const Program& program_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::int32_t> first_of_;  ///< first tensor by content
};

}  // namespace

nlohmann::ordered_json recipes_to_json(const std::vector<Recipe>& recipes) {
  auto json = nlohmann::ordered_json::array();
  for (const Recipe& recipe : recipes)
    json.push_back({{"tensor", recipe.tensor},
                    {"op", recipe.op},
                    {"sources", recipe.sources},
                    {"use", use_to_json(recipe.use)}});
  return json;
}

std::vector<Recipe> recipes_from_json(const JsonValue& json, const Program& program) {
  return RecipeReader(program).read(json);
}

}  // namespace offprof
