#pragma once

#include <ATen/record_function.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/autograd/step_listener.h"
#include "engine/devices/device.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/recorder/code_location.h"
#include "profiler/recording/recorded_pass.h"

namespace offprof {

/// Records one step as it runs: operators (at::RecordFunction), allocations, saved tensors, commands. Records
/// from its construction to `finish`, on the thread that created it and the threads on which autograd runs
/// backward. One at a time in the process.
///
/// Any thread may call it at any time. But a step whose operators run on several threads at once, as with
/// modules that fork, has no single order that a replay could follow: `finish` rejects it.
class PassRecorder final : public StepListener, private AllocationListener {
 public:
  /// `tracer` is that of the device's GPU and is given the cause of work (WorkCause); nullptr: none.
  PassRecorder(Device& device, bool wants_node_ends, GpuTracer* tracer = nullptr,
               CodeLocator locate = location_in_torch_script);
  ~PassRecorder() override;
  PassRecorder(const PassRecorder&) = delete;
  PassRecorder& operator=(const PassRecorder&) = delete;

  /// Begins a phase of the step: `forward`, `backward`, `optimizer`.
  void begin_phase(std::string_view name);
  /// Ends the step. Memory freed from here on belongs to the time between steps.
  void end_step();
  /// Ends the recording, waits until the device is idle, and returns the pass. Throws the first failure of
  /// the device's marks, and Error (input) if the step's operators ran on several threads at once.
  RecordedPass finish();

  /// Notes in the recording of this process, if there is one, that the tensor's memory holds a parameter
  /// which the program gathers around its uses. Call it each time that the parameter is gathered, from any
  /// thread. The recording's device must not be closed meanwhile.
  static void note_gathered(const at::Tensor& parameter);

  /// Stops the recording in a forked child process. The recorder must not be used there any more.
  void forget_in_child();

  void on_hook_begin() override { take_note(RawKind::kHookBegin); }
  void on_hook_end() override { take_note(RawKind::kHookEnd); }
  void on_pack_begin() override;
  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override;
  void on_unpack(SavedId tensor) override { take_note(RawKind::kUnpack, tensor); }
  void on_release(SavedId tensor) override { take_note(RawKind::kRelease, tensor); }
  void on_unpacked_freed(SavedId tensor) override { take_note(RawKind::kFreeUnpacked, tensor); }
  void on_node_end(std::span<const SavedId> tensors, std::span<const SavedId> escaped) override;
  void on_backward_end() override { take_note(RawKind::kBackwardEnd); }
  void on_command_begin(const Command& command) override;
  void on_command(const Command& command, Device::TimeMark begin, Device::TimeMark end) override;
  void on_hold(CopyId copy, AllocationId allocation, const c10::Storage& storage) override;
  void on_reload(CopyId copy, AllocationId allocation) override {
    take_note(RawKind::kReload, allocation, copy);
  }
  void on_fetch(AllocationId allocation) override { take_note(RawKind::kFetch, allocation); }
  void on_fetched(AllocationId allocation) override { take_note(RawKind::kFetched, allocation); }
  void on_save(AllocationId allocation) override { take_note(RawKind::kSave, allocation); }
  bool wants_node_ends() const override { return wants_node_ends_; }

 private:
  /// A storage that the engine holds for a copy out. `by_program` is true while the model holds it too.
  struct Held {
    CopyId copy = -1;
    AllocationId allocation = 0;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    bool by_program = true;
  };

  void on_alloc(AllocationId id, Bytes bytes, std::int32_t stream) override {
    note_memory(RawKind::kAlloc, id, bytes, stream);
  }
  void on_free_requested(AllocationId id, std::span<const std::int32_t> points) override;
  void on_free(AllocationId id, Bytes bytes, std::int32_t stream) override {
    note_memory(RawKind::kFree, id, bytes, stream);
  }
  void on_reserved(Bytes bytes) override { take_note(RawKind::kReserved, 0, bytes); }
  static std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op);
  static void op_ends(const at::RecordFunction& op, at::ObserverContext* context);

  /// Calls `note` from any thread. The private functions below it but note_memory are called under the same
  /// lock.
  void take_note(RawKind kind, std::int64_t id = 0, std::int64_t value = 0);
  void note(RawKind kind, std::int64_t id = 0, std::int64_t value = 0);
  void note_memory(RawKind kind, AllocationId id, Bytes bytes, std::int32_t stream);
  void add(RawKind kind, std::int64_t id, std::int64_t value);
  void see_program_frees();
  void see_thread();
  bool drops_op_that_ends();
  void push(std::uint64_t cause);
  void pop();
  Work take_work();
  std::int32_t intern(std::string_view name);
  void stop();
  void resolve_times();

  Device& device_;
  bool wants_node_ends_;
  GpuTracer* tracer_;
  CodeLocator locate_;
  int pushed_ = 0;
  bool recording_ = true;
  at::CallbackHandle callback_;
  RecordedPass pass_;
  std::unordered_map<std::string, std::int32_t> name_index_;
  std::vector<Held> held_;
  Work dropped_work_{};                            ///< of operators that were dropped since the last event
  std::vector<std::int32_t> open_ops_;             ///< names, outermost first
  std::thread::id ops_thread_;                     ///< thread on which the outermost of them began
  std::optional<std::thread::id> forward_thread_;  ///< in forward: the thread that all operators run on
  bool has_threads_at_once_ = false;
};

}  // namespace offprof
