#pragma once

#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/work/op_work.h"

namespace offprof {

/// Returns the share of the peak rate that the kernel of `work`, which has attention, reaches. Those of
/// compute_efficiency and attention_efficiency are of long sequences: see profile.h.
double attention_share(const DeviceProfile& profile, const OpWork& work);

/// Returns the seconds of the kernels of attention before and after that of backward; 0 if there are none.
double beside_backward_seconds(const DeviceProfile& profile, const AttentionShape& shape);

}  // namespace offprof
