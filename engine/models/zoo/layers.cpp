#include "engine/models/zoo/layers.h"

#include <cmath>
#include <utility>

namespace offprof {
namespace {

// A small deviation, so that the first logits of a head that shares the table are near zero (GPT-2's value).
constexpr double kEmbeddingDeviation = 0.02;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) {
    text += text.empty() ? "[" : ",";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace

ModuleBlueprint& ModuleBlueprint::add(const std::string& child_name, ModuleBlueprint child) {
  child.name = child_name;
  children.push_back(std::move(child));
  return *this;
}

double unit_deviation(std::int64_t inputs) {
  return 1.0 / std::sqrt(static_cast<double>(inputs));
}

double rectifier_deviation(std::int64_t inputs) {
  return std::sqrt(2.0 / static_cast<double>(inputs));
}

ModuleBlueprint linear(std::int64_t inputs, std::int64_t outputs, double deviation) {
  ModuleBlueprint module{.type = "Linear"};
  module.parameters = {{.name = "weight", .shape = {outputs, inputs}, .deviation = deviation},
                       {.name = "bias", .shape = {outputs}}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight, self.bias)
)";
  return module;
}

ModuleBlueprint projection(std::int64_t inputs, std::int64_t outputs, double deviation) {
  ModuleBlueprint module{.type = "Projection"};
  module.parameters = {{.name = "weight", .shape = {outputs, inputs}, .deviation = deviation}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight)
)";
  return module;
}

ModuleBlueprint layer_norm(std::int64_t width) {
  ModuleBlueprint module{.type = "LayerNorm"};
  module.parameters = {{.name = "weight", .shape = {width}, .mean = 1}, {.name = "bias", .shape = {width}}};
  module.integers = {{"width", width}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.layer_norm(x, [self.width], self.weight, self.bias)
)";
  return module;
}

ModuleBlueprint rms_norm(std::int64_t width) {
  ModuleBlueprint module{.type = "RmsNorm"};
  module.parameters = {{.name = "weight", .shape = {width}, .mean = 1}};
  module.integers = {{"width", width}};
  module.numbers = {{"epsilon", 1e-5}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.rms_norm(x, [self.width], self.weight, self.epsilon)
)";
  return module;
}

ModuleBlueprint convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                            std::int64_t stride) {
  ModuleBlueprint module{.type = "Convolution"};
  module.parameters = {{.name = "weight",
                        .shape = {outputs, inputs, kernel, kernel},
                        .deviation = rectifier_deviation(inputs * kernel * kernel)}};
  module.integers = {{"stride", stride}, {"padding", kernel / 2}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.conv2d(x, self.weight, None, [self.stride, self.stride], [self.padding, self.padding])
)";
  return module;
}

ModuleBlueprint batch_norm(std::int64_t channels) {
  ModuleBlueprint module{.type = "BatchNorm"};
  module.parameters = {{.name = "weight", .shape = {channels}, .mean = 1},
                       {.name = "bias", .shape = {channels}}};
  module.buffers = {{.name = "running_mean", .shape = {channels}},
                    {.name = "running_var", .shape = {channels}, .mean = 1}};
  module.numbers = {{"momentum", 0.1}, {"epsilon", 1e-5}};
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training,
                            self.momentum, self.epsilon, True)
)";
  return module;
}

ModuleBlueprint convolution_unit(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                                 std::int64_t stride) {
  ModuleBlueprint module{.type = "ConvolutionUnit"};
  module.add("convolution", convolution(inputs, outputs, kernel, stride)).add("norm", batch_norm(outputs));
  module.source = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.relu_(self.norm.forward(self.convolution.forward(x)))
)";
  return module;
}

ModuleBlueprint embedding(std::int64_t rows, std::int64_t width) {
  ModuleBlueprint module{.type = "Embedding"};
  module.parameters = {{.name = "weight", .shape = {rows, width}, .deviation = kEmbeddingDeviation}};
  module.source = R"(
def forward(self, ids: Tensor) -> Tensor:
    return torch.embedding(self.weight, ids)
)";
  return module;
}

ModuleBlueprint next_token_loss() {
  ModuleBlueprint module{.type = "NextTokenLoss"};
  module.source = R"(
def forward(self, logits: Tensor, ids: Tensor) -> Tensor:
    predicted = logits[:, :-1].reshape(-1, logits.size(-1))
    return torch.cross_entropy_loss(predicted, ids[:, 1:].reshape(-1))
)";
  return module;
}

ModuleBlueprint sequence(std::vector<ModuleBlueprint> modules, const std::string& extra) {
  ModuleBlueprint module{.type = "Sequence"};
  module.source = "def forward(self, x" + extra + "):\n";
  for (ModuleBlueprint& child : modules) {
    const std::string child_name = "layer" + std::to_string(module.children.size());
    module.source.append("    x = self.").append(child_name).append(".forward(x").append(extra).append(")\n");
    module.add(child_name, std::move(child));
  }
  module.source += "    return x\n";
  return module;
}

std::string float_input(const std::vector<std::int64_t>& shape) {
  return "float32" + shape_text(shape);
}

std::string integer_input(const std::vector<std::int64_t>& shape, std::int64_t end) {
  return "int64" + shape_text(shape) + "<" + std::to_string(end);
}

}  // namespace offprof
