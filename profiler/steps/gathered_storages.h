#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

namespace offprof {

/// Notes the storage of a parameter that the program gathers around its uses while graphs hold it: frees the
/// storage and fills it again, as FSDP does, or replaces it, as DeepSpeed's ZeRO-3 does. Steps leave such a
/// storage alone (Residents::is_parameter_group), as long as it lives. Thread-safe.
void add_gathered_storage(const at::Tensor& tensor);

/// Returns true if add_gathered_storage has noted the storage. Thread-safe.
bool is_gathered_storage(const c10::Storage& storage);

/// Returns true if add_gathered_storage has noted any. Thread-safe.
bool has_gathered_storages();

}  // namespace offprof
