// Precompiled header of every source that includes LibTorch, which is slow to compile. Sources still include
// what they use.
#pragma once

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
