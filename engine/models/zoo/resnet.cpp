#include <string>
#include <utility>

#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kResidualBlockSource = R"(
def forward(self, x: Tensor) -> Tensor:
    shortcut = self.shortcut.forward(x)
    x = self.norm.forward(self.second.forward(self.first.forward(x)))
    return torch.relu_(x + shortcut)
)";

constexpr const char* kResNetSource = R"(
def forward(self, x: Tensor) -> Tensor:
    x = self.blocks.forward(self.stem.forward(x))
    return self.classifier.forward(torch.flatten(torch.adaptive_avg_pool2d(x, [1, 1]), 1))
)";

ModuleBlueprint identity() {
  return {.type = "Identity", .source = "def forward(self, x: Tensor) -> Tensor:\n    return x\n"};
}

ModuleBlueprint residual_block(std::int64_t inputs, std::int64_t outputs, std::int64_t stride) {
  const bool same = inputs == outputs && stride == 1;
  ModuleBlueprint module{.type = "ResidualBlock", .source = kResidualBlockSource};
  module.add("first", convolution_unit(inputs, outputs, 3, stride))
      .add("second", convolution(outputs, outputs, 3, 1));
  module.add("norm", batch_norm(outputs));
  module.add("shortcut",
             same ? identity() : sequence({convolution(inputs, outputs, 1, stride), batch_norm(outputs)}));
  return module;
}

// Batch norm needs two values per channel, and the last stage has the fewest.
void require_enough_values(const ZooSizes& sizes) {
  const std::int64_t halvings = sizes.at("stages") - 1;
  if (sizes.at("batch") > 1 || sizes.at("image") > (std::int64_t{1} << halvings)) return;
  throw input_error("an image of size " + std::to_string(sizes.at("image")) + " shrinks to one pixel after " +
                        std::to_string(halvings) +
                        " halvings, and batch norm cannot train on one value per channel",
                    "give a batch of 2 or more, a larger image, or fewer stages");
}

ModelBlueprint draw_resnet(const ZooSizes& sizes) {
  require_enough_values(sizes);
  std::vector<ModuleBlueprint> blocks;
  std::int64_t channels = sizes.at("width");
  for (std::int64_t stage = 0; stage < sizes.at("stages"); ++stage) {
    for (std::int64_t i = 0; i < sizes.at("layers"); ++i) {
      const bool down = stage > 0 && i == 0;
      blocks.push_back(residual_block(channels, down ? 2 * channels : channels, down ? 2 : 1));
      if (down) channels *= 2;
    }
  }
  ModuleBlueprint root{.type = "ResNet", .source = kResNetSource};
  root.add("stem", convolution_unit(3, sizes.at("width"), 3, 1)).add("blocks", sequence(std::move(blocks)));
  root.add("classifier", linear(channels, sizes.at("classes"), unit_deviation(channels)));
  return {std::move(root), {float_input({sizes.at("batch"), 3, sizes.at("image"), sizes.at("image")})}};
}

}  // namespace

ZooEntry resnet_entry() {
  return {{"resnet",
           "residual convolutional network with batch norm and in-place ReLU; returns logits",
           {{"batch", 32, 1, 1 << 20, "images per batch"},
            {"image", 32, 1, 1 << 13, "height and width of an image"},
            {"stages", 3, 1, 8, "stages; each one after the first halves the image and doubles the channels"},
            {"layers", 2, 1, 256, "residual blocks per stage"},
            {"width", 16, 1, 1 << 12, "channels of the first stage"},
            {"classes", 10, 1, 1 << 20, "logits per image"}}},
          draw_resnet};
}

}  // namespace offprof
