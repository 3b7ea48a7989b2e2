#include <string>
#include <utility>

#include "engine/models/zoo/language_model.h"
#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

// Rotary position embedding (Su et al. 2021, "RoFormer"): the first and second half of a head's width are the
// real and imaginary parts of complex numbers, rotated by an angle that grows with the position.
constexpr const char* kRotaryAttentionSource = R"(
def heads_of(self, x: Tensor, heads: int) -> Tensor:
    return x.view(x.size(0), x.size(1), heads, self.head_width).transpose(1, 2)

def turned(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)

def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    queries = self.turned(self.heads_of(self.query.forward(x), self.heads), cosine, sine)
    keys = self.turned(self.heads_of(self.key.forward(x), self.kv_heads), cosine, sine)
    values = self.heads_of(self.value.forward(x), self.kv_heads)
    mixed = torch.scaled_dot_product_attention(queries, keys, values, None, 0.0, True,
                                               enable_gqa=self.heads != self.kv_heads)
    return self.output.forward(mixed.transpose(1, 2).reshape(x.size()))
)";

constexpr const char* kFeedForwardSource = R"(
def forward(self, x: Tensor) -> Tensor:
    return self.down.forward(torch.silu(self.gate.forward(x)) * self.up.forward(x))
)";

constexpr const char* kBlockSource = R"(
def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    x = x + self.attention.forward(self.attention_norm.forward(x), cosine, sine)
    return x + self.feed_forward.forward(self.feed_forward_norm.forward(x))
)";

// The angles are computed once per step, in float32 for any dtype of the parameters, and shared by all
// blocks.
constexpr const char* kLlamaSource = R"(
def forward(self, ids: Tensor) -> Tensor:
    x = self.tokens.forward(ids)
    places = torch.arange(float(ids.size(1)), device=ids.device)
    halves = torch.arange(self.head_width / 2, device=ids.device)
    angles = places.unsqueeze(1) * torch.pow(self.base, halves * (-2.0 / self.head_width))
    x = self.blocks.forward(x, torch.cos(angles).to(x.dtype), torch.sin(angles).to(x.dtype))
    return self.loss.forward(self.head.forward(self.norm.forward(x)), ids)
)";

ModuleBlueprint rotary_attention(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  const std::int64_t head_width = width / sizes.at("heads");
  const std::int64_t kv_width = head_width * sizes.at("kv-heads");
  ModuleBlueprint module{.type = "Attention", .source = kRotaryAttentionSource};
  module.add("query", projection(width, width, unit_deviation(width)));
  module.add("key", projection(width, kv_width, unit_deviation(width)));
  module.add("value", projection(width, kv_width, unit_deviation(width)));
  module.add("output", projection(width, width, residual_deviation(sizes, width)));
  module.integers = {
      {"heads", sizes.at("heads")}, {"kv_heads", sizes.at("kv-heads")}, {"head_width", head_width}};
  return module;
}

// SwiGLU (Shazeer 2020, "GLU Variants Improve Transformer").
ModuleBlueprint gated_feed_forward(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  const std::int64_t inside = sizes.at("ffn");
  ModuleBlueprint module{.type = "FeedForward", .source = kFeedForwardSource};
  module.add("gate", projection(width, inside, unit_deviation(width)));
  module.add("up", projection(width, inside, unit_deviation(width)));
  module.add("down", projection(inside, width, residual_deviation(sizes, inside)));
  return module;
}

ModuleBlueprint block(const ZooSizes& sizes) {
  ModuleBlueprint module{.type = "Block", .source = kBlockSource};
  module.add("attention_norm", rms_norm(sizes.at("width"))).add("attention", rotary_attention(sizes));
  module.add("feed_forward_norm", rms_norm(sizes.at("width"))).add("feed_forward", gated_feed_forward(sizes));
  return module;
}

void require_fitting_heads(const ZooSizes& sizes) {
  require_multiple(sizes, "width", "heads");
  require_multiple(sizes, "heads", "kv-heads");
  const std::int64_t head_width = sizes.at("width") / sizes.at("heads");
  if (head_width % 2 == 0) return;
  throw input_error("the width of a head ('width' / 'heads') is " + std::to_string(head_width) +
                        "; rotary position embedding needs an even width",
                    "for example: width " + std::to_string((head_width + 1) * sizes.at("heads")));
}

ModelBlueprint draw_llama(const ZooSizes& sizes) {
  constexpr double kRotaryBase = 10000;
  require_fitting_heads(sizes);
  std::vector<ModuleBlueprint> blocks;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) blocks.push_back(block(sizes));
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint root{.type = "Llama", .source = kLlamaSource};
  root.add("tokens", embedding(sizes.at("vocab"), width));
  root.add("blocks", sequence(std::move(blocks), ", cosine, sine"));
  root.add("norm", rms_norm(width)).add("head", projection(width, sizes.at("vocab"), unit_deviation(width)));
  root.add("loss", next_token_loss());
  root.integers = {{"head_width", width / sizes.at("heads")}};
  root.numbers = {{"base", kRotaryBase}};
  return {std::move(root), {integer_input({sizes.at("batch"), sizes.at("seq")}, sizes.at("vocab"))}};
}

// Sizes from Touvron et al. 2023: "LLaMA" (7b) and "Llama 2" (70b).
std::vector<ZooPreset> presets() {
  return {{"7b",
           {{"batch", 1},
            {"seq", 2048},
            {"layers", 32},
            {"width", 4096},
            {"heads", 32},
            {"kv-heads", 32},
            {"ffn", 11008},
            {"vocab", 32000}}},
          {"70b",
           {{"batch", 1},
            {"seq", 2048},
            {"layers", 80},
            {"width", 8192},
            {"heads", 64},
            {"kv-heads", 8},
            {"ffn", 28672},
            {"vocab", 32000}}}};
}

}  // namespace

ZooEntry llama_entry() {
  return {{"llama",
           "LLaMA: causal decoder with rotary embeddings, RMS norm, SwiGLU, grouped and fused attention; "
           "returns its "
           "loss",
           {{"batch", 4, 1, 1 << 20, "sequences per batch"},
            {"seq", 128, 2, 1 << 20, "tokens per sequence"},
            {"layers", 4, 1, 1024, "blocks"},
            {"width", 128, 1, 1 << 16, "width of the residual stream; a multiple of twice the heads"},
            {"heads", 4, 1, 1024, "attention heads; a multiple of kv-heads"},
            {"kv-heads", 2, 1, 1024, "key and value heads, each shared by a group of attention heads"},
            {"ffn", 344, 1, 1 << 18, "inner width of the feed-forward layer"},
            {"vocab", 512, 2, 1 << 20, "vocabulary size"}},
           presets()},
          draw_llama};
}

}  // namespace offprof
