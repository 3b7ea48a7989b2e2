#include "traces/model/work.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

/// Reference clocks of the host and the stream of a GPU, one launch after the other.
struct Clocks {
  Nanoseconds host = 0, stream = 0;

  void launch(Nanoseconds launch_ns, Nanoseconds kernel_ns) {
    host += launch_ns;
    stream = std::max(stream, host) + kernel_ns;
  }
  void synchronise() { host = std::max(host, stream); }
  void run(const Work& work) {
    *this = {std::max(host + work.host_ns, stream + work.wait_ns),
             std::max(host + work.path_ns, stream + work.stream_ns)};
  }
};

Work kernel(Nanoseconds launch_ns, Nanoseconds kernel_ns) {
  return {launch_ns, kernel_ns, launch_ns + kernel_ns};
}
constexpr Work kSynchronise = {0, 0, 0, 0};

TEST(Work, CombinesManyKernelsForAnyClocksBefore) {
  std::mt19937 random(3);
  const auto draw = [&](int below) { return std::uniform_int_distribution(0, below - 1)(random); };
  for (int i = 0; i < 1000; ++i) {
    Clocks one_by_one{draw(500), draw(500)};
    Clocks at_once = one_by_one;
    Work all;
    for (int count = draw(20); count > 0; --count) {
      const Nanoseconds launch_ns = draw(10), kernel_ns = draw(30);
      one_by_one.launch(launch_ns, kernel_ns);
      all = then(all, kernel(launch_ns, kernel_ns));
      if (draw(5) != 0) continue;
      one_by_one.synchronise();
      all = then(all, kSynchronise);
    }
    at_once.run(all);
    // Work without any launch leaves the stream's clock behind the host's; the next launch makes up for it.
    EXPECT_EQ(at_once.host, one_by_one.host);
    EXPECT_EQ(std::max(at_once.host, at_once.stream), std::max(one_by_one.host, one_by_one.stream));
  }
}

TEST(Work, IsBoundByTheHostOrTheStream) {
  const Work launches = then(kernel(5, 1), kernel(5, 1));
  EXPECT_EQ(launches, (Work{10, 2, 11}));
  const Work kernels = then(kernel(1, 50), kernel(1, 50));
  EXPECT_EQ(kernels, (Work{2, 100, 101}));
  EXPECT_FALSE(kernels.waits());
  EXPECT_EQ(then(kernels, kSynchronise), (Work{101, 100, 101, 100}));
}

// --- In a trace ---

Trace trace_with_work() {
  Trace trace = virtual_sample_trace();
  for (std::size_t i = 0; i < trace.program.events.size(); ++i) {
    const auto at = static_cast<Nanoseconds>(i);
    trace.program.work.push_back({at, 2 * at, 3 * at, i % 3 == 0 ? at : Work::kNoWait});
  }
  trace.program.staging = {{0, 5000, 1700}};
  return trace;
}

TEST(WorkInATrace, IsReadBack) {
  Trace trace = trace_with_work();
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program, trace.program);
  for (Work& work : trace.program.work) work.wait_ns = Work::kNoWait;
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program, trace.program);
}

/// Returns the error of reading the trace after `change` was made to its step program.
template <typename Change>
std::string error_after(const Change& change) {
  auto document = nlohmann::json::parse(format_trace(trace_with_work()));
  change(document["program"]);
  try {
    parse_trace(document.dump(), "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WorkInATrace, IsRejectedIfItDoesNotMatchTheEvents) {
  EXPECT_NE(error_after([](auto& program) { program["work"]["path_ns"].erase(0); }).find("elements"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& program) { program["work"]["host_ns"][0] = -1; }).find("host_ns"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& program) {
              program["work"]["stream_ns"][0] = std::int64_t{1} << 59;
            }).find("longer than a step can be"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& program) { program["staging"]["tensors"][0] = 999; }).find("staging"),
            std::string::npos);
}

}  // namespace
}  // namespace offprof
