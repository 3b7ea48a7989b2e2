#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/base/command.h"
#include "cli/doctor/doctor_checks.h"

namespace offprof {

struct DoctorReport {
  std::vector<Finding> findings;
  bool run_works = false;  ///< true if nothing that `run` needs is missing
};

DoctorReport make_doctor_report(std::vector<Finding> findings);
nlohmann::ordered_json to_json(const DoctorReport& report);
std::string to_text(const DoctorReport& report, const Page& page);

}  // namespace offprof
