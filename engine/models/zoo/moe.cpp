#include <string>

#include "engine/models/zoo/language_model.h"
#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

// Each expert takes its best `tokens * choices / experts` tokens (Zhou et al. 2022, "Mixture-of-Experts with
// Expert Choice Routing"), so every shape is known beforehand. Tokens are gathered with embedding. Instead of
// scattering outputs, each token sums over the experts' slots that hold it (a row of zeros if no slot does).
// So both directions add in a fixed order on every device.
constexpr const char* kExpertsSource = R"(
def forward(self, x: Tensor) -> Tensor:
    tokens = x.reshape(-1, x.size(-1))
    count = tokens.size(0)
    capacity = count * self.choices // self.experts
    scores = torch.softmax(torch.linear(tokens, self.router), -1)
    gates, chosen = torch.topk(scores.t(), capacity, 1)
    taken = torch.embedding(tokens, chosen)
    inside = torch.gelu(torch.baddbmm(self.up_bias, taken, self.up))
    mixed = torch.baddbmm(self.down_bias, inside, self.down) * gates.unsqueeze(2)
    slots = self.experts * capacity
    rows = torch.cat([mixed.reshape(slots, -1), mixed.new_zeros([1, x.size(-1)])])
    numbers = torch.arange(slots, device=x.device).view(self.experts, capacity)
    held_in = chosen.new_full([self.experts, count], slots).scatter(1, chosen, numbers)
    joined = torch.embedding(rows, held_in, slots).sum(0).view_as(x)
    return torch.dropout(joined, self.dropout, self.training)
)";

ModuleBlueprint experts_layer(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  const std::int64_t inside = width * sizes.at("expansion");
  const std::int64_t experts = sizes.at("experts");
  ModuleBlueprint module{.type = "Experts", .source = kExpertsSource};
  module.parameters = {
      {.name = "router", .shape = {experts, width}, .deviation = unit_deviation(width)},
      {.name = "up", .shape = {experts, width, inside}, .deviation = unit_deviation(width)},
      {.name = "up_bias", .shape = {experts, 1, inside}},
      {.name = "down", .shape = {experts, inside, width}, .deviation = residual_deviation(sizes, inside)},
      {.name = "down_bias", .shape = {experts, 1, width}}};
  module.integers = {{"experts", experts}, {"choices", sizes.at("choices")}};
  module.numbers = {{"dropout", dropout_probability(sizes)}};
  return module;
}

void require_fitting_choices(const ZooSizes& sizes) {
  const std::int64_t experts = sizes.at("experts");
  const std::int64_t choices = sizes.at("choices");
  if (choices > experts) {
    throw input_error("size 'choices' (" + std::to_string(choices) + ") is more than 'experts' (" +
                          std::to_string(experts) + "): an expert would choose more tokens than there are",
                      "for example: choices " + std::to_string(experts));
  }
  const std::int64_t tokens = sizes.at("batch") * sizes.at("seq");
  if (tokens * choices < experts) {
    throw input_error("batch * seq * choices (" + std::to_string(tokens * choices) +
                          ") is less than 'experts' (" + std::to_string(experts) +
                          "): an expert would choose no token",
                      "give fewer experts, or a larger batch or seq");
  }
}

ModelBlueprint draw_moe(const ZooSizes& sizes) {
  require_fitting_choices(sizes);
  return draw_decoder(sizes, experts_layer);
}

}  // namespace

ZooEntry moe_entry() {
  std::vector<ZooSize> sizes = decoder_sizes(3);
  sizes.push_back({"experts", 8, 1, 1024, "experts per block"});
  sizes.push_back({"choices", 2, 1, 1024, "experts per token, on average; at most experts"});
  return {{"moe",
           "causal decoder with mixture-of-experts blocks, in which experts choose tokens; returns its loss",
           std::move(sizes)},
          draw_moe};
}

}  // namespace offprof
