#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// No pickle of a checkpoint is longer; weights stand beside it, and a tensor takes some 100 bytes of it.
inline constexpr std::size_t kMostPickleBytes = std::size_t{64} << 20;

/// A tensor as the pickle of a `.pt` file describes it: a view of a storage, which is a record of the
/// archive. Sizes and numbers are what the file says; nobody has checked them against the storage.
struct PickledTensor {
  std::string storage{};    ///< the key of its record
  std::string dtype{};      ///< as PyTorch says it, without `torch.`: `float32`
  std::int64_t offset = 0;  ///< of its first number in the storage, in numbers
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< in numbers, as many as sizes
};

/// Tensors by their names: the keys of the dictionaries that they are in, and positions in lists, joined by
/// dots.
using PickledTensors = std::map<std::string, PickledTensor, std::less<>>;

/// Reads `data.pkl` of what torch.save made of a dictionary (protocols 2 to 5). A pickle is a program; here
/// none is run. Dictionaries, OrderedDicts, lists, tuples, numbers, texts and tensors are taken, parameters
/// as tensors; whatever else asks for a class or a function is refused with its name. `name` stands for the
/// file in errors. Throws Error (input): so, for a pickle that is damaged, too long or nested without end,
/// for names that come twice, and where the file holds no dictionary, or a tensor that is sparse, quantised
/// or a conjugate view.
PickledTensors read_checkpoint_pickle(std::string_view pickle, const std::string& name);

}  // namespace offprof
