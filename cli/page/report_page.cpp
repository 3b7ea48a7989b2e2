#include "cli/page/report_page.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/page/html.h"
#include "cli/page/page_assets.h"
#include "cli/page/verdict.h"
#include "traces/io/base64.h"
#include "traces/io/gzip.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

std::string bytes_of_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// Source expression of a Content-Security-Policy for one inline element (CSP Level 3, section 2.3.1).
std::string hash_source(std::string_view sha256) {
  return fmt::format("'sha256-{}'", to_base64(bytes_of_hex(sha256)));
}

std::string security_policy(const PageAssets& assets) {
  return fmt::format("default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
                     hash_source(assets.style_hash), hash_source(assets.script_hash));
}

/// Returns the data of the charts, compressed, because a page may be shared by mail.
std::string encoded_data(const ReportPage& page) {
  nlohmann::ordered_json data = {{"version", 1}, {"runs", nlohmann::ordered_json::array()}};
  for (const ReportRun& run : page.runs) data["runs"].push_back(to_columns(run));
  if (page.frontier) {
    data["frontier"] = to_columns(*page.frontier, *page.runs.front().trace);
    data["frontier"]["source"] = page.runs.front().source;
  }
  return to_base64(compress_gzip(dump_json(data, -1)));
}

}  // namespace

std::string to_html(const ReportPage& page) {
  const PageAssets assets = page_assets();
  const Verdict verdict = judge(page.runs, page.frontier ? &*page.frontier : nullptr);
  return fill_template(assets.page, {{"policy", security_policy(assets)},
                                     {"title", escape_html("offprof: " + page.heading)},
                                     {"style", std::string(assets.style)},
                                     {"script", std::string(assets.script)},
                                     {"heading", escape_html(page.heading)},
                                     {"subtitle", escape_html(page.subtitle)},
                                     {"verdict", to_html(verdict)},
                                     {"footer", escape_html(page.footer)},
                                     {"data", encoded_data(page)}});
}

}  // namespace offprof
