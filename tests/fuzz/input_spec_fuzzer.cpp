#include "engine/models/inputs/input_spec.h"

#include "tests/fuzz/fuzz.h"

/// Fuzzes input specs. A spec that is parsed and written must be equal when it is parsed again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  for (const std::string& line : split_input_specs(as_text(data, size)))
    read_or_refuse([&] {
      const InputSpec spec = parse_input_spec(line);
      OFFPROF_CHECK(parse_input_spec(to_string(spec)) == spec);
    });
  return 0;
}
