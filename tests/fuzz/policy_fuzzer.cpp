#include "tests/fuzz/fuzz.h"
#include "traces/policy_io.h"

/// A policy file that is read and written says the same when it is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const PolicyFile file = parse_policy_file(std::string(as_text(data, size)), "policy.json");
    check_shown(describe(file.policy));
    const std::string written = format_policy_file(file);
    check_shown(written);
    OFFPROF_CHECK(parse_policy_file(written, "written.json").policy == file.policy);
  });
}
