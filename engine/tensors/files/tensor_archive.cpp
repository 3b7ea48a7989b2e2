#include "engine/tensors/files/tensor_archive.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/tensors/files/checkpoint_pickle.h"
#include "engine/tensors/files/tensor_dtype.h"
#include "engine/tensors/files/zip_directory.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

constexpr const char* kDamagedArchive =
    "The file is damaged, or torch.save did not write it: copy or save it again.";

/// Position of a storage's bytes in the file.
struct Storage {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Reads the records of an archive. They are in a folder inside it, whose name differs from file to file.
class Records {
 public:
  explicit Records(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)), directory_(*file_) {
    const auto& records = directory_.records();
    if (!records.empty()) folder_ = records.begin()->first.substr(0, records.begin()->first.find('/') + 1);
    if (find("data.pkl") == nullptr)
      refuse("is a zip without data.pkl, so torch.save did not write it (nor is a .pt2 archive a checkpoint)",
             "Save a dictionary of tensors: torch.save(model.state_dict(), 'model.pt').");
  }

  bool is_module() const { return find("constants.pkl") != nullptr; }

  std::string pickle() const {
    if (find("data.pkl")->bytes > static_cast<Bytes>(kMostPickleBytes))
      refuse("its pickle is too long for a checkpoint", kDamagedArchive);
    return read("data.pkl");
  }

  void check_byte_order() const {
    constexpr std::string_view kLittle = "little";
    const ZipRecord* const record = find("byteorder");
    if (record == nullptr) return;
    if (record->bytes != static_cast<Bytes>(kLittle.size()) || read("byteorder") != kLittle)
      refuse("its numbers are not little-endian", "Save it on a little-endian machine.");
  }

  const Storage& storage(const std::string& key) {
    const auto found = storages_.find(key);
    return found != storages_.end() ? found->second : storages_.emplace(key, find_storage(key)).first->second;
  }

  [[noreturn]] void refuse(const std::string& what, const char* hint) const {
    throw input_error(fmt::format("{}: {}", file_->name(), what), hint);
  }

 private:
  const ZipRecord* find(const std::string& name) const {
    const auto found = directory_.records().find(folder_ + name);
    return found == directory_.records().end() ? nullptr : &found->second;
  }

  std::string read(const std::string& name) const { return directory_.read(folder_ + name, *find(name)); }

  /// PyTorch's records are uncompressed, so any part of them can be read.
  Storage find_storage(const std::string& key) const {
    const std::string name = "data/" + key;
    const ZipRecord* const record = find(name);
    if (record == nullptr)
      refuse(fmt::format("its tensors refer to a storage '{}' that does not exist", printable(key)),
             kDamagedArchive);
    return {directory_.content_offset(folder_ + name, *record), record->bytes};
  }

  std::shared_ptr<const ReadableFile> file_;
  ZipDirectory directory_;
  std::string folder_;
  std::map<std::string, Storage, std::less<>> storages_;
};

/// Returns the count of numbers from a tensor's first to its last; nullopt: beyond 64 bits, or a size or
/// stride is negative.
std::optional<std::int64_t> span_of(const PickledTensor& tensor) {
  std::int64_t span = 1;
  bool is_empty = false;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    std::int64_t reach = 0;
    const std::int64_t size = tensor.sizes[i], stride = tensor.strides[i];
    if (size < 0 || stride < 0) return std::nullopt;
    is_empty |= size == 0;
    if (size == 0) continue;
    if (__builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(span, reach, &span))
      return std::nullopt;
  }
  return is_empty ? 0 : span;
}

TensorArchive::Entry entry_of(Records& records, const std::string& name, const PickledTensor& tensor) {
  const auto refuse = [&](const std::string& what) {
    records.refuse(fmt::format("tensor '{}': {}", name, what), kDamagedArchive);
  };
  const std::optional<Bytes> width = torch_element_bytes(tensor.dtype);
  if (!width) refuse(fmt::format("'{}' is not a dtype that offprof supports", printable(tensor.dtype)));
  const Storage& storage = records.storage(tensor.storage);
  const auto span = span_of(tensor);
  const Bytes numbers = storage.bytes / *width;
  const bool is_real = bytes_of(TensorDtype::kU64, tensor.sizes) && span.has_value() && tensor.offset >= 0;
  if (!is_real || *span > numbers || tensor.offset > numbers - *span)
    refuse(fmt::format("shape {}, strides {} and offset {} exceed its storage of {} elements ({} bytes)",
                       shape_text(tensor.sizes), shape_text(tensor.strides), tensor.offset, numbers,
                       storage.bytes));
  return {tensor.dtype, tensor.sizes, tensor.strides, storage.offset + tensor.offset * *width,
          *span * *width};
}

}  // namespace

TensorArchive::TensorArchive(std::shared_ptr<const ReadableFile> file, Accepts accepts) {
  const std::string name = file->name();
  Records records(std::move(file));
  is_module_ = records.is_module();
  if (is_module_ && accepts == Accepts::kDictionaries)
    records.refuse("is a TorchScript module, not a dictionary of tensors",
                   "Save only its parameters: torch.save(dict(module.state_dict()), 'weights.pt').");
  records.check_byte_order();
  const std::string pickle = records.pickle();
  const PickledTensors tensors =
      is_module_ ? read_module_pickle(pickle, name) : read_checkpoint_pickle(pickle, name);
  for (const auto& [key, tensor] : tensors) tensors_.emplace(key, entry_of(records, key, tensor));
}

}  // namespace offprof
