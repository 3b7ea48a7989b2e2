#pragma once

#include "engine/devices/virtual_gpu/model/built_in_profiles.h"

namespace offprof {

/// Returns the profiles of clusters. The build generates them from clusters/*.json.
const BuiltInFiles& built_in_clusters();

}  // namespace offprof
