#include "engine/devices/cuda/process_observer.h"

#include <ATen/record_function.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>

#include "engine/devices/cuda/allocation_books.h"
#include "engine/devices/cuda/cuda_call.h"
#include "engine/devices/cuda/host_work/host_work.h"
#include "engine/devices/cuda/op_observer.h"
#include "engine/devices/cuda/view_lists.h"

namespace offprof {
namespace {

class ProcessObserver {
 public:
  explicit ProcessObserver(VirtualGpu& gpu) : gpu_(gpu), values_(gpu), host_work_(gpu) {}

  GpuOperators& gpu() { return gpu_; }
  KnownValues& values() { return values_; }
  HostWorkTeller& host_work() { return host_work_; }

  void note_value_read(std::string_view op) {
    const std::lock_guard turn(mutex_);
    value_reads_.emplace(op);
  }
  std::set<std::string> value_reads() {
    const std::lock_guard turn(mutex_);
    return value_reads_;
  }

 private:
  GpuOperators& gpu_;
  KnownValues values_;
  HostWorkTeller host_work_;
  std::mutex mutex_;
  std::set<std::string> value_reads_;
};

/// Observer of this process, which is never destroyed; nullptr before observe_process. at::RecordFunction
/// calls plain functions, which find it here.
ProcessObserver* the_observer = nullptr;

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& op) {
  auto context = std::make_unique<ObservedOp>(op, the_observer->gpu(), &the_observer->values(), true);
  if (context->has_unknown_shape(op)) the_observer->note_value_read(op.name());
  the_observer->host_work().begin_op(op);
  the_observer->gpu().begin_op(context->call());
  ViewLists::begin_op(op);
  return context;
}

void ends(const at::RecordFunction& op, at::ObserverContext* context) {
  the_observer->host_work().add(ViewLists::end_op(op));
  const auto& observed = static_cast<const ObservedOp&>(*context);
  if (observed.has_read_unknown_values(the_observer->gpu()))
    the_observer->note_value_read(observed.call().name);
  the_observer->values().end_op(observed.known(), op);
  the_observer->gpu().end_op();
  the_observer->host_work().end_op();
}

std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction&) {
  the_observer->host_work().begin_node();
  return nullptr;
}

void node_ends(const at::RecordFunction&, at::ObserverContext*) {
  the_observer->host_work().end_node();
}

}  // namespace

void observe_process(VirtualGpu& gpu) {
  if (the_observer != nullptr) return;
  the_observer = new ProcessObserver(gpu);
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "read the size of the device memory");
  // A rank of many uses one of its node's devices. Which one is not known yet.
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "count the devices");
  for (int device = 0; device < devices; ++device)
    AllocationBooks::of_device(static_cast<c10::DeviceIndex>(device), static_cast<Bytes>(total))
        .set_watcher(&gpu);
  at::addGlobalCallback(at::RecordFunctionCallback(&begins, &ends)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
  at::addGlobalCallback(
      at::RecordFunctionCallback(&node_begins, &node_ends).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

std::set<std::string> value_reads_of_process() {
  return the_observer == nullptr ? std::set<std::string>{} : the_observer->value_reads();
}

}  // namespace offprof
