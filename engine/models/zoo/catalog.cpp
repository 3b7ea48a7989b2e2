#include "engine/models/zoo/catalog.h"

#include <algorithm>

#include "engine/models/zoo/models.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

template <typename Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

template <typename Named>
const Named* find_named(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// Returns the error for an unknown name. With `what` = `model`: "unknown model 'mpl'; choose from mlp, ..."
// with the hint "Did you mean `mlp`?".
Error unknown_name(const std::string& what, const std::string& typed, const std::vector<std::string>& names) {
  return input_error("unknown " + what + " '" + typed + "'; choose from " + joined(names),
                     did_you_mean(typed, names));
}

void require_in_range(const ZooModel& model, const ZooSize& size, std::int64_t value) {
  if (value >= size.min && value <= size.max) return;
  throw input_error("size '" + size.name + "' of the zoo model '" + model.name + "' is " +
                        std::to_string(value) + "; it must be from " + std::to_string(size.min) + " to " +
                        std::to_string(size.max),
                    size.name + ": " + size.what + " (default " + std::to_string(size.value) + ")");
}

}  // namespace

const std::vector<ZooEntry>& zoo_entries() {
  static const std::vector<ZooEntry> entries{transformer_entry(), llama_entry(),  moe_entry(), lstm_entry(),
                                             mlp_entry(),         resnet_entry(), unet_entry()};
  return entries;
}

const std::vector<ZooModel>& zoo_models() {
  static const std::vector<ZooModel> models = [] {
    std::vector<ZooModel> described;
    for (const ZooEntry& entry : zoo_entries()) described.push_back(entry.model);
    return described;
  }();
  return models;
}

const ZooModel& find_zoo_model(const std::string& name) {
  const ZooModel* model = find_named(zoo_models(), name);
  if (model == nullptr) throw unknown_name("zoo model", name, names_of(zoo_models()));
  return *model;
}

const std::map<std::string, std::int64_t>& zoo_preset_sizes(const ZooModel& model,
                                                            const std::string& preset) {
  if (model.presets.empty()) {
    throw input_error("the zoo model '" + model.name + "' has no presets",
                      "set its sizes one by one; `offprof zoo list` shows them");
  }
  const ZooPreset* found = find_named(model.presets, preset);
  if (found == nullptr)
    throw unknown_name("preset of the zoo model '" + model.name + "':", preset, names_of(model.presets));
  return found->sizes;
}

const std::vector<std::string>& zoo_dtypes() {
  static const std::vector<std::string> dtypes{"float32", "bfloat16", "float16"};
  return dtypes;
}

void check_zoo_dtype(const std::string& dtype) {
  const std::vector<std::string>& known = zoo_dtypes();
  if (std::find(known.begin(), known.end(), dtype) == known.end()) throw unknown_name("dtype", dtype, known);
}

ZooSizes resolve_zoo_sizes(const ZooModel& model, const std::map<std::string, std::int64_t>& overrides) {
  ZooSizes sizes;
  for (const ZooSize& size : model.sizes) sizes[size.name] = size.value;
  for (const auto& [name, value] : overrides) {
    const ZooSize* size = find_named(model.sizes, name);
    if (size == nullptr) {
      throw unknown_name("size of the zoo model '" + model.name + "':", name, names_of(model.sizes));
    }
    require_in_range(model, *size, value);
    sizes[name] = value;
  }
  return sizes;
}

void require_multiple(const ZooSizes& sizes, const std::string& whole, const std::string& part) {
  const std::int64_t remainder = sizes.at(whole) % sizes.at(part);
  if (remainder == 0) return;
  const std::int64_t below = sizes.at(whole) - remainder;
  const std::int64_t nearest = below == 0 ? sizes.at(part) : below;
  throw input_error("size '" + whole + "' (" + std::to_string(sizes.at(whole)) + ") is not a multiple of '" +
                        part + "' (" + std::to_string(sizes.at(part)) + ")",
                    "for example: " + whole + " " + std::to_string(nearest));
}

ModelBlueprint draw_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes) {
  const ZooSizes resolved = resolve_zoo_sizes(find_zoo_model(name), sizes);
  const auto entry = std::find_if(zoo_entries().begin(), zoo_entries().end(),
                                  [&](const ZooEntry& one) { return one.model.name == name; });
  OFFPROF_CHECK(entry != zoo_entries().end());
  return entry->draw(resolved);
}

}  // namespace offprof
