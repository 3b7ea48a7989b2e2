// Writes a TorchScript module with one parameter `w` of 16 floats and the methods that standard input
// defines:
//   write_module OUT.pt <source
// A test can thus create a model, and the same model with one line changed.
#include <torch/csrc/jit/api/module.h>

#include <ATen/Functions.h>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string source{std::istreambuf_iterator<char>(std::cin), {}};
  torch::jit::Module module("Model");
  module.register_parameter("w", at::ones({16}).set_requires_grad(true), false);
  module.define(source);
  module.save(argv[1]);
}
