#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "traces/model/trace.h"

namespace offprof {

/// Returns the trace of a very small step: one operator saves one tensor, which is offloaded to the host and
/// reloaded. For tests; docs/reference/trace-format.md shows it as a file.
inline Trace sample_trace() {
  Trace trace;
  trace.tool_version = "0.1.0";
  trace.argv = {"offprof", "run", "model.pt", "-o", "trace.json"};
  trace.environment = {"host", "CPU, 2 threads", "2.11.0", 2, {{4e9, 3000}, {5e9, 2000}}};
  trace.model = {"model.pt", "sha256:0f", 12, 48};
  trace.settings.inputs = {"float32[4,3]"};
  trace.policy.threshold_bytes = 16;

  StepProgram& program = trace.program;
  program.resident_bytes = 96;
  program.names = {"forward", "backward", "aten::relu", "ReluBackward0"};
  program.storages = {
      {48, StorageRole::kParameter}, {48, StorageRole::kInput}, {4096, StorageRole::kActivation}};
  SavedTensor saved;
  saved.storage = 2;
  saved.op = 2;
  saved.layout = TensorLayout{"float32", {32, 32}, {32, 1}};
  saved.bytes = 4096;
  program.saved = {saved};
  using enum EventKind;
  program.events = {{kPhase, 0, 0},      {kOpBegin, 2, 500}, {kAlloc, 2, 100},  {kPack, 0, 1400},
                    {kOpEnd, 2, 100},    {kFree, 2, 200},    {kPhase, 1, 0},    {kOpBegin, 3, 50},
                    {kUnpack, 0, 10},    {kRelease, 0, 900}, {kNodeEnd, 0, 40}, {kOpEnd, 3, 0},
                    {kBackwardEnd, 0, 0}};

  trace.metrics.device_peak_bytes = 4192;
  trace.metrics.step_time_ns = 9300;
  trace.metrics.overlap_ratio = 0.25;
  trace.metrics.spread = {{"step_time_ns_min", 9000}, {"step_time_ns_max", 9900}};
  trace.ledger = {{{Place::kHost, PlacementReason::kOffloaded}, {1, 4096}}};
  trace.gradients = "bitwise";

  trace.timeline.spans = {
      {Track::kCompute, SpanKind::kOp, "aten::relu", 500, 1600, 0, -1, ""},
      {Track::kCompute, SpanKind::kPhase, "forward", 0, 2300, 0, -1, ""},
      {Track::kCompute, SpanKind::kStep, "ProfilerStep#0", 0, 9300, 0, -1, ""},
      {Track::kD2h, SpanKind::kCopy, "copy out", 2000, 2048, 4096, 0, ""},
      {Track::kCompute, SpanKind::kPhase, "backward", 2300, 7000, 0, -1, ""},
      {Track::kCompute, SpanKind::kOp, "ReluBackward0", 2350, 6950, 0, -1, ""},
      {Track::kH2d, SpanKind::kCopy, "copy in", 4500, 4096, 4096, 0, ""},
      {Track::kCompute, SpanKind::kWait, "wait for copy in", 2400, 6196, 0, 0, "reload", Track::kH2d},
  };
  trace.timeline.flows = {{7, Track::kCompute, 2000, "pack"},
                          {7, Track::kD2h, 2000, "copy out"},
                          {7, Track::kH2d, 4500, "copy in"},
                          {7, Track::kCompute, 8596, "unpack"}};
  trace.timeline.counters = {
      {"device_bytes", 0, 96}, {"device_bytes", 600, 4192}, {"device_bytes", 700, 4192}};
  trace.timeline.allocator = {{600, 2, 4096, 4192, 0, "forward;aten::relu"},
                              {9200, 2, -4096, 96, 0, "backward;ReluBackward0"}};
  return trace;
}

/// Returns the same step on a virtual GPU, whose caching allocator holds a segment of 2 MiB.
inline Trace virtual_sample_trace() {
  Trace trace = sample_trace();
  trace.environment.device = "virtual:h200";
  trace.environment.device_name = "virtual NVIDIA H200";
  trace.environment.times_are_modelled = true;
  AllocatorState& allocator = trace.program.allocator.emplace();
  const AllocatorBlock parameters{512, 48, true, -1}, input{512, 48, true, -1};
  const AllocatorBlock gap{1024, 0, false, -1}, workspace{1024, 1000, true, -1};
  allocator.segments.push_back(
      {0, false, false, {parameters, input, gap, workspace, {2 * kMiB - 3072, 0, false, -1}}});
  trace.metrics.device_allocated_peak_bytes = 2048 + 4096;
  trace.metrics.device_reserved_peak_bytes = 2 * kMiB;
  trace.gradients = "not applicable";
  trace.notes = {"values are read back from the device"};
  return trace;
}

/// Returns the same step with modelled work: kernels of products take 8 us, those of other families 1 us.
inline Trace modelled_sample_trace() {
  Trace trace = virtual_sample_trace();
  for (const Event& event : trace.program.events) {
    const bool computes = event.kind == EventKind::kPack || event.kind == EventKind::kRelease;
    trace.program.work.push_back(computes ? Work{100, 4500, 4600, Work::kNoWait, 4500} : Work{});
  }
  trace.program.families = {{"other", 1000}, {"products", 8000}};
  return trace;
}

/// Returns made-up tracer figures of a GPU trace that lost no records.
inline Tracing sample_tracing() {
  Tracing tracing{.tool = "CUPTI", .version = "13.0", .host_bytes = 128 * kMiB, .device_bytes = 3 * kMiB};
  tracing.cost = {.untraced = {1000, 990, 1010},
                  .streams = {1004, 1000, 1010},
                  .tracer = {1008, 1000, 1015},
                  .recorder = {1005, 1000, 1010},
                  .everything = {1012, 1001, 1020}};
  const LinkFigures link{.busy_ns = 375'000,
                         .bytes = 20 * kMiB,
                         .copies_ns = 375'000,
                         .large_bytes = 16 * kMiB,
                         .large_copies_ns = 300'000};
  tracing.steps.assign(
      2, {.compute_ns = 9'000'000, .exposed_ns = 200'000, .idle_ns = 100'000, .d2h = link, .h2d = link});
  return tracing;
}

/// Generates random step programs that check_program accepts, for tests. The same seed gives the same
/// programs on every machine.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {}

  StepProgram make() {
    program_ = {};
    packed_ = 0;
    program_.resident_bytes = below(1 << 20);
    for (int i = 0; i < 4; ++i) program_.names.push_back("name \"" + std::to_string(below(1000)) + "\" \\");
    add_storages();
    add_saved_tensors();
    for (const auto& _ : program_.saved) {
      (void)_;
      add_pack();
    }
    add_backward();
    if (coin()) add_allocator();
    return program_;
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  bool coin() { return below(2) == 1; }
  std::int32_t index_below(std::size_t bound) {
    return static_cast<std::int32_t>(below(static_cast<std::int64_t>(bound)));
  }
  void add(EventKind kind, std::int32_t id) { program_.events.push_back({kind, id, below(100'000)}); }

  void add_storages() {
    const auto count = 1 + below(6);
    for (std::int64_t i = 0; i < count; ++i) {
      program_.storages.push_back({below(1LL << 40), static_cast<StorageRole>(below(5))});
      if (program_.storages.back().role == StorageRole::kActivation)
        add(EventKind::kAlloc, static_cast<std::int32_t>(i));
    }
  }

  void add_saved_tensors() {
    const auto count = below(8);
    for (std::int64_t i = 0; i < count; ++i) {
      SavedTensor saved;
      saved.storage = index_below(program_.storages.size());
      saved.version = static_cast<std::uint32_t>(random_());
      saved.movability = static_cast<Movability>(below(7));
      saved.is_parameter = coin();
      saved.escapes = coin();
      saved.op = index_below(program_.names.size());
      if (coin()) saved.module = index_below(program_.names.size());
      if (coin()) saved.line = index_below(program_.names.size());
      TensorLayout layout{coin() ? "float32" : "bool", {}, {}};
      for (auto rank = below(4); rank > 0; --rank) {
        layout.sizes.push_back(below(1 << 20));
        layout.strides.push_back(below(1 << 20));
      }
      saved.layout = std::move(layout);
      saved.storage_offset = below(1000);
      saved.bytes = below(1LL << 40);
      program_.saved.push_back(saved);
    }
  }

  void add_pack() {
    const auto name = index_below(program_.names.size());
    add(EventKind::kOpBegin, name);
    add(EventKind::kPack, packed_++);
    add(EventKind::kOpEnd, name);
  }

  void add_backward() {
    add(EventKind::kPhase, index_below(program_.names.size()));
    for (std::int32_t id = packed_ - 1; id >= 0; --id) {
      if (coin()) add(EventKind::kUnpack, id);
      add(EventKind::kRelease, id);
      program_.events.push_back({EventKind::kNodeEnd, 0, 1});
    }
    for (std::size_t i = 0; i < program_.storages.size(); ++i) {
      if (coin()) add(EventKind::kFree, static_cast<std::int32_t>(i));
    }
    program_.events.push_back({EventKind::kBackwardEnd, 0, 0});
  }

  void add_allocator() {
    AllocatorState& allocator = program_.allocator.emplace();
    allocator.settings = coin() ? "" : "max_split_size_mb:64";
    std::int32_t streams = 1, ranges = 0;
    for (auto segments = below(4); segments > 0; --segments) {
      AllocatorSegment& segment = allocator.segments.emplace_back();
      segment.stream = index_below(streams + 1);
      streams = std::max(streams, segment.stream + 1);
      segment.is_large = coin();
      segment.is_expandable = coin();
      if (segment.is_expandable) segment.range = ranges++;
      if (segment.is_expandable) segment.range_offset = 2 * kMiB * index_below(100);
      for (auto blocks = 1 + below(4); blocks > 0; --blocks) {
        const Bytes bytes = 512 * (1 + below(1000));
        const Bytes requested = coin() ? 0 : bytes - below(512);
        segment.blocks.push_back({bytes, requested, requested > 0, -1});
      }
    }
  }

  std::mt19937_64 random_;
  StepProgram program_;
  std::int32_t packed_ = 0;
};

}  // namespace offprof
