# offprof_embed_page(OUTPUT TEMPLATE STYLE SCRIPT...): writes OUTPUT, the C++ source of page_assets(), from the files of the
# page. The scripts are joined in the given order. The page's Content-Security-Policy names the SHA-256 of style and script.
function(offprof_embed_page output template style)
  offprof_join_as_bytes(template_bytes template_hash ${template})
  offprof_join_as_bytes(style_bytes style_hash ${style})
  offprof_join_as_bytes(script_bytes script_hash ${ARGN})
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
#include "cli/page/page_assets.h"

namespace offprof {
namespace {

constexpr unsigned char kTemplate[] = {@template_bytes@};
constexpr unsigned char kStyle[] = {@style_bytes@};
constexpr unsigned char kScript[] = {@script_bytes@};

template <std::size_t kSize>
std::string_view as_text(const unsigned char (&bytes)[kSize]) {
  return {reinterpret_cast<const char*>(bytes), kSize};
}

}  // namespace

PageAssets page_assets() {
  return {as_text(kTemplate), as_text(kStyle), as_text(kScript), "@style_hash@", "@script_hash@"};
}

}  // namespace offprof
]])
endfunction()

# Sets `bytes` to the bytes of the files as a list for C++, and `hash` to their SHA-256 in hexadecimal digits.
function(offprof_join_as_bytes bytes hash)
  set(joined "")
  set(digits "")
  foreach(name ${ARGN})
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/assets/${name}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    file(READ "${file}" hex HEX)
    string(APPEND joined "${text}")
    string(APPEND digits "${hex}")
  endforeach()
  string(SHA256 sum "${joined}")
  string(REGEX REPLACE "(..)" "0x\\1," list "${digits}")
  set(${bytes} "${list}" PARENT_SCOPE)
  set(${hash} "${sum}" PARENT_SCOPE)
endfunction()
