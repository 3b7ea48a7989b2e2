#include "simulator/other_engines/engine_import.h"

#include <array>

#include "simulator/other_engines/import_sources.h"

namespace offprof {
namespace {

constexpr std::array<ImportSource, 3> kSources = {{
    {"deepspeed", "DeepSpeed", "JSON", import_from_deepspeed},
    {"megatron", "Megatron-LM", "flags", import_from_megatron},
    {"trl", "TRL", "YAML, JSON or Python", import_from_trl},
}};

}  // namespace

std::span<const ImportSource> import_sources() {
  return kSources;
}

}  // namespace offprof
