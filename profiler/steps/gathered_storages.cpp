#include "profiler/steps/gathered_storages.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace offprof {
namespace {

/// The storages by address. A weak reference keeps an address from being used again.
struct Registry {
  std::shared_mutex mutex;
  std::atomic<bool> is_used = false;
  std::unordered_map<const c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
  std::size_t size_to_prune_at = 1024;

  /// Forgets storages that have been freed, if there are many.
  void prune() {
    if (storages.size() < size_to_prune_at) return;
    std::erase_if(storages, [](const auto& storage) { return storage.second.expired(); });
    size_to_prune_at = std::max(size_to_prune_at, 2 * storages.size());
  }
};

Registry& registry() {
  static auto* instance = new Registry;  // never destroyed: storages may outlive static objects
  return *instance;
}

}  // namespace

void add_gathered_storage(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return;
  const c10::Storage& storage = tensor.storage();
  if (is_gathered_storage(storage)) return;
  const std::unique_lock lock(registry().mutex);
  registry().prune();
  registry().storages.emplace(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl());
  registry().is_used = true;
}

bool has_gathered_storages() {
  return registry().is_used.load(std::memory_order_acquire);
}

bool is_gathered_storage(const c10::Storage& storage) {
  if (!has_gathered_storages()) return false;
  const std::shared_lock lock(registry().mutex);
  return registry().storages.contains(storage.unsafeGetStorageImpl());
}

}  // namespace offprof
