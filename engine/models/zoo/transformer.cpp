#include "engine/models/zoo/language_model.h"
#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"

namespace offprof {
namespace {

ModuleBlueprint feed_forward(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  const std::int64_t inside = width * sizes.at("expansion");
  ModuleBlueprint module{.type = "FeedForward"};
  module.add("up", linear(width, inside, unit_deviation(width)));
  module.add("down", linear(inside, width, residual_deviation(sizes, inside)));
  module.numbers = {{"dropout", dropout_probability(sizes)}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.dropout(self.down.forward(torch.gelu(self.up.forward(x))), self.dropout, self.training)
)";
  return module;
}

ModelBlueprint draw_transformer(const ZooSizes& sizes) {
  return draw_decoder(sizes, feed_forward);
}

}  // namespace

ZooEntry transformer_entry() {
  return {{"transformer", "causal decoder language model with pre-layer-norm blocks; returns its loss",
           decoder_sizes(4)},
          draw_transformer};
}

}  // namespace offprof
