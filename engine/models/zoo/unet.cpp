#include <string>
#include <utility>

#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

// Encoder and decoder of one resolution, with all smaller resolutions between them. `skip` lives from one to
// the other.
constexpr const char* kLevelSource = R"(
def forward(self, x: Tensor) -> Tensor:
    skip = self.down.forward(x)
    below = self.below.forward(torch.max_pool2d(skip, [2, 2]))
    return self.up.forward(torch.cat([skip, self.enlarge.forward(below)], 1))
)";

ModuleBlueprint double_convolution(std::int64_t inputs, std::int64_t outputs) {
  return sequence({convolution_unit(inputs, outputs, 3, 1), convolution_unit(outputs, outputs, 3, 1)});
}

// Doubles height and width.
ModuleBlueprint enlargement(std::int64_t inputs, std::int64_t outputs) {
  ModuleBlueprint module{.type = "Enlargement"};
  module.parameters = {
      {.name = "weight", .shape = {inputs, outputs, 2, 2}, .deviation = unit_deviation(inputs)},
      {.name = "bias", .shape = {outputs}}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.conv_transpose2d(x, self.weight, self.bias, [2, 2])
)";
  return module;
}

ModuleBlueprint level(std::int64_t inputs, std::int64_t channels, std::int64_t levels) {
  if (levels == 0) return double_convolution(inputs, channels);
  ModuleBlueprint module{.type = "Level", .source = kLevelSource};
  module.add("down", double_convolution(inputs, channels));
  module.add("below", level(channels, 2 * channels, levels - 1));
  module.add("enlarge", enlargement(2 * channels, channels));
  module.add("up", double_convolution(2 * channels, channels));
  return module;
}

void require_fitting_image(const ZooSizes& sizes) {
  const std::int64_t image = sizes.at("image");
  const std::int64_t step = std::int64_t{1} << sizes.at("levels");
  if (image % step != 0) {
    throw input_error("size 'image' (" + std::to_string(image) + ") cannot be halved 'levels' (" +
                          std::to_string(sizes.at("levels")) + ") times; it must be a multiple of " +
                          std::to_string(step),
                      "for example: image " + std::to_string((image / step + 1) * step));
  }
  if (image == step && sizes.at("batch") == 1) {
    throw input_error(
        "an image of size " + std::to_string(image) +
            " shrinks to one pixel at the lowest level, and batch norm cannot train on one value per channel",
        "give a batch of 2 or more, a larger image, or fewer levels");
  }
}

ModelBlueprint draw_unet(const ZooSizes& sizes) {
  require_fitting_image(sizes);
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint root =
      sequence({level(3, width, sizes.at("levels")), convolution(width, sizes.at("classes"), 1, 1)});
  return {std::move(root), {float_input({sizes.at("batch"), 3, sizes.at("image"), sizes.at("image")})}};
}

}  // namespace

ZooEntry unet_entry() {
  return {{"unet",
           "U-Net with long skip connections, for segmentation; returns logits for every pixel",
           {{"batch", 4, 1, 1 << 20, "images per batch"},
            {"image", 64, 2, 1 << 13, "height and width of an image; a multiple of 2 to the power of levels"},
            {"levels", 3, 1, 8, "number of times that the image is halved"},
            {"width", 16, 1, 1 << 12, "channels at full resolution; doubled at each level"},
            {"classes", 4, 1, 1 << 12, "logits per pixel"}}},
          draw_unet};
}

}  // namespace offprof
