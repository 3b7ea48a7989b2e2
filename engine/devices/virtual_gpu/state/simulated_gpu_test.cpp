#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr Nanoseconds kLaunch = 10, kKernel = 100;

// Kernels take their shortest time, and the link moves a byte per nanosecond in either direction.
VirtualGpuOptions small_gpu() {
  VirtualGpuOptions options;
  options.profile = load_profile("l4");
  options.profile.memory_bytes = 64 * kMiB;
  options.profile.context_bytes = 0;
  options.profile.launch_ns = kLaunch;
  options.profile.kernel_ns = kKernel;
  options.profile.link = {.d2h = {.bytes_per_second = 1e9, .latency_ns = 0},
                          .h2d = {.bytes_per_second = 1e9, .latency_ns = 0}};
  return options;
}

CopyRows row(void* to, const void* from, Bytes bytes) {
  return {.to = to, .from = from, .bytes = bytes};
}

struct SimulatedGpuTest : testing::Test {
  SimulatedGpuTest() { gpu.configure(small_gpu()); }

  void* address_space(Bytes bytes) {
    void* address = nullptr;
    EXPECT_EQ(gpu.memory().allocate(&address, bytes), GpuStatus::kOk);
    return address;
  }
  void* pinned_memory(Bytes bytes) {
    void* address = nullptr;
    EXPECT_EQ(gpu.memory().allocate_pinned(&address, bytes), GpuStatus::kOk);
    return address;
  }
  void carry_out() {
    VirtualGpuOptions options = small_gpu();
    options.functional_mode = true;
    gpu.configure(options);
  }
  void launch() { EXPECT_EQ(gpu.kernels().launch(stream, {.name = "kernel"}), GpuStatus::kOk); }

  SimulatedGpu gpu;
  StreamId stream = gpu.streams().create_stream(StreamKind::kNonBlocking);
};

TEST_F(SimulatedGpuTest, LimitsMemoryToTheProfileAndTheLimit) {
  void* address = nullptr;
  EXPECT_EQ(gpu.memory().allocate(&address, 65 * kMiB), GpuStatus::kOutOfMemory);
  EXPECT_EQ(address, nullptr);
  VirtualGpuOptions options = small_gpu();
  options.profile.context_bytes = 60 * kMiB;
  gpu.configure(options);
  EXPECT_EQ(gpu.memory().allocate(&address, 6 * kMiB), GpuStatus::kOutOfMemory);
  gpu.set_memory_limit(4 * kMiB);
  EXPECT_EQ(gpu.memory().allocate(&address, 6 * kMiB), GpuStatus::kOutOfMemory);
  EXPECT_EQ(gpu.memory().allocate(&address, 4 * kMiB), GpuStatus::kOk);
  EXPECT_EQ(gpu.used_bytes(), 4 * kMiB);
}

Bytes reachable(SimulatedGpu& gpu, const std::vector<const void*>& addresses) {
  return gpu.memory().reachable_bytes(addresses);
}

TEST_F(SimulatedGpuTest, AnAddressReachesTheEndOfItsBlock) {
  auto* const segment = static_cast<char*>(address_space(4 * kMiB));
  gpu.block_allocated(segment, kMiB, nullptr);
  gpu.block_allocated(segment + kMiB, 2 * kMiB, nullptr);
  EXPECT_EQ(reachable(gpu, {segment}), kMiB);
  EXPECT_EQ(reachable(gpu, {segment + kKiB}), kMiB - kKiB);
  EXPECT_EQ(reachable(gpu, {segment + kMiB, segment}), 3 * kMiB);
}

TEST_F(SimulatedGpuTest, CountsMemoryThatSeveralAddressesReachOnce) {
  auto* const segment = static_cast<char*>(address_space(2 * kMiB));
  gpu.block_allocated(segment, kMiB, nullptr);
  EXPECT_EQ(reachable(gpu, {segment, segment + kKiB, segment}), kMiB);
}

TEST_F(SimulatedGpuTest, AnAddressOutsideBlocksReachesTheEndOfItsAllocation) {
  auto* const segment = static_cast<char*>(address_space(2 * kMiB));
  EXPECT_EQ(reachable(gpu, {segment}), 2 * kMiB);
  gpu.block_allocated(segment, kMiB, nullptr);
  gpu.block_freed(segment);
  EXPECT_EQ(reachable(gpu, {segment}), 2 * kMiB);
}

TEST_F(SimulatedGpuTest, AnAddressElsewhereReachesNoDeviceMemory) {
  const int here = 0;
  EXPECT_EQ(reachable(gpu, {nullptr, &here, pinned_memory(kMiB)}), 0);
}

TEST_F(SimulatedGpuTest, ALaunchAdvancesTheHostClock) {
  launch();
  launch();
  EXPECT_EQ(gpu.host_time(), 2 * kLaunch);
  gpu.streams().synchronise_stream(stream);
  EXPECT_EQ(gpu.host_time(), kLaunch + 2 * kKernel);
}

TEST_F(SimulatedGpuTest, CountsTheReadsOfDataThatIsNotKnown) {
  void* const device = address_space(kMiB);
  std::vector<char> host(8, 'x'), read(8);
  gpu.copies().copy(stream, row(device, host.data(), 8), HostWaits::kUntilDone);
  gpu.copies().copy(stream, row(read.data(), device, 8), HostWaits::kUntilDone);
  EXPECT_EQ(read, host);
  EXPECT_EQ(gpu.unknown_reads(), 0);
  launch();  // may change them
  gpu.copies().copy(stream, row(read.data(), device, 8), HostWaits::kUntilDone);
  EXPECT_EQ(gpu.unknown_reads(), 1);
  gpu.copies().copy(stream, row(pinned_memory(kMiB), device, kMiB), HostWaits::kUntilDone);
  EXPECT_EQ(gpu.unknown_reads(), 2);
}

TEST_F(SimulatedGpuTest, KnowsValuesThatItIsToldUntilAKernelOutsideOfOperators) {
  void* const device = address_space(kMiB);
  const std::vector<char> values(8, 5);
  const OpCall op{.name = "aten::add"};
  gpu.set_values(device, values);
  gpu.begin_op(op);
  launch();
  gpu.end_op();
  EXPECT_EQ(gpu.read_values(device, 8), values);
  EXPECT_EQ(gpu.launches_outside_operators(), 0);
  launch();
  EXPECT_EQ(gpu.read_values(device, 8), std::vector<char>{});
  EXPECT_EQ(gpu.launches_outside_operators(), 1);
}

TEST_F(SimulatedGpuTest, ForgetsValuesOfBlocksThatAreFreedOrAllocatedAnew) {
  void* const device = address_space(kMiB);
  const std::vector<char> values(8, 5);
  gpu.block_allocated(device, 512, nullptr);
  gpu.set_values(device, values);
  gpu.block_freed(device);
  EXPECT_EQ(gpu.read_values(device, 8), std::vector<char>{});
  gpu.set_values(device, values);
  gpu.block_allocated(device, 512, nullptr);
  EXPECT_EQ(gpu.read_values(device, 8), std::vector<char>{});
}

TEST_F(SimulatedGpuTest, AnswersReadsOfUnknownNumbers) {
  void* const device = address_space(kMiB);
  std::int64_t read = -1;
  gpu.answer_reads(768);
  gpu.copies().copy(stream, row(&read, device, sizeof read), HostWaits::kUntilDone);
  EXPECT_EQ(read, 768);
  gpu.answer_reads(std::nullopt);
  gpu.copies().copy(stream, row(&read, device, sizeof read), HostWaits::kUntilDone);
  EXPECT_EQ(read, 0);
}

TEST_F(SimulatedGpuTest, WaitsForPageableCopiesButNotForPinnedOnes) {
  void* const device = address_space(kMiB);
  gpu.copies().copy(stream, row(pinned_memory(kMiB), device, kMiB), HostWaits::kNever);
  EXPECT_EQ(gpu.host_time(), kLaunch);
  std::vector<char> pageable(kMiB);
  gpu.copies().copy(stream, row(pageable.data(), device, kMiB), HostWaits::kNever);
  EXPECT_EQ(gpu.host_time(), kLaunch + 2 * kMiB);
}

TEST_F(SimulatedGpuTest, StagesSmallPageableCopies) {
  std::vector<char> pageable(64 * kKiB);
  gpu.copies().copy(stream, row(address_space(kMiB), pageable.data(), 64 * kKiB), HostWaits::kNever);
  EXPECT_EQ(gpu.host_time(), kLaunch);
}

TEST_F(SimulatedGpuTest, SmallReadsReturnZeros) {
  std::vector<char> pageable(1000, 'x');
  gpu.copies().copy(stream, row(pageable.data(), address_space(kMiB), 1000), HostWaits::kNever);
  EXPECT_THAT(pageable, testing::Each('\0'));
}

TEST_F(SimulatedGpuTest, CopiesAndSetsBytesInFunctionalMode) {
  carry_out();
  auto* const host = static_cast<char*>(pinned_memory(8));
  void* const device = address_space(kMiB);
  host[0] = 7;
  gpu.copies().copy(stream, row(device, host, 4), HostWaits::kNever);
  gpu.copies().set(stream, static_cast<char*>(device) + 1, 9, 1, HostWaits::kNever);
  gpu.copies().copy(stream, row(host + 4, device, 4), HostWaits::kUntilDone);
  EXPECT_EQ(host[4], 7);
  EXPECT_EQ(host[5], 9);
}

/// Only on the stream that computes: copies on other streams are the engine's.
TEST_F(SimulatedGpuTest, ANumberThatAKernelShouldWriteReadsAsZero) {
  carry_out();
  auto* const host = static_cast<char*>(pinned_memory(16));
  void* const device = address_space(kMiB);
  gpu.copies().set(stream, device, 9, 16, HostWaits::kNever);
  const auto read = [&](StreamId from, Bytes bytes) {
    std::memset(host, 'x', 16);
    gpu.copies().copy(from, row(host, device, bytes), HostWaits::kUntilDone);
    return host[0];
  };
  EXPECT_EQ(read(stream, 8), 9);
  launch();
  EXPECT_EQ(read(stream, 8), 0);
  EXPECT_EQ(read(stream, 16), 9);
  EXPECT_EQ(read(gpu.streams().create_stream(StreamKind::kNonBlocking), 8), 9);
}

TEST_F(SimulatedGpuTest, CopiesRowsOfAPitchedCopy) {
  const std::vector<char> from = {1, 2, 0, 3, 4, 0};
  std::vector<char> to(4);
  gpu.copies().copy(
      stream, {.to = to.data(), .from = from.data(), .bytes = 2, .rows = 2, .to_pitch = 2, .from_pitch = 3},
      HostWaits::kNever);
  EXPECT_THAT(to, testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(SimulatedGpuTest, ALoopOfEventQueriesEnds) {
  const EventId event = gpu.streams().create_event(/*keeps_time=*/false);
  gpu.copies().copy(stream, row(pinned_memory(kMiB), address_space(kMiB), kMiB), HostWaits::kNever);
  gpu.streams().record_event(event, stream);
  EXPECT_EQ(gpu.streams().query_event(event), GpuStatus::kNotReady);
  while (gpu.streams().query_event(event) == GpuStatus::kNotReady) {
  }
  EXPECT_GE(gpu.host_time(), kMiB);
}

TEST_F(SimulatedGpuTest, OnlyALoopOfEventQueriesIsAWaitOfTheHost) {
  const EventId event = gpu.streams().create_event(/*keeps_time=*/false);
  gpu.streams().record_event(event, stream);
  gpu.take_work();
  EXPECT_EQ(gpu.streams().query_event(event), GpuStatus::kOk);
  EXPECT_FALSE(gpu.take_work().waits());
  gpu.copies().copy(stream, row(pinned_memory(kMiB), address_space(kMiB), kMiB), HostWaits::kNever);
  gpu.streams().record_event(event, stream);
  while (gpu.streams().query_event(event) == GpuStatus::kNotReady) {
  }
  EXPECT_TRUE(gpu.take_work().waits());
}

TEST_F(SimulatedGpuTest, MeasuresTheTimeBetweenEvents) {
  const EventId begin = gpu.streams().create_event(true), end = gpu.streams().create_event(true);
  Nanoseconds elapsed = 0;
  gpu.streams().record_event(begin, stream);
  EXPECT_EQ(gpu.streams().elapsed_time(&elapsed, begin, end), GpuStatus::kInvalidHandle);
  launch();
  gpu.streams().record_event(end, stream);
  EXPECT_EQ(gpu.streams().elapsed_time(&elapsed, begin, end), GpuStatus::kNotReady);
  gpu.streams().synchronise_event(end);
  EXPECT_EQ(gpu.streams().elapsed_time(&elapsed, begin, end), GpuStatus::kOk);
  EXPECT_EQ(elapsed, kLaunch + kKernel);
  EXPECT_EQ(gpu.event_time(const_cast<void*>(end)), kLaunch + kKernel);
}

TEST_F(SimulatedGpuTest, TheTimeOfAnUnrecordedEventIsAnError) {
  void* const event = const_cast<void*>(gpu.streams().create_event(/*keeps_time=*/true));
  try {
    gpu.event_time(event);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the time of an event was queried, but the event was never recorded");
  }
}

TEST_F(SimulatedGpuTest, TheTimeOfAnUnrecordedEventIsAHazardIfStreamsAreChecked) {
  VirtualGpuOptions options = small_gpu();
  options.checks_streams = true;
  gpu.configure(options);
  launch();
  EXPECT_EQ(gpu.event_time(const_cast<void*>(gpu.streams().create_event(/*keeps_time=*/true))), kLaunch);
  const auto hazards = gpu.take_hazards();
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards[0].what, "an event is used before it was recorded");
}

TEST_F(SimulatedGpuTest, CountsTheOperationsOfEachOperatorOnce) {
  const OperandShape square{.dtype = "float32", .sizes = {16, 16}, .bytes = 1024, .element_bytes = 4};
  OpCall product{.name = "aten::mm", .operands = {square, square}};
  const auto run_product = [&] {
    gpu.begin_op(product);
    launch();
    launch();
    gpu.end_op();
  };
  constexpr double kFlops = 2.0 * 16 * 16 * 16;
  run_product();
  run_product();
  EXPECT_EQ(gpu.take_flops(), 2 * kFlops);
  product.is_computed_again = true;
  run_product();
  EXPECT_EQ(gpu.take_flops(), 0);
  VirtualGpuOptions options = small_gpu();
  options.kernel_times.add_op("aten::mm(float32[16,16],float32[16,16])", 7000);
  gpu.configure(options);
  product.is_computed_again = false;
  run_product();
  EXPECT_EQ(gpu.take_flops(), kFlops) << "with a recorded time of the operator";
  options.kernel_times = {};
  options.kernel_times.add_kernel("kernel|1,1,1|1,1,1", 5000);
  gpu.configure(options);
  run_product();
  EXPECT_EQ(gpu.take_flops(), kFlops) << "with a recorded time of the kernel";
}

TEST_F(SimulatedGpuTest, CountsLaunchesByTheSourceOfTheirTime) {
  launch();
  EXPECT_EQ(gpu.take_launch_times(), std::nullopt);
  VirtualGpuOptions options = small_gpu();
  options.kernel_times.add_op("aten::add(float32[4])", 7000);
  options.kernel_times.add_kernel("kernel|1,1,1|1,1,1", 5000);
  gpu.configure(options);
  const OpCall add{.name = "aten::add", .operands = {{.dtype = "float32", .sizes = {4}, .bytes = 16}}};
  gpu.begin_op(add);
  launch();
  launch();
  gpu.end_op();
  launch();
  gpu.kernels().launch(stream, {.name = "other"});
  EXPECT_EQ(gpu.take_launch_times(), (LaunchTimes{.by_op = 2, .by_kernel = 1, .estimated = 1}));
  EXPECT_EQ(gpu.take_launch_times(), LaunchTimes{});
}

TEST_F(SimulatedGpuTest, OperatorsOfPythonTakeTheHostsTime) {
  VirtualGpuOptions options = small_gpu();
  options.profile.launch_ns = 5;
  options.profile.host = {.operator_ns = 10,
                          .python_call_ns = 200,
                          .recording_ns = 3000,
                          .node_ns = 40000,
                          .launch_ns = 500000,
                          .random_number_ns = 6000000};
  gpu.configure(options);
  gpu.spend_host_time(HostWork::kOperator, 1);
  gpu.spend_host_time(HostWork::kPythonCall, 1);
  gpu.spend_host_time(HostWork::kRecording, 1);
  gpu.spend_host_time(HostWork::kNode, 1);
  EXPECT_EQ(gpu.host_time(), 43210);
  launch();  // outside of operators
  EXPECT_EQ(gpu.host_time(), 43215);
  const OpCall of_module{.name = "aten::add"}, of_python{.name = "aten::add", .is_of_python = true};
  gpu.begin_op(of_module);
  launch();
  gpu.end_op();
  EXPECT_EQ(gpu.host_time(), 43220);
  gpu.begin_op(of_python);
  launch();
  gpu.end_op();
  EXPECT_EQ(gpu.host_time(), 543225);
  gpu.spend_host_time(HostWork::kRandomNumber, 2);
  EXPECT_EQ(gpu.host_time(), 12'543'225);
}

/// Runs an operator within which another one allocates 16 MiB. Returns the time of the outer one's kernel.
Nanoseconds kernel_after(SimulatedGpu& gpu, StreamId stream, const OpCall& inner) {
  const OpCall add{.name = "aten::add", .operands = {{.dtype = "float32", .sizes = {4}, .bytes = 16}}};
  const Nanoseconds begin = gpu.stream_time(const_cast<void*>(stream));
  gpu.begin_op(add);
  gpu.begin_op(inner);
  gpu.block_allocated(&gpu, 16 * kMiB, nullptr);
  gpu.end_op();
  EXPECT_EQ(gpu.kernels().launch(stream, {.name = "kernel"}), GpuStatus::kOk);
  gpu.end_op();
  return gpu.stream_time(const_cast<void*>(stream)) - begin;
}

TEST_F(SimulatedGpuTest, WhatAnOperatorApartAllocatesIsNoneOfTheOneAroundIt) {
  const Nanoseconds of_small = kernel_after(gpu, stream, {.name = "engine", .is_apart = true});
  const Nanoseconds of_large = kernel_after(gpu, stream, {.name = "aten::empty"});
  EXPECT_EQ(of_small, kLaunch + kKernel);
  EXPECT_GT(of_large, 10 * of_small);
}

/// One operator ends while the other still runs.
TEST_F(SimulatedGpuTest, AssignsKernelsToTheOperatorOfTheirThread) {
  VirtualGpuOptions options = small_gpu();
  options.kernel_times.add_op("aten::add(float32[4])", 7000);
  gpu.configure(options);
  std::promise<void> begun, ended;
  const OpCall other{.name = "aten::mul"};
  gpu.begin_op(other);
  std::thread adder([&] {
    const OpCall add{.name = "aten::add", .operands = {{.dtype = "float32", .sizes = {4}, .bytes = 16}}};
    gpu.begin_op(add);
    begun.set_value();
    ended.get_future().wait();
    launch();
    gpu.end_op();
  });
  begun.get_future().wait();
  launch();
  gpu.end_op();
  ended.set_value();
  adder.join();
  EXPECT_EQ(gpu.take_launch_times(), (LaunchTimes{.by_op = 1, .by_kernel = 0, .estimated = 1}));
}

TEST_F(SimulatedGpuTest, RejectsAKernelWithoutCodeForTheGpu) {
  // A fat binary's wrapper, its header, and one entry: machine code for sm_75, of 0 bytes.
  const std::uint32_t blob[4 + 16] = {0xBA55ED50, 16U << 16 | 1, 64, 0, 0x01010002, 64, 0, 0, 0, 0, 0, 75};
  const struct {
    std::uint32_t magic, version;
    const void *data, *linked_with;
  } wrapper{0x466243B1, 1, blob, nullptr};
  static const char kernel = 0;
  gpu.kernels().register_module(&wrapper);
  gpu.kernels().register_kernel(&kernel, "_Z4geluPf", &wrapper);
  EXPECT_EQ(gpu.kernels().launch(stream, &kernel, {}), GpuStatus::kNoCode);
  EXPECT_THAT(gpu.code_problem(), testing::HasSubstr("but this LibTorch has code only for 7.5"));
  VirtualGpuOptions options = small_gpu();
  options.profile.compute_capability_major = 7;
  options.profile.compute_capability_minor = 5;
  gpu.configure(options);
  EXPECT_EQ(gpu.kernels().launch(stream, &kernel, {}), GpuStatus::kOk);
  EXPECT_EQ(gpu.code_problem(), "");
}

TEST_F(SimulatedGpuTest, AnEventCreatedWithoutTimingHasNoTime) {
  const EventId event = gpu.streams().create_event(/*keeps_time=*/false);
  gpu.streams().record_event(event, stream);
  Nanoseconds elapsed = 0;
  EXPECT_EQ(gpu.streams().elapsed_time(&elapsed, event, event), GpuStatus::kInvalidHandle);
}

TEST_F(SimulatedGpuTest, RejectsDestroyedHandles) {
  const EventId event = gpu.streams().create_event(true);
  EXPECT_EQ(gpu.streams().destroy_event(event), GpuStatus::kOk);
  EXPECT_EQ(gpu.streams().record_event(event, stream), GpuStatus::kInvalidHandle);
  EXPECT_EQ(gpu.streams().destroy_stream(stream), GpuStatus::kOk);
  EXPECT_EQ(gpu.kernels().launch(stream, {.name = "kernel"}), GpuStatus::kInvalidHandle);
}

TEST_F(SimulatedGpuTest, CountsLaunchesByDemangledName) {
  static const char kernel = 0, library = 0;
  gpu.kernels().register_kernel(&kernel, "_Z4geluPf", nullptr);
  gpu.kernels().launch(stream, &kernel, {});
  gpu.kernels().launch(stream, &kernel, {});
  gpu.kernels().launch(stream, {.name = "cublasGemmEx"});
  gpu.kernels().launch(stream, &library, {});
  EXPECT_EQ(gpu.launches(), 4);
  EXPECT_THAT(gpu.launches_by_kernel(), testing::UnorderedElementsAre(testing::Pair("gelu(float*)", 2),
                                                                      testing::Pair("cublasGemmEx", 1),
                                                                      testing::Pair("unknown kernel", 1)));
}

TEST_F(SimulatedGpuTest, ChargesAnOperatorsWorkToItsFirstKernel) {
  const OpCall add{.name = "aten::add",
                   .operands = {{.dtype = "float32", .sizes = {256, 1024, 1024}, .bytes = kGiB}}};
  gpu.begin_op(add);
  launch();
  gpu.streams().synchronise_stream(stream);
  const Nanoseconds first = gpu.host_time();
  EXPECT_GT(first, 1'000'000);  // 1 GiB takes longer than a millisecond at 300 GB/s
  launch();
  gpu.streams().synchronise_stream(stream);
  gpu.end_op();
  EXPECT_EQ(gpu.host_time() - first, kLaunch + kKernel);
}

/// Returns the time of an operator that allocates 1 GiB at `block`; as a workspace if `excludes_it`.
Nanoseconds time_of_allocating(SimulatedGpu& gpu, StreamId stream, const void* block, bool excludes_it) {
  const Nanoseconds before = gpu.host_time();
  const OpCall add{.name = "aten::add"};
  gpu.begin_op(add);
  gpu.block_allocated(block, kGiB, const_cast<void*>(stream));
  if (excludes_it) gpu.kernels().exclude_workspace(block);
  gpu.kernels().launch(stream, {.name = "kernel"});
  gpu.streams().synchronise_stream(stream);
  gpu.end_op();
  return gpu.host_time() - before;
}

TEST_F(SimulatedGpuTest, AWorkspaceIsNoTraffic) {
  const char block = 0;
  EXPECT_EQ(time_of_allocating(gpu, stream, &block, true), kLaunch + kKernel);
  EXPECT_GT(time_of_allocating(gpu, stream, &block, false), 1'000'000);  // 1 GiB at 300 GB/s
}

TEST_F(SimulatedGpuTest, AWorkspaceOfAnEarlierOperatorChangesNothing) {
  const char workspace = 0, block = 0;
  const Nanoseconds without = time_of_allocating(gpu, stream, &block, false);
  gpu.block_allocated(&workspace, kGiB, const_cast<void*>(stream));
  const OpCall add{.name = "aten::add"};
  const Nanoseconds before = gpu.host_time();
  gpu.begin_op(add);
  gpu.block_allocated(&block, kGiB, const_cast<void*>(stream));
  gpu.kernels().exclude_workspace(&workspace);
  launch();
  gpu.streams().synchronise_stream(stream);
  gpu.end_op();
  EXPECT_EQ(gpu.host_time() - before, without);
}

TEST_F(SimulatedGpuTest, RecordsAnUnimplementedFunctionOnce) {
  std::vector<std::string> told;
  VirtualGpuOptions options = small_gpu();
  options.log = [&](const std::string& function) { told.push_back(function); };
  gpu.configure(options);
  gpu.unsupported_calls().note_unwritten("cudaFoo");
  gpu.unsupported_calls().note_unwritten("cudaFoo");
  EXPECT_THAT(told, testing::ElementsAre("cudaFoo"));
  EXPECT_THAT(gpu.unwritten_calls(), testing::ElementsAre("cudaFoo"));
}

TEST_F(SimulatedGpuTest, ReportsHazardsIfStreamsAreChecked) {
  VirtualGpuOptions options = small_gpu();
  options.checks_streams = true;
  gpu.configure(options);
  void* const block = address_space(kMiB);
  gpu.block_allocated(block, kMiB, const_cast<void*>(stream));
  launch();
  gpu.copies().copy(gpu.streams().create_stream(StreamKind::kNonBlocking),
                    row(pinned_memory(kMiB), block, kMiB), HostWaits::kNever);
  EXPECT_EQ(gpu.take_hazards().size(), 1U);
  EXPECT_TRUE(gpu.take_hazards().empty());
}

TEST_F(SimulatedGpuTest, KeepsStreamsAndMemoryWhenConfiguredAgain) {
  address_space(kMiB);
  launch();
  gpu.configure(small_gpu());
  EXPECT_EQ(gpu.used_bytes(), 2 * kMiB);
  EXPECT_EQ(gpu.launches(), 0);
  EXPECT_EQ(gpu.host_time(), 0);
  launch();
  EXPECT_EQ(gpu.launches(), 1);
}

TEST_F(SimulatedGpuTest, GivesAModuleVariableOneAddress) {
  static const char shadow = 0, other = 0;
  gpu.memory().register_variable(&shadow, 128);
  void* const address = gpu.memory().variable_address(&shadow);
  EXPECT_EQ(gpu.memory().describe(address).place, MemoryPlace::kDevice);
  EXPECT_EQ(gpu.memory().variable_address(&shadow), address);
  EXPECT_EQ(gpu.memory().variable_address(&other), nullptr);
}

TEST_F(SimulatedGpuTest, ServesSeveralThreads) {
  constexpr int kRounds = 1000;
  auto work = [&] {
    for (int i = 0; i < kRounds; ++i) {
      launch();
      EXPECT_EQ(gpu.memory().free(address_space(kMiB)), GpuStatus::kOk);
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(gpu.launches(), 2 * kRounds);
  EXPECT_EQ(gpu.used_bytes(), 0);
}

}  // namespace
}  // namespace offprof
