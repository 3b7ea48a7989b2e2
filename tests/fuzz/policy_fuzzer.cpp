#include "tests/fuzz/fuzz.h"
#include "traces/format/policy_io.h"

/// Fuzzes policy files. A policy that is parsed and written must be equal when it is parsed again.
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
