#include "engine/models/zoo/language_model.h"

#include <cmath>
#include <string>
#include <utility>

#include "engine/models/zoo/layers.h"

namespace offprof {
namespace {

constexpr const char* kAttentionSource = R"(
def forward(self, x: Tensor, mask: Tensor) -> Tensor:
    batch, length, width = x.size()
    parts = self.inputs.forward(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
    if self.fused == 1:
        mixed = torch.scaled_dot_product_attention(parts[0], parts[1], parts[2], None, 0.0, True)
    else:
        scores = torch.matmul(parts[0] * self.scale, parts[1].transpose(-2, -1)).masked_fill(mask, float("-inf"))
        weights = torch.dropout(torch.softmax(scores, -1), self.dropout, self.training)
        mixed = torch.matmul(weights, parts[2])
    joined = self.outputs.forward(mixed.transpose(1, 2).reshape(batch, length, width))
    return torch.dropout(joined, self.dropout, self.training)
)";

constexpr const char* kDecoderBlockSource = R"(
def forward(self, x: Tensor, mask: Tensor) -> Tensor:
    x = x + self.attention.forward(self.attention_norm.forward(x), mask)
    return x + self.feed_forward.forward(self.feed_forward_norm.forward(x))
)";

// The mask is made once per step and shared by all blocks. It is true where a position would see a later one.
constexpr const char* kDecoderSource = R"(
def forward(self, ids: Tensor) -> Tensor:
    length = ids.size(1)
    places = torch.arange(length, device=ids.device)
    mask = places.unsqueeze(0) > places.unsqueeze(1)
    x = self.tokens.forward(ids) + self.positions.forward(places)
    x = self.blocks.forward(torch.dropout(x, self.dropout, self.training), mask)
    logits = self.head(self.norm.forward(x))
    return self.loss.forward(logits, ids)
)";

constexpr const char* kTiedHeadSource = R"(
def head(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.tokens.weight)
)";

constexpr const char* kOwnHeadSource = R"(
def head(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.head_weight)
)";

ModuleBlueprint attention(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint module{.type = "Attention", .source = kAttentionSource};
  module.add("inputs", linear(width, 3 * width, unit_deviation(width)));
  module.add("outputs", linear(width, width, residual_deviation(sizes, width)));
  module.integers = {{"heads", sizes.at("heads")}, {"fused", sizes.at("fused")}};
  module.numbers = {{"scale", unit_deviation(width / sizes.at("heads"))},
                    {"dropout", dropout_probability(sizes)}};
  return module;
}

ModuleBlueprint block(const ZooSizes& sizes, FeedForward feed_forward) {
  ModuleBlueprint module{.type = "Block", .source = kDecoderBlockSource};
  module.add("attention_norm", layer_norm(sizes.at("width"))).add("attention", attention(sizes));
  module.add("feed_forward_norm", layer_norm(sizes.at("width"))).add("feed_forward", feed_forward(sizes));
  return module;
}

void add_head(ModuleBlueprint& decoder, const ZooSizes& sizes) {
  const bool tied = sizes.at("tied") == 1;
  decoder.source = std::string(tied ? kTiedHeadSource : kOwnHeadSource) + decoder.source;
  if (tied) return;
  const std::int64_t width = sizes.at("width");
  decoder.parameters.push_back(
      {.name = "head_weight", .shape = {sizes.at("vocab"), width}, .deviation = unit_deviation(width)});
}

}  // namespace

ModelBlueprint draw_decoder(const ZooSizes& sizes, FeedForward feed_forward) {
  require_multiple(sizes, "width", "heads");
  std::vector<ModuleBlueprint> blocks;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) blocks.push_back(block(sizes, feed_forward));
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint root{.type = "Decoder", .source = kDecoderSource};
  root.add("tokens", embedding(sizes.at("vocab"), width)).add("positions", embedding(sizes.at("seq"), width));
  root.add("blocks", sequence(std::move(blocks), ", mask"));
  root.add("norm", layer_norm(width)).add("loss", next_token_loss());
  root.numbers = {{"dropout", dropout_probability(sizes)}};
  add_head(root, sizes);
  return {std::move(root), {integer_input({sizes.at("batch"), sizes.at("seq")}, sizes.at("vocab"))}};
}

std::vector<ZooSize> decoder_sizes(std::int64_t layers) {
  return {{"batch", 8, 1, 1 << 20, "sequences per batch"},
          {"seq", 128, 2, 1 << 20, "tokens per sequence"},
          {"layers", layers, 1, 1024, "blocks"},
          {"width", 128, 1, 1 << 16, "width of the residual stream; a multiple of heads"},
          {"heads", 4, 1, 1024, "attention heads"},
          {"expansion", 4, 1, 64, "inner width of the feed-forward layer, as a multiple of width"},
          {"vocab", 512, 2, 1 << 20, "vocabulary size"},
          {"dropout", 10, 0, 90, "dropout probability in percent"},
          {"tied", 1, 0, 1, "1: the head shares the parameters of the token embedding"},
          {"fused", 0, 0, 1, "1: fused attention, which saves no scores and has no dropout"}};
}

double residual_deviation(const ZooSizes& sizes, std::int64_t inputs) {
  return unit_deviation(inputs) / std::sqrt(2.0 * static_cast<double>(sizes.at("layers")));
}

double dropout_probability(const ZooSizes& sizes) {
  return static_cast<double>(sizes.at("dropout")) / 100;
}

}  // namespace offprof
