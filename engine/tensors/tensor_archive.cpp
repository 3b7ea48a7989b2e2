#include "engine/tensors/tensor_archive.h"

#include <ATen/Functions.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "engine/tensors/files/checkpoint_pickle.h"
#include "engine/tensors/files/safetensors.h"
#include "engine/tensors/torch_dtype.h"
#include "engine/torch/torch_error.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

using caffe2::serialize::PyTorchStreamReader;

constexpr const char* kDamagedArchive =
    "The file is damaged, or torch.save did not write it: copy or save it again.";

/// Adapts a file to LibTorch's zip reader. That reader is C code, so no exception may pass through it.
class ArchiveSource final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit ArchiveSource(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)) {}
  std::size_t size() const override { return static_cast<std::size_t>(file_->size()); }
  std::size_t read(std::uint64_t position, void* room, std::size_t bytes, const char*) const override {
    try {
      return position > size() ? 0
                               : file_->read(static_cast<Bytes>(position), {static_cast<char*>(room), bytes});
    } catch (const Error&) {
      return 0;
    }
  }

 private:
  std::shared_ptr<const ReadableFile> file_;
};

/// Position of a storage's bytes in the file.
struct Record {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Reads the records of an archive.
class Records {
 public:
  explicit Records(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)), reader_(open()) {}

  std::string pickle() {
    if (reader_->hasRecord("constants.pkl"))
      refuse("is a TorchScript module, not a dictionary of tensors",
             "Save only its parameters: torch.save(dict(module.state_dict()), 'weights.pt').");
    const std::size_t bytes = reader_->getRecordSize("data.pkl");
    if (bytes > kMostPickleBytes) refuse("its pickle is too long for a checkpoint", kDamagedArchive);
    std::string pickle(bytes, '\0');
    reader_->getRecord("data.pkl", pickle.data(), bytes);
    return pickle;
  }

  void check_byte_order() {
    if (!reader_->hasRecord("byteorder")) return;
    std::string order(reader_->getRecordSize("byteorder") == 6 ? 6 : 0, '\0');
    if (!order.empty()) reader_->getRecord("byteorder", order.data(), order.size());
    if (order != "little") refuse("its numbers are not little-endian", "Save it on a little-endian machine.");
  }

  const Record& storage(const std::string& key) {
    const auto found = storages_.find(key);
    return found != storages_.end() ? found->second : storages_.emplace(key, find_storage(key)).first->second;
  }

  [[noreturn]] void refuse(const std::string& what, const char* hint) const {
    throw input_error(fmt::format("{}: {}", file_->name(), what), hint);
  }

 private:
  std::unique_ptr<PyTorchStreamReader> open() {
    return std::make_unique<PyTorchStreamReader>(std::make_shared<ArchiveSource>(file_));
  }

  /// Finds an uncompressed record (zip's method 0). PyTorch's records are uncompressed, so any part of them
  /// can be read.
  Record find_storage(const std::string& key) {
    const std::string name = "data/" + key;
    if (!reader_->hasRecord(name))
      refuse(fmt::format("its tensors refer to a storage '{}' that does not exist", printable(key)),
             kDamagedArchive);
    constexpr std::size_t kMethodAt = 8, kNameLengthAt = 26,
                          kLocalHeaderBytes = 30;  // zip's local file header
    std::array<char, kLocalHeaderBytes> header{};
    const auto at = static_cast<Bytes>(reader_->getRecordHeaderOffset(name));
    read_all(*file_, at, header);
    const auto field = [&](std::size_t place) {
      std::uint16_t value = 0;
      std::memcpy(&value, header.data() + place, sizeof value);
      return Bytes{value};
    };
    if (field(kMethodAt) != 0)
      refuse(fmt::format("its storage '{}' is compressed, so its tensors cannot be read one by one",
                         printable(key)),
             "Save it again with torch.save, and do not compress it.");
    const Record record{at + Bytes{kLocalHeaderBytes} + field(kNameLengthAt) + field(kNameLengthAt + 2),
                        static_cast<Bytes>(reader_->getRecordSize(name))};
    if (record.bytes < 0 || record.offset > file_->size() || record.bytes > file_->size() - record.offset)
      refuse(fmt::format(
                 "is truncated: its storage '{}' should have {} bytes from byte {} on, but the file has {}",
                 printable(key), record.bytes, record.offset, file_->size()),
             kDamagedArchive);
    return record;
  }

  std::shared_ptr<const ReadableFile> file_;
  std::unique_ptr<PyTorchStreamReader> reader_;
  std::map<std::string, Record, std::less<>> storages_;
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
  const auto dtype = scalar_type_named(tensor.dtype);
  if (!dtype || at::isQIntType(*dtype))
    refuse(fmt::format("'{}' is not a dtype that offprof supports", printable(tensor.dtype)));
  const Record& storage = records.storage(tensor.storage);
  const auto width = static_cast<Bytes>(at::elementSize(*dtype));
  const auto span = span_of(tensor);
  const Bytes numbers = storage.bytes / width;
  const bool is_real = bytes_of(TensorDtype::kU64, tensor.sizes) && span.has_value() && tensor.offset >= 0;
  if (!is_real || *span > numbers || tensor.offset > numbers - *span)
    refuse(fmt::format("shape {}, strides {} and offset {} exceed its storage of {} elements ({} bytes)",
                       shape_text(tensor.sizes), shape_text(tensor.strides), tensor.offset, numbers,
                       storage.bytes));
  return {*dtype, tensor.sizes, tensor.strides, storage.offset + tensor.offset * width, *span * width};
}

}  // namespace

TensorArchive::TensorArchive(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)) {
  try {
    Records records(file_);
    records.check_byte_order();
    for (const auto& [name, tensor] : read_checkpoint_pickle(records.pickle(), file_->name()))
      tensors_.emplace(name, entry_of(records, name, tensor));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw input_error(
        fmt::format("{}: a damaged or truncated archive, or a zip that PyTorch did not write ({})",
                    file_->name(), readable_reason(error)),
        kDamagedArchive);
  }
}

at::Tensor TensorArchive::read(const Entry& entry) const {
  const auto numbers = entry.span / static_cast<Bytes>(at::elementSize(entry.dtype));
  const at::Tensor span = at::empty({numbers}, at::TensorOptions(entry.dtype));
  read_all(*file_, entry.offset, {static_cast<char*>(span.mutable_data_ptr()), span.nbytes()});
  return span.as_strided(entry.sizes, entry.strides);
}

}  // namespace offprof
