#include <utility>

#include "engine/models/zoo/language_model.h"
#include "engine/models/zoo/layers.h"
#include "engine/models/zoo/models.h"

namespace offprof {
namespace {

// The inputs of all steps are projected at once. The rest of a step saves many small tensors. The forget gate
// starts open (Jozefowicz et al. 2015, "An Empirical Exploration of Recurrent Network Architectures").
constexpr const char* kLayerSource = R"(
def forward(self, x: Tensor) -> Tensor:
    hidden = x.new_zeros([x.size(0), self.width])
    cell = x.new_zeros([x.size(0), self.width])
    outputs: List[Tensor] = []
    for step in self.inputs.forward(x).unbind(1):
        gates = torch.addmm(step, hidden, self.recurrent)
        taken, forget, shown = torch.sigmoid(gates[:, :3 * self.width]).split(self.width, 1)
        cell = forget * cell + taken * torch.tanh(gates[:, 3 * self.width:])
        hidden = shown * torch.tanh(cell)
        outputs.append(hidden)
    return torch.dropout(torch.stack(outputs, 1), self.dropout, self.training)
)";

constexpr const char* kLstmSource = R"(
def forward(self, ids: Tensor) -> Tensor:
    x = self.layers.forward(self.tokens.forward(ids))
    return self.loss.forward(self.head.forward(x), ids)
)";

ModuleBlueprint layer(const ZooSizes& sizes) {
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint module{.type = "LstmLayer", .source = kLayerSource};
  module.add("inputs", linear(width, 4 * width, unit_deviation(width)));
  module.parameters = {
      {.name = "recurrent", .shape = {width, 4 * width}, .deviation = unit_deviation(width)}};
  module.integers = {{"width", width}};
  module.numbers = {{"dropout", dropout_probability(sizes)}};
  return module;
}

ModelBlueprint draw_lstm(const ZooSizes& sizes) {
  std::vector<ModuleBlueprint> layers;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) layers.push_back(layer(sizes));
  const std::int64_t width = sizes.at("width");
  ModuleBlueprint root{.type = "LstmLanguageModel", .source = kLstmSource};
  root.add("tokens", embedding(sizes.at("vocab"), width)).add("layers", sequence(std::move(layers)));
  root.add("head", linear(width, sizes.at("vocab"), unit_deviation(width))).add("loss", next_token_loss());
  return {std::move(root), {integer_input({sizes.at("batch"), sizes.at("seq")}, sizes.at("vocab"))}};
}

}  // namespace

ZooEntry lstm_entry() {
  return {{"lstm",
           "recurrent language model of LSTM cells, unrolled over time; returns its loss",
           {{"batch", 32, 1, 1 << 20, "sequences per batch"},
            {"seq", 64, 2, 1 << 16, "tokens per sequence"},
            {"layers", 2, 1, 256, "LSTM layers"},
            {"width", 128, 1, 1 << 16, "units per layer"},
            {"vocab", 512, 2, 1 << 20, "vocabulary size"},
            {"dropout", 10, 0, 90, "dropout probability in percent"}}},
          draw_lstm};
}

}  // namespace offprof
