#include "profiler/recording/gpu_rows.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

#include "profiler/recording/clock_offset.h"

namespace offprof {
namespace {

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// Returns the common name of a function: compilers call a launch by another name than programs and profilers
/// do.
std::string called(const std::string& function) {
  return function == "__cudaLaunchKernel" ? "cudaLaunchKernel" : function;
}

const char* text_of(GpuMemoryKind kind) {
  switch (kind) {
    case GpuMemoryKind::kPageable:
      return "Pageable";
    case GpuMemoryKind::kPinned:
      return "Pinned";
    case GpuMemoryKind::kDevice:
      return "Device";
    case GpuMemoryKind::kArray:
      return "Array";
    case GpuMemoryKind::kManaged:
      return "Managed";
    case GpuMemoryKind::kUnknown:
      break;
  }
  return "Unknown";
}

char letter_of(GpuMemoryKind kind) {
  switch (kind) {
    case GpuMemoryKind::kPageable:
    case GpuMemoryKind::kPinned:
      return 'H';
    case GpuMemoryKind::kDevice:
      return 'D';
    case GpuMemoryKind::kArray:
      return 'A';
    case GpuMemoryKind::kManaged:
      return 'M';
    case GpuMemoryKind::kUnknown:
      break;
  }
  return '?';
}

std::string copy_name(const StreamWork& copy) {
  return std::string("Memcpy ") + letter_of(copy.from) + "to" + letter_of(copy.to) + " (" +
         text_of(copy.from) + " -> " + text_of(copy.to) + ")";
}

GpuSpanKind span_kind(StreamWorkKind kind) {
  switch (kind) {
    case StreamWorkKind::kKernel:
      return GpuSpanKind::kKernel;
    case StreamWorkKind::kCopy:
      return GpuSpanKind::kCopy;
    case StreamWorkKind::kSet:
      break;
  }
  return GpuSpanKind::kSet;
}

}  // namespace

GpuRows::GpuRows(const StepResult& step, std::int64_t first_id)
    : step_(step),
      activity_(step.gpu),
      first_id_(first_id),
      offset_(offset_to_marks(step.recording, step.gpu)),
      causes_(step.gpu) {
  if (!offset_) return;
  for (const StreamWork& work : activity_.work)
    if (const auto op = causes_.op_of(work.correlation)) ops_with_work_.insert(*op);
  for (const CudaCall& call : activity_.calls)
    threads_.try_emplace(call.thread, static_cast<std::uint32_t>(threads_.size()));
  for (const RawCommand& raw : step.recording.commands)
    if (const auto* const out = std::get_if<CopyOut>(&raw.command)) tensors_[out->copy] = out->tensor;
  find_copies();
}

void GpuRows::find_copies() {
  for (std::size_t i = 0; i < activity_.work.size(); ++i) {
    const StreamWork& work = activity_.work[i];
    const CopyCommand* const command = copy_command(work);
    if (command == nullptr) continue;
    const bool out = work.from == GpuMemoryKind::kDevice;
    copies_[{out ? CopyDirection::kD2h : CopyDirection::kH2d, command->copy}].push_back(
        {i, work.stream, moment(work.begin_ns)});
  }
}

/// Returns the command of a copy between device and host; nullptr if the work is not such a copy.
const CopyCommand* GpuRows::copy_command(const StreamWork& work) const {
  const auto index = causes_.command_of(work.correlation);
  if (!index || work.kind != StreamWorkKind::kCopy) return nullptr;
  const Command& command = step_.recording.commands[*index].command;
  const bool from_device = work.from == GpuMemoryKind::kDevice, to_device = work.to == GpuMemoryKind::kDevice;
  if (from_device && !to_device) return std::get_if<CopyOut>(&command);
  if (to_device && !from_device) return std::get_if<CopyIn>(&command);
  return nullptr;
}

std::int64_t GpuRows::external_id(std::size_t event) const {
  return ops_with_work_.contains(event) ? first_id_ + static_cast<std::int64_t>(event) + 1 : 0;
}

std::int64_t GpuRows::cause_id(std::uint32_t correlation) const {
  const auto op = causes_.op_of(correlation);
  return op ? external_id(*op) : 0;
}

std::optional<GpuRows::SeenCopy> GpuRows::match(const CopyRecord& record) {
  const auto found = copies_.find({record.direction, static_cast<CopyId>(record.tag)});
  if (found == copies_.end() || found->second.empty()) return std::nullopt;
  const SeenCopy copy = found->second.front();
  found->second.pop_front();
  leads_[copy.work] = std::max<Nanoseconds>(0, copy.begin_ns - record.begin_ns);
  return copy;
}

GpuSpan GpuRows::span_of(std::size_t index) const {
  const StreamWork& work = activity_.work[index];
  GpuSpan span;
  span.kind = span_kind(work.kind);
  span.row = work.stream;
  span.begin_ns = moment(work.begin_ns);
  span.duration_ns = work.end_ns - work.begin_ns;
  span.bytes = work.bytes;
  span.correlation = work.correlation;
  span.external_id = cause_id(work.correlation);
  span.grid = work.grid;
  span.block = work.block;
  if (work.kind == StreamWorkKind::kCopy) span.name = copy_name(work);
  if (work.kind == StreamWorkKind::kSet) span.name = std::string("Memset (") + text_of(work.to) + ")";
  if (const CopyCommand* command = copy_command(work)) span.tensor = tensors_.at(command->copy);
  if (const auto lead = leads_.find(index); lead != leads_.end()) span.lead_ns = lead->second;
  return span;
}

GpuSpan GpuRows::span_of(const CudaCall& call) const {
  GpuSpan span;
  span.kind = GpuSpanKind::kCall;
  span.name = called(activity_.names[static_cast<std::size_t>(call.name)]);
  span.row = threads_.at(call.thread);
  span.begin_ns = moment(call.begin_ns);
  span.duration_ns = call.end_ns - call.begin_ns;
  span.correlation = call.correlation;
  span.external_id = cause_id(call.correlation);
  return span;
}

void GpuRows::add_to(Timeline& timeline, Nanoseconds origin) const {
  if (!offset_) return;
  std::unordered_map<std::int32_t, std::string> kernel_names;
  const auto add = [&](GpuSpan span) {
    span.begin_ns -= origin;
    timeline.gpu.push_back(std::move(span));
  };
  for (std::size_t i = 0; i < activity_.work.size(); ++i) {
    const StreamWork& work = activity_.work[i];
    GpuSpan span = span_of(i);
    if (work.kind == StreamWorkKind::kKernel) {
      std::string& name = kernel_names[work.name];
      if (name.empty()) name = demangled(activity_.names[static_cast<std::size_t>(work.name)]);
      span.name = name;
    }
    add(std::move(span));
  }
  for (const CudaCall& call : activity_.calls) add(span_of(call));
}

}  // namespace offprof
