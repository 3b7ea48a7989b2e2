#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

namespace offprof {

/// Notes a tensor whose storage the program frees and fills again while graphs hold it, as FSDP2 does with
/// the parameters that it gathers. Such a storage is on the device only around its uses, and steps leave it
/// alone (Residents::is_parameter_group), for the rest of the process. Thread-safe.
void add_gathered_storage(const at::Tensor& tensor);

/// Returns true if add_gathered_storage has noted the storage. Thread-safe.
bool is_gathered_storage(const c10::Storage& storage);

/// Returns true if add_gathered_storage has noted any. Thread-safe.
bool has_gathered_storages();

}  // namespace offprof
