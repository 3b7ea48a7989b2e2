#include "traces/format/gradient_error_io.h"

#include <cmath>
#include <limits>

namespace offprof {
namespace {

nlohmann::ordered_json figure_to_json(double figure) {
  return std::isfinite(figure) ? nlohmann::ordered_json(figure) : nlohmann::ordered_json(nullptr);
}

double figure_from_json(const JsonValue& object, std::string_view key, double least) {
  const auto value = object.find(key);
  if (!value) return std::numeric_limits<double>::quiet_NaN();
  if (!value->json().is_number()) value->fail("is not a number");
  const auto figure = value->json().get<double>();
  if (figure < least) value->fail("is too small");
  return figure;
}

}  // namespace

nlohmann::ordered_json gradient_errors_to_json(const std::vector<GradientError>& errors) {
  auto json = nlohmann::ordered_json::array();
  for (const GradientError& error : errors)
    json.push_back({{"parameter", error.parameter},
                    {"max_abs", figure_to_json(error.max_abs)},
                    {"relative_norm", figure_to_json(error.relative_norm)},
                    {"cosine", figure_to_json(error.cosine)}});
  return json;
}

std::vector<GradientError> gradient_errors_from_json(const JsonValue& json) {
  constexpr double kLeastCosine = -1.001;  // below -1 because of rounding
  std::vector<GradientError> errors;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue row = json.element(i);
    errors.push_back({row.at("parameter").as_string(), figure_from_json(row, "max_abs", 0),
                      figure_from_json(row, "relative_norm", 0),
                      figure_from_json(row, "cosine", kLeastCosine)});
  }
  return errors;
}

}  // namespace offprof
