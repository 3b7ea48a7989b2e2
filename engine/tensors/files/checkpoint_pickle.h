#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Maximum size of a checkpoint's pickle: parameters are stored outside it, and a tensor takes some 100
/// bytes.
inline constexpr std::size_t kMostPickleBytes = std::size_t{64} << 20;

/// A tensor as described by the pickle of a `.pt` file: a view of a storage, which is a record of the
/// archive. Sizes and numbers are not checked against the storage.
struct PickledTensor {
  std::string storage{};    ///< the key of its record
  std::string dtype{};      ///< PyTorch's name without `torch.`: `float32`
  std::int64_t offset = 0;  ///< of its first number in the storage, in numbers
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< in numbers; as many as sizes
};

/// Tensors by name: dictionary keys and list positions, joined by dots.
using PickledTensors = std::map<std::string, PickledTensor, std::less<>>;

/// Reads `data.pkl` of a dictionary saved by torch.save (protocols 2 to 5). A pickle is a program; this
/// function runs none. It accepts dictionaries, OrderedDicts, lists, tuples, numbers, texts and tensors, and
/// parameters as tensors; any other class or function is rejected by its name. `name` names the file in
/// errors. Throws Error (input) for such a class or function; for a pickle that is damaged, too long or
/// endlessly nested; for duplicate names; if the file has no dictionary; and for a tensor that is sparse,
/// quantised or a conjugate view.
PickledTensors read_checkpoint_pickle(std::string_view pickle, const std::string& name);

/// Reads `data.pkl` of a TorchScript module, by the same rules. Objects of the module's own classes
/// (`__torch__.*`) are accepted as dictionaries of their attributes. Throws Error (input) like
/// read_checkpoint_pickle.
PickledTensors read_module_pickle(std::string_view pickle, const std::string& name);

}  // namespace offprof
