#include <utility>

#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"

namespace offprof {
namespace {

ModuleBlueprint hidden_layer(std::int64_t inputs, std::int64_t width) {
  ModuleBlueprint module{.type = "HiddenLayer"};
  module.add("linear", linear(inputs, width, rectifier_deviation(inputs)));
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.gelu(self.linear.forward(x))
)";
  return module;
}

ModelBlueprint draw_mlp(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  std::vector<ModuleBlueprint> layers;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) {
    layers.push_back(hidden_layer(i == 0 ? sizes.at("inputs") : width, width));
  }
  layers.push_back(linear(width, sizes.at("classes"), unit_deviation(width)));
  return {sequence(std::move(layers)), {float_input({sizes.at("batch"), sizes.at("inputs")})}};
}

}  // namespace

ZooEntry mlp_entry() {
  return {{"mlp",
           "multilayer perceptron with GELU; returns logits",
           {{"batch", 2048, 1, 1 << 24, "rows per batch"},
            {"inputs", 256, 1, 1 << 20, "features per row"},
            {"layers", 8, 1, 1024, "hidden layers"},
            {"width", 256, 1, 1 << 17, "units per hidden layer"},
            {"classes", 16, 1, 1 << 20, "logits per row"}}},
          draw_mlp};
}

}  // namespace offprof
