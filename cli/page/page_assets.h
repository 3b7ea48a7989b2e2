#pragma once

#include <string_view>

namespace offprof {

/// Files of the page, which the build embeds. The hashes are SHA-256 in hexadecimal digits.
struct PageAssets {
  std::string_view page;  ///< HTML with a placeholder `{name}` for each part
  std::string_view style, script;
  std::string_view style_hash, script_hash;
};

PageAssets page_assets();

}  // namespace offprof
